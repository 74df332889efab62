//! A grammar over a vocabulary as a [`Constraint`].

mod batch;
mod binding;
mod denied_names;
mod dictionary;
mod draft_tree;
mod ending;
mod filling;
mod forced;
mod history;
mod lexeme_rests;
mod long_path;
mod long_ways;
mod mask_budget;
mod mask_references;
mod member_tokens;
mod names;
mod positions;
mod precompute;
mod state;
mod token_groups;
mod token_limits;

use std::sync::Arc;

use palmette_core::{
    CommitError, Constraint, Lengths, NUMBER_MARK, RollbackError, SequencePart, TokenId,
    Vocabulary, successors_by_mask,
};

pub use batch::{BatchFiller, BatchRow, RowError, RowErrorKind};
pub use binding::{BindError, SetBinding};
pub use dictionary::{DictionaryStatistics, MaskId, MaskRef};
pub use draft_tree::{DraftTree, DraftTreeError};
pub use ending::{Ending, EndingError};
pub use mask_budget::MaskBudget;
pub use precompute::{BackgroundPrecompute, PrecomputeLimits, PrecomputeStop, Precomputed};
pub use state::GrammarState;

use palmette_grammar_masks::walk::WalkScratch;
use palmette_grammar_masks::{
    AutomatonGraph, AutomatonStatistics, MaskAutomaton, MemberScratch, PoolId, PreparedVocabulary,
};
use palmette_grammar_parser::OwnSet;
use palmette_grammar_parser::recognizer::{
    Position, Recognizer, RecognizerError, RecognizerScratch,
};

use binding::{BoundSlots, ReducedGrammars};
use denied_names::DeniedNames;
use dictionary::MaskDictionary;
use ending::{EndingScratch, SharedCompletions};
use lexeme_rests::LexemeRests;

/// The texts of a grammar, spelled in the tokens of a vocabulary, then an end token.
///
/// - A token with text is allowed where the text so far and its bytes begin a text of the language.
/// - The [end tokens](Self::ends) are allowed where the text so far is in the language. After one,
///   nothing is allowed, and the state is accepting. Elsewhere an end token is a special one.
/// - Tokens that the grammar asks for by name or number are allowed where it does; other special
///   tokens never. A token with text that is asked for so may be read as either.
///
/// Frozen; threads share it by reference or `Arc`.
#[derive(Clone, Debug)]
pub struct GrammarConstraint {
    recognizer: Arc<Recognizer>,
    vocabulary: Arc<PreparedVocabulary>,
    /// Ascending.
    ends: Arc<[TokenId]>,
    /// Engine of the masks; `None` where they are found by walking.
    automaton: Option<Arc<MaskAutomaton>>,
    /// The masks that were asked for by reference.
    dictionary: Arc<MaskDictionary>,
    /// True when the grammar asks for tokens by name or number.
    asks_for_tokens: bool,
    /// The sets of the grammar's slots.
    bound: Option<BoundSlots>,
    /// The grammar without what needs members of empty sets.
    reduced: Arc<ReducedGrammars>,
    /// The most steps of a mask that is asked for without a budget.
    mask_steps: Option<u64>,
    /// Ways to the end of a text, found out once one is asked for.
    endings: SharedCompletions,
    /// Tokens that lexemes in progress take to their end.
    lexeme_rests: LexemeRests,
}

/// Memory that a thread lends to a constraint; what is in it between two calls does not matter.
#[derive(Debug, Default)]
pub struct GrammarScratch {
    recognizer: RecognizerScratch,
    walk: WalkScratch,
    members: MemberScratch,
    mask: Vec<u32>,
    parts: Vec<PoolId>,
    denied_names: DeniedNames,
    ending: EndingScratch,
}

impl GrammarScratch {
    /// About how much memory it takes for what it remembers: a megabyte and a half and a mask at
    /// most, and near ends and limits of texts about 10 MB of one grammar and 32 MB of others.
    pub fn bytes(&self) -> usize {
        let ending = self.ending.bytes();
        self.recognizer.bytes() + size_of_val(&*self.mask) + self.denied_names.bytes() + ending
    }
}

