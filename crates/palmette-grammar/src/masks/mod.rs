//! Mask engines: which tokens may follow a position.

mod automaton;
mod walk;

pub(crate) use automaton::{Above, MaskId as PartId, SavedMemo, SavedNode};
pub use automaton::{AutomatonStatistics, MaskAutomaton, VocabularySlices};
pub use walk::{TrieWalk, WalkScratch};
