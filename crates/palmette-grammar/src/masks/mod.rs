//! Mask engines: which tokens may follow a position.

mod automaton;
mod children;
mod chunks;
mod hash_index;
mod interned;
mod mask_row;
mod pieces;
mod read_nodes;
mod stack_trees;

pub(crate) use automaton::{
    Above, LexemeAhead, MaskId as PartId, SavedMemo, SavedNode, SavedReading, UNREAD,
};
pub use automaton::{AutomatonStatistics, MaskAutomaton, VocabularySlices};