impl GrammarConstraint {
    /// A grammar over a vocabulary. Grammars over the same vocabulary share `vocabulary`.
    ///
    /// Masks come from a [`MaskAutomaton`]; where lexemes depend on the text before them, the
    /// vocabulary is walked for each, since the automaton reads what remains of a lexeme and the
    /// stack alone.
    pub fn new(recognizer: Arc<Recognizer>, vocabulary: Arc<PreparedVocabulary>) -> Self {
        if !recognizer.lexer().looking_back().is_empty() {
            return Self::by_walking(recognizer, vocabulary);
        }
        let vocabulary = vocabulary.for_grammar(recognizer.grammar());
        let automaton = MaskAutomaton::new(Arc::clone(&vocabulary));
        Self::with_automaton(recognizer, vocabulary, Some(Arc::new(automaton)))
    }

    /// A constraint whose masks come from a [`TrieWalk`](palmette_grammar_masks::walk::TrieWalk):
    /// slow, and without memory of what was asked.
    #[doc(hidden)]
    pub fn by_walking(recognizer: Arc<Recognizer>, vocabulary: Arc<PreparedVocabulary>) -> Self {
        let vocabulary = vocabulary.for_grammar(recognizer.grammar());
        Self::with_automaton(recognizer, vocabulary, None)
    }

    fn with_automaton(
        recognizer: Arc<Recognizer>,
        vocabulary: Arc<PreparedVocabulary>,
        automaton: Option<Arc<MaskAutomaton>>,
    ) -> Self {
        let (dictionary, reduced) = Default::default();
        let asks_for_tokens = recognizer.grammar().asks_for_tokens();
        let ends = vocabulary.vocabulary().ends().into();
        let (bound, mask_steps) = (BoundSlots::from_own_sets(&recognizer), None);
        let (endings, lexeme_rests) = Default::default();
        Self {
            recognizer,
            vocabulary,
            ends,
            automaton,
            dictionary,
            asks_for_tokens,
            bound,
            reduced,
            mask_steps,
            endings,
            lexeme_rests,
        }
    }

    /// A constraint on the same texts, ended by these tokens instead of the vocabulary's: for a
    /// request that stops at tokens of its own. What is known of masks is shared.
    ///
    /// A token with text may be one of them. Where the text so far is in the language it ends
    /// there, even where the text could go on with its bytes; elsewhere it is text. Tokens that are
    /// not in the vocabulary are left out.
    #[must_use]
    pub fn with_ends(&self, ends: impl IntoIterator<Item = TokenId>) -> Self {
        let inside = |token: &TokenId| token.index() < self.num_tokens();
        let mut ends: Vec<_> = ends.into_iter().filter(inside).collect();
        ends.sort_unstable();
        ends.dedup();
        Self { ends: ends.into(), dictionary: Arc::default(), ..self.clone() }
    }

    /// The tokens that end a text, ascending: the vocabulary's unless [others](Self::with_ends)
    /// were given.
    pub fn ends(&self) -> &[TokenId] {
        &self.ends
    }

    /// A constraint on these texts whose memory of masks takes at most so much, and is empty. Masks
    /// that need more push out what was found for others; one that needs more by itself is found by
    /// walking the vocabulary.
    pub fn with_mask_bytes(self, max_bytes: usize) -> Self {
        let empty = || MaskAutomaton::with_max_bytes(Arc::clone(&self.vocabulary), max_bytes);
        let automaton = self.automaton.as_ref().map(|_| Arc::new(empty()));
        Self { automaton, dictionary: Arc::default(), ..self }
    }

    /// A constraint on these texts whose masks take at most so many steps where they are asked for
    /// without a [budget](Self::fill_mask_within): by searches and samplers that know no grammars.
    #[must_use]
    pub fn with_mask_steps(self, mask_steps: u64) -> Self {
        Self { mask_steps: Some(mask_steps), ..self }
    }

