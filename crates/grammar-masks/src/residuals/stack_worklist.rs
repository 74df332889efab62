//! Worklist over stack-automaton nodes, visited before masks ask for them.
//!
//! Positions of texts are many; what decides a mask is little: the [lexeme in
//! progress](super::stack_nodes) and some states from the top of the stack. Any way through the
//! parser's states back to the first is a stack, so all that may come is found by going back.

use std::collections::VecDeque;
use std::hash::Hash;
use std::sync::Arc;

use hashbrown::HashSet;
use palmette_grammar_parser::lr::{StateId, Tables};

use super::Residuals;
use super::deferred_reduction::DeferredId;
use super::mask_failure::MaskFailure;
use super::mask_reading::Reading;
use super::node_answer::{NodeKey, QuerySubject};
use super::simulation_context::Memos;
use super::suffix_set::SuffixSetId;
use crate::predecessors::Predecessors;
use crate::stack_automaton::{AutomatonNode, AutomatonNodeId};

/// Nodes to be looked at, in the order in which they were found.
#[derive(Debug)]
pub(crate) struct StackWorklist {
    /// Residuals that nodes are made of, and how often those were dropped, once there are some.
    found_with: Option<(Arc<Residuals>, u32)>,
    /// Sets of deferred reductions, with the state to be read: the same for many nodes, which then
    /// take little each.
    deferred: Queue<DeferredId>,
    nodes: Queue<AutomatonNodeId>,
    below: Predecessors,
    /// True when something was left to be made when it is asked for.
    is_partial: bool,
}

/// First-in, first-out worklist of pairs of something and the state that is read next.
#[derive(Debug)]
struct Queue<T> {
    open: VecDeque<(T, StateId)>,
    seen: HashSet<(T, StateId)>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { open: VecDeque::new(), seen: HashSet::new() }
    }
}

impl<T: Copy + Eq + Hash> Queue<T> {
    /// Adds what was not added before; false where that would be too much.
    fn add(&mut self, what: T, states: &[StateId]) -> bool {
        let has_room = self.open.len() < MAX_OPEN;
        if has_room {
            let seen = &mut self.seen;
            let open = states.iter().map(|&state| (what, state));
            self.open.extend(open.filter(|&open| seen.insert(open)));
        }
        has_room
    }

    fn bytes(&self) -> usize {
        self.seen.len() * 2 * size_of::<(T, StateId)>()
    }
}

/// At most so many wait to be looked at; others are made when they are asked for.
const MAX_OPEN: usize = 1 << 17;

/// A node that was looked at.
struct VisitedNode {
    node: AutomatonNodeId,
    missing: u32,
    suffix_set: SuffixSetId,
    deferred: DeferredId,
}

impl<'b> Reading<'_, 'b> {
    /// Finds a node of masks.
    fn look(
        self,
        find: impl FnOnce(&mut Memos<'_, '_, 'b>) -> Result<AutomatonNodeId, MaskFailure>,
    ) -> Result<VisitedNode, MaskFailure> {
        self.memos(|mut memos| {
            let node = find(&mut memos)?;
            let &AutomatonNode { said, missing, .. } = memos.suffix_sets.of_masks().get(node);
            Ok(VisitedNode { node, missing, suffix_set: said.suffix_set, deferred: said.deferred })
        })
    }
}

impl StackWorklist {
    /// A worklist without entries.
    pub(crate) fn new(tables: &Tables) -> Self {
        Self {
            found_with: None,
            deferred: Queue::default(),
            nodes: Queue::default(),
            below: Predecessors::new(tables),
            is_partial: false,
        }
    }

    /// True when there is nothing to be looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.deferred.open.is_empty() && self.nodes.open.is_empty()
    }

    /// True when something was left to be made when it is asked for.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.deferred.bytes() + self.nodes.bytes() + self.below.bytes()
    }

    /// Looks at a lexeme in progress on stacks with this topmost state; gives what its mask is made
    /// of where no other state matters.
    ///
    /// # Errors
    /// When the budget is used up; work that was called off is begun again by the next call.
    pub(crate) fn look_at_lexeme(
        &mut self,
        question: NodeKey,
        top: StateId,
        reading: Reading<'_, '_>,
    ) -> Result<Option<SuffixSetId>, MaskFailure> {
        self.turn_to(&reading);
        let found = reading.look(|memos| memos.first_mask(question, top))?;
        Ok(self.go_below(found, top))
    }

    /// Looks at one state more of some stacks, what is deferred first; gives what a mask is made of
    /// where no other matters.
    ///
    /// # Errors
    /// As [`look_at_lexeme`](Self::look_at_lexeme).
    pub(crate) fn look(
        &mut self,
        reading: Reading<'_, '_>,
    ) -> Result<Option<SuffixSetId>, MaskFailure> {
        self.turn_to(&reading);
        if let Some(&(deferred, state)) = self.deferred.open.front() {
            let (next, missing) = reading.memos(|mut memos| {
                let next = memos.step(deferred, state)?.deferred;
                Ok((next, memos.suffix_sets.deferred.missing(next)))
            })?;
            self.deferred.open.pop_front();
            if missing > 0 {
                let below = self.below.of(state, missing);
                self.is_partial |= !self.deferred.add(next, &below);
            }
            return Ok(None);
        }
        let Some(&(node, state)) = self.nodes.open.front() else { return Ok(None) };
        let found = reading.look(|memos| memos.next(QuerySubject::Mask, node, state))?;
        self.nodes.open.pop_front();
        Ok(self.go_below(found, state))
    }

    /// Adds what may come below a node that was found by reading a state.
    fn go_below(&mut self, found: VisitedNode, state: StateId) -> Option<SuffixSetId> {
        let VisitedNode { node, missing, suffix_set, deferred } = found;
        if missing == 0 {
            return Some(suffix_set);
        }
        let below = self.below.of(state, missing);
        self.is_partial |= !self.deferred.add(deferred, &below);
        self.is_partial |= !self.nodes.add(node, &below);
        below.is_empty().then_some(suffix_set)
    }

    /// Forgets what was found once nodes were dropped, or have become numbers into other residuals,
    /// as they do where these take too much memory.
    fn turn_to(&mut self, reading: &Reading<'_, '_>) {
        let residuals = reading.lexemes.residuals();
        let is_same = |(same, generation): &(Arc<Residuals>, u32)| {
            Arc::ptr_eq(same, residuals) && *generation == reading.generation
        };
        if !self.found_with.as_ref().is_some_and(is_same) {
            self.is_partial |= self.found_with.is_some();
            self.found_with = Some((Arc::clone(residuals), reading.generation));
            (self.deferred, self.nodes) = (Queue::default(), Queue::default());
        }
    }

    /// Leaves the next one to be made when it is asked for.
    pub(crate) fn skip(&mut self) {
        self.is_partial = true;
        if self.deferred.open.pop_front().is_none() {
            self.nodes.open.pop_front();
        }
    }
}
