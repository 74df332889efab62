//! Mask engines: which tokens may follow a position.

mod walk;

pub use walk::{TrieWalk, WalkScratch};
