//! The fast engine: masks by reading the stack.
//!
//! Which tokens may follow depends on the lexeme in progress and on the parser's stack, and of the stack mostly on
//! its first few states. So there is an automaton that reads states from the top down, one for each lexer state:
//! a node knows which tokens may follow on every stack that begins so, and which depend on what is below; reading stops
//! where none does. ("Precomputing grammar masks" calls it the parser automaton.)
//!
//! The automaton is deterministic and built as it is read: a node that was visited before costs a look-up, a new one is put
//! together from pieces that grammars share ([`pieces`](super::pieces)), or where these are not known, costs a walk of those
//! tokens that its parent left undecided ([`explore`]). What it says is what the definition says; nothing is approximated. Lexer
//! states that go on alike for the longest token share their nodes ([`Lexer::within`](crate::lexer::Lexer::within)).

mod explore;
mod prepare;
mod saved;
mod slices;
mod views;

use std::sync::{Arc, RwLock};

use hashbrown::HashMap;
use palmette_core::TokenId;

use super::pieces::{Lexemes, Reading, ReadingMemory, Unread};
use crate::glr::StackNode;
use crate::lexer::LexerState;
use crate::lr::StateId;
use crate::recognizer::{Branch, Position, Recognizer, RecognizerError};
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, Stacks};
use explore::Explorer;
pub(crate) use saved::{Above, SavedMemo, SavedNode, UNREAD};
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
    masks: Vec<Box<[u32]>>,
    /// By masks, ascending: their union.
    unions: HashMap<Box<[MaskId]>, MaskId>,
    by_hash: HashMap<u64, Vec<MaskId>>,
    lexemes: Option<Lexemes>,
    reading: ReadingMemory,
    explorer: Explorer,
    /// The mask in the making.
    words: Vec<u32>,
    bytes: usize,
    /// How often everything was dropped; ids of masks mean something until the next time.
    generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeId(u32);

/// Of the memo's masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MaskId(u32);

/// The masks whose union is asked for, each once.
#[derive(Debug)]
struct FoundMasks {
    first: [MaskId; MOST_FOUND],
    len: usize,
    /// All of them where they are more.
    all: Vec<MaskId>,
}

/// As many masks are collected without asking for memory.
const MOST_FOUND: usize = 16;

impl Default for FoundMasks {
    fn default() -> Self {
        Self { first: [MaskId(0); MOST_FOUND], len: 0, all: Vec::new() }
    }
}

impl FoundMasks {
    fn insert(&mut self, mask: MaskId) {
        let known = if self.all.is_empty() { &self.first[..self.len] } else { &self.all };
        if known.contains(&mask) {
            return;
        }
        if self.all.is_empty() && self.len < MOST_FOUND {
            self.first[self.len] = mask;
            self.len += 1;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&self.first);
        }
        self.all.push(mask);
    }

    /// In ascending order.
    fn sorted(&mut self) -> &[MaskId] {
        let known = if self.all.is_empty() { &mut self.first[..self.len] } else { &mut *self.all };
        known.sort_unstable();
        known
    }
}

/// Some states of a stack, read from the top.
#[derive(Debug)]
struct Node {
    lexer: LexerState,
    states: Box<[StateId]>,
    known: Known,
    /// By the state below, ascending.
    children: Vec<(StateId, NodeId)>,
}

/// What is known of the tokens that may follow on every stack that begins with certain states.
#[derive(Debug)]
enum Known {
    /// Nothing before more of the stack is read.
    Nothing,
    /// These may follow, and no others, whatever is below.
    All(MaskId),
    /// These may follow, and some others depend on what is below.
    Some(MaskId, VocabularyTrie),
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
enum Missing<'s> {
    /// The state that stands for this one.
    Alike(LexerState),
    /// What is known of a lexer state and the top of a stack.
    Top(LexerState, StackNode<'s>),
    /// What is known once this entry is read below a node.
    Below(NodeId, StackNode<'s>),
    /// What is known at a node, of which this is the last entry.
    Here(NodeId, StackNode<'s>),
    /// The union of several masks.
    Union(Box<[MaskId]>),
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
        let (nodes, masks) = (memo.nodes.len(), memo.masks.len());
        AutomatonStatistics { nodes, masks, bytes: memo.bytes() }
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
        let filled = self.read(recognizer, budget, |memo| memo.fill(position, mask));
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
            let mut found = FoundMasks::default();
            memo.find(position, &mut found)?;
            parts.extend_from_slice(found.sorted());
            Ok(memo.generation)
        })
    }

    /// Asks until nothing is missing.
    fn read<'s, T>(
        &self,
        recognizer: &Recognizer,
        budget: &mut Budget<'_>,
        mut ask: impl FnMut(&Memo) -> Result<T, Missing<'s>>,
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
        missing: Missing<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let mut memo = self.memo.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if memo.bytes() > self.max_bytes {
            *memo = Memo { generation: memo.generation.wrapping_add(1), ..Memo::default() };
            return Ok(());
        }
        memo.build(recognizer, &self.vocabulary, missing, budget)
    }
}

