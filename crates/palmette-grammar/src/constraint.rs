//! A grammar as a [`Constraint`]: tokens are committed by parsing, masks are looked up in the [store](crate::store).

use std::sync::Arc;

use palmette_core::{CommitError, Constraint, RollbackError, TokenId, Vocabulary, mask};

use crate::blocks::Position;
use crate::compiled::CompiledGrammar;
use crate::history::{GrammarState, Moment};
use crate::lexer::{LexerError, LexerState};
use crate::store::{Letter, Line, MaskStore, Steps, StoreStatistics};
use crate::{LimitError, ParserScratch};

/// The texts of a grammar, cut into the tokens of a vocabulary in any way.
///
/// A text token is allowed when its bytes can follow; an *end* token where the text is in the language. After an end token
/// nothing is allowed, and the state is accepting. Other special tokens are never allowed.
///
/// # Limits
/// The lexer's states and the parser's stacks are bounded. A text that exceeds a bound is refused by
/// [`commit`](Constraint::commit), as a token that is not allowed, and its mask is empty; [`try_commit`](Self::try_commit),
/// [`try_fill_mask`](Self::try_fill_mask) and [`GrammarScratch::exceeded`] tell why. What is allowed is never wrong.
#[derive(Debug)]
pub struct GrammarConstraint {
    grammar: Arc<CompiledGrammar>,
    vocabulary: Arc<Vocabulary>,
    store: MaskStore,
    start: Box<[Branch]>,
}

/// Working memory of one thread.
#[derive(Debug, Default)]
pub struct GrammarScratch {
    parser: ParserScratch,
    exceeded: Option<StepError>,
}

/// One way to read what was committed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Branch {
    pub(crate) lexer: LexerState,
    /// What the lexemes that have ended come to.
    pub(crate) position: Position,
    /// Of a line's end in progress; else [`Line::OTHER`].
    pub(crate) line: Line,
}

/// A limit that the text exceeded.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StepError {
    /// Of the lexer.
    #[error(transparent)]
    Lexer(Arc<LexerError>),
    /// Of the parser.
    #[error(transparent)]
    Parser(#[from] LimitError),
}

/// Why a token or bytes were not committed; the state is unchanged.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TryCommitError {
    /// They cannot follow.
    #[error("byte {byte} of what was committed cannot follow: no text of the grammar goes on with it here")]
    NotAllowed {
        /// How many bytes could follow; all of them if only what they spell together cannot.
        byte: usize,
    },
    /// The token is not in the vocabulary.
    #[error("token {token} is not in the vocabulary of {num_tokens} tokens")]
    UnknownToken {
        /// The refused token.
        token: TokenId,
        /// Size of the vocabulary.
        num_tokens: usize,
    },
    /// A limit was exceeded.
    #[error(transparent)]
    Limit(#[from] StepError),
}

impl GrammarConstraint {
    /// A grammar over the tokens of `vocabulary`. `steps` and `max_store_bytes` are those of [`MaskStore::new`].
    ///
    /// # Errors
    /// When a limit is exceeded before the first byte.
    pub fn new(
        grammar: Arc<CompiledGrammar>,
        vocabulary: Arc<Vocabulary>,
        steps: Steps,
        max_store_bytes: usize,
    ) -> Result<Self, StepError> {
        let store = MaskStore::new(&grammar.grammar, vocabulary.clone(), steps, max_store_bytes);
        let start = grammar.start(&mut ParserScratch::new())?;
        Ok(Self { start: start.into_iter().collect(), grammar, vocabulary, store })
    }

    /// What the store holds now.
    pub fn store_statistics(&self) -> StoreStatistics {
        self.store.statistics()
    }

    /// [`commit`](Constraint::commit) that tells limits from tokens that are not allowed.
    ///
    /// # Errors
    /// When the token is not allowed or unknown, or a limit is exceeded; `state` is unchanged.
    pub fn try_commit(
        &self,
        state: &mut GrammarState,
        token: TokenId,
        scratch: &mut GrammarScratch,
    ) -> Result<(), TryCommitError> {
        let num_tokens = self.vocabulary.num_tokens();
        if token.index() >= num_tokens {
            return Err(TryCommitError::UnknownToken { token, num_tokens });
        }
        let text = self.vocabulary.text(token);
        if !text.is_empty() {
            return self.commit_bytes(state, text, scratch);
        }
        let ends = self.vocabulary.ends().binary_search(&token).is_ok();
        if !ends || state.is_ended() || !self.try_is_accepting(state, scratch)? {
            return Err(TryCommitError::NotAllowed { byte: 0 });
        }
        state.push(Box::default(), true);
        Ok(())
    }

    /// Moves `state` over bytes that need not be a token, such as what a prompt already holds of a text. They
    /// count as one commit.
    ///
    /// # Errors
    /// When they cannot follow, or a limit is exceeded; `state` is unchanged.
    pub fn commit_bytes(
        &self,
        state: &mut GrammarState,
        bytes: &[u8],
        scratch: &mut GrammarScratch,
    ) -> Result<(), TryCommitError> {
        if state.is_ended() {
            return Err(TryCommitError::NotAllowed { byte: 0 });
        }
        let mut branches = state.branches().to_vec();
        for (place, &byte) in bytes.iter().enumerate() {
            branches = self.grammar.read(&branches, byte, &mut scratch.parser)?;
            if branches.is_empty() {
                return Err(TryCommitError::NotAllowed { byte: place });
            }
        }
        let branches = self.grammar.live(branches, &mut scratch.parser)?;
        if branches.is_empty() {
            return Err(TryCommitError::NotAllowed { byte: bytes.len() });
        }
        state.push(branches.into(), false);
        Ok(())
    }

