//! The contract between a decoder and whatever limits what it may generate.

use std::convert::Infallible;
use std::fmt::Debug;

use crate::{Lengths, MaskWindow, SequencePart, TokenId, mask};

/// A set of token sequences, asked step by step.
///
/// The set itself is frozen and shared; a [`State`](Self::State) is a position in it, small and
/// cheap to clone, one per sequence or beam; [`Scratch`](Self::Scratch) is working memory, one per
/// thread, that carries no meaning from call to call. A constraint hides no scratch of its own:
/// every call that needs one is handed it, so that threads never wait for each other.
///
/// # Errors
/// A constraint with limits (the stacks of an ambiguous grammar, the work of a mask) answers
/// exactly or with an [`Error`](Self::Error); one without any says so in its type, [`Infallible`].
/// An error is never an answer: a mask whose filling failed denies all, a state that a commit
/// failed on is as it was, and asking again is allowed.
///
/// # Laws
/// `palmette-testkit` checks them for every implementation, on random walks:
///
/// 1. A mask bit is set if and only if [`commit`](Self::commit) of that token succeeds, and if and
///    only if [`successors`](Self::successors) visits it; the visited state equals the committed
///    one. [`commit_all`](Self::commit_all) does what `commit` does to each state.
/// 2. No dead ends: every state reachable from [`start`](Self::start) is accepting or allows a
///    token. Only `start` of the empty set does neither; the empty set is legal and denies all.
/// 3. [`fill_mask`](Self::fill_mask) changes nothing and does not depend on what the buffer or the
///    scratch held before; [`fill_masks`](Self::fill_masks) does what `fill_mask` does for each
///    state, and so does [`fill_window`](Self::fill_window): tokens outside of its window are
///    those that no state allows. What [`goes_on`](Self::goes_on) says is what the mask says.
/// 4. A failed `commit` leaves the state as it was.
/// 5. `n` commits followed by [`rollback`](Self::rollback) of `n` give an equal state.
/// 6. Clones (forks) do not see each other.
/// 7. A [`forced_token`](Self::forced_token) is the only allowed token of a state that is not
///    accepting, and every such state reports it.
///
/// [`AnyConstraint`](crate::AnyConstraint) is the same contract behind one object-safe type.
pub trait Constraint {
    /// A position: what has been committed so far, as far as it matters for what may follow.
    type State: Clone + Debug + PartialEq;
    /// Working memory of one thread.
    type Scratch: Default;
    /// An exceeded limit; [`Infallible`] for a set without limits.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Size of the vocabulary: masks have this many bits.
    fn num_tokens(&self) -> usize;

    /// The position before the first token.
    fn start(&self) -> Self::State;

    /// Writes the allowed tokens of `state` over all of `mask`; bits past the vocabulary become 0.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded; the mask then denies all.
    ///
    /// # Panics
    /// When `mask` does not have [`num_words`](crate::mask::num_words)`(num_tokens())` words.
    fn fill_mask(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        mask: &mut [u32],
    ) -> Result<(), Self::Error>;

    /// [`fill_mask`](Self::fill_mask) for many states: row `i` of `masks` belongs to `states[i]`. A
    /// set that waits for memory can look them up side by side.
    ///
    /// # Errors
    /// That of the first state whose limit is exceeded; all masks then deny all.
    ///
    /// # Panics
    /// When `masks` does not have a row of `num_words` words for each state.
    fn fill_masks(
        &self,
        states: &[Self::State],
        scratch: &mut Self::Scratch,
        masks: &mut [u32],
    ) -> Result<(), Self::Error> {
        let words = crate::mask::num_words(self.num_tokens());
        assert_eq!(masks.len(), states.len() * words, "mask rows of {} states", states.len());
        if words == 0 {
            return Ok(());
        }
        let mut rows = states.iter().zip(masks.chunks_exact_mut(words));
        let filled = rows.try_for_each(|(state, row)| self.fill_mask(state, scratch, row));
        if filled.is_err() {
            masks.fill(0);
        }
        filled
    }

    /// [`fill_masks`](Self::fill_masks) over as few words a row as these states need: a set that
    /// knows where in the vocabulary their next tokens are leaves the others out. The states of a
    /// step of a search are of one length; others may have a wider window.
    ///
    /// # Errors
    /// As [`fill_masks`](Self::fill_masks).
    fn fill_window(
        &self,
        states: &[Self::State],
        scratch: &mut Self::Scratch,
        window: &mut MaskWindow,
    ) -> Result<(), Self::Error> {
        window.reset(0..self.num_tokens(), states.len());
        self.fill_masks(states, scratch, window.words_mut())
    }

