//! How tokens go on at a place, read along a stack.
//!
//! On a stack of which only the top is known, tokens go on as far as the parser shifts their lexemes; where it would reduce by a rule that
//! pops more than is known, what comes then is *pending*: the place within the tokens, the head of the rule, and how many states are
//! missing. As one more state is read, what is pending goes on at its places, and ends there or is pending again. What is
//! pending is small once the first states are read, brackets that close one after the other mostly, and so it is the same for many
//! stacks: that is an automaton, which is built as it is asked for ("Precomputing grammar masks": templates that pop, composed).

use super::Unread;
use super::level::{Fixed, Found, Growing, Level, Pending};
use super::suffixes::SuffixId;
use super::tails::TailId;
use crate::lr::StateId;
use crate::masks::children::Children;
use crate::masks::chunks::{Chunks, SparseChunks};
use crate::masks::hash_index::HashIndex;
use crate::masks::interned::{GrowingMap, Interned};
use hashbrown::HashMap;

/// A number into [`TailNodes`]; equal numbers are equal nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TailNodeId(u32);

/// What is pending; equal numbers are equal sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PendingId(u32);

/// The nodes of a grammar.
#[derive(Debug, Default)]
pub(super) struct TailNodes {
    /// By place, numbers into the first nodes.
    places: HashMap<SuffixId, u32>,
    /// By place and topmost state.
    first: SparseChunks<Children<TailNodeId>>,
    nodes: Chunks<Node>,
    ids: HashIndex,
    pending: Interned<Box<[Pending]>>,
    /// What the next state finds of what is pending, and what is pending then.
    steps: GrowingMap<(PendingId, StateId), (TailId, PendingId)>,
    bytes: usize,
}

/// What some states of a stack say.
#[derive(Debug)]
struct Node {
    tail: TailId,
    pending: PendingId,
    /// So many states make no difference but the last of them; 0 where nothing is pending.
    missing: u32,
    is_front: bool,
    children: Children<TailNodeId>,
}

impl TailNodes {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.places.len() * size_of::<(SuffixId, u32)>()
            + self.first.memory_bytes()
            + self.nodes.len() * size_of::<Node>()
            + self.ids.memory_bytes()
            + self.pending.memory_bytes()
            + self.steps.memory_bytes()
            + self.bytes
    }

    /// The tokens that a node is sure of.
    pub(super) fn tail(&self, node: TailNodeId) -> TailId {
        self.node(node).tail
    }

    /// The state after so many, counted from those that were read, decides how a node goes on; 0 where nothing does.
    pub(super) fn missing(&self, node: TailNodeId) -> u32 {
        self.node(node).missing
    }

    /// What is pending at a node.
    pub(super) fn pending(&self, node: TailNodeId) -> &[Pending] {
        self.pending.get(self.node(node).pending.0)
    }

    fn node(&self, id: TailNodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn first(&self, place: SuffixId, top: StateId) -> Option<TailNodeId> {
        let number = *self.places.get(&place)?;
        self.first.get(number as usize)?.get(top)
    }

    fn know_first(&mut self, place: SuffixId, top: StateId, node: TailNodeId) {
        let next = self.places.len() as u32;
        let number = *self.places.entry(place).or_insert(next);
        self.bytes += self.first.entry(number as usize).insert(top, node);
    }

    fn next(&self, node: TailNodeId, state: StateId) -> Option<TailNodeId> {
        self.node(node).children.get(state)
    }

    fn know_next(&mut self, node: TailNodeId, state: StateId, next: TailNodeId) {
        self.bytes += self.nodes[node.0 as usize].children.insert(state, next);
    }

    fn intern_pending(&mut self, pending: Box<[Pending]>) -> PendingId {
        let bytes = size_of_val(&*pending);
        let (number, is_new) = self.pending.intern(pending);
        self.bytes += if is_new { bytes } else { 0 };
        PendingId(number)
    }

    fn intern(&mut self, tail: TailId, pending: PendingId, is_front: bool) -> TailNodeId {
        let hash = u64::from(pending.0) << 33 | tail.number() << 1 | u64::from(is_front);
        let same = |number: u32| {
            let node = &self.nodes[number as usize];
            (node.tail, node.pending, node.is_front) == (tail, pending, is_front)
        };
        if let Some(known) = self.ids.find(hash, same) {
            return TailNodeId(known);
        }
        let next = self.nodes.len() as u32;
        self.ids.insert(hash, next);
        let all = self.pending.get(pending.0).iter();
        let missing = all.map(|pending| pending.reduction.missing).min().unwrap_or(0);
        self.nodes.push(Node { tail, pending, missing, is_front, children: Children::None });
        TailNodeId(next)
    }
}

impl Growing<'_, '_> {
    /// The node of a place on stacks with this topmost state.
    pub(super) fn first_node(
        &mut self,
        fixed: Fixed<'_>,
        place: SuffixId,
        top: StateId,
    ) -> Result<TailNodeId, Unread> {
        match self.tails.nodes.first(place, top) {
            Some(known) => Ok(known),
            None => self.find_first_node(fixed, place, top),
        }
    }

    #[cold]
    fn find_first_node(
        &mut self,
        fixed: Fixed<'_>,
        place: SuffixId,
        top: StateId,
    ) -> Result<TailNodeId, Unread> {
        let Found { tail, pending } = Level::on(fixed, self.reborrow(), top).read_place(place)?;
        let (is_front, tail) = (place == SuffixId::WHOLE, self.tails.intern(tail));
        let tail = if is_front { self.tails.union(TailId::NOTHING, tail, true) } else { tail };
        let nodes = &mut self.tails.nodes;
        let pending = nodes.intern_pending(pending);
        let node = nodes.intern(tail, pending, is_front);
        nodes.know_first(place, top, node);
        Ok(node)
    }

    /// The node after the state that [decides](TailNodes::missing) how one goes on.
    pub(super) fn next_node(
        &mut self,
        fixed: Fixed<'_>,
        node: TailNodeId,
        state: StateId,
    ) -> Result<TailNodeId, Unread> {
        match self.tails.nodes.next(node, state) {
            Some(known) => Ok(known),
            None => self.find_next_node(fixed, node, state),
        }
    }

    #[cold]
    fn find_next_node(
        &mut self,
        fixed: Fixed<'_>,
        node: TailNodeId,
        state: StateId,
    ) -> Result<TailNodeId, Unread> {
        let nodes = &self.tails.nodes;
        let &Node { tail, pending, missing, is_front, .. } = nodes.node(node);
        let (more, rest) = match nodes.steps.get(&(pending, state)) {
            Some(&known) => known,
            None => {
                let before = nodes.pending.get(pending.0).clone();
                let level = Level::on(fixed, self.reborrow(), state);
                let found = level.read_pending(&before, missing)?;
                let more = self.tails.intern(found.tail);
                let rest = self.tails.nodes.intern_pending(found.pending);
                self.tails.nodes.steps.insert((pending, state), (more, rest));
                (more, rest)
            }
        };
        let tail = self.tails.union(tail, more, is_front);
        let nodes = &mut self.tails.nodes;
        let next = nodes.intern(tail, rest, is_front);
        nodes.know_next(node, state, next);
        Ok(next)
    }
}
