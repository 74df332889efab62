//! One sequence under a grammar, followed token by token.

use std::fmt;

use palmette_bindings::Member;
use palmette_core::{CommitError, Constraint, TokenId, mask};
use palmette_grammar::{CommitBytesError, GrammarScratch, GrammarState, MaskRef, RecognizerError};

use crate::grammar::CompiledGrammar;

/// A sequence being written under a grammar: what may follow, and what has been committed.
///
/// Owned: it lives in a struct and moves between threads. A clone is a fork, two counts and a fresh
/// scratch; forks do not see each other. Every call that fails leaves it as it was.
pub struct Matcher {
    grammar: CompiledGrammar,
    state: GrammarState,
    scratch: GrammarScratch,
    text: CommittedText,
}

/// Text of the commits, kept where members of bound sets may be asked for.
#[derive(Clone, Debug, Default)]
struct CommittedText {
    bytes: Vec<u8>,
    /// Lengths of the text before each commit.
    lengths: Vec<usize>,
}

/// A call of a [`Matcher`] that failed; the matcher is as it was.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MatcherError(#[from] Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error(transparent)]
    Commit(#[from] CommitError<RecognizerError>),
    #[error(transparent)]
    Bytes(#[from] CommitBytesError),
    #[error(transparent)]
    Rollback(#[from] palmette_core::RollbackError),
    #[error(transparent)]
    Limit(#[from] RecognizerError),
    #[error("a mask over {num_tokens} tokens needs {needed} words of 32 bits, the row has {given}")]
    Row { num_tokens: usize, needed: usize, given: usize },
}

impl MatcherError {
    /// True for a token or byte that the grammar does not allow there, false for an exceeded limit
    /// or a wrong call.
    pub fn is_refusal(&self) -> bool {
        let refused = |error: &CommitError<_>| matches!(error, CommitError::NotAllowed { .. });
        match &self.0 {
            Kind::Commit(error) => refused(error),
            Kind::Bytes(error) => matches!(error, CommitBytesError::NotAllowed { .. }),
            _ => false,
        }
    }
}

impl Matcher {
    pub(crate) fn new(grammar: CompiledGrammar) -> Self {
        let state = grammar.constraint().start();
        Self { grammar, state, scratch: GrammarScratch::default(), text: CommittedText::default() }
    }

    /// The grammar.
    pub fn grammar(&self) -> &CompiledGrammar {
        &self.grammar
    }

    /// The tokens that may follow; `None` when nothing may: an end token was committed, or the text
    /// is whole and the vocabulary has no end tokens.
    ///
    /// Cost: some look-ups where such a text has been before, whatever the vocabulary's size.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn mask(&mut self) -> Result<Option<MaskRef>, MatcherError> {
        let found = self.grammar.constraint().mask(&self.state, &mut self.scratch);
        let found = found.map_err(Kind::from)?;
        Ok(Some(found).filter(|mask| !mask::is_empty(mask.words())))
    }

    /// Writes the mask into a row of the caller's, such as one of a batch: bit `t % 32` of word `t
    /// / 32` is token `t`. Words past the vocabulary become 0; all do when nothing may follow.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, or the row is shorter than a mask; it then denies
    /// all.
    pub fn fill_mask(&mut self, row: &mut [u32]) -> Result<(), MatcherError> {
        let num_tokens = self.grammar.vocabulary().num_tokens();
        let (needed, given) = (mask::num_words(num_tokens), row.len());
        if given < needed {
            row.fill(0);
            return Err(Kind::Row { num_tokens, needed, given }.into());
        }
        let (row, past) = row.split_at_mut(needed);
        past.fill(0);
        let filled = self.grammar.constraint().fill_mask(&self.state, &mut self.scratch, row);
        Ok(filled.map_err(Kind::from)?)
    }

    /// Moves over a token.
    ///
    /// # Errors
    /// When it is not allowed here, is not in the vocabulary, or a limit is exceeded.
    pub fn commit(&mut self, token: TokenId) -> Result<(), MatcherError> {
        let constraint = self.grammar.constraint();
        let committed = constraint.commit(&mut self.state, token, &mut self.scratch);
        committed.map_err(Kind::from)?;
        let vocabulary = self.grammar.constraint().vocabulary();
        let ended = self.state.ended();
        self.text.push(&self.grammar, if ended { &[] } else { vocabulary.text(token) });
        Ok(())
    }

    /// Moves over text that no token stands for, such as the part of the answer that is in the
    /// prompt. A rollback counts it as one token.
    ///
    /// # Errors
    /// When no text of the grammar goes on so, naming the first byte that does not fit, or a limit
    /// is exceeded.
    pub fn commit_bytes(&mut self, bytes: &[u8]) -> Result<(), MatcherError> {
        let constraint = self.grammar.constraint();
        let committed = constraint.commit_bytes(&mut self.state, bytes, &mut self.scratch);
        committed.map_err(Kind::from)?;
        self.text.push(&self.grammar, bytes);
        Ok(())
    }

    /// Takes back the last `num_tokens` commits.
    ///
    /// # Errors
    /// When there were fewer.
    pub fn rollback(&mut self, num_tokens: usize) -> Result<(), MatcherError> {
        let taken = self.grammar.constraint().rollback(&mut self.state, num_tokens);
        taken.map_err(Kind::from)?;
        self.text.truncate(self.state.num_commits());
        Ok(())
    }

    /// Commits that can be taken back.
    pub fn num_commits(&self) -> usize {
        self.state.num_commits()
    }

    /// Membership of the text in the language: it may end here.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn is_accepting(&mut self) -> Result<bool, MatcherError> {
        let accepting = self.grammar.constraint().is_accepting(&self.state, &mut self.scratch);
        Ok(accepting.map_err(Kind::from)?)
    }

    /// True once an end token was committed.
    pub fn is_ended(&self) -> bool {
        self.state.ended()
    }

    /// Length of the longest prefix of these draft tokens that can be committed: what speculative
    /// decoding may keep. Nothing is committed.
    ///
    /// # Errors
    /// When one of them is not in the vocabulary, or a limit is exceeded.
    pub fn accepted_prefix(&mut self, draft: &[TokenId]) -> Result<usize, MatcherError> {
        let constraint = self.grammar.constraint();
        let accepted = constraint.accepted_prefix(&self.state, draft, &mut self.scratch);
        Ok(accepted.map_err(Kind::from)?)
    }

    /// The members of bound sets that the text has by now, in their order; none where nothing is
    /// bound. A member counts where it has ended, or where the text may end with it.
    ///
    /// Cost: a step for each byte of the text.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn members(&mut self) -> Result<Vec<Member>, MatcherError> {
        let Some(bound) = self.grammar.bound() else { return Ok(Vec::new()) };
        let found = bound.members_with(&self.text.bytes, &mut self.scratch);
        Ok(found.map_err(Kind::from)?.unwrap_or_default())
    }

    /// The bytes that must follow, whatever the text becomes; at most `limit`.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn forced_bytes(&mut self, limit: usize) -> Result<Vec<u8>, MatcherError> {
        let forced = self.grammar.constraint().forced_bytes(&self.state, limit, &mut self.scratch);
        Ok(forced.map_err(Kind::from)?)
    }

    /// The tokens that must follow, each the only one allowed after those before it; at most
    /// `limit`.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn forced_tokens(&mut self, limit: usize) -> Result<Vec<TokenId>, MatcherError> {
        let forced = self.grammar.constraint().forced_tokens(&self.state, limit, &mut self.scratch);
        Ok(forced.map_err(Kind::from)?)
    }

    /// The position, for the engine crates.
    pub fn state(&self) -> &GrammarState {
        &self.state
    }
}

impl CommittedText {
    fn push(&mut self, grammar: &CompiledGrammar, bytes: &[u8]) {
        if grammar.bound().is_some() {
            self.lengths.push(self.bytes.len());
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Keeps the first commits.
    fn truncate(&mut self, num_commits: usize) {
        if let Some(&length) = self.lengths.get(num_commits) {
            self.lengths.truncate(num_commits);
            self.bytes.truncate(length);
        }
    }
}

impl Clone for Matcher {
    fn clone(&self) -> Self {
        let (grammar, state, text) = (self.grammar.clone(), self.state.clone(), self.text.clone());
        Self { grammar, state, scratch: GrammarScratch::default(), text }
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("num_commits", &self.num_commits())
            .field("is_ended", &self.is_ended())
            .finish_non_exhaustive()
    }
}
