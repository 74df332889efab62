//! Parts of sequences that are searched as a whole.

use std::fmt;
use std::sync::Arc;

use crate::AnyConstraint;

/// Part of a sequence that a search may write at once, such as an item's semantic ID.
///
/// A generator draws token by token; here it may look for the likeliest part instead, by a search
/// over a constraint of its own.
#[derive(Clone)]
pub struct SequencePart {
    /// The part alone: its sequences may follow where it was found, and nothing else may.
    pub constraint: Arc<dyn AnyConstraint>,
    /// A bound on the tokens of one, where it is known.
    pub max_tokens: Option<usize>,
}

impl fmt::Debug for SequencePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequencePart").field("max_tokens", &self.max_tokens).finish_non_exhaustive()
    }
}
