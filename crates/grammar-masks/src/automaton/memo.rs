//! The stack automaton's memo: nodes that read a stack from the top, and masks.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_core::{NUMBER_MARK, mask};
use palmette_grammar_parser::SlotKind;
use palmette_grammar_parser::glr::StackNode;
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::lr::StateId;
use palmette_grammar_parser::recognizer::{Branch, Position, Recognizer, RecognizerError};
use palmette_grammar_regex::fingerprint;

use super::FoundMasks;
use super::composed::ComposedMasks;
use super::member_entry::MemberEntry;
use super::prepared_vocabulary::{MAX_RESIDUAL_BYTES, PreparedVocabulary};
use super::saved::RestoredNodes;
use crate::mask_pool::{MaskPool, Part, PoolId, Row};
use crate::residuals::{
    LayerId, LayerState, MaskFailure, MemberBegin, NodeAnswer, NodeKey, Reading, ResidualId,
    SetKind, StackWorklist, SuffixSetId, SuffixSets,
};
use crate::tables::{IndexSet, table_bytes};
use crate::{Budget, Interrupted};

/// Memo of the stack automaton: nodes, masks, and the memory to make more.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Representatives by lexer state: the one that stands for it, for the longest token.
    pub(super) representatives: HashMap<LexerState, LexerState>,
    /// Questions of a grammar with blocks by their numbers.
    pub(super) questions: IndexSet<(LexerState, LayerId)>,
    pub(super) masks: MaskPool,
    /// Unions by masks, ascending.
    unions: HashMap<Box<[PoolId]>, Row>,
    union_bytes: usize,
    composed: Option<ComposedMasks>,
    pub(super) suffix_sets: SuffixSets,
    /// First nodes from a file, until their lexemes in progress are met.
    pub(super) unmet: RestoredNodes,
    /// Parts of the mask in the making.
    parts: Vec<Part>,
    /// The mask in the making.
    pub(super) words: Vec<u32>,
    /// Number of times that everything was dropped; ids of masks mean something until the next one.
    pub(super) generation: u32,
}

