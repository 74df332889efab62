//! Generalized LR parsing over a persistent graph-structured stack.
//!
//! [`Parser`] is frozen, [`Stacks`] is a position, [`ParserScratch`] is a thread's. A position
//! holds every LR stack that the terminals read so far may have led to; stacks share what they have
//! in common, with other positions too.
//!
//! It is exact for every context-free grammar: ambiguous, cyclic, left recursive in whatever way,
//! with empty rules.

mod deterministic;
mod level;
mod node;
mod parser;
mod partial_stack;
mod stacks;

pub use parser::{LimitError, Parser, ParserLimits, ParserScratch};
pub use partial_stack::{Lookahead, OpenReduction, PartialStack, Settled, Shift, TopId};
pub(crate) use stacks::KeptStackNode;
pub use stacks::StackNode;
pub use stacks::Stacks;
