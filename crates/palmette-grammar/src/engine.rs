//! The engines, for this project's own tests and benches; no stability.

pub use crate::rules::{reduce, used_terminals};
pub use crate::walk::{TrieWalk, WalkScratch};

/// LR(1) stacks with ways to merge: the generalised parser.
pub mod glr {
    pub use crate::glr::*;
}

/// Terminals' derivatives side by side, built as they are read.
pub mod lexer {
    pub use crate::lexer::*;
}

/// LALR(1) tables.
pub mod lr {
    pub use crate::lr::*;
}

/// The mask engine that reads stacks.
pub mod masks {
    pub use crate::masks::*;
}

/// Bytes read by lexer and parser together.
pub mod recognizer {
    pub use crate::recognizer::*;
}

/// Regular expressions and their readers.
pub mod regex {
    pub use crate::regex::parse;
}

/// The mask engine that asks rows of terminal sequences.
pub mod store {
    pub use crate::blocks::{Letter, Line};
    pub use crate::grammar::ignored_terminals;
    pub use crate::store::*;
}

/// The vocabulary trie and what is derived from it.
pub mod vocabulary {
    pub use crate::vocabulary::*;
}
