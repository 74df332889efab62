//! Memory of a simulation: stacks, places and tokens that it works with.

use std::sync::Arc;

use hashbrown::HashSet;
use palmette_grammar_parser::glr::{PartialStack, Shift, TopId};

use super::deferred_reduction::DeferredReduction;
use super::lexeme_effect::HeadEffect;
use super::place::{ExceptionsId, Place};
use super::suffix_set::SuffixSet;

/// Memory of a simulation, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct SimulationMemory {
    pub(super) partial: PartialStack,
    /// The tokens that may follow, as far as they were found.
    pub(super) found: SuffixSet,
    /// True when that is a mask.
    pub(super) is_mask: bool,
    /// The stacks on which lexemes begin at a token's front, and under which conditions.
    pub(super) fronts: Vec<(Place, TopId)>,
    /// Places within tokens at which lexemes begin, and their stacks.
    pub(super) begins: Vec<(Place, TopId)>,
    /// Stacks among them that are followed here.
    pub(super) within: Vec<(Place, TopId)>,
    pub(super) seen: HashSet<(Place, TopId)>,
    pub(super) shifts: Vec<Shift>,
    /// Head of the lexeme that was added last, and the exceptions there.
    pub(super) head: Option<(Arc<HeadEffect>, Option<ExceptionsId>)>,
    pub(super) deferred: Vec<DeferredReduction>,
}

impl SimulationMemory {
    pub(super) fn add_front(&mut self, front: Place, stack: TopId) {
        if !self.fronts.contains(&(front, stack)) {
            self.fronts.push((front, stack));
        }
    }

    pub(super) fn clear(&mut self) {
        self.found.clear();
        self.is_mask = false;
        self.fronts.clear();
        self.begins.clear();
        self.within.clear();
        self.seen.clear();
        self.deferred.clear();
        self.head = None;
    }
}