impl Memo {
    /// About how much memory it takes, without what grammars over the vocabulary share.
    fn bytes(&self) -> usize {
        self.bytes + self.lexemes.as_ref().map_or(0, Lexemes::bytes)
    }

    /// Writes the mask of a position, or says what it needs.
    fn fill<'s>(&self, position: &'s Position, mask: &mut [u32]) -> Result<(), Missing<'s>> {
        let mut found = FoundMasks::default();
        self.find(position, &mut found)?;
        let union = match *found.sorted() {
            [] => None,
            [only] => Some(only),
            ref several => match self.unions.get(several) {
                Some(&known) => Some(known),
                None => return Err(Missing::Union(several.into())),
            },
        };
        match union {
            Some(union) => mask.copy_from_slice(&self.masks[union.0 as usize]),
            None => mask.fill(0),
        }
        Ok(())
    }

    /// Finds the masks whose union is that of a position.
    fn find<'s>(&self, position: &'s Position, found: &mut FoundMasks) -> Result<(), Missing<'s>> {
        for Branch { lexer, stacks, .. } in position.branches() {
            let &alike = self.alike.get(lexer).ok_or(Missing::Alike(*lexer))?;
            self.read(alike, stacks, found)?;
        }
        Ok(())
    }

    /// Finds the masks of all stacks, each at least once.
    fn read<'s>(
        &self,
        lexer: LexerState,
        stacks: &'s Stacks,
        found: &mut FoundMasks,
    ) -> Result<(), Missing<'s>> {
        for top in stacks.tops() {
            let &node = self.tops.get(&(lexer, top.state())).ok_or(Missing::Top(lexer, top))?;
            let (mut above, mut node) = (top, node);
            loop {
                if let Some(mask) = self.decided(node, above)? {
                    found.insert(mask);
                    break;
                }
                let mut below = above.below();
                if below.len() > 1 {
                    self.read_ways(node, above, found)?;
                    break;
                }
                let Some(only) = below.next() else { break };
                (above, node) = (only, self.child(node, only)?);
            }
        }
        Ok(())
    }

    /// Finds the masks of the stacks that part below an entry.
    fn read_ways<'s>(
        &self,
        node: NodeId,
        above: StackNode<'s>,
        found: &mut FoundMasks,
    ) -> Result<(), Missing<'s>> {
        let mut work = vec![(above, node)];
        // Ways through the stacks meet again: none is gone twice.
        let mut seen: Vec<(StackNode<'_>, NodeId)> = Vec::new();
        while let Some((above, node)) = work.pop() {
            if let Some(mask) = self.decided(node, above)? {
                found.insert(mask);
                continue;
            }
            let parts = above.below().len() > 1;
            for below in above.below() {
                let child = self.child(node, below)?;
                if !parts || !seen.contains(&(below, child)) {
                    if parts {
                        seen.push((below, child));
                    }
                    work.push((below, child));
                }
            }
        }
        Ok(())
    }

    /// The node after an entry below `node`.
    fn child<'s>(&self, node: NodeId, below: StackNode<'s>) -> Result<NodeId, Missing<'s>> {
        let children = &self.nodes[node.0 as usize].children;
        match children.binary_search_by_key(&below.state(), |&(state, _)| state) {
            Ok(at) => Ok(children[at].1),
            Err(_) => Err(Missing::Below(node, below)),
        }
    }

    /// The mask, if nothing below `stack` can change what `node` says.
    fn decided<'s>(
        &self,
        node: NodeId,
        stack: StackNode<'s>,
    ) -> Result<Option<MaskId>, Missing<'s>> {
        match self.nodes[node.0 as usize].known {
            Known::All(mask) => Ok(Some(mask)),
            _ if stack.below().len() > 0 => Ok(None),
            Known::Some(mask, _) => Ok(Some(mask)),
            Known::Nothing => Err(Missing::Here(node, stack)),
        }
    }

    fn build(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &VocabularySlices,
        missing: Missing<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let (lexer, states, lowest) = match missing {
            Missing::Alike(lexer) => {
                let longest = vocabulary.trie().max_depth() as u32;
                let alike = recognizer.lexer().within(lexer, longest)?;
                self.alike.insert(lexer, alike);
                return Ok(());
            }
            Missing::Union(several) => {
                self.unite(vocabulary.num_words(), several);
                return Ok(());
            }
            Missing::Top(lexer, top) => (lexer, [top.state()].into(), top),
            Missing::Below(parent, at) => {
                let above = &self.nodes[parent.0 as usize];
                (above.lexer, [&*above.states, &[at.state()]].concat().into(), at)
            }
            Missing::Here(node, at) => {
                let node = &self.nodes[node.0 as usize];
                (node.lexer, node.states.clone(), at)
            }
        };
        self.words.clear();
        self.words.resize(vocabulary.num_words(), 0);
        let lexemes = match &mut self.lexemes {
            Some(lexemes) if lexemes.pieces().memory_bytes() <= slices::MAX_PIECE_BYTES => lexemes,
            outdated => outdated.insert(Lexemes::new(vocabulary.pieces())),
        };
        let reading = Reading {
            recognizer,
            trie: vocabulary.trie(),
            lexemes,
            memory: &mut self.reading,
            budget,
        };
        match reading.fill(lexer, &states, lowest, &mut self.words) {
            Ok(()) => {
                let states: Box<[_]> = self.reading.read().into();
                let mask = self.intern();
                let node = self.node(lexer, &states);
                self.nodes[node.0 as usize].known = Known::All(mask);
                Ok(())
            }
            Err(Unread::Unknown) => self.walk(recognizer, vocabulary, lexer, &states, budget),
            Err(Unread::Interrupted(why)) => Err(why.into()),
        }
    }

    /// Remembers the union of several masks.
    fn unite(&mut self, num_words: usize, several: Box<[MaskId]>) {
        self.words.clear();
        self.words.resize(num_words, 0);
        for mask in &several {
            let mask = &self.masks[mask.0 as usize];
            self.words.iter_mut().zip(mask).for_each(|(word, &mask)| *word |= mask);
        }
        let union = self.intern();
        self.bytes += size_of_val(&*several) + size_of::<(Box<[MaskId]>, MaskId)>();
        self.unions.insert(several, union);
    }

    /// Finds out by a walk what is known of a lexer state and the first states of a stack.
    fn walk(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &VocabularySlices,
        lexer: LexerState,
        states: &[StateId],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let node = self.node(lexer, states);
        let above = match states {
            [_] => None,
            [above @ .., _] => Some(self.node(lexer, above)),
            [] => None,
        };
        self.words.fill(0);
        let slice;
        let trie = match above.map(|above| &self.nodes[above.0 as usize].known) {
            Some(Known::Some(mask, undecided)) => {
                self.words.copy_from_slice(&self.masks[mask.0 as usize]);
                undecided
            }
            _ => {
                slice = vocabulary.slice_of(recognizer, lexer, states[0])?;
                match &slice {
                    Some(slice) => {
                        self.words.copy_from_slice(slice.mask());
                        slice.rest()
                    }
                    None => vocabulary.trie(),
                }
            }
        };
        let explorer = &mut self.explorer;
        let undecided =
            explorer.explore(recognizer, trie, lexer, states, &mut self.words, budget)?;
        let mask = self.intern();
        self.know(vocabulary, node, mask, &undecided);
        Ok(())
    }

    /// Remembers what is known at a node.
    fn know(
        &mut self,
        vocabulary: &VocabularySlices,
        node: NodeId,
        mask: MaskId,
        undecided: &[TokenId],
    ) {
        self.nodes[node.0 as usize].known = if undecided.is_empty() {
            Known::All(mask)
        } else {
            let undecided = vocabulary.trie_of(undecided);
            self.bytes += undecided.memory_bytes();
            Known::Some(mask, undecided)
        };
    }

    /// The node of a lexer state and the first states of a stack, and those above it.
    fn node(&mut self, lexer: LexerState, states: &[StateId]) -> NodeId {
        let mut above: Option<NodeId> = None;
        for (&state, depth) in states.iter().zip(1..) {
            let next = NodeId(self.nodes.len() as u32);
            let at = match above {
                None => *self.tops.entry((lexer, state)).or_insert(next),
                Some(above) => {
                    let children = &mut self.nodes[above.0 as usize].children;
                    match children.binary_search_by_key(&state, |&(state, _)| state) {
                        Ok(at) => children[at].1,
                        Err(at) => {
                            children.insert(at, (state, next));
                            next
                        }
                    }
                }
            };
            if at == next {
                let states = &states[..depth];
                self.bytes += size_of::<Node>() + size_of_val(states);
                let (known, children) = (Known::Nothing, Vec::new());
                self.nodes.push(Node { lexer, states: states.into(), known, children });
            }
            above = Some(at);
        }
        above.expect("a stack has a top")
    }

    /// The number of the mask in the making, which is stored once.
    fn intern(&mut self) -> MaskId {
        let hash = hash(&self.words);
        let alike = self.by_hash.entry(hash).or_default();
        let same = |id: &&MaskId| *self.masks[id.0 as usize] == *self.words;
        if let Some(&known) = alike.iter().find(same) {
            return known;
        }
        let id = MaskId(self.masks.len() as u32);
        alike.push(id);
        self.bytes += size_of_val(&*self.words);
        self.masks.push(self.words.as_slice().into());
        id
    }
}

/// A hash of a mask that is the same everywhere.
fn hash(mask: &[u32]) -> u64 {
    // Several lanes, so that no product waits for the one before.
    const LANES: usize = 8;
    let mut lanes = [0xCBF2_9CE4_8422_2325_u64; LANES];
    let mix = |lane: &mut u64, pair: &[u32]| {
        let word = pair.iter().fold(0, |word, &half| word << 32 | u64::from(half));
        *lane = (*lane ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    };
    for chunk in mask.chunks(2 * LANES) {
        lanes.iter_mut().zip(chunk.chunks(2)).for_each(|(lane, pair)| mix(lane, pair));
    }
    lanes.into_iter().fold(0, |hash: u64, lane| {
        (hash ^ lane).wrapping_mul(0xFF51_AFD7_ED55_8CCD).rotate_left(31)
    })
}
