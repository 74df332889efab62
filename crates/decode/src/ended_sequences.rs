//! Sequences of a constraint as a generation ends them: by a stop token, whole, or at a length.

use palmette_core::{
    CommitError, Constraint, Lengths, RollbackError, TokenId, mask, successors_by_mask,
};

use crate::error::DecodeError;
use crate::generate::GenerateOptions;

/// Set of the sequences that a [`Generator`](crate::Generator) of these options could write, for a
/// search: each is accepted where it ends, and nothing follows there.
///
/// Sequences end by a stop token, where the constraint allows nothing more, and at the most tokens.
/// Masks of those that are promised to be whole allow what leaves a way to the end; what they deny
/// is not refused again when it is committed, since a search commits what they allow.
#[derive(Debug)]
pub(crate) struct EndedSequences<'c, C: ?Sized> {
    constraint: &'c C,
    options: &'c GenerateOptions,
    is_promised: bool,
}

/// Position of an [`EndedSequences`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndedState<S> {
    inner: S,
    len: usize,
    /// The last token was a stop token.
    is_stopped: bool,
}

/// Working memory of an [`EndedSequences`].
#[derive(Debug, Default)]
pub(crate) struct EndedScratch<S> {
    inner: S,
    mask: Vec<u32>,
}

impl<'c, C: Constraint + ?Sized> EndedSequences<'c, C> {
    /// The sequences of a constraint, as they end by these options.
    ///
    /// # Errors
    /// When they are promised to be whole, and none is known that is within its tokens.
    pub(crate) fn new(
        constraint: &'c C,
        options: &'c GenerateOptions,
    ) -> Result<Self, DecodeError> {
        let scratch = &mut C::Scratch::default();
        let fewest = options.fewest_promised(constraint, &constraint.start(), scratch)?;
        Ok(Self { constraint, options, is_promised: fewest.is_some() })
    }

    /// True where nothing may follow, whatever the constraint says.
    fn is_over(&self, state: &EndedState<C::State>) -> bool {
        state.is_stopped || state.len >= self.options.max_tokens
    }
}

impl<C: Constraint + ?Sized> Constraint for EndedSequences<'_, C> {
    type State = EndedState<C::State>;
    type Scratch = EndedScratch<C::Scratch>;
    type Error = C::Error;

    fn num_tokens(&self) -> usize {
        self.constraint.num_tokens()
    }

    fn start(&self) -> Self::State {
        EndedState { inner: self.constraint.start(), len: 0, is_stopped: false }
    }

    fn fill_mask(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        allowed: &mut [u32],
    ) -> Result<(), C::Error> {
        if self.is_over(state) {
            allowed.fill(0);
            return Ok(());
        }
        let (inner, scratch) = (&state.inner, &mut scratch.inner);
        let GenerateOptions { max_tokens, min_tokens, .. } = *self.options;
        if self.is_promised {
            let least = min_tokens.saturating_sub(state.len);
            let lengths = Lengths { least, most: max_tokens - state.len };
            self.constraint.fill_ending_mask(inner, lengths, scratch, allowed)?;
        } else {
            self.constraint.fill_mask(inner, scratch, allowed)?;
        }
        self.options.hold_back_stops(state.len, allowed);
        Ok(())
    }

    fn successors(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        visit: impl FnMut(TokenId, Self::State),
    ) -> Result<(), C::Error> {
        let mut allowed = std::mem::take(&mut scratch.mask);
        let visited = successors_by_mask(self, state, scratch, &mut allowed, visit);
        scratch.mask = allowed;
        visited
    }

    fn commit(
        &self,
        state: &mut Self::State,
        token: TokenId,
        scratch: &mut Self::Scratch,
    ) -> Result<(), CommitError<C::Error>> {
        if self.is_over(state) {
            return Err(CommitError::NotAllowed { token, position: state.len });
        }
        self.constraint.commit(&mut state.inner, token, &mut scratch.inner)?;
        state.len += 1;
        state.is_stopped = self.options.stop_tokens.contains(&token);
        Ok(())
    }

    fn rollback(&self, state: &mut Self::State, num_tokens: usize) -> Result<(), RollbackError> {
        self.constraint.rollback(&mut state.inner, num_tokens)?;
        state.len -= num_tokens;
        state.is_stopped &= num_tokens == 0;
        Ok(())
    }

    fn is_accepting(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
    ) -> Result<bool, C::Error> {
        if self.is_over(state) {
            return Ok(true);
        }
        if !self.constraint.is_accepting(&state.inner, &mut scratch.inner)? {
            return Ok(false);
        }
        let mut allowed = std::mem::take(&mut scratch.mask);
        allowed.resize(mask::num_words(self.num_tokens()), 0);
        let filled = self.fill_mask(state, scratch, &mut allowed);
        let is_whole = filled.map(|()| mask::is_empty(&allowed));
        scratch.mask = allowed;
        is_whole
    }
}
