//! Grammars by definition: what a sentence is, what may follow, and random grammars to ask about.
//!
//! - [`Earley`]: sequences of terminals.
//! - [`TextOracle`]: texts, whatever the [`Lexing`](palmette_grammar_parser::Lexing).
//! - [`Machine`]: acceptance of whole texts by a recognizer.
//! - [`regex`]: regular expressions by definition.
//! - [`generate`]: random grammars and vocabularies, and grammars written in a line.

mod earley;
pub mod generate;
mod lr_stacks;
mod machine;
pub mod regex;
mod text;

pub use earley::{Earley, EarleyGrammar};
pub use machine::Machine;
pub use text::TextOracle;
