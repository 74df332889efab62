//! Front ends: readers of grammars as their authors write them. Each makes a [`Grammar`] and nothing else.
//!
//! - [`json_schema`]: JSON Schema, by cases of types, exact where it is accepted;
//! - [`lark`]: the dialect of the lark package and of llguidance;
//! - [`gbnf`]: llama.cpp's notation;
//! - [`regex`]: a regular expression;
//! - [`structural_tag`]: free text in which tags have formats of their own.
//!
//! A source that cannot be expressed is refused with its place; nesting has limits, so none is read by unbounded recursion.
#![forbid(unsafe_code)]

mod catalog_references;
mod free_text;
pub mod gbnf;
pub mod json_schema;
pub mod lark;
mod misspelling;
mod named_tokens;
pub mod regex;
pub mod structural_tag;
mod token_references;

pub use palmette_grammar_parser::Span;
use palmette_grammar_parser::{
    DistinctNames, Grammar, GrammarBuilder, Indentation, Interrupted, Lexing, MemberSpelling,
    NonterminalId, Rule, Slot, SlotId, Symbol, Terminal, TerminalId, TerminalKind,
};
use palmette_grammar_regex::{Budget, CharClass, Multiple, Regex, TokenPart, TokenPattern};
