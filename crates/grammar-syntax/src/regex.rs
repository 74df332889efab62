//! A regular expression as a grammar: its texts are those that it matches from beginning to end.

pub use palmette_grammar_regex::parse::{Dialect, Flags, RegexError};

use palmette_grammar_regex::parse::{
    Note, Reading, parse_noting,
    restrict::{is_nullable, non_empty},
};

use crate::json_schema::Warning;
use crate::{Budget, Grammar, GrammarBuilder, Lexing, Regex, Span, Symbol, Terminal, TerminalKind};

/// Options of [`parse`]; the default is the crate `regex`'s dialect without flags.
///
/// What the crate `regex` refuses is read as Python's `re` would: lookarounds, `\Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegexOptions {
    /// Notation of the expression.
    pub dialect: Dialect,
    /// Switches for all of it.
    pub flags: Flags,
}

impl Default for RegexOptions {
    fn default() -> Self {
        Self { dialect: Dialect::Rust, flags: Flags::default() }
    }
}

/// The grammar of the texts that `source` matches from beginning to end: one terminal, and the
/// empty text if it is matched.
///
/// # Errors
/// When the expression cannot be read in its dialect.
///
/// ```
/// use palmette_grammar_syntax::regex::{RegexOptions, parse};
///
/// let grammar = parse("[0-9]{4}-[0-9]{2}", &RegexOptions::default())?;
/// assert_eq!(grammar.terminals().len(), 1);
/// # Ok::<_, palmette_grammar_syntax::regex::RegexError>(())
/// ```
pub fn parse(source: &str, options: &RegexOptions) -> Result<Grammar, RegexError> {
    parse_with_budget(source, options, &mut Budget::unlimited())
}

/// [`parse`], as long as the budget lasts and nobody calls it off.
///
/// # Errors
/// As [`parse`], and when the work is [`interrupted`](RegexError::interrupted).
pub fn parse_with_budget(
    source: &str,
    options: &RegexOptions,
    budget: &mut Budget<'_>,
) -> Result<Grammar, RegexError> {
    parse_with_warnings(source, options, budget).map(|(grammar, _)| grammar)
}

/// [`parse_with_budget`], with what dialects read differently.
///
/// # Errors
/// As [`parse_with_budget`].
pub fn parse_with_warnings(
    source: &str,
    options: &RegexOptions,
    budget: &mut Budget<'_>,
) -> Result<(Grammar, Vec<Warning>), RegexError> {
    // A byte order mark, as files from Windows begin.
    let source = source.strip_prefix('\u{FEFF}').unwrap_or(source);
    let mut notes = Vec::new();
    let regex = read(source, options, (budget, &mut notes))?;
    let warning = |note: Note| {
        let span = Span::locate(source, note.offset, source.len());
        Warning { pointer: String::new(), span, message: note.message }
    };
    let mut builder = GrammarBuilder::new();
    let span = Some(Span::locate(source, 0, source.len()));
    let root = builder.nonterminal("root", span);
    if is_nullable(&regex) {
        builder.rule(root, []);
    }
    let terminal = builder.terminal(Terminal {
        name: source.to_owned(),
        regex: non_empty(&regex),
        priority: 0,
        kind: TerminalKind::Pattern,
        span,
    });
    builder.rule(root, [Symbol::Terminal(terminal)]);
    Ok((builder.build(root, Lexing::Any), notes.into_iter().map(warning).collect()))
}

/// The expression itself, as long as the budget lasts and nobody calls it off.
pub(crate) fn read_with_budget(
    source: &str,
    options: &RegexOptions,
    budget: &mut Budget<'_>,
) -> Result<Regex, RegexError> {
    read(source, options, (budget, &mut Vec::new()))
}

/// The expression, in its dialect, or in Python's where the crate `regex` refuses it; the error
/// then is of the latter, which has a way out.
fn read(
    source: &str,
    &RegexOptions { dialect, flags }: &RegexOptions,
    (budget, notes): (&mut Budget<'_>, &mut Vec<Note>),
) -> Result<Regex, RegexError> {
    match parse_noting(source, dialect, flags, Reading::Text, (&mut *budget, &mut *notes)) {
        Err(error) if dialect == Dialect::Rust && error.interrupted.is_none() => {
            parse_noting(source, Dialect::Python, flags, Reading::Text, (budget, notes))
        }
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_text_is_a_rule_of_its_own() {
        let grammar = parse("a*", &RegexOptions::default()).expect("sound");
        assert_eq!(grammar.rules().len(), 2);
        assert!(grammar.rules()[0].body.is_empty());
        assert!(!is_nullable(&grammar.terminals()[0].regex));
        let grammar = parse("a+", &RegexOptions::default()).expect("sound");
        assert_eq!(grammar.rules().len(), 1);
    }

    #[test]
    fn what_the_crate_regex_refuses_is_read_as_python_does() {
        let read = |source| parse(source, &RegexOptions::default());
        for source in
            [r"a\Z", r"a(?=b)b", r"(?!ab)[ab]{2}", r"(?P<year>[0-9]{4})(?<!0)\Z", r"\p{Lu}\z"]
        {
            assert!(read(source).is_ok(), "{source}");
        }
        for (source, message) in
            [(r"(a)(?=b)\1", "refer"), (r"a(?>b|bc)", "atomic"), (r"a[", "close it with `]`")]
        {
            let error = read(source).expect_err(source).to_string();
            assert!(error.contains(message), "{source}: {error}");
        }
    }
}