    /// [`fill_mask`](Constraint::fill_mask) that tells limits.
    ///
    /// # Errors
    /// When a limit is exceeded; `mask` is then empty.
    ///
    /// # Panics
    /// When `mask` does not have the vocabulary's number of words.
    pub fn try_fill_mask(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
    ) -> Result<(), StepError> {
        let words = mask::num_words(self.vocabulary.num_tokens());
        assert_eq!(mask.len(), words, "words of a mask");
        mask.fill(0);
        let filled = self.add_allowed(state, scratch, mask);
        if filled.is_err() {
            mask.fill(0);
        }
        filled
    }

    /// [`is_accepting`](Constraint::is_accepting) that tells limits.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn try_is_accepting(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
    ) -> Result<bool, StepError> {
        if state.is_ended() {
            return Ok(true);
        }
        self.grammar.may_end(state.branches(), &mut scratch.parser)
    }

    /// The bytes that must follow, at most `max_bytes` of them: each the only one that can, where the text may not end.
    ///
    /// Cost: for each, 256 steps of the lexer.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn forced_bytes(
        &self,
        state: &GrammarState,
        max_bytes: usize,
        scratch: &mut GrammarScratch,
    ) -> Result<Vec<u8>, StepError> {
        let mut branches = state.branches().to_vec();
        let mut forced = Vec::new();
        while forced.len() < max_bytes && !branches.is_empty() {
            if self.grammar.may_end(&branches, &mut scratch.parser)? {
                break;
            }
            let mut only = None;
            let mut several = false;
            for byte in 0..=u8::MAX {
                let next = self.grammar.read(&branches, byte, &mut scratch.parser)?;
                let next = self.grammar.live(next, &mut scratch.parser)?;
                if !next.is_empty() {
                    several = only.is_some();
                    only = Some((byte, next));
                }
                if several {
                    break;
                }
            }
            match only {
                Some((byte, next)) if !several => {
                    forced.push(byte);
                    branches = next;
                }
                _ => break,
            }
        }
        Ok(forced)
    }

    fn add_allowed(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        words: &mut [u32],
    ) -> Result<(), StepError> {
        if state.is_ended() {
            return Ok(());
        }
        let grammar = &*self.grammar;
        let parser_scratch = std::cell::RefCell::new(&mut scratch.parser);
        for branch in state.branches() {
            let rows = self.store.rows(&grammar.lexer, branch.lexer)?;
            let accepts = |position: &Position, letter: Letter| {
                let scratch = &mut parser_scratch.borrow_mut();
                grammar.layer.accepts(&grammar.parser, position, letter.terminal, scratch)
            };
            let step = |position: &Position, letter: Letter| {
                let letter = Letter { line: branch.line.then(letter.line), ..letter };
                let scratch = &mut parser_scratch.borrow_mut();
                grammar.layer.step(&grammar.parser, position, letter, scratch)
            };
            rows.fill(branch.position.clone(), words, accepts, step)?;
        }
        if self.try_is_accepting(state, scratch)? {
            self.vocabulary.ends().iter().for_each(|&end| mask::insert(words, end));
        }
        Ok(())
    }
}

impl GrammarScratch {
    /// Why the last mask or answer that was asked through [`Constraint`] with this scratch is empty, if a limit was exceeded;
    /// forgets it.
    pub fn exceeded(&mut self) -> Option<StepError> {
        self.exceeded.take()
    }
}

impl Constraint for GrammarConstraint {
    type State = GrammarState;
    type Scratch = GrammarScratch;

    fn num_tokens(&self) -> usize {
        self.vocabulary.num_tokens()
    }

    fn start(&self) -> GrammarState {
        GrammarState::new(Moment::first(self.start.clone()))
    }

    fn fill_mask(&self, state: &GrammarState, scratch: &mut GrammarScratch, mask: &mut [u32]) {
        if let Err(error) = self.try_fill_mask(state, scratch, mask) {
            scratch.exceeded = Some(error);
        }
    }

    fn successors(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mut visit: impl FnMut(TokenId, GrammarState),
    ) {
        let mut words = vec![0; mask::num_words(self.num_tokens())];
        self.fill_mask(state, scratch, &mut words);
        for token in mask::iter(&words) {
            let mut next = state.clone();
            match self.try_commit(&mut next, token, scratch) {
                Ok(()) => visit(token, next),
                Err(TryCommitError::Limit(error)) => scratch.exceeded = Some(error),
                Err(error) => unreachable!("{token} is in the mask, but {error}"),
            }
        }
    }

    fn commit(&self, state: &mut GrammarState, token: TokenId) -> Result<(), CommitError> {
        let position = state.len();
        self.try_commit(state, token, &mut GrammarScratch::default()).map_err(|error| match error {
            TryCommitError::UnknownToken { token, num_tokens } => {
                CommitError::UnknownToken { token, num_tokens }
            }
            _ => CommitError::NotAllowed { token, position },
        })
    }

    fn rollback(&self, state: &mut GrammarState, num_tokens: usize) -> Result<(), RollbackError> {
        state.take_back(num_tokens)
    }

    fn is_accepting(&self, state: &GrammarState) -> bool {
        self.try_is_accepting(state, &mut GrammarScratch::default()).unwrap_or(false)
    }

    fn forced_token(&self, state: &GrammarState, scratch: &mut GrammarScratch) -> Option<TokenId> {
        if self.is_accepting(state) {
            return None;
        }
        let mut words = vec![0; mask::num_words(self.num_tokens())];
        self.fill_mask(state, scratch, &mut words);
        let mut allowed = mask::iter(&words);
        allowed.next().filter(|_| allowed.next().is_none())
    }
}

impl From<LexerError> for StepError {
    fn from(error: LexerError) -> Self {
        Self::Lexer(Arc::new(error))
    }
}
