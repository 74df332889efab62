//! Grammars in the EBNF of llama.cpp (GBNF) and XGrammar.
//!
//! `root ::= "yes" | "no" detail{1,3}`: rules of literals, classes `[a-z]`, any character `.`,
//! groups, alternatives and repetitions. The text of the rule `root` is the language; how it is cut
//! does not matter ([`Lexing::Any`]).
//!
//! Line breaks are blanks: a rule goes on until the next `name ::=`, as XGrammar has it. Where
//! llama.cpp is stricter the meaning is the same.
//!
//! Steps: `reader` makes a tree of each rule, in which XGrammar's `macros` are written out;
//! `collapse` finds what is regular; `build` makes terminals of it, so that the lexer does the
//! work, and makes rules of the rest.
//!
//! [`Lexing::Any`]: crate::Lexing::Any

mod build;
mod collapse;
mod macros;
mod reader;
mod repeat;
mod syntax;

use crate::Span;
use crate::{Budget, Grammar, Interrupted};

/// Options of [`parse`]; the default starts at `root`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GbnfOptions {
    /// The rule whose texts are the language.
    pub root: String,
}

impl Default for GbnfOptions {
    fn default() -> Self {
        Self { root: "root".to_owned() }
    }
}

/// Error of a text that is no grammar that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{span}: {message}")]
pub struct GbnfError {
    /// The place.
    pub span: Span,
    /// The problem there, the rule and the way out.
    pub message: String,
    /// The reason for which the work stopped, if the budget ran out or it was called off: then
    /// nothing need be wrong with the grammar.
    pub interrupted: Option<Interrupted>,
}

impl GbnfError {
    fn stopped(source: &str, at: (usize, usize), why: Interrupted) -> Self {
        let (span, message) = (Span::locate(source, at.0, at.1), why.to_string());
        Self { span, message, interrupted: Some(why) }
    }
}

/// The grammar that `source` writes.
///
/// # Errors
/// The place and what is wrong there: no sound EBNF, a rule that is missing or defined twice, a
/// construct that is not supported (lookaheads), or a limit passed.
///
/// ```
/// use palmette_grammar_syntax::gbnf::{GbnfOptions, parse};
///
/// let grammar = parse(r#"root ::= "(" root ")" | [0-9]+"#, &GbnfOptions::default())?;
/// assert_eq!(grammar.terminals().len(), 3);
/// # Ok::<_, palmette_grammar_syntax::gbnf::GbnfError>(())
/// ```
pub fn parse(source: &str, options: &GbnfOptions) -> Result<Grammar, GbnfError> {
    parse_with_budget(source, options, &mut Budget::unlimited())
}

/// [`parse`], as long as the budget lasts and nobody calls it off.
///
/// # Errors
/// As [`parse`], and when the work is [`interrupted`](GbnfError::interrupted).
pub fn parse_with_budget(
    source: &str,
    options: &GbnfOptions,
    budget: &mut Budget<'_>,
) -> Result<Grammar, GbnfError> {
    // A byte order mark, as files from Windows begin.
    let source = source.strip_prefix('\u{FEFF}').unwrap_or(source);
    let rules = reader::read(source, budget)?;
    build::build(source, &rules, &options.root, budget)
}
