//! Crates below the facade, for this project's own tests and benches; no stability.

pub use palmette_masks::vocabulary;
pub use palmette_masks::walk::{TrieWalk, WalkScratch};
pub use palmette_parser::rules::{reduce, used_terminals};
pub use palmette_parser::{glr, lexer, lr, recognizer};
pub use palmette_regex as regex;

/// The mask engine that reads stacks.
pub mod masks {
    pub use palmette_masks::*;
}

/// The mask engine that asks rows of terminal sequences.
pub mod store {
    pub use palmette_masks::store::*;
    pub use palmette_parser::blocks::{Letter, Line};
    pub use palmette_parser::ignored_terminals;
}
