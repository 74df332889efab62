//! Grammars as constraints: which tokens may follow so that the text can still become a sentence.
//!
//! A front end ([`frontends`]) reads a grammar as its author wrote it and makes a [`Grammar`]: rules over
//! *terminals*, each with the texts it matches as a [`Regex`].
//!
//! # The language
//! A text is in the language when it can be cut into *lexemes*, each matched by a terminal, such that the
//! terminals, less the ignored ones, are a sentence of the rules. How it may be cut is the grammar's [`Lexing`]:
//!
//! - [`Lexing::Any`]: in any way. The grammar then is a context-free grammar over characters.
//! - [`Lexing::Longest`]: each lexeme is the longest that any terminal matches at its place, as programming
//!   languages are read. Of the terminals that match it, those of the highest priority count; at equal
//!   priority a [`TerminalKind::Literal`] goes before a [`TerminalKind::Pattern`] that is not ignored; if several are
//!   left, each may be meant. A terminal that would lose every one of its lexemes in this way loses none.
//!
//! No lexeme is empty. A terminal's regex may match the empty text only for a front end to split it off.
#![forbid(unsafe_code)]

pub mod analysis;
mod blocks;
mod budget;
mod constraint;
pub mod frontends;
pub mod glr;
pub mod grammar;
pub mod lexer;
pub mod lr;
pub mod masks;
pub mod recognizer;
pub mod regex;
pub mod store;
mod terminal_set;
pub mod vocabulary;

pub use budget::{Budget, Interrupted};
pub use constraint::{CommitBytesError, GrammarConstraint, GrammarScratch, GrammarState};
pub use glr::{LimitError, Parser, ParserLimits, ParserScratch, Stacks};
pub use grammar::{
    Grammar, GrammarBuilder, Indentation, Lexing, NonterminalId, Rule, Symbol, Terminal,
    TerminalId, TerminalKind,
};
pub use recognizer::{Position, Recognizer, RecognizerLimits};
pub use regex::{CharClass, Regex};
pub use terminal_set::TerminalSet;
