//! Exact token masks: the automaton engine, which reads LR stacks from the top.
//!
//! - [`residuals`]: token effects of residuals, and the simulation of the parser that decides about suffixes;
//! - [`stack_automaton`]: the memo that reads stacks from the top; [`stack_trees`], its plain form for tokens that are walked;
//! - [`mask_pool`]: masks by number, delta-encoded;
//! - [`automaton`]: the engine itself, which puts them together under a lock.

mod automaton;
mod children;
mod chunks;
mod hash_index;
mod interned;
mod mask_pool;
mod residuals;
mod stack_automaton;
mod stack_trees;

pub(crate) use automaton::{Above, LexemeAhead, SavedMemo, SavedNode, SavedStackAutomaton, UNREAD};
pub use automaton::{AutomatonStatistics, MaskAutomaton, PreparedVocabulary};
pub(crate) use mask_pool::PoolId;
