//! Stack automaton of masks, restored from a file, and united with the own one to be saved.

use hashbrown::{HashMap, HashSet};
use palmette_parser::glr::StackNode;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;

use super::memo::Memo;
use super::saved::{Above, SavedStackAutomaton};
use crate::mask_pool::PoolId;
use crate::stack_automaton::{AutomatonNode, AutomatonNodeId, StackAutomaton};

/// Nodes and masks that were restored from a file.
#[derive(Debug, Default)]
pub(super) struct Restored {
    /// With their numbers, which tell them apart, and their masks, where these were known.
    nodes: StackAutomaton<(u32, Option<PoolId>)>,
}

impl Restored {
    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.memory_bytes()
    }

    /// The mask of a lexeme in progress on a stack, if it is known.
    pub(super) fn mask(&self, lexer: LexerState, stack: StackNode<'_>) -> Option<PoolId> {
        self.nodes.said(lexer.0, stack)?.1
    }

    /// Restores what was saved, where nothing is known yet; `mask` gives the masks by their numbers there.
    pub(super) fn of(
        saved: &SavedStackAutomaton,
        mut mask: impl FnMut(u32) -> Option<PoolId>,
    ) -> Self {
        let mut made = Self::default();
        let nodes = saved.nodes.iter().zip(0..);
        let ids: Vec<AutomatonNodeId> = nodes
            .map(|(&(missing, number_of_mask), number)| {
                made.nodes.intern((number, mask(number_of_mask)), missing)
            })
            .collect();
        // Where two lead on from one place, which only a file made by hand has, the first one is kept.
        for &(from, state, to) in &saved.edges {
            let to = ids[to as usize];
            match from {
                Above::Lexer(lexer) => {
                    if made.nodes.first(lexer.0, state).is_none() {
                        made.nodes.know_first(lexer.0, state, to);
                    }
                }
                Above::Node(node) => {
                    let node = ids[node as usize];
                    if made.nodes.next(node, state).is_none() {
                        made.nodes.know_next(node, state, to);
                    }
                }
            }
        }
        made
    }
}

/// Origin of a node to be saved: made here, or restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Own(AutomatonNodeId),
    Restored(AutomatonNodeId),
}

impl Memo {
    /// Stack automaton of masks, to be saved; `mask` gives their numbers.
    pub(super) fn save_stack_automaton(
        &self,
        mask: impl Fn(Option<PoolId>) -> u32,
    ) -> SavedStackAutomaton {
        let (own, restored) = (self.suffix_sets.of_masks(), &self.restored.nodes);
        let alias = Aliases::find(own, restored);
        let mut numbers: HashMap<Origin, u32> = HashMap::new();
        let mut saved = SavedStackAutomaton::default();
        for id in own.all() {
            let &AutomatonNode { said, missing, .. } = own.get(id);
            let known = self.composed_of(said.suffix_set);
            let known = known.or_else(|| restored.get(*alias.restored.get(&id)?).said.1);
            numbers.insert(Origin::Own(id), saved.nodes.len() as u32);
            saved.nodes.push((missing, mask(known)));
        }
        for id in restored.all().filter(|id| !alias.own.contains_key(id)) {
            let &AutomatonNode { said, missing, .. } = restored.get(id);
            numbers.insert(Origin::Restored(id), saved.nodes.len() as u32);
            saved.nodes.push((missing, mask(said.1)));
        }
        let number = |node: Origin| match node {
            Origin::Restored(id) if alias.own.contains_key(&id) => {
                numbers[&Origin::Own(alias.own[&id])]
            }
            node => numbers[&node],
        };
        let mut seen: HashSet<(Above, StateId)> = HashSet::new();
        let mut add = |from: Above, state: StateId, to: Origin| {
            if seen.insert((from, state)) {
                saved.edges.push((from, state, number(to)));
            }
        };
        let lexer = |of: u32| Above::Lexer(LexerState(of));
        own.firsts().for_each(|(of, top, node)| add(lexer(of), top, Origin::Own(node)));
        restored.firsts().for_each(|(of, top, node)| add(lexer(of), top, Origin::Restored(node)));
        for id in own.all() {
            let from = Above::Node(number(Origin::Own(id)));
            own.nexts(id).for_each(|(state, next)| add(from, state, Origin::Own(next)));
        }
        for id in restored.all() {
            let from = Above::Node(number(Origin::Restored(id)));
            restored.nexts(id).for_each(|(state, next)| add(from, state, Origin::Restored(next)));
        }
        saved
    }
}

/// Pairs of restored nodes and those that were made again: the same stacks lead to both.
#[derive(Debug, Default)]
struct Aliases {
    own: HashMap<AutomatonNodeId, AutomatonNodeId>,
    restored: HashMap<AutomatonNodeId, AutomatonNodeId>,
}

impl Aliases {
    fn find<A, B>(own: &StackAutomaton<A>, restored: &StackAutomaton<B>) -> Self
    where
        A: Copy + Eq + std::hash::Hash,
        B: Copy + Eq + std::hash::Hash,
    {
        let mut found = Self::default();
        let mut open: Vec<(AutomatonNodeId, AutomatonNodeId)> = restored
            .firsts()
            .filter_map(|(of, top, node)| Some((own.first(of, top)?, node)))
            .collect();
        while let Some((of_own, of_restored)) = open.pop() {
            if found.own.contains_key(&of_restored) {
                continue;
            }
            found.own.insert(of_restored, of_own);
            found.restored.entry(of_own).or_insert(of_restored);
            let nexts = restored.nexts(of_restored);
            open.extend(nexts.filter_map(|(state, next)| Some((own.next(of_own, state)?, next))));
        }
        found
    }
}
