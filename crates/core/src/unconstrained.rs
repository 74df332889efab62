//! The trivial constraint: a length and nothing else.

use std::convert::Infallible;

use crate::{CommitError, Constraint, RollbackError, TokenId, mask};

/// Every sequence of exactly `len` tokens: what a model generates when nothing limits it, for
/// comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unconstrained {
    num_tokens: usize,
    len: usize,
}

impl Unconstrained {
    /// All sequences of `len` tokens over a vocabulary of `num_tokens`.
    pub fn new(num_tokens: usize, len: usize) -> Self {
        Self { num_tokens, len }
    }
}

impl Constraint for Unconstrained {
    /// Tokens committed so far.
    type State = usize;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    fn start(&self) -> usize {
        0
    }

    fn fill_mask(&self, state: &usize, (): &mut (), words: &mut [u32]) -> Result<(), Infallible> {
        assert_eq!(words.len(), mask::num_words(self.num_tokens), "words of a mask row");
        words.fill(if *state < self.len { u32::MAX } else { 0 });
        let used = self.num_tokens % mask::WORD_TOKENS;
        if let Some(last) = words.last_mut().filter(|_| used != 0) {
            *last &= (1 << used) - 1;
        }
        Ok(())
    }

    fn goes_on(&self, state: &usize, (): &mut ()) -> Result<Option<bool>, Infallible> {
        Ok(Some(*state < self.len && self.num_tokens > 0))
    }

    fn successors(
        &self,
        state: &usize,
        (): &mut (),
        mut visit: impl FnMut(TokenId, usize),
    ) -> Result<(), Infallible> {
        if *state < self.len {
            (0..self.num_tokens as u32).for_each(|token| visit(TokenId(token), state + 1));
        }
        Ok(())
    }

    fn commit(&self, state: &mut usize, token: TokenId, (): &mut ()) -> Result<(), CommitError> {
        let num_tokens = self.num_tokens;
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        if *state >= self.len {
            return Err(CommitError::NotAllowed { token, position: *state });
        }
        *state += 1;
        Ok(())
    }

    fn rollback(&self, state: &mut usize, num_tokens: usize) -> Result<(), RollbackError> {
        *state = RollbackError::remaining(*state, num_tokens)?;
        Ok(())
    }

    fn is_accepting(&self, state: &usize, (): &mut ()) -> Result<bool, Infallible> {
        Ok(*state == self.len)
    }
}
