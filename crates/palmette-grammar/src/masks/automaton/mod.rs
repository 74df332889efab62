//! The fast engine: masks by reading the stack.
//!
//! Which tokens may follow depends on the lexeme in progress and on the parser's stack, and of the stack mostly on
//! its first few states. So there is an automaton that reads states from the top down, one for each lexer state:
//! a node knows which tokens may follow on every stack that begins so, and which depend on what is below; reading stops
//! where none does. ("Precomputing grammar masks" calls it the parser automaton.)
//!
//! The automaton is deterministic and built as it is read: a node that was visited before costs a look-up, a new one a
//! walk of those tokens that its parent left undecided ([`explore`]). What it says is what the definition says; nothing is
//! approximated. Lexer states that go on alike for the longest token share their nodes ([`Lexer::within`](crate::lexer::Lexer::within)).

mod explore;
mod saved;
mod slices;
mod views;

use std::sync::{Arc, RwLock};

use hashbrown::HashMap;

use crate::glr::StackNode;
use crate::lexer::LexerState;
use crate::lr::StateId;
use crate::recognizer::{Branch, Position, Recognizer, RecognizerError};
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, Stacks};
use explore::Explorer;
pub(crate) use saved::{Above, SavedMemo, SavedNode};
pub use slices::VocabularySlices;

/// Nodes and masks take at most this much memory unless told otherwise.
const DEFAULT_MAX_BYTES: usize = 256 << 20;

/// Masks by reading the stack from the top, as deep as the answer needs. What was found out is kept in nodes, and a step that
/// meets only known ones costs some look-ups.
///
/// Shared by threads: reading takes a shared lock, a new node an exclusive one. When nodes and masks take more than their
/// limit, all are dropped and built again as they are visited.
#[derive(Debug)]
pub struct MaskAutomaton {
    vocabulary: Arc<VocabularySlices>,
    max_bytes: usize,
    memo: RwLock<Memo>,
}

/// What has been built.
#[derive(Debug, Default)]
struct Memo {
    /// The lexer state that stands for this one, for the longest token.
    alike: HashMap<LexerState, LexerState>,
    /// The nodes for the topmost state.
    tops: HashMap<(LexerState, StateId), NodeId>,
    nodes: Vec<Node>,
    /// All masks, end to end.
    masks: Vec<u32>,
    by_hash: HashMap<u64, Vec<MaskId>>,
    explorer: Explorer,
    bytes: usize,
    /// How often everything was dropped; ids of masks mean something until the next time.
    generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeId(u32);

/// Of the memo's masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MaskId(u32);

/// Some states of a stack, read from the top.
#[derive(Debug)]
struct Node {
    lexer: LexerState,
    states: Box<[StateId]>,
    /// The tokens that may follow on every stack that begins so.
    mask: MaskId,
    /// Those that depend on what is below; `None`: none does.
    undecided: Option<VocabularyTrie>,
    children: HashMap<StateId, NodeId>,
}

/// How large an automaton is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomatonStatistics {
    /// Nodes.
    pub nodes: usize,
    /// Different masks.
    pub masks: usize,
    /// Memory of nodes and masks.
    pub bytes: usize,
}

/// What a question needs that has not been built.
enum Missing {
    /// The state that stands for this one.
    Alike(LexerState),
    /// The node for a lexer state and a topmost state.
    Top(LexerState, StateId),
    /// The node below another.
    Below(NodeId, StateId),
}

impl MaskAutomaton {
    /// Nothing read yet. `vocabulary` may be shared with other grammars.
    pub fn new(vocabulary: Arc<VocabularySlices>) -> Self {
        Self::with_max_bytes(vocabulary, DEFAULT_MAX_BYTES)
    }

    /// [`new`](Self::new) with another limit on the memory of nodes and masks.
    pub fn with_max_bytes(vocabulary: Arc<VocabularySlices>, max_bytes: usize) -> Self {
        Self { vocabulary, max_bytes, memo: RwLock::default() }
    }

    /// How large it is.
    pub fn statistics(&self) -> AutomatonStatistics {
        let memo = self.memo.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let masks = memo.masks.len() / self.vocabulary.num_words().max(1);
        AutomatonStatistics { nodes: memo.nodes.len(), masks, bytes: memo.bytes }
    }

