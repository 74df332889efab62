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
//! 3. [`Legality`]: rows go whose neighbours are never legal, and ends are dropped that are always
//!    legal after the terminal before them.
//! 4. [`Legality`] of whole rows and of ends of any length.
//! 5. Ends that are always legal after the two terminals before them.
//! 6. Rows that exactly the same stacks accept become one.
//!
//! [`Speller`] and [`Streamliner`] do this for any [`LexemeAutomaton`]; [`MaskStore`] does it for
//! the positions of a [`Lexer`](palmette_grammar_parser::lexer::Lexer), when they are first
//! visited, and [`StoreConstraint`] is a grammar with such masks. [`RowCounts`] has what is left
//! after each step.
//!
//! It is exact for the grammars that it reads; others it [refuses](StoreRefusal) by name.
//!
//! Source: V. Tran-Thien, "Accelerating LLM Code Generation Through Mask Store Streamlining"
//! (2025). We differ: rows are kept per position of a lexer that knows about longest lexemes, a
//! row's sequence begins with the lexeme in progress rather than after it. Its steps are the first
//! four; steps 5 and 6 are two things that it leaves to future work.
#![forbid(unsafe_code)]

mod automaton;
mod constraint;
mod interchange;
mod joint;
mod legality;
mod long_steps;
mod reading;
mod refusal;
mod row_counts;
mod rows;
mod rules;
mod spelling;
mod steps;
mod store;
mod streamline;
mod successors;

pub use automaton::LexemeAutomaton;
pub use constraint::{StoreConstraint, StoreScratch};
pub use interchange::Interchange;
pub use legality::Legality;
pub use refusal::StoreRefusal;
pub use row_counts::{RowCountError, RowCounts};
pub use rules::Rules;
pub use spelling::{Speller, Spellings};
pub use steps::{Step, Steps};
pub use store::{MaskStore, StoreStatistics};
pub use streamline::Streamliner;
pub use successors::Successors;
