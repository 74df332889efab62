//! What has been found out: nodes that read a stack from the top, and masks.

use hashbrown::{HashMap, HashSet};
use palmette_core::mask;

use super::explore::Explorer;
use super::found::FoundMasks;
use super::nodes::{Known, NodeId, Nodes};
use super::rows::{Row, Rows};
use super::slices::{MAX_PIECE_BYTES, VocabularySlices};
use crate::glr::StackNode;
use crate::lexer::LexerState;
use crate::lr::StateId;
use crate::masks::pieces::{Lexemes, Reading, ReadingMemory, Unread};
use crate::recognizer::{Branch, Position, Recognizer, RecognizerError};
use crate::{Budget, Interrupted, Stacks};

/// What has been built.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// The lexer state that stands for this one, for the longest token.
    pub(super) alike: HashMap<LexerState, LexerState>,
    pub(super) nodes: Nodes,
    pub(super) masks: Rows,
    /// By masks, ascending: their union.
    unions: HashMap<Box<[MaskId]>, Row>,
    union_bytes: usize,
    lexemes: Option<Lexemes>,
    reading: ReadingMemory,
    explorer: Explorer,
    /// The mask in the making.
    pub(super) words: Vec<u32>,
    /// How often everything was dropped; ids of masks mean something until the next time.
    pub(super) generation: u32,
}

/// Of the memo's masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MaskId(pub(super) u32);

/// What a question needs that has not been built.
pub(super) enum Missing<'s> {
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
    /// What no number of nodes is enough for.
    TooManyWays,
}

/// A mask depends on at most so many ways through the stacks below a place where they part. Nodes tell apart what lies above an
/// entry, of which there may be twice as many with each place where an ambiguous text parts; walks do not.
pub(super) const MAX_WAYS: usize = 1024;

impl Memo {
    /// Nothing found out, everything before having been dropped.
    pub(super) fn after(dropped: &Self) -> Self {
        Self { generation: dropped.generation.wrapping_add(1), ..Self::default() }
    }