    /// Tokens after which the sequence is whole in the shortest way that is known, end tokens left
    /// out; 0 where it is. `None` where no way is known before it is gone.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn fewest_tokens(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
    ) -> Result<Option<usize>, Self::Error> {
        let _ = (state, scratch);
        Ok(None)
    }

    /// True where the sequence is known to be whole after more tokens of one of these lengths: by
    /// the [shortest way](Self::fewest_tokens) if that is long enough, or by one that is longer. A
    /// set that knows no ways has none; by default the shortest is the only one.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn has_way(
        &self,
        state: &Self::State,
        lengths: Lengths,
        scratch: &mut Self::Scratch,
    ) -> Result<bool, Self::Error> {
        let fewest = self.fewest_tokens(state, scratch)?;
        Ok(fewest.is_some_and(|fewest| lengths.contains(fewest)))
    }

    /// [`fill_mask`](Self::fill_mask) without the tokens after which the sequence may not be whole
    /// with one of these lengths, the next token counted: where there [is a way](Self::has_way), a
    /// sequence of such tokens has such a length. Where there is none, the mask denies all. A set
    /// that knows no ways gives the mask as it is.
    ///
    /// # Errors
    /// As [`fill_mask`](Self::fill_mask).
    ///
    /// # Panics
    /// As [`fill_mask`](Self::fill_mask).
    fn fill_ending_mask(
        &self,
        state: &Self::State,
        lengths: Lengths,
        scratch: &mut Self::Scratch,
        mask: &mut [u32],
    ) -> Result<(), Self::Error> {
        let _ = lengths;
        self.fill_mask(state, scratch, mask)
    }

    /// Visits the allowed tokens that do not end the sequence, each with the [tokens to the
    /// end](Self::fewest_tokens) after it; `None` where no way is known then. A set that knows no
    /// ways visits nothing, and so does one that would take too long to find them.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn visit_ways(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        visit: impl FnMut(TokenId, Option<usize>),
    ) -> Result<(), Self::Error> {
        let _ = (state, scratch, visit);
        Ok(())
    }

    /// True where a token may follow the state and false where none may, as far as that is known
    /// without a mask: a search can then have its model compute while it makes the masks. `None`
    /// where only the mask tells.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn goes_on(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
    ) -> Result<Option<bool>, Self::Error> {
        let _ = (state, scratch);
        Ok(None)
    }

    /// Visits the allowed tokens in ascending order, each with the position after it. For states
    /// where few tokens are allowed this costs less than a mask.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded; what was visited before is allowed, but not all
    /// that is.
    fn successors(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        visit: impl FnMut(TokenId, Self::State),
    ) -> Result<(), Self::Error>;

    /// Moves `state` over `token`.
    ///
    /// # Errors
    /// When the token is not allowed here, is not in the vocabulary, or a limit of the constraint
    /// is exceeded; `state` is unchanged.
    fn commit(
        &self,
        state: &mut Self::State,
        token: TokenId,
        scratch: &mut Self::Scratch,
    ) -> Result<(), CommitError<Self::Error>>;

    /// [`commit`](Self::commit) for many states: moves `states[i]` over `tokens[i]`. A set that
    /// waits for memory can look them up side by side.
    ///
    /// # Errors
    /// When a token is not allowed or a limit is exceeded: the first of them. The states then mean
    /// nothing any more.
    ///
    /// # Panics
    /// When there is not a token for each state.
    fn commit_all(
        &self,
        states: &mut [Self::State],
        tokens: &[TokenId],
        scratch: &mut Self::Scratch,
    ) -> Result<(), CommitAllError<Self::Error>> {
        assert_eq!(states.len(), tokens.len(), "a token for each state");
        for (place, (state, &token)) in states.iter_mut().zip(tokens).enumerate() {
            self.commit(state, token, scratch).map_err(|error| match error {
                CommitError::Failed { error, .. } => CommitAllError::Failed { place, token, error },
                _ => CommitAllError::NotAllowed { place, token },
            })?;
        }
        Ok(())
    }

    /// Takes back the last `num_tokens` commits.
    ///
    /// # Errors
    /// When fewer tokens have been committed; `state` is unchanged.
    fn rollback(&self, state: &mut Self::State, num_tokens: usize) -> Result<(), RollbackError>;

    /// Membership of what has been committed in the set: decoding may stop here.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn is_accepting(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
    ) -> Result<bool, Self::Error>;

    /// The only token that can follow, where there is exactly one and stopping is not allowed.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn forced_token(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
    ) -> Result<Option<TokenId>, Self::Error> {
        if self.is_accepting(state, scratch)? {
            return Ok(None);
        }
        let (mut only, mut count) = (None, 0_usize);
        self.successors(state, scratch, |token, _| {
            only = Some(token);
            count += 1;
        })?;
        Ok(only.filter(|_| count == 1))
    }

    /// Tokens to commit without a choice, where the set leaves one way on and only the cut of it
    /// into tokens is open: the cut that a tokenizer makes. None where there is a choice.
    ///
    /// `mask` is that of `state`. Where the way on ends within a token, cuts of it that no
    /// tokenizer makes may be taken out of the mask; every member that was reachable still is, by
    /// other tokens.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn forced_stretch(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        mask: &mut [u32],
    ) -> Result<Vec<TokenId>, Self::Error> {
        let _ = (state, scratch, mask);
        Ok(Vec::new())
    }

    /// The part that must come next, where what may follow is one that a search can write as a
    /// whole; `mask` is that of `state`. None where tokens are drawn one by one.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    fn next_part(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        mask: &[u32],
    ) -> Result<Option<SequencePart>, Self::Error> {
        let _ = (state, scratch, mask);
        Ok(None)
    }
}

