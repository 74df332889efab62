//! What stacks say of masks, found out before it is asked for.
//!
//! Positions of texts are many; what decides a mask is little: the [lexeme in progress](super::mask_nodes) and some states from the top of the
//! stack. Any way through the parser's states back to the first is a stack, so all that may come is found by going back.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::level::{Fixed, Growing, LevelMemory};
use super::{ComponentsId, Lexemes, Pieces, Tails, Unread};
use crate::Budget;
use crate::lexer::LexerState;
use crate::lr::{StateId, Tables};
use crate::masks::read_nodes::{ReadNode, ReadNodeId};
use crate::recognizer::Recognizer;
use crate::vocabulary::VocabularyTrie;

/// Nodes to be looked at, in the order in which they were found.
#[derive(Debug)]
pub(crate) struct StacksAhead {
    /// What nodes are made of, and how often they were dropped, once there are some.
    found_with: Option<(Arc<Pieces>, u32)>,
    /// By state, those from which it is reached.
    above: Vec<Vec<StateId>>,
    /// Nodes, with the state to be read after them.
    open: VecDeque<(ReadNodeId, StateId)>,
    seen: HashSet<(ReadNodeId, StateId)>,
    /// The states so many states below one; as many as memory allows.
    below: HashMap<(StateId, u32), Arc<[StateId]>>,
    /// How many these are in all.
    num_below: usize,
    spare: Vec<LevelMemory>,
}

/// At most so many wait to be looked at; others are left to be found out when they are asked for.
const MAX_OPEN: usize = 1 << 17;

/// So many states below others are kept, in some megabytes; they are found again otherwise.
const MAX_BELOW: usize = 1 << 20;

/// What is found out grows.
pub(in crate::masks) struct Look<'a, 'b> {
    pub(in crate::masks) recognizer: &'a Recognizer,
    pub(in crate::masks) trie: &'a VocabularyTrie,
    pub(in crate::masks) num_words: usize,
    pub(in crate::masks) lexemes: &'a mut Lexemes,
    pub(in crate::masks) tails: &'a mut Tails,
    pub(in crate::masks) budget: &'a mut Budget<'b>,
    /// How often nodes were dropped.
    pub(in crate::masks) generation: u32,
}

impl<'b> Look<'_, 'b> {
    /// Finds a node.
    fn find(
        self,
        spare: &mut Vec<LevelMemory>,
        find: impl FnOnce(Growing<'_, 'b>, Fixed<'_>) -> Result<ReadNodeId, Unread>,
    ) -> Result<Found, Unread> {
        let pieces = Arc::clone(self.lexemes.pieces());
        let in_all = Arc::clone(self.lexemes.all());
        let Self { recognizer, trie, num_words, lexemes, tails, budget, .. } = self;
        let fixed = Fixed { recognizer, trie, num_words, pieces: &pieces, lexemes: &in_all };
        budget.spend(1)?;
        let mut growing = Growing { lexemes, tails, budget, spare };
        let node = find(growing.reborrow(), fixed)?;
        let &ReadNode { said, missing, .. } = growing.tails.mask_nodes.get(node);
        Ok(Found { node, missing, made_of: said.made_of })
    }
}

/// A node that was looked at.
struct Found {
    node: ReadNodeId,
    missing: u32,
    made_of: ComponentsId,
}

impl StacksAhead {
    /// Nothing looked at yet.
    pub(in crate::masks) fn new(tables: &Tables) -> Self {
        let mut above = vec![Vec::new(); tables.num_states()];
        for state in tables.states() {
            let shifts = tables.shifts(state).iter().map(|&(_, target)| target);
            let gotos = tables.gotos(state).iter().map(|&(_, target)| target);
            shifts.chain(gotos).for_each(|target| above[target.index()].push(state));
        }
        for states in &mut above {
            states.sort_unstable();
            states.dedup();
        }
        Self {
            found_with: None,
            above,
            open: VecDeque::new(),
            seen: HashSet::new(),
            below: HashMap::new(),
            num_below: 0,
            spare: Vec::new(),
        }
    }

    /// Whether there is nothing to be looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let of_node = 2 * size_of::<(ReadNodeId, StateId)>();
        self.seen.len() * of_node + self.num_below * size_of::<StateId>()
    }

    /// Looks at a lexeme in progress on stacks with this topmost state; gives what its mask is made of where no other state matters.
    ///
    /// # Errors
    /// When the budget is used up; work that was called off is begun again by the next call.
    pub(in crate::masks) fn look_at_lexeme(
        &mut self,
        lexer: LexerState,
        top: StateId,
        look: Look<'_, '_>,
    ) -> Result<Option<ComponentsId>, Unread> {
        if !self.is_current(&look) {
            return Ok(None);
        }
        let first =
            |mut growing: Growing<'_, '_>, fixed: Fixed<'_>| growing.first_mask(fixed, lexer, top);
        let found = look.find(&mut self.spare, first)?;
        Ok(self.go_below(found, top))
    }

    /// Looks at one state more of some stacks; gives what a mask is made of where no other matters.
    ///
    /// # Errors
    /// As [`look_at_lexeme`](Self::look_at_lexeme).
    pub(in crate::masks) fn look(
        &mut self,
        look: Look<'_, '_>,
    ) -> Result<Option<ComponentsId>, Unread> {
        if !self.is_current(&look) {
            return Ok(None);
        }
        let Some(&(node, state)) = self.open.front() else { return Ok(None) };
        let next =
            |mut growing: Growing<'_, '_>, fixed: Fixed<'_>| growing.next_mask(fixed, node, state);
        let found = look.find(&mut self.spare, next)?;
        self.open.pop_front();
        Ok(self.go_below(found, state))
    }

    /// Adds what may come below a node that was found by reading a state.
    fn go_below(&mut self, found: Found, state: StateId) -> Option<ComponentsId> {
        let Found { node, missing, made_of } = found;
        if missing == 0 {
            return Some(made_of);
        }
        let below = self.below(state, missing);
        if self.open.len() < MAX_OPEN {
            let seen = &mut self.seen;
            let open = below.iter().map(|&state| (node, state));
            self.open.extend(open.filter(|&open| seen.insert(open)));
        }
        below.is_empty().then_some(made_of)
    }

    /// Whether what was found still means something; forgets what does not once nodes were dropped, or have become numbers into
    /// other pieces, as they do where these take too much memory.
    fn is_current(&mut self, look: &Look<'_, '_>) -> bool {
        let pieces = look.lexemes.pieces();
        let (same, generation) =
            self.found_with.get_or_insert_with(|| (Arc::clone(pieces), look.generation));
        let is_current = Arc::ptr_eq(same, pieces) && *generation == look.generation;
        if !is_current {
            self.open.clear();
        }
        is_current
    }

    /// The states that may be so many states below one.
    fn below(&mut self, state: StateId, depth: u32) -> Arc<[StateId]> {
        if let Some(known) = self.below.get(&(state, depth)) {
            return Arc::clone(known);
        }
        let mut found = vec![state];
        for _ in 0..depth {
            found = found.iter().flat_map(|state| &self.above[state.index()]).copied().collect();
            found.sort_unstable();
            found.dedup();
        }
        let found: Arc<[StateId]> = found.into();
        if self.num_below + found.len() > MAX_BELOW {
            (self.below, self.num_below) = (HashMap::new(), 0);
        }
        self.num_below += found.len();
        self.below.insert((state, depth), Arc::clone(&found));
        found
    }

    /// Leaves the next one to be found out when it is asked for.
    pub(in crate::masks) fn skip(&mut self) {
        self.open.pop_front();
    }
}