    /// The memory of nodes and masks.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.masks.memory_bytes()
    }

    /// About how much memory it takes, without what grammars over the vocabulary share.
    pub(super) fn all_bytes(&self) -> usize {
        self.bytes() + self.union_bytes + self.lexemes.as_ref().map_or(0, Lexemes::bytes)
    }

    /// Writes the mask of a position, or says what it needs.
    pub(super) fn fill<'s>(
        &self,
        position: &'s Position,
        mask: &mut [u32],
    ) -> Result<(), Missing<'s>> {
        let mut found = FoundMasks::default();
        self.find(position, &mut found)?;
        match *found.sorted() {
            [] => mask.fill(0),
            [only] => self.masks.copy(self.masks.row(only), mask),
            ref several => match self.unions.get(several) {
                Some(known) => self.masks.copy(known, mask),
                None => return Err(Missing::Union(several.into())),
            },
        }
        Ok(())
    }

    /// Finds the masks whose union is that of a position.
    pub(super) fn find<'s>(
        &self,
        position: &'s Position,
        found: &mut FoundMasks,
    ) -> Result<(), Missing<'s>> {
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
            let node = self.nodes.top(lexer, top.state()).ok_or(Missing::Top(lexer, top))?;
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
        let mut seen: HashSet<(StackNode<'_>, NodeId)> = HashSet::new();
        while let Some((above, node)) = work.pop() {
            if let Some(mask) = self.decided(node, above)? {
                found.insert(mask);
                continue;
            }
            let parts = above.below().len() > 1;
            for below in above.below() {
                let child = self.child(node, below)?;
                if !parts || seen.insert((below, child)) {
                    work.push((below, child));
                }
            }
            if seen.len() > MAX_WAYS {
                return Err(Missing::TooManyWays);
            }
        }
        Ok(())
    }

    /// The node after an entry below `node`.
    fn child<'s>(&self, node: NodeId, below: StackNode<'s>) -> Result<NodeId, Missing<'s>> {
        self.nodes.child(node, below.state()).ok_or(Missing::Below(node, below))
    }

    /// The mask, if nothing below `stack` can change what `node` says.
    fn decided<'s>(
        &self,
        node: NodeId,
        stack: StackNode<'s>,
    ) -> Result<Option<MaskId>, Missing<'s>> {
        match *self.nodes.known(node) {
            Known::All(mask) => Ok(Some(mask)),
            _ if stack.below().len() > 0 => Ok(None),
            Known::Some(mask, _) => Ok(Some(mask)),
            Known::Nothing => Err(Missing::Here(node, stack)),
        }
    }

    pub(super) fn build(
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
            Missing::TooManyWays => {
                return Err(Interrupted::TooManyWays { limit: MAX_WAYS }.into());
            }
            Missing::Top(lexer, top) => (lexer, vec![top.state()], top),
            Missing::Below(above, at) => {
                let mut states = self.nodes.states(above);
                states.push(at.state());
                (self.nodes.lexer(above), states, at)
            }
            Missing::Here(node, at) => (self.nodes.lexer(node), self.nodes.states(node), at),
        };
        let lexemes = current(&mut self.lexemes, vocabulary);
        let reading = Reading {
            recognizer,
            trie: vocabulary.trie(),
            lexemes,
            memory: &mut self.reading,
            budget,
        };
        match reading.fill(lexer, &states, lowest, vocabulary.num_words()) {
            Ok(()) => {
                let mask = self.masks.intern_gathered(self.reading.gathered());
                let node = self.nodes.make(lexer, self.reading.read());
                self.nodes.know_all(node, mask);
                Ok(())
            }
            Err(Unread::Unknown) => self.walk(recognizer, vocabulary, lexer, &states, budget),
            Err(Unread::Interrupted(why)) => Err(why.into()),
        }
    }

    /// The grammar's lexemes as pieces.
    pub(super) fn lexemes(&mut self, vocabulary: &VocabularySlices) -> &mut Lexemes {
        current(&mut self.lexemes, vocabulary)
    }

    /// Remembers the union of several masks.
    fn unite(&mut self, num_words: usize, several: Box<[MaskId]>) {
        self.words.clear();
        self.words.resize(num_words, 0);
        for &mask in &several {
            self.masks.insert(self.masks.row(mask), &mut self.words);
        }
        let union = self.masks.row_of(&self.words);
        self.union_bytes += size_of_val(&*several) + union.memory_bytes();
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
        let node = self.nodes.make(lexer, states);
        self.words.clear();
        self.words.resize(vocabulary.num_words(), 0);
        let slice;
        let trie = match self.nodes.above(node).map(|above| self.nodes.known(above)) {
            Some(Known::Some(mask, undecided)) => {
                self.masks.copy(self.masks.row(*mask), &mut self.words);
                undecided
            }
            _ => {
                slice = vocabulary.slice_of(recognizer, lexer, states[0])?;
                match &slice {
                    Some(slice) => {
                        mask::copy(slice.mask(), &mut self.words);
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
        self.nodes.know_some(vocabulary, node, mask, &undecided);
        Ok(())
    }

    /// The number of the mask in the making, which is stored once.
    pub(super) fn intern(&mut self) -> MaskId {
        self.masks.intern(&self.words)
    }
}

/// The lexemes, anew where the pieces that they are numbers into have become too many.
fn current<'l>(lexemes: &'l mut Option<Lexemes>, vocabulary: &VocabularySlices) -> &'l mut Lexemes {
    if lexemes.as_ref().is_some_and(|known| known.pieces().memory_bytes() > MAX_PIECE_BYTES) {
        *lexemes = None;
    }
    lexemes.get_or_insert_with(|| Lexemes::new(vocabulary.pieces()))
}