    /// Sets the bits of the tokens with text that may follow; clears all others.
    ///
    /// # Errors
    /// When a limit is exceeded; the mask then denies all.
    ///
    /// # Panics
    /// When `mask` is not a row of the vocabulary.
    pub fn fill_mask(
        &self,
        recognizer: &Recognizer,
        position: &Position,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        self.fill_mask_within(recognizer, position, mask, &mut Budget::unlimited())
    }

    /// [`fill_mask`](Self::fill_mask) that takes what new nodes cost from `budget`: a unit for each node of the vocabulary's trie
    /// that is walked, and each of its branches. What was found out before the budget was used up is kept.
    ///
    /// # Errors
    /// As [`fill_mask`](Self::fill_mask), and when the budget is used up.
    ///
    /// # Panics
    /// As [`fill_mask`](Self::fill_mask).
    pub fn fill_mask_within(
        &self,
        recognizer: &Recognizer,
        position: &Position,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let num_words = self.vocabulary.num_words();
        let filled = self.read(recognizer, budget, |memo| memo.fill(position, num_words, mask));
        if filled.is_err() {
            mask.fill(0);
        }
        filled
    }

    /// Finds the masks whose union is that of a position, in ascending order, each once; gives the generation in
    /// which these ids mean something.
    ///
    /// # Errors
    /// As [`fill_mask_within`](Self::fill_mask_within).
    pub(crate) fn parts(
        &self,
        recognizer: &Recognizer,
        position: &Position,
        parts: &mut Vec<MaskId>,
        budget: &mut Budget<'_>,
    ) -> Result<u32, RecognizerError> {
        self.read(recognizer, budget, |memo| {
            parts.clear();
            for branch in position.branches() {
                memo.read_branch(branch, |mask| parts.push(mask))?;
            }
            parts.sort_unstable();
            parts.dedup();
            Ok(memo.generation)
        })
    }

    /// Asks until nothing is missing.
    fn read<T>(
        &self,
        recognizer: &Recognizer,
        budget: &mut Budget<'_>,
        mut ask: impl FnMut(&Memo) -> Result<T, Missing>,
    ) -> Result<T, RecognizerError> {
        loop {
            let answer = ask(&self.memo.read().unwrap_or_else(std::sync::PoisonError::into_inner));
            match answer {
                Ok(answer) => return Ok(answer),
                Err(missing) => self.build(recognizer, missing, budget)?,
            }
        }
    }

    fn build(
        &self,
        recognizer: &Recognizer,
        missing: Missing,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let mut memo = self.memo.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if memo.bytes > self.max_bytes {
            *memo = Memo { generation: memo.generation.wrapping_add(1), ..Memo::default() };
            return Ok(());
        }
        memo.build(recognizer, &self.vocabulary, missing, budget)
    }
}

impl Memo {
    /// Writes the mask of a position, or says what it needs.
    fn fill(&self, position: &Position, num_words: usize, mask: &mut [u32]) -> Result<(), Missing> {
        let mut first = true;
        for branch in position.branches() {
            self.read_branch(branch, |found| {
                let found = &self.masks[found.0 as usize * num_words..][..num_words];
                if std::mem::take(&mut first) {
                    mask.copy_from_slice(found);
                } else {
                    mask.iter_mut().zip(found).for_each(|(word, &found)| *word |= found);
                }
            })?;
        }
        Ok(())
    }

    /// Shows the masks of all stacks of a branch, each at least once.
    fn read_branch(&self, branch: &Branch, show: impl FnMut(MaskId)) -> Result<(), Missing> {
        let &lexer = self.alike.get(&branch.lexer).ok_or(Missing::Alike(branch.lexer))?;
        self.read(lexer, &branch.stacks, show)
    }

