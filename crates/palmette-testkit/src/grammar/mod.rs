//! Grammars by definition: what a sentence is, what may follow, and random grammars to ask about.
//!
//! - [`Earley`]: sequences of terminals.
//! - [`TextOracle`]: texts, whatever the [`Lexing`](palmette_grammar::Lexing).
//! - [`regex`]: regular expressions by definition.
//! - [`generate`]: random grammars and vocabularies, and grammars written in a line.

mod earley;
pub mod generate;
mod lr_stacks;
pub mod regex;
mod text;

pub use earley::{Earley, EarleyGrammar};
pub use text::TextOracle;
