//! Transition table that walks leave to later ones.

use hashbrown::HashMap;
use palmette_grammar_regex::expressions::ExprId;

use super::byte_groups::Groups;
use super::residual_id::ResidualId;

/// A residual that a walk has met. A number into [`Transitions`](super::transitions::Transitions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LocalId(pub(super) u16);

/// Transitions met by walks that have ended.
#[derive(Debug, Default)]
pub(super) struct TransitionTable {
    pub(super) numbers: HashMap<ResidualId, LocalId>,
    pub(super) known: Vec<KnownResidual>,
    /// Rows by residual and byte: [`UNASKED`], [`NOWHERE`], or a local number after [`FIRST`].
    pub(super) rows: Vec<[u16; 256]>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct KnownResidual {
    pub(super) residual: ResidualId,
    pub(super) ends: Option<ExprId>,
    /// All steps are known but those by these groups of bytes.
    pub(super) incomplete: Groups,
}

pub(super) const UNASKED: u16 = 0;
pub(super) const NOWHERE: u16 = 1;
pub(super) const FIRST: u16 = 2;

impl TransitionTable {
    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.known.capacity() * (size_of::<KnownResidual>() + size_of::<[u16; 256]>() + 16)
    }
}