    /// The grammar.
    pub fn recognizer(&self) -> &Arc<Recognizer> {
        &self.recognizer
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.vocabulary.vocabulary()
    }

    /// The vocabulary with what grammars over it share.
    pub fn prepared_vocabulary(&self) -> &Arc<PreparedVocabulary> {
        &self.vocabulary
    }

    /// Engine of the masks; `None` where they are found by walking.
    pub(crate) fn mask_automaton(&self) -> Option<&MaskAutomaton> {
        self.automaton.as_deref()
    }

    /// About how much memory lexer, parser, the grammar's own sets and what is known of masks take
    /// by now, without what grammars over the vocabulary share.
    pub fn bytes(&self) -> usize {
        let masks = self.mask_automaton().map_or(0, MaskAutomaton::bytes);
        let rows = self.bound.as_ref().map_or(0, BoundSlots::bytes);
        let slots = self.recognizer.source().slots().iter();
        let own_sets: usize = slots.flat_map(|slot| &slot.own).map(OwnSet::bytes).sum();
        self.recognizer.bytes() + masks + self.dictionary.statistics().bytes + rows + own_sets
    }

    /// Size of the automaton of masks; `None` where masks are found by walking.
    pub fn automaton(&self) -> Option<AutomatonStatistics> {
        self.mask_automaton().map(MaskAutomaton::statistics)
    }

    /// Nodes of the automaton of masks as far as they were read; `None` where masks are found by
    /// walking.
    pub fn automaton_graph(&self) -> Option<AutomatonGraph> {
        self.mask_automaton().map(MaskAutomaton::graph)
    }

    /// Moves `state` over text that no token stands for, such as the part of the answer that is in
    /// the prompt; a [rollback](Constraint::rollback) counts it as one token.
    ///
    /// # Errors
    /// When no text of the language goes on so, naming the first byte that does not fit, or a limit
    /// is exceeded; `state` is unchanged.
    pub fn commit_bytes(
        &self,
        state: &mut GrammarState,
        bytes: &[u8],
        scratch: &mut GrammarScratch,
    ) -> Result<(), CommitBytesError> {
        let mut at = state.position().filter(|_| !state.ended()).cloned();
        for (offset, &byte) in bytes.iter().enumerate() {
            let at_text = at.as_ref().filter(|_| byte != NUMBER_MARK);
            let next = at_text.map(|at| self.recognizer.advance(at, byte, &mut scratch.recognizer));
            at = next.transpose()?.flatten();
            if at.is_none() {
                return Err(CommitBytesError::NotAllowed { offset, byte });
            }
        }
        if let Some(position) = at {
            let Some(position) = self.after_token(position, &mut scratch.recognizer)? else {
                let offset = bytes.len().saturating_sub(1);
                let byte = bytes.last().copied().unwrap_or_default();
                return Err(CommitBytesError::NotAllowed { offset, byte });
            };
            state.push(position, false);
        }
        Ok(())
    }

    /// The budget of masks that are asked for without one.
    fn own_budget(&self) -> MaskBudget<'static> {
        match self.mask_steps {
            Some(steps) => MaskBudget::of_steps(steps, None),
            None => MaskBudget::unlimited(),
        }
    }

    /// The position after a token that is in the vocabulary, and whether it ends the text; `None`
    /// when it is not allowed.
    fn after(
        &self,
        state: &GrammarState,
        token: TokenId,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<(Position, bool)>, RecognizerError> {
        let Some(position) = state.position().filter(|_| !state.ended()) else { return Ok(None) };
        if self.ends.binary_search(&token).is_ok()
            && self.recognizer.is_accepting(position, scratch)?
        {
            return Ok(Some((position.clone(), true)));
        }
        let mut after: Option<Position> = None;
        for spelling in self.vocabulary.spellings().of(self.vocabulary(), token) {
            let is_number = spelling[0] == NUMBER_MARK;
            if is_number && !self.asks_for_tokens {
                continue;
            }
            let next = self.recognizer.advance_all(position, spelling, scratch)?;
            after = match (after, next) {
                (Some(one), Some(other)) => Some(self.recognizer.either(one, other, scratch)),
                (one, other) => one.or(other),
            };
        }
        let next = after.map(|next| self.after_token(next, scratch)).transpose()?.flatten();
        Ok(next.map(|next| (next, false)))
    }
}

