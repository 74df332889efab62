//! Grammars in the EBNF of llama.cpp (GBNF) and XGrammar.
//!
//! `root ::= "yes" | "no" detail{1,3}`: rules of literals, classes `[a-z]`, any character `.`, groups, alternatives and
//! repetitions. The text of the rule `root` is the language; how it is cut does not matter ([`Lexing::Any`]).
//!
//! Line breaks are blanks: a rule goes on until the next `name ::=`, as XGrammar has it. Where llama.cpp is stricter
//! the meaning is the same.
//!
//! Steps: `reader` makes a tree of each rule; `collapse` finds what is regular; `build` makes terminals of it, so that the lexer
//! does the work, and makes rules of the rest.
//!
//! [`Lexing::Any`]: crate::Lexing::Any

mod build;
mod collapse;
mod reader;
mod repeat;
mod syntax;

use super::Span;
use crate::Grammar;

/// How [`parse`] reads; the default starts at `root`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GbnfOptions {
    /// The rule whose texts are the language.
    pub root: String,
}

impl Default for GbnfOptions {
    fn default() -> Self {
        Self { root: "root".to_owned() }
    }
}

/// Why a text is no grammar that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{span}: {message}")]
pub struct GbnfError {
    /// Where.
    pub span: Span,
    /// What is wrong there, the rule and the way out.
    pub message: String,
}

/// The grammar that `source` writes.
///
/// # Errors
/// The place and what is wrong there: no sound EBNF, a rule that is missing or defined twice, a construct that is not
/// supported (tokens by number, lookaheads), or a limit passed.
///
/// ```
/// use palmette_grammar::frontends::gbnf::{GbnfOptions, parse};
///
/// let grammar = parse(r#"root ::= "(" root ")" | [0-9]+"#, &GbnfOptions::default())?;
/// assert_eq!(grammar.terminals().len(), 3);
/// # Ok::<_, palmette_grammar::frontends::gbnf::GbnfError>(())
/// ```
pub fn parse(source: &str, options: &GbnfOptions) -> Result<Grammar, GbnfError> {
    let rules = reader::read(source)?;
    build::build(source, &rules, &options.root)
}