/// Missing part of an answer, to be built.
pub(super) enum MissingPart<'s> {
    /// The question that a branch asks.
    NodeKey(&'s Branch),
    /// Nodes or masks of a question on the stacks with this entry on top.
    Stacks(NodeKey, StackNode<'s>),
    /// The union of several masks.
    Union(Box<[PoolId]>),
    /// The entry of members that begin at a place.
    Entry(MemberBegin),
    /// Tokens that may come below a node of the vocabulary's trie on the stacks with this entry
    /// on top.
    Below(u32, StackNode<'s>),
}

impl Memo {
    /// An empty memo, everything before having been dropped.
    pub(super) fn after(dropped: &Self) -> Self {
        let mut empty = Self::default();
        empty.follow(dropped);
        empty
    }

    /// Makes it the next after one that is dropped: numbers of that mean nothing in it.
    pub(super) fn follow(&mut self, dropped: &Self) {
        self.generation = dropped.generation.wrapping_add(1);
    }

    /// The memory of nodes and masks.
    pub(super) fn bytes(&self) -> usize {
        self.suffix_sets.of_masks().memory_bytes() + self.masks.memory_bytes()
    }

    /// The memory of the mask in the making, which no limit counts.
    pub(super) fn scratch_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u32>() + self.parts.capacity() * size_of::<Part>()
    }

    /// About how much memory it takes, without what grammars over the vocabulary share.
    pub(super) fn all_bytes(&self) -> usize {
        let composed = self.composed.as_ref().map_or(0, ComposedMasks::memory_bytes);
        self.masks.memory_bytes()
            + table_bytes::<(LexerState, LayerId)>(self.questions.len())
            + table_bytes::<[LexerState; 2]>(self.representatives.len())
            + self.union_bytes
            + composed
            + self.suffix_sets.memory_bytes()
            + self.unmet.len() * size_of::<(u128, Vec<(StateId, u32)>)>()
    }

    /// Writes the mask of a position, or says what it needs.
    pub(super) fn fill<'s>(
        &self,
        recognizer: &Recognizer,
        position: &'s Position,
        mask: &mut [u32],
    ) -> Result<(), MissingPart<'s>> {
        let mut found = FoundMasks::default();
        self.find(recognizer, position, &mut found)?;
        self.copy(&mut found, mask)
    }

    /// Writes the union of some masks, or says that it is missing.
    pub(super) fn copy<'s>(
        &self,
        found: &mut FoundMasks,
        mask: &mut [u32],
    ) -> Result<(), MissingPart<'s>> {
        found.masks.sort_unstable();
        match *found.masks {
            [] => mask.fill(0),
            [only] => self.masks.copy(only, &self.suffix_sets, mask),
            ref several => match self.unions.get(several) {
                Some(known) => known.copy(mask),
                None => return Err(MissingPart::Union(several.into())),
            },
        }
        Ok(())
    }

    /// Finds the masks whose union is that of a position, but for members in progress, and the
    /// entries of members that begin.
    pub(super) fn find<'s>(
        &self,
        recognizer: &Recognizer,
        position: &'s Position,
        found: &mut FoundMasks,
    ) -> Result<(), MissingPart<'s>> {
        let (has_members, mut missing) = (!recognizer.grammar().slots().is_empty(), None);
        let ordinary = position.branches().iter().filter(|branch| branch.member.is_none());
        for branch in ordinary {
            let question = self.question(recognizer, branch).ok_or(MissingPart::NodeKey(branch))?;
            for top in branch.stacks.tops() {
                let take = |said: NodeAnswer| {
                    let mask = self.composed_of(said.suffix_set)?;
                    if !found.masks.contains(&mask) {
                        found.masks.push(mask);
                    }
                    if has_members {
                        missing =
                            missing.or(self.find_entries(said.suffix_set, &mut found.entries));
                    }
                    Some(())
                };
                if !self.suffix_sets.of_masks().answers(question.number, top, take) {
                    return Err(MissingPart::Stacks(question, top));
                }
                if let Some(begin) = missing {
                    return Err(MissingPart::Entry(begin));
                }
            }
        }
        Ok(())
    }

    /// Adds the entries of a suffix set; gives a beginning whose entry is missing.
    fn find_entries(
        &self,
        of: SuffixSetId,
        entries: &mut Vec<Arc<MemberEntry>>,
    ) -> Option<MemberBegin> {
        let known = self.composed.as_ref().map(|composed| &composed.entries);
        for begin in self.suffix_sets.members_of(of) {
            match known.and_then(|known| known.get(&begin)) {
                None => return Some(begin),
                Some(entry) if entries.iter().any(|other| Arc::ptr_eq(entry, other)) => {}
                Some(entry) => entries.push(Arc::clone(entry)),
            }
        }
        None
    }

    /// Adds the tokens that may come below a node of the vocabulary's trie on the stacks of a
    /// position, and the entries of members that begin there.
    pub(super) fn insert_below<'s>(
        &self,
        node: u32,
        position: &'s Position,
        entries: &mut Vec<Arc<MemberEntry>>,
        mask: &mut [u32],
    ) -> Result<(), MissingPart<'s>> {
        let tops = position.branches().iter().flat_map(|branch| branch.stacks.tops());
        for top in tops {
            let below = || MissingPart::Below(node, top);
            let place = *self.suffix_sets.below.get(&node).ok_or_else(below)?;
            let mut missing = None;
            let take = |said: NodeAnswer| {
                let tokens = self.suffix_sets.tokens_within(said.suffix_set);
                tokens.for_each(|token| mask::insert(mask, token));
                missing = missing.or(self.find_entries(said.suffix_set, entries));
                Some(())
            };
            if !self.suffix_sets.of_places().answers(place, top, take) {
                return Err(below());
            }
            if let Some(begin) = missing {
                return Err(MissingPart::Entry(begin));
            }
        }
        Ok(())
    }

    /// The question that a branch asks, if it was asked before: that of the lexer state that stands
    /// for its own, or where blocks matter too, one of [`questions`](Self::questions).
    fn question(&self, recognizer: &Recognizer, branch: &Branch) -> Option<NodeKey> {
        let lexer = *self.representatives.get(&branch.lexer)?;
        if recognizer.layer().indentation.is_none() {
            return Some(NodeKey::from_lexer(lexer));
        }
        let layer = LayerState::of_lexeme(branch.blocks.clone(), branch.line);
        let layer = self.suffix_sets.layer_states.find_relative(&layer)?;
        let number = self.questions.get_index_of(&(lexer, layer))? as u32;
        Some(NodeKey { number, lexer, layer })
    }

    /// The mask of a suffix set, if it was composed.
    pub(super) fn composed_of(&self, made_of: SuffixSetId) -> Option<PoolId> {
        self.composed.as_ref()?.get(made_of)
    }

    /// Builds what an answer needs.
    pub(super) fn build(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        missing: MissingPart<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        match missing {
            MissingPart::NodeKey(branch) => {
                let layer = LayerState::of_lexeme(branch.blocks.clone(), branch.line);
                self.find_question(recognizer, vocabulary, branch.lexer, layer)?;
            }
            MissingPart::Stacks(question, top) => {
                self.read_stacks(recognizer, vocabulary, question, top, budget)
                    .map_err(Interrupted::from)?;
            }
            MissingPart::Union(several) => self.unite(vocabulary.num_words(), several),
            MissingPart::Entry(begin) => self.make_entry(recognizer, vocabulary, begin),
            MissingPart::Below(node, top) => self
                .reading(recognizer, vocabulary, budget)
                .read_below(node, top)
                .map_err(Interrupted::from)?,
        }
        Ok(())
    }

    /// Makes the entry of members that begin at a place.
    fn make_entry(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        begin: MemberBegin,
    ) {
        let slot = recognizer.grammar().slot_of(begin.terminal).expect("a member begins");
        let composed = self.composed.get_or_insert_with(|| ComposedMasks::new(vocabulary));
        let mut nodes = composed.lexemes.residuals().nodes_at(vocabulary.trie(), begin);
        // A token by number begins with a byte that no text holds: beside free text these are all
        // nodes but one.
        if recognizer.grammar().slots()[slot.index()].kind == SlotKind::Codes {
            let may_begin =
                |node: &u32| vocabulary.trie().child(*node as usize, NUMBER_MARK).is_some();
            nodes = nodes.iter().copied().filter(may_begin).collect();
        }
        composed.insert_entry(begin, MemberEntry { slot, nodes, at_all: begin.in_all });
    }

    /// Reads all stacks with an entry on top, and composes the masks of what they say.
    fn read_stacks(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        question: NodeKey,
        top: StackNode<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), MaskFailure> {
        let found = self.reading(recognizer, vocabulary, budget).find(question, top)?;
        for made_of in found {
            self.compose(vocabulary, made_of, budget)?;
        }
        Ok(())
    }

    /// The question of a lexeme in progress and the layer's state, with what a file has of it.
    fn find_question(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        lexer: LexerState,
        layer: LayerState,
    ) -> Result<NodeKey, RecognizerError> {
        let representative = recognizer.lexer().bounded_equivalent(lexer, vocabulary.horizon())?;
        self.representatives.insert(lexer, representative);
        let question = match recognizer.layer().indentation {
            None => NodeKey::from_lexer(representative),
            Some(_) => {
                let (blanks, states) =
                    (vocabulary.line_blanks(), &mut self.suffix_sets.layer_states);
                let layer = states.intern_relative(layer, recognizer, blanks)?;
                let number = self.questions.insert_full((representative, layer)).0 as u32;
                NodeKey { number, lexer: representative, layer }
            }
        };
        if !self.unmet.is_empty() {
            let met = self.unmet.swap_remove(&self.fingerprint(recognizer, question));
            for (top, node) in met.into_iter().flatten() {
                self.suffix_sets.of_masks_mut().know_first(question.number, top, node);
            }
        }
        Ok(question)
    }

    /// The question of a number.
    pub(super) fn asked(&self, number: u32) -> NodeKey {
        match self.questions.get_index(number as usize) {
            Some(&(lexer, layer)) => NodeKey { number, lexer, layer },
            None => NodeKey::from_lexer(LexerState(number)),
        }
    }

    /// Fingerprint of a question, the same in another process.
    pub(super) fn fingerprint(&self, recognizer: &Recognizer, question: NodeKey) -> u128 {
        let lexer = recognizer.lexer().fingerprint(question.lexer);
        match recognizer.layer().indentation {
            None => lexer,
            Some(_) => fingerprint(&(lexer, self.suffix_sets.layer_states.get(question.layer))),
        }
    }

    /// Remembers the mask of a suffix set.
    pub(super) fn know_composed(
        &mut self,
        vocabulary: &PreparedVocabulary,
        made_of: SuffixSetId,
        mask: PoolId,
    ) {
        // Not `current`: nodes that are being restored are not to be forgotten.
        let composed = self.composed.get_or_insert_with(|| ComposedMasks::new(vocabulary));
        composed.insert(made_of, mask);
    }

    /// The mask of a suffix set.
    fn compose(
        &mut self,
        vocabulary: &PreparedVocabulary,
        made_of: SuffixSetId,
        budget: &mut Budget<'_>,
    ) -> Result<PoolId, MaskFailure> {
        // Not `current`: what was just found may have become too much, but is not to be forgotten
        // before it is used.
        let composed = self.composed.as_mut().expect("what it is made of was found in them");
        if let Some(known) = composed.get(made_of) {
            return Ok(known);
        }
        let (set, num_words) = (self.suffix_sets.get(made_of), vocabulary.num_words());
        if matches!(set.kind, SetKind::Restored(_)) {
            // Its mask was in the file, or it is made anew before anybody comes here.
            return Err(MaskFailure::BeyondLimits);
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
            let row = composed.consumed(masks, words, vocabulary, consuming, budget)?;
            self.parts.extend(row.map(Part::Row));
        }
        // Nobody waits for what is found ahead: then it is one row, so that what is to be written
        // of it later lies together.
        let mask = if MaskPool::are_few(num_tokens, num_words) && !budget.gives_way() {
            self.masks.add(&mut self.parts)
        } else {
            self.words.clear();
            self.words.resize(num_words, 0);
            self.masks.insert_parts(&self.parts, &self.suffix_sets, &mut self.words);
            self.masks.intern(&self.words)
        };
        composed.insert(made_of, mask);
        Ok(mask)
    }

    /// Makes the node of one state more of some stacks ahead of time.
    pub(super) fn look_at_stack(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        ahead: &mut StackWorklist,
        budget: &mut Budget<'_>,
    ) -> Result<(), MaskFailure> {
        let made_of = ahead.look(self.reading(recognizer, vocabulary, budget))?;
        self.compose_all(vocabulary, made_of, budget)
    }

    /// Makes the node of a lexeme in progress on stacks with this topmost state ahead of time.
    pub(super) fn look_at_lexeme(
        &mut self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
        (lexer, top): (LexerState, StateId),
        layer: &LayerState,
        ahead: &mut StackWorklist,
        budget: &mut Budget<'_>,
    ) -> Result<(), MaskFailure> {
        let known = self.representatives.get(&lexer);
        let question = match known.filter(|_| recognizer.layer().indentation.is_none()) {
            Some(&known) => NodeKey::from_lexer(known),
            // Whoever asks for a mask there meets the limit again.
            None => self
                .find_question(recognizer, vocabulary, lexer, layer.clone())
                .map_err(|_| MaskFailure::BeyondLimits)?,
        };
        let reading = self.reading(recognizer, vocabulary, budget);
        let made_of = ahead.look_at_lexeme(question, top, reading)?;
        self.compose_all(vocabulary, made_of, budget)
    }

    fn reading<'a, 'b>(
        &'a mut self,
        recognizer: &'a Recognizer,
        vocabulary: &'a PreparedVocabulary,
        budget: &'a mut Budget<'b>,
    ) -> Reading<'a, 'b> {
        let Self { composed, suffix_sets, unmet, .. } = self;
        let composed = current(composed, suffix_sets, unmet, vocabulary);
        Reading {
            recognizer,
            trie: vocabulary.trie(),
            num_words: vocabulary.num_words(),
            lexemes: &mut composed.lexemes,
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
    ) -> Result<(), MaskFailure> {
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
}

/// Lexemes and composed masks in terms of the current residuals, none where these have become too
/// many.
fn current<'m>(
    composed: &'m mut Option<ComposedMasks>,
    suffix_sets: &mut SuffixSets,
    unmet: &mut RestoredNodes,
    vocabulary: &PreparedVocabulary,
) -> &'m mut ComposedMasks {
    let are_too_many =
        |known: &ComposedMasks| known.lexemes.residuals().memory_bytes() > MAX_RESIDUAL_BYTES;
    if composed.as_ref().is_some_and(are_too_many) {
        *composed = None;
        suffix_sets.forget();
        unmet.clear();
    }
    composed.get_or_insert_with(|| ComposedMasks::new(vocabulary))
}
