//! Names of the crates below, for this crate's own tests and benches; no stability. Tests of one
//! crate alone are in that crate.

pub use palmette_grammar_parser::{glr, lexer, recognizer};
pub use palmette_grammar_regex as regex;

/// The mask engine that reads stacks.
pub mod masks {
    pub use palmette_grammar_masks::*;
}
