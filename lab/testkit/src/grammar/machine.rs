//! Acceptance of whole texts.

use std::sync::Arc;

use palmette_grammar_parser::{Budget, Grammar, Recognizer, RecognizerLimits, RecognizerScratch};

/// A recognizer that reads whole texts.
#[derive(Debug)]
pub struct Machine(Recognizer);

impl Machine {
    /// The recognizer of a grammar.
    ///
    /// # Errors
    /// When a limit is exceeded: the reason in words.
    pub fn new(grammar: &Grammar) -> Result<Self, String> {
        let grammar = Arc::new(grammar.clone());
        Recognizer::new(grammar, &RecognizerLimits::default(), &mut Budget::unlimited())
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// True when `text` is in the language.
    ///
    /// # Panics
    /// When a limit is exceeded.
    pub fn accepts(&self, text: &str) -> bool {
        let mut scratch = RecognizerScratch::default();
        let Some(start) = self.0.start() else { return false };
        let end = self.0.advance_all(start, text.as_bytes(), &mut scratch).expect("the limits");
        end.is_some_and(|end| self.0.is_accepting(&end, &mut scratch).expect("the limits"))
    }
}
