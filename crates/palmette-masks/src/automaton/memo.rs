//! The stack automaton's memo: nodes that read a stack from the top, and masks.

use hashbrown::{HashMap, HashSet};
use palmette_core::mask;
use palmette_parser::glr::StackNode;
use palmette_parser::glr::Stacks;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::{Branch, Position, Recognizer, RecognizerError};

use super::composed::ComposedMasks;
use super::explore::Explorer;
use super::found::FoundMasks;
use super::nodes::{NodeId, Nodes, Verdict};
use super::prepared_vocabulary::{MAX_RESIDUAL_BYTES, PreparedVocabulary};
use super::saved::Unmet;
use crate::mask_pool::{MaskPool, Part, PoolId, Row, RowId};
use crate::residuals::{
    Lexemes, Reading, ResidualId, StackWorklist, SuffixSetId, SuffixSets, Unread,
};
use crate::tables::table_bytes;
use crate::{Budget, Interrupted};

/// Memo of the stack automaton: nodes, masks, and the memory to make more.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Representatives by lexer state: the one that stands for it, for the longest token.
    pub(super) representatives: HashMap<LexerState, LexerState>,
    pub(super) nodes: Nodes,
    pub(super) masks: MaskPool,
    /// Unions by masks, ascending.
    unions: HashMap<Box<[PoolId]>, Row>,
    union_bytes: usize,
    by_residual: Option<ByResidual>,
    pub(super) suffix_sets: SuffixSets,
    /// First nodes from a file, until their lexemes in progress are met.
    pub(super) unmet: Unmet,
    /// Parts of the mask in the making.
    parts: Vec<Part>,
    explorer: Explorer,
    /// The mask in the making.
    pub(super) words: Vec<u32>,
    /// Number of times that everything was dropped; ids of masks mean something until the next one.
    pub(super) generation: u32,
}

/// Lexemes and composed masks of the grammar, as numbers into the residuals that grammars share.
#[derive(Debug)]
struct ByResidual {
    lexemes: Lexemes,
    composed: ComposedMasks,
}