    fn read(
        &self,
        lexer: LexerState,
        stacks: &Stacks,
        mut show: impl FnMut(MaskId),
    ) -> Result<(), Missing> {
        for top in stacks.tops() {
            let &node =
                self.tops.get(&(lexer, top.state())).ok_or(Missing::Top(lexer, top.state()))?;
            if self.decided(node, top) {
                show(self.nodes[node.0 as usize].mask);
                continue;
            }
            // Ways through the stacks meet again: none is gone twice.
            let mut work = vec![(top, node)];
            let mut seen: Vec<(StackNode<'_>, NodeId)> = Vec::new();
            while let Some((above, node)) = work.pop() {
                if self.decided(node, above) {
                    show(self.nodes[node.0 as usize].mask);
                    continue;
                }
                for below in above.below() {
                    let children = &self.nodes[node.0 as usize].children;
                    let &child =
                        children.get(&below.state()).ok_or(Missing::Below(node, below.state()))?;
                    if above.below().len() == 1 || !seen.contains(&(below, child)) {
                        if above.below().len() > 1 {
                            seen.push((below, child));
                        }
                        work.push((below, child));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether nothing below `stack` can change what `node` says.
    fn decided(&self, node: NodeId, stack: StackNode<'_>) -> bool {
        self.nodes[node.0 as usize].undecided.is_none() || stack.below().len() == 0
    }

    fn build(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &VocabularySlices,
        missing: Missing,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        match missing {
            Missing::Alike(lexer) => {
                let longest = vocabulary.trie().max_depth() as u32;
                let alike = recognizer.lexer().within(lexer, longest)?;
                self.alike.insert(lexer, alike);
            }
            Missing::Top(lexer, state) => {
                let slice = vocabulary.slice_of(recognizer, lexer, state)?;
                let trie = slice.as_ref().map_or(vocabulary.trie(), |slice| slice.rest());
                let mut mask = match &slice {
                    Some(slice) => slice.mask().to_vec(),
                    None => vec![0; vocabulary.num_words()],
                };
                let states = [state];
                let explorer = &mut self.explorer;
                let undecided =
                    explorer.explore(recognizer, trie, lexer, &states, &mut mask, budget)?;
                let node = self.push(vocabulary, lexer, &states, mask, &undecided);
                self.tops.insert((lexer, state), node);
            }
            Missing::Below(parent, state) => {
                let above = &self.nodes[parent.0 as usize];
                let Some(trie) = &above.undecided else { return Ok(()) };
                let num_words = vocabulary.num_words();
                let mut mask =
                    self.masks[above.mask.0 as usize * num_words..][..num_words].to_vec();
                let states = [&*above.states, &[state]].concat();
                let lexer = above.lexer;
                let undecided =
                    self.explorer.explore(recognizer, trie, lexer, &states, &mut mask, budget)?;
                let node = self.push(vocabulary, lexer, &states, mask, &undecided);
                self.nodes[parent.0 as usize].children.insert(state, node);
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        vocabulary: &VocabularySlices,
        lexer: LexerState,
        states: &[StateId],
        mask: Vec<u32>,
        undecided: &[palmette_core::TokenId],
    ) -> NodeId {
        let undecided = (!undecided.is_empty()).then(|| vocabulary.trie_of(undecided));
        self.bytes += size_of::<Node>()
            + size_of_val(states)
            + undecided.as_ref().map_or(0, VocabularyTrie::memory_bytes);
        let mask = self.intern(mask);
        let id = NodeId(self.nodes.len() as u32);
        let children = HashMap::new();
        self.nodes.push(Node { lexer, states: states.into(), mask, undecided, children });
        id
    }

    /// The number of a mask, which is stored once.
    fn intern(&mut self, mask: Vec<u32>) -> MaskId {
        let hash = hash(&mask);
        let alike = self.by_hash.entry(hash).or_default();
        let same = |id: &&MaskId| self.masks[id.0 as usize * mask.len()..][..mask.len()] == mask;
        if let Some(&known) = alike.iter().find(same) {
            return known;
        }
        let id = MaskId((self.masks.len() / mask.len().max(1)) as u32);
        alike.push(id);
        self.bytes += size_of_val(&*mask);
        self.masks.extend_from_slice(&mask);
        id
    }
}

/// A hash of a mask that is the same everywhere.
fn hash(mask: &[u32]) -> u64 {
    mask.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, &word| {
        (hash ^ u64::from(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    })
}