/// Successors of a state by its mask and a commit of each token in it: what a constraint without a
/// quicker way answers. `allowed` is memory for the mask, of any size.
///
/// # Errors
/// As [`Constraint::successors`].
pub fn successors_by_mask<C: Constraint>(
    constraint: &C,
    state: &C::State,
    scratch: &mut C::Scratch,
    allowed: &mut Vec<u32>,
    mut visit: impl FnMut(TokenId, C::State),
) -> Result<(), C::Error> {
    allowed.resize(mask::num_words(constraint.num_tokens()), 0);
    constraint.fill_mask(state, scratch, allowed)?;
    for token in mask::iter(allowed) {
        let mut next = state.clone();
        match constraint.commit(&mut next, token, scratch) {
            Ok(()) => visit(token, next),
            Err(CommitError::Failed { error, .. }) => return Err(error),
            // The mask allowed it.
            Err(_) => {}
        }
    }
    Ok(())
}

/// A token that a constraint refused, or could not judge; the state is unchanged.
///
/// `E` is the constraint's own error; one without limits never gives [`Failed`](Self::Failed).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError<E = Infallible> {
    /// The token exists, but no sequence of the set continues with it here.
    #[error(
        "token {token} is not allowed at position {position}: nothing in the set continues with it"
    )]
    NotAllowed {
        /// The refused token.
        token: TokenId,
        /// Number of tokens committed before.
        position: usize,
    },
    /// A limit of the constraint was exceeded before the token was judged.
    #[error("token {token} at position {position}: {error}")]
    Failed {
        /// The token.
        token: TokenId,
        /// Number of tokens committed before.
        position: usize,
        /// The limit, and the way out.
        error: E,
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

impl<E> CommitError<E> {
    /// Maps the constraint's own error to another type.
    pub fn map<F>(self, map: impl FnOnce(E) -> F) -> CommitError<F> {
        match self {
            Self::NotAllowed { token, position } => CommitError::NotAllowed { token, position },
            Self::Failed { token, position, error } => {
                CommitError::Failed { token, position, error: map(error) }
            }
            Self::UnknownToken { token, num_tokens } => {
                CommitError::UnknownToken { token, num_tokens }
            }
        }
    }
}

/// The first of many commits that was refused or could not be judged; the states mean nothing any
/// more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitAllError<E = Infallible> {
    /// The token is not allowed after its state.
    #[error("token {token} is not allowed after state {place}, the first refusal among the states")]
    NotAllowed {
        /// Place of the state.
        place: usize,
        /// The refused token.
        token: TokenId,
    },
    /// A limit of the constraint was exceeded before the token was judged.
    #[error("token {token} after state {place}: {error}")]
    Failed {
        /// Place of the state.
        place: usize,
        /// The token.
        token: TokenId,
        /// The limit, and the way out.
        error: E,
    },
}

impl<E> CommitAllError<E> {
    /// Maps the constraint's own error to another type.
    pub fn map<F>(self, map: impl FnOnce(E) -> F) -> CommitAllError<F> {
        match self {
            Self::NotAllowed { place, token } => CommitAllError::NotAllowed { place, token },
            Self::Failed { place, token, error } => {
                CommitAllError::Failed { place, token, error: map(error) }
            }
        }
    }
}

/// A rollback past the start; the state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot take back {asked} tokens: only {committed} have been committed")]
pub struct RollbackError {
    /// Number of commits to take back.
    pub asked: usize,
    /// Number of commits that there were.
    pub committed: usize,
}

impl RollbackError {
    /// Commits that are left when `asked` of `committed` are taken back.
    ///
    /// # Errors
    /// When fewer were committed.
    pub fn remaining(committed: usize, asked: usize) -> Result<usize, Self> {
        committed.checked_sub(asked).ok_or(Self { asked, committed })
    }
}
