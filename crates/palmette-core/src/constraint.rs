//! The contract between a decoder and whatever limits what it may generate.

use std::fmt::Debug;

use crate::TokenId;

/// A set of token sequences, asked step by step.
///
/// The set itself is frozen and shared; a [`State`](Self::State) is a position in it, small and
/// cheap to clone, one per sequence or beam; [`Scratch`](Self::Scratch) is working memory, one per
/// thread, that carries no meaning from call to call.
///
/// # Laws
/// `palmette-testkit` checks them for every implementation, on random walks:
///
/// 1. A mask bit is set if and only if [`commit`](Self::commit) of that token succeeds, and if and
///    only if [`successors`](Self::successors) visits it; the visited state equals the committed one.
///    [`commit_all`](Self::commit_all) does what `commit` does to each state.
/// 2. No dead ends: every state reachable from [`start`](Self::start) is accepting or allows a
///    token. Only `start` of the empty set does neither; the empty set is legal and denies all.
/// 3. [`fill_mask`](Self::fill_mask) changes nothing and does not depend on what the buffer or the
///    scratch held before.
/// 4. A failed `commit` leaves the state as it was.
/// 5. `n` commits followed by [`rollback`](Self::rollback) of `n` give an equal state.
/// 6. Clones (forks) do not see each other.
/// 7. A [`forced_token`](Self::forced_token) is the only allowed token of a state that is not
///    accepting, and every such state reports it.
pub trait Constraint {
    /// A position: what has been committed so far, as far as it matters for what may follow.
    type State: Clone + Debug + PartialEq;
    /// Working memory of one thread.
    type Scratch: Default;

    /// Size of the vocabulary: masks have this many bits.
    fn num_tokens(&self) -> usize;

    /// The position before the first token.
    fn start(&self) -> Self::State;

    /// Writes the allowed tokens of `state` over all of `mask`; bits past the vocabulary become 0.
    ///
    /// # Panics
    /// When `mask` does not have [`num_words`](crate::mask::num_words)`(num_tokens())` words.
    fn fill_mask(&self, state: &Self::State, scratch: &mut Self::Scratch, mask: &mut [u32]);

    /// [`fill_mask`](Self::fill_mask) for many states: row `i` of `masks` belongs to `states[i]`. A set
    /// that waits for memory can look them up side by side.
    ///
    /// # Panics
    /// When `masks` does not have a row of `num_words` words for each state.
    fn fill_masks(&self, states: &[Self::State], scratch: &mut Self::Scratch, masks: &mut [u32]) {
        let words = crate::mask::num_words(self.num_tokens());
        assert_eq!(masks.len(), states.len() * words, "mask rows of {} states", states.len());
        if words > 0 {
            let rows = masks.chunks_exact_mut(words);
            states.iter().zip(rows).for_each(|(state, row)| self.fill_mask(state, scratch, row));
        }
    }

    /// Why the last [`fill_mask`](Self::fill_mask), [`fill_masks`](Self::fill_masks) or [`successors`](Self::successors) with
    /// this scratch may have left something out: a limit of the constraint was exceeded. A row that failed denies all; of
    /// several, this tells of the first. `None`, as always where there are no limits, when nothing is missing.
    ///
    /// Decoders ask after each of these, so that a limit ends a search with an error and never with fewer results.
    fn failure(&self, scratch: &Self::Scratch) -> Option<String> {
        let _ = scratch;
        None
    }

    /// Visits the allowed tokens in ascending order, each with the position after it. For states
    /// where few tokens are allowed this costs less than a mask.
    fn successors(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        visit: impl FnMut(TokenId, Self::State),
    );

    /// Moves `state` over `token`.
    ///
    /// # Errors
    /// When the token is not allowed here or is not in the vocabulary; `state` is unchanged.
    fn commit(&self, state: &mut Self::State, token: TokenId) -> Result<(), CommitError>;

    /// [`commit`](Self::commit) for many states: moves `states[i]` over `tokens[i]`. A set that waits for
    /// memory can look them up side by side.
    ///
    /// # Errors
    /// When a token is not allowed: the first of them. The states then mean nothing any more.
    ///
    /// # Panics
    /// When there is not a token for each state.
    fn commit_all(
        &self,
        states: &mut [Self::State],
        tokens: &[TokenId],
        scratch: &mut Self::Scratch,
    ) -> Result<(), CommitAllError> {
        let _ = scratch;
        assert_eq!(states.len(), tokens.len(), "a token for each state");
        for (place, (state, &token)) in states.iter_mut().zip(tokens).enumerate() {
            self.commit(state, token).map_err(|_| CommitAllError { place, token })?;
        }
        Ok(())
    }

    /// Takes back the last `num_tokens` commits.
    ///
    /// # Errors
    /// When fewer tokens have been committed; `state` is unchanged.
    fn rollback(&self, state: &mut Self::State, num_tokens: usize) -> Result<(), RollbackError>;

    /// Whether what has been committed is itself in the set, so that decoding may stop.
    fn is_accepting(&self, state: &Self::State) -> bool;

    /// The only token that can follow, where there is exactly one and stopping is not allowed.
    fn forced_token(&self, state: &Self::State, scratch: &mut Self::Scratch) -> Option<TokenId> {
        if self.is_accepting(state) {
            return None;
        }
        let (mut only, mut count) = (None, 0_usize);
        self.successors(state, scratch, |token, _| {
            only = Some(token);
            count += 1;
        });
        only.filter(|_| count == 1)
    }
}

/// A token that the constraint does not allow; the state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The token exists, but no sequence of the set continues with it here.
    #[error(
        "token {token} is not allowed at position {position}: nothing in the set continues with it"
    )]
    NotAllowed {
        /// The refused token.
        token: TokenId,
        /// How many tokens had been committed.
        position: usize,
    },
    /// Whether the token is allowed could not be found out: a limit of the constraint was exceeded.
    #[error("token {token} at position {position}: {why}")]
    Failed {
        /// The token.
        token: TokenId,
        /// How many tokens had been committed.
        position: usize,
        /// The limit, and the way out.
        why: String,
    },
    /// The token is not in the vocabulary.
    #[error("token {token} is not in the vocabulary of {num_tokens} tokens")]
    UnknownToken {
        /// The refused token.
        token: TokenId,
        /// Size of the vocabulary.
        num_tokens: usize,
    },
}

/// A token that the constraint does not allow after its state; the states mean nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("token {token} is not allowed after state {place}, the first refusal among the states")]
pub struct CommitAllError {
    /// Place of the state.
    pub place: usize,
    /// The refused token.
    pub token: TokenId,
}

/// A rollback past the start; the state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot take back {asked} tokens: only {committed} have been committed")]
pub struct RollbackError {
    /// How many commits were to be taken back.
    pub asked: usize,
    /// How many there were.
    pub committed: usize,
}
