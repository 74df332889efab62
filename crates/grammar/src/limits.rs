//! Limits of compiling, by the names that messages have for them.

use crate::RecognizerLimits;

/// Limits of a [`GrammarCache`](crate::GrammarCache) and of the grammars compiled in it.
#[derive(Clone, Debug)]
pub struct CacheLimits {
    /// Memory of all grammars together, without what vocabularies take.
    pub max_bytes: usize,
    /// The [work](crate::Budget) that compiling one grammar may take.
    pub steps: u64,
    /// Limits of each grammar.
    pub recognizer: RecognizerLimits,
}

impl Default for CacheLimits {
    /// 1 GiB, minutes of work.
    fn default() -> Self {
        Self { max_bytes: 1 << 30, steps: 20_000_000_000, recognizer: RecognizerLimits::default() }
    }
}

/// A limit that nobody has a name for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no limit {name:?}; there are {}", CacheLimits::NAMES.join(", "))]
pub struct UnknownLimit {
    /// The name given.
    pub name: String,
}

impl CacheLimits {
    /// Names of the limits of one grammar, as [`set`](Self::set) takes them.
    pub const NAMES: [&str; 8] = [
        "steps",
        "max_states",
        "max_expressions",
        "max_nesting",
        "max_visited",
        "max_step_work",
        "max_items",
        "max_links",
    ];

    /// Sets a limit of one grammar by its name in messages; a number that is too large for its kind
    /// is the largest.
    ///
    /// # Errors
    /// When no limit has the name.
    pub fn set(&mut self, name: &str, number: u64) -> Result<(), UnknownLimit> {
        let size = usize::try_from(number).unwrap_or(usize::MAX);
        let (lexer, parser) = (&mut self.recognizer.lexer, &mut self.recognizer.parser);
        match name {
            "steps" => self.steps = number,
            "max_states" => (lexer.max_states, parser.tables.max_states) = (size, size),
            "max_expressions" => lexer.max_expressions = size,
            "max_nesting" => lexer.max_nesting = u32::try_from(number).unwrap_or(u32::MAX),
            "max_visited" => lexer.max_visited = size,
            "max_step_work" => lexer.max_step_work = number,
            "max_items" => parser.tables.max_items = size,
            "max_links" => parser.max_links = size,
            _ => return Err(UnknownLimit { name: name.to_owned() }),
        }
        Ok(())
    }
}
