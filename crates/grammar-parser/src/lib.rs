//! Grammars, and the parser that reads texts by them byte by byte: a streaming lexer, LALR(1) tables, GLR.
//!
//! 1. A [`Grammar`] is rules over *terminals*, each with a regular expression. Front ends make it.
//! 2. The [`lexer`] is a lazy DFA: its states are derivatives of the terminals' expressions, made when a byte leads there.
//! 3. [`rules`] reduces the grammar, [`lr`] makes its LALR(1) tables; conflicts are kept, and [`analyse`] reports them.
//! 4. [`glr`] parses with a graph-structured stack: all LR stacks that the text may have led to, sharing what they have in common. Its
//!    partial stacks are stacks of which only the top is known.
//! 5. [`blocks`] and [`names`] stand between lexer and parser: indentation, and scopes of distinct names.
//! 6. The [`Recognizer`] reads bytes with all of these. Its [`Position`] is every reading of a text so far, and is live by its existence.
//!
//! Nothing here knows tokens of a vocabulary.
#![forbid(unsafe_code)]

mod analysis;
pub mod blocks;
pub mod glr;
mod grammar;
pub mod lexer;
pub mod lr;
pub mod names;
pub mod recognizer;
pub mod rules;
mod span;

pub use analysis::{Analysis, Conflict, Diagnostic, Severity, analyse};
pub use glr::{LimitError, ParserLimits};
pub use grammar::{
    DistinctNames, EmbedError, Grammar, GrammarBuilder, Indentation, Lexing, MemberSpelling,
    Nonterminal, NonterminalId, Rule, Slot, Symbol, Terminal, TerminalId, TerminalKind,
    TerminalSet, ignored_terminals,
};
pub use lexer::{LexerError, LexerLimits};
pub use lr::{TableError, TableLimits};
pub use palmette_core::SlotId;
pub use palmette_grammar_regex::{
    Budget, CharClass, Interrupted, Multiple, Regex, TokenError, TokenPart, TokenPattern,
};
pub use recognizer::{
    CompileError, DeadEnd, DeadEnds, Expected, Position, Recognizer, RecognizerError,
    RecognizerLimits, RecognizerScratch,
};
pub use span::Span;