/// Missing part of an answer, to be built.
pub(super) enum Missing<'s> {
    /// The state that stands for this one.
    Representative(LexerState),
    /// The node of a lexer state and the top of a stack.
    Top(LexerState, StackNode<'s>),
    /// The node once this entry is read below another.
    Below(NodeId, StackNode<'s>),
    /// The verdict at a node, of which this is the last entry.
    Here(NodeId, StackNode<'s>),
    /// The union of several masks.
    Union(Box<[PoolId]>),
    /// More than any number of nodes is enough for.
    TooManyWays,
}

/// A mask depends on at most so many ways through the stacks below a place where they part. Nodes tell apart what lies above an
/// entry, of which there may be twice as many with each place where an ambiguous text parts; walks do not.
pub(super) const MAX_WAYS: usize = 1024;

impl Memo {
    /// An empty memo, everything before having been dropped.
    pub(super) fn after(dropped: &Self) -> Self {
        Self { generation: dropped.generation.wrapping_add(1), ..Self::default() }
    }

    /// The memory of nodes and masks.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.memory_bytes() + self.masks.memory_bytes()
    }

    /// About how much memory it takes, without what grammars over the vocabulary share.
    pub(super) fn all_bytes(&self) -> usize {
        let by_residual = self.by_residual.as_ref().map_or(0, ByResidual::memory_bytes);
        self.bytes()
            + table_bytes::<[LexerState; 2]>(self.representatives.len())
            + self.union_bytes
            + by_residual
            + self.suffix_sets.memory_bytes()
            + self.unmet.len() * size_of::<(u128, Vec<(StateId, u32)>)>()
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
            [only] => self.masks.copy(only, &self.suffix_sets, mask),
            ref several => match self.unions.get(several) {
                Some(known) => known.copy(mask),
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
            let known = self.representatives.get(lexer).copied();
            let representative = known.ok_or(Missing::Representative(*lexer))?;
            self.read(representative, stacks, found)?;
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
            if self.composed(lexer, top, found).is_some() {
                continue;
            }
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

    /// Finds the masks of the stacks with one top, if for each one that says the same was composed.
    fn composed(
        &self,
        lexer: LexerState,
        top: StackNode<'_>,
        found: &mut FoundMasks,
    ) -> Option<()> {
        self.suffix_sets.of_masks().answers(lexer.0, top, MAX_WAYS, |said| {
            found.insert(self.composed_of(said.suffix_set)?);
            Some(())
        })
    }

    /// The mask of a suffix set, if it was composed.
    pub(super) fn composed_of(&self, made_of: SuffixSetId) -> Option<PoolId> {
        self.by_residual.as_ref()?.composed.get(made_of)
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
    ) -> Result<Option<PoolId>, Missing<'s>> {
        match *self.nodes.known(node) {
            Verdict::Decided(mask) => Ok(Some(mask)),
            _ if stack.below().len() > 0 => Ok(None),
            Verdict::Partial(mask, _) => Ok(Some(mask)),
            Verdict::Unread => Err(Missing::Here(node, stack)),
        }
    }

    pub(super) fn build(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        missing: Missing<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let (lexer, states, lowest) = match missing {
            Missing::Representative(lexer) => {
                self.find_representative(recognizer, vocabulary, lexer)?;
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
        match self.put_together(recognizer, vocabulary, lexer, &states, lowest, budget) {
            Ok((mask, read)) => {
                let node = self.nodes.make(lexer, &read);
                self.nodes.decide(node, mask);
                Ok(())
            }
            Err(Unread::Unknown) => self.walk(recognizer, vocabulary, lexer, &states, budget),
            Err(Unread::Interrupted(why)) => Err(why.into()),
        }
    }

    /// The lexer state that stands for one.
    fn find_representative(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        lexer: LexerState,
    ) -> Result<LexerState, RecognizerError> {
        let longest = vocabulary.trie().max_depth() as u32;
        let representative = recognizer.lexer().bounded_equivalent(lexer, longest)?;
        self.representatives.insert(lexer, representative);
        if !self.unmet.is_empty() {
            let met = self.unmet.swap_remove(&recognizer.lexer().fingerprint(representative));
            for (top, node) in met.into_iter().flatten() {
                self.suffix_sets.of_masks_mut().know_first(representative.0, top, node);
            }
        }
        Ok(representative)
    }

    /// The mask of a lexer state and the first states of a stack, put together from residuals, with the states that it depends on.
    fn put_together(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        lexer: LexerState,
        states: &[StateId],
        lowest: StackNode<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(PoolId, Vec<StateId>), Unread> {
        let reading = self.reading(recognizer, vocabulary, budget);
        let (made_of, read) = reading.find(lexer, states, lowest)?;
        Ok((self.compose(vocabulary, made_of, budget)?, read))
    }

    /// Remembers the mask of a suffix set.
    pub(super) fn know_composed(
        &mut self,
        vocabulary: &PreparedVocabulary,
        made_of: SuffixSetId,
        mask: PoolId,
    ) {
        // Not `current`: nodes that are being restored are not to be forgotten.
        let by_residual = self.by_residual.get_or_insert_with(|| ByResidual::new(vocabulary));
        by_residual.composed.insert(made_of, mask);
    }

    /// The mask of a suffix set.
    fn compose(
        &mut self,
        vocabulary: &PreparedVocabulary,
        made_of: SuffixSetId,
        budget: &mut Budget<'_>,
    ) -> Result<PoolId, Unread> {
        // Not `current`: what was just found may have become too much, but is not to be forgotten before it is used.
        let by_residual = self.by_residual.as_mut().expect("what it is made of was found in them");
        if let Some(known) = by_residual.composed.get(made_of) {
            return Ok(known);
        }
        let (set, num_words) = (self.suffix_sets.get(made_of), vocabulary.num_words());
        if set.restored.is_some() {
            // Its mask was in the file, or it is made anew before anybody comes here.
            return Err(Unread::Unknown);
        }
        self.parts.clear();
        let mut num_tokens = 0;
        let of_parts = set.parts.iter().map(|&part| {
            let of_part = self.suffix_sets.get(part);
            if of_part.tokens().len() > 0 {
                self.parts.push(Part::SuffixSet(part));
            }
            num_tokens += of_part.tokens().len();
            &*of_part.consuming
        });
        let of_parts: Vec<&[ResidualId]> = of_parts.collect();
        for consuming in set.consuming.chunks(1).chain(of_parts) {
            let (masks, words) = (&mut self.masks, &mut self.words);
            let row = by_residual.consumed(masks, words, vocabulary, consuming, budget)?;
            self.parts.extend(row.map(Part::Row));
        }
        // Nobody waits for what is found ahead: then it is one row, so that what is to be written of it later lies together.
        let mask = if MaskPool::are_few(num_tokens, num_words) && !budget.gives_way() {
            self.masks.add(&mut self.parts)
        } else {
            self.words.clear();
            self.words.resize(num_words, 0);
            self.masks.insert_parts(&self.parts, &self.suffix_sets, &mut self.words);
            self.masks.intern(&self.words)
        };
        by_residual.composed.insert(made_of, mask);
        Ok(mask)
    }

    /// Makes the node of one state more of some stacks ahead of time.
    pub(super) fn look_at_stack(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        ahead: &mut StackWorklist,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        let made_of = ahead.look(self.reading(recognizer, vocabulary, budget))?;
        self.compose_all(vocabulary, made_of, budget)
    }

    /// Makes the node of a lexeme in progress on stacks with this topmost state ahead of time.
    pub(super) fn look_at_lexeme(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        (lexer, top): (LexerState, StateId),
        ahead: &mut StackWorklist,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        let representative = match self.representatives.get(&lexer).copied() {
            Some(known) => known,
            // Whoever asks for a mask there meets the limit again.
            None => self
                .find_representative(recognizer, vocabulary, lexer)
                .map_err(|_| Unread::Unknown)?,
        };
        let reading = self.reading(recognizer, vocabulary, budget);
        let made_of = ahead.look_at_lexeme(representative, top, reading)?;
        self.compose_all(vocabulary, made_of, budget)
    }

    fn reading<'a, 'b>(
        &'a mut self,
        recognizer: &'a Recognizer,
        vocabulary: &'a PreparedVocabulary,
        budget: &'a mut Budget<'b>,
    ) -> Reading<'a, 'b> {
        let Self { by_residual, suffix_sets, unmet, .. } = self;
        let by_residual = current(by_residual, suffix_sets, unmet, vocabulary);
        Reading {
            recognizer,
            trie: vocabulary.trie(),
            num_words: vocabulary.num_words(),
            lexemes: &mut by_residual.lexemes,
            suffix_sets,
            budget,
            generation: self.generation,
        }
    }

    fn compose_all(
        &mut self,
        vocabulary: &PreparedVocabulary,
        made_of: Option<SuffixSetId>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        made_of.map_or(Ok(()), |made_of| self.compose(vocabulary, made_of, budget).map(|_| ()))
    }

    /// Remembers the union of several masks.
    fn unite(&mut self, num_words: usize, several: Box<[PoolId]>) {
        self.words.clear();
        self.words.resize(num_words, 0);
        for &mask in &several {
            self.masks.insert(mask, &self.suffix_sets, &mut self.words);
        }
        let union = self.masks.encode(&self.words);
        self.union_bytes += size_of_val(&*several) + size_of::<Row>();
        self.unions.insert(several, union);
    }

    /// Finds the verdict of a lexer state and the first states of a stack by a walk.
    fn walk(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        lexer: LexerState,
        states: &[StateId],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let node = self.nodes.make(lexer, states);
        self.words.clear();
        self.words.resize(vocabulary.num_words(), 0);
        let slice;
        let trie = match self.nodes.above(node).map(|above| self.nodes.known(above)) {
            Some(Verdict::Partial(mask, undecided)) => {
                self.masks.copy(*mask, &self.suffix_sets, &mut self.words);
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
        self.nodes.know(vocabulary, node, mask, &undecided);
        Ok(())
    }

    /// The number of the mask in the making, which is stored once.
    pub(super) fn intern(&mut self) -> PoolId {
        self.masks.intern(&self.words)
    }
}

impl ByResidual {
    /// An empty memo.
    fn new(vocabulary: &PreparedVocabulary) -> Self {
        Self { lexemes: Lexemes::new(vocabulary.residuals()), composed: ComposedMasks::default() }
    }

    /// The tokens consumed whole by some residuals, ascending; `None` where there are none.
    fn consumed(
        &mut self,
        masks: &mut MaskPool,
        words: &mut Vec<u32>,
        vocabulary: &PreparedVocabulary,
        residuals: &[ResidualId],
        budget: &mut Budget<'_>,
    ) -> Result<Option<RowId>, Unread> {
        if residuals.is_empty() {
            return Ok(None);
        }
        if let Some(known) = self.composed.consumed(residuals) {
            return Ok(known);
        }
        let (trie, num_words) = (vocabulary.trie(), vocabulary.num_words());
        let mut rows = Vec::new();
        for &residual in residuals {
            let row = self.lexemes.residuals().consumed(trie, num_words, residual, budget)?;
            rows.extend((!row.is_empty()).then_some(row));
        }
        let row = match *rows {
            [] => None,
            [only] => Some(masks.add_row(only.clone())),
            ref several => {
                words.clear();
                words.resize(num_words, 0);
                several.iter().for_each(|row| row.insert(words));
                let union = masks.encode(words);
                Some(masks.add_row(union))
            }
        };
        self.composed.insert_consumed(residuals, row);
        Ok(row)
    }

    /// About how much memory it takes, without the residuals.
    fn memory_bytes(&self) -> usize {
        self.lexemes.bytes() + self.composed.memory_bytes()
    }
}

/// Lexemes and composed masks in terms of the current residuals, none where these have become too many.
fn current<'m>(
    by_residual: &'m mut Option<ByResidual>,
    suffix_sets: &mut SuffixSets,
    unmet: &mut Unmet,
    vocabulary: &PreparedVocabulary,
) -> &'m mut ByResidual {
    let are_too_many =
        |known: &ByResidual| known.lexemes.residuals().memory_bytes() > MAX_RESIDUAL_BYTES;
    if by_residual.as_ref().is_some_and(are_too_many) {
        *by_residual = None;
        suffix_sets.forget();
        unmet.clear();
    }
    by_residual.get_or_insert_with(|| ByResidual::new(vocabulary))
}
