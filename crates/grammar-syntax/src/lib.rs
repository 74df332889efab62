//! Front ends: readers of grammars as their authors write them. Each makes a [`Grammar`] and
//! nothing else.
//!
//! - [`json_schema`]: JSON Schema, by cases of types, exact where it is accepted;
//! - [`lark`]: the dialect of the lark package and of llguidance;
//! - [`gbnf`]: llama.cpp's notation;
//! - [`regex`]: a regular expression;
//! - [`structural_tag`]: free text in which tags have formats of their own.
//!
//! A source that cannot be expressed is refused with its place; nesting has limits, so none is read
//! by unbounded recursion.
//!
//! # Invariants
//! - A front end refuses what it cannot express, with the place; nothing of a grammar is left out
//!   unless an option asks for it, and then it is reported. Sources are read without unbounded
//!   recursion: nesting has a limit.
//! - Front ends make a `Grammar` and nothing else; lexer, parser and masks know no syntax (their
//!   crates do not depend on the front ends), but that the memory of names reads JSON strings.
//!   Lexer and parser know no vocabulary.
//!
//! # Decisions
//! - **JSON Schema by cases.** A schema becomes a union of sets of values, each of one type, with
//!   negation pushed inwards, so that `not`, `oneOf` and `if` are exact. Only then are rules made,
//!   and only of the goals that are reached. Nonterminals whose rules are equal are made one
//!   (`sharing.rs`), so that alternatives which begin alike are one stack of the parser as long as
//!   they do.
#![forbid(unsafe_code)]

mod catalog_references;
mod chunks;
mod free_text;
pub mod gbnf;
pub mod json_schema;
pub mod lark;
mod misspelling;
mod named_tokens;
pub mod regex;
pub mod structural_tag;
mod substring_references;
mod token_references;

pub use palmette_grammar_parser::Span;
use palmette_grammar_parser::{
    DistinctNames, Grammar, GrammarBuilder, GroupLimit, Indentation, Interrupted, Lexing,
    MemberScope, MemberSpelling, NonterminalId, OwnSet, Rule, ScopeKind, Slot, SlotId, SlotKind,
    SubstringRule, SubstringUnit, Symbol, Terminal, TerminalId, TerminalKind, TokenLimit,
};
use palmette_grammar_regex::{Budget, CharClass, Multiple, Regex, TokenPart, TokenPattern};