impl Constraint for GrammarConstraint {
    type State = GrammarState;
    type Scratch = GrammarScratch;
    type Error = RecognizerError;

    fn num_tokens(&self) -> usize {
        self.vocabulary().num_tokens()
    }

    fn start(&self) -> GrammarState {
        match &self.bound {
            None => GrammarState::new(self.recognizer.start().cloned()),
            Some(bound) => GrammarState::new(Some(bound.start().clone())),
        }
    }

    fn fill_mask(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        self.fill_mask_within(state, scratch, mask, &self.own_budget())
    }

    fn fewest_tokens(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
    ) -> Result<Option<usize>, RecognizerError> {
        self.fewest_tokens_within(state, scratch, &self.own_budget())
    }

    fn has_way(
        &self,
        state: &GrammarState,
        lengths: Lengths,
        scratch: &mut GrammarScratch,
    ) -> Result<bool, RecognizerError> {
        self.has_way_within(state, lengths, scratch, &self.own_budget())
    }

    fn fill_ending_mask(
        &self,
        state: &GrammarState,
        lengths: Lengths,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        match self.fill_ending_mask_within(state, lengths, scratch, mask, &self.own_budget()) {
            Err(EndingError::Limit(error)) => Err(error),
            // The mask denies all.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn visit_ways(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        visit: impl FnMut(TokenId, Option<usize>),
    ) -> Result<(), RecognizerError> {
        self.visit_ways_within(state, scratch, &self.own_budget(), visit)
    }

    fn successors(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        visit: impl FnMut(TokenId, GrammarState),
    ) -> Result<(), RecognizerError> {
        let mut allowed = std::mem::take(&mut scratch.mask);
        let visited = successors_by_mask(self, state, scratch, &mut allowed, visit);
        scratch.mask = allowed;
        visited
    }

    fn commit(
        &self,
        state: &mut GrammarState,
        token: TokenId,
        scratch: &mut GrammarScratch,
    ) -> Result<(), CommitError<RecognizerError>> {
        let num_tokens = self.num_tokens();
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        let position = state.num_commits();
        match self.after(state, token, &mut scratch.recognizer) {
            Ok(Some((next, ended))) => {
                state.push(next, ended);
                Ok(())
            }
            Ok(None) => Err(CommitError::NotAllowed { token, position }),
            Err(error) => Err(CommitError::Failed { token, position, error }),
        }
    }

    fn rollback(&self, state: &mut GrammarState, num_tokens: usize) -> Result<(), RollbackError> {
        state.pop(num_tokens)
    }

    fn is_accepting(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
    ) -> Result<bool, RecognizerError> {
        match state.position() {
            _ if state.ended() => Ok(true),
            None => Ok(false),
            Some(position) => self.recognizer.is_accepting(position, &mut scratch.recognizer),
        }
    }

    fn next_part(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mask: &[u32],
    ) -> Result<Option<SequencePart>, RecognizerError> {
        self.next_codes(state, scratch, mask)
    }
}

/// Text that does not fit; the state is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum CommitBytesError {
    /// No text of the language goes on with this byte.
    #[error(
        "byte {byte:#04x} at offset {offset} does not fit: no text of the grammar goes on with it"
    )]
    NotAllowed {
        /// Place in the bytes.
        offset: usize,
        /// The byte.
        byte: u8,
    },
    /// A limit is exceeded.
    #[error(transparent)]
    Limit(#[from] RecognizerError),
}
