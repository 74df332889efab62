//! Mask engines: which tokens may follow a position.

mod automaton;
mod walk;

pub(crate) use automaton::MaskId as PartId;
pub use automaton::{AutomatonStatistics, MaskAutomaton, VocabularySlices};
pub use walk::{TrieWalk, WalkScratch};
