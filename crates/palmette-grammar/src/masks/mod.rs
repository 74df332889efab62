//! Mask engines: which tokens may follow a position.

mod automaton;
mod mask_row;
mod pieces;
mod walk;

pub(crate) use automaton::{Above, MaskId as PartId, SavedMemo, SavedNode, UNREAD};
pub use automaton::{AutomatonStatistics, MaskAutomaton, VocabularySlices};
pub use walk::{TrieWalk, WalkScratch};
