//! Stack-automaton nodes that yield the suffixes accepted at a place in tokens.

use hashbrown::HashMap;

use super::Unread;
use super::level::{Fixed, Found, Growing, Level, Place};
use super::pending::{PendingId, Step};
use super::tails::TailId;
use crate::lr::StateId;
use crate::masks::read_nodes::{ReadNode, ReadNodeId, ReadNodes};

/// What some states say of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SaidOfPlace {
    /// The tokens that they are sure of.
    pub(super) tail: TailId,
    pub(super) pending: PendingId,
    /// Whether it is the front of tokens.
    is_front: bool,
}

/// The nodes of a grammar's places.
#[derive(Debug, Default)]
pub(super) struct TailNodes {
    /// By place, its number there.
    places: HashMap<Place, u32>,
    nodes: ReadNodes<SaidOfPlace>,
}

impl TailNodes {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.places.len() * size_of::<(Place, u32)>() + self.nodes.memory_bytes()
    }

    pub(super) fn get(&self, id: ReadNodeId) -> &ReadNode<SaidOfPlace> {
        self.nodes.get(id)
    }
}

impl Growing<'_, '_> {
    /// The node of a place, of which all tokens count, on stacks with this topmost state.
    pub(super) fn first_tail(
        &mut self,
        fixed: Fixed<'_>,
        place: Place,
        top: StateId,
    ) -> Result<ReadNodeId, Unread> {
        let TailNodes { places, nodes } = &self.tails.nodes;
        let known = places.get(&place).and_then(|&number| nodes.first(number as usize, top));
        match known {
            Some(known) => Ok(known),
            None => self.find_first_tail(fixed, place, top),
        }
    }

    #[cold]
    fn find_first_tail(
        &mut self,
        fixed: Fixed<'_>,
        place: Place,
        top: StateId,
    ) -> Result<ReadNodeId, Unread> {
        let Found { tail, pending } = Level::on(fixed, self.reborrow(), top).read_place(place)?;
        let is_front = place.is_front();
        let tail = self.tails.intern(tail);
        let tail = if is_front { self.tails.union(TailId::NOTHING, &[tail], true) } else { tail };
        let (pending, missing) = self.tails.pending.intern(pending);
        let TailNodes { places, nodes } = &mut self.tails.nodes;
        let node = nodes.intern(SaidOfPlace { tail, pending, is_front }, missing);
        let next = places.len() as u32;
        let number = *places.entry(place).or_insert(next);
        nodes.know_first(number as usize, top, node);
        Ok(node)
    }

    /// The node after the state that decides how one goes on.
    pub(super) fn next_tail(
        &mut self,
        fixed: Fixed<'_>,
        node: ReadNodeId,
        state: StateId,
    ) -> Result<ReadNodeId, Unread> {
        match self.tails.nodes.nodes.next(node, state) {
            Some(known) => Ok(known),
            None => self.find_next_tail(fixed, node, state),
        }
    }

    #[cold]
    fn find_next_tail(
        &mut self,
        fixed: Fixed<'_>,
        node: ReadNodeId,
        state: StateId,
    ) -> Result<ReadNodeId, Unread> {
        let SaidOfPlace { tail, pending, is_front } = self.tails.nodes.get(node).said;
        let Step { tails: more, pending } = self.step(fixed, pending, state)?;
        let tail = self.tails.union(tail, &more, is_front);
        let missing = self.tails.pending.missing(pending);
        let nodes = &mut self.tails.nodes.nodes;
        let next = nodes.intern(SaidOfPlace { tail, pending, is_front }, missing);
        nodes.know_next(node, state, next);
        Ok(next)
    }
}
