//! Grammars by definition: what a sentence is, what may follow, and random grammars to ask about.

mod earley;
pub mod generate;

pub use earley::{Earley, EarleyGrammar};
