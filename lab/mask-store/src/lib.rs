//! The mask store, a second engine of token masks: for each position of the lexer, which sequences
//! of terminals each token can spell.
//!
//! The vocabulary trie is all that it shares with the
//! [automaton](palmette_grammar_masks::MaskAutomaton), so each is the other's oracle. It is kept
//! plain: rows are found anew for each position of the lexer, and asked of the parser for each
//! mask.
//!
//! A mask is the union of the token sets of those *rows* whose sequence the parser accepts. So a
//! mask costs a question to the parser for each row, and *streamlining* makes the rows fewer
//! without changing any mask:
//!
//! 1. [`Interchange`]: terminals that the rules cannot tell apart share their rows.
//! 2. [`Successors`]: rows go in which a terminal follows one that it cannot follow.
//!
//! [`Speller`] and [`Streamliner`] do this for any [`LexemeAutomaton`]; [`MaskStore`] does it for
//! the positions of a [`Lexer`](palmette_grammar_parser::lexer::Lexer), when they are first
//! visited.
//!
//! Source: V. Tran-Thien, "Accelerating LLM Code Generation Through Mask Store Streamlining"
//! (2025). We differ: rows are kept per position of a lexer that knows about longest lexemes, a
//! row's sequence begins with the lexeme in progress rather than after it. Its steps 3 and 4, of
//! whole sequences, stand in `examples/streamline`.
#![forbid(unsafe_code)]

mod automaton;
mod interchange;
mod rows;
mod rules;
mod spelling;
mod store;
mod streamline;
mod successors;

pub use automaton::LexemeAutomaton;
pub use interchange::Interchange;
pub use rules::Rules;
pub use spelling::{Speller, Spellings};
pub use store::{MaskStore, StoreStatistics};
pub use streamline::{Steps, Streamliner};
pub use successors::Successors;
