//! Stack-automaton nodes that yield the suffixes accepted at a place in tokens.

use hashbrown::HashMap;
use palmette_parser::lr::StateId;

use super::Unread;
use super::deferred_reduction::{DeferredId, Step};
use super::stack_simulation::{Fixed, Found, Memos, Place, StackSimulation};
use super::suffix_sets::SuffixSetId;
use crate::stack_automaton::{AutomatonNode, AutomatonNodeId, StackAutomaton};

/// Answer of some states about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SaidOfPlace {
    /// The tokens that they are sure of.
    pub(super) suffix_set: SuffixSetId,
    pub(super) deferred: DeferredId,
    /// True when it is the front of tokens.
    is_front: bool,
}

/// The nodes of a grammar's places.
#[derive(Debug, Default)]
pub(super) struct SuffixNodes {
    /// By place, its number there.
    places: HashMap<Place, u32>,
    nodes: StackAutomaton<SaidOfPlace>,
}

impl SuffixNodes {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.places.len() * size_of::<(Place, u32)>() + self.nodes.memory_bytes()
    }

    pub(super) fn get(&self, id: AutomatonNodeId) -> &AutomatonNode<SaidOfPlace> {
        self.nodes.get(id)
    }
}

impl Memos<'_, '_> {
    /// The node of a place, of which all tokens count, on stacks with this topmost state.
    pub(super) fn first_suffixes(
        &mut self,
        fixed: Fixed<'_>,
        place: Place,
        top: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        let SuffixNodes { places, nodes } = &self.suffix_sets.nodes;
        let known = places.get(&place).and_then(|&number| nodes.first(number, top));
        match known {
            Some(known) => Ok(known),
            None => self.find_first_suffixes(fixed, place, top),
        }
    }

    #[cold]
    fn find_first_suffixes(
        &mut self,
        fixed: Fixed<'_>,
        place: Place,
        top: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        let Found { suffix_set, deferred } =
            StackSimulation::on(fixed, self.reborrow(), top).read_place(place)?;
        let is_front = place.is_front();
        let suffix_set = self.suffix_sets.intern(suffix_set);
        let suffix_set = if is_front {
            self.suffix_sets.union(SuffixSetId::NOTHING, &[suffix_set], true)
        } else {
            suffix_set
        };
        let (deferred, missing) = self.suffix_sets.deferred.intern(deferred);
        let SuffixNodes { places, nodes } = &mut self.suffix_sets.nodes;
        let node = nodes.intern(SaidOfPlace { suffix_set, deferred, is_front }, missing);
        let next = places.len() as u32;
        let number = *places.entry(place).or_insert(next);
        nodes.know_first(number, top, node);
        Ok(node)
    }

    /// The node after the state that decides how one goes on.
    pub(super) fn next_suffixes(
        &mut self,
        fixed: Fixed<'_>,
        node: AutomatonNodeId,
        state: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        match self.suffix_sets.nodes.nodes.next(node, state) {
            Some(known) => Ok(known),
            None => self.find_next_suffixes(fixed, node, state),
        }
    }

    #[cold]
    fn find_next_suffixes(
        &mut self,
        fixed: Fixed<'_>,
        node: AutomatonNodeId,
        state: StateId,
    ) -> Result<AutomatonNodeId, Unread> {
        let SaidOfPlace { suffix_set, deferred, is_front } = self.suffix_sets.nodes.get(node).said;
        let Step { suffix_sets: more, deferred } = self.step(fixed, deferred, state)?;
        let suffix_set = self.suffix_sets.union(suffix_set, &more, is_front);
        let missing = self.suffix_sets.deferred.missing(deferred);
        let nodes = &mut self.suffix_sets.nodes.nodes;
        let next = nodes.intern(SaidOfPlace { suffix_set, deferred, is_front }, missing);
        nodes.know_next(node, state, next);
        Ok(next)
    }
}
