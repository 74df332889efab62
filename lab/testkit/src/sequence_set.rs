//! A constraint as its definition.

use std::collections::BTreeSet;
use std::convert::Infallible;

use palmette_core::{CommitError, Constraint, Lengths, RollbackError, TokenId, mask};

/// A set of token sequences, kept as that; a position is the prefix itself.
///
/// A token is allowed if some sequence of the set starts with prefix + token: nothing else is
/// computed, and every question walks the whole set.
#[derive(Clone, Debug)]
pub struct SequenceSet {
    sequences: BTreeSet<Vec<TokenId>>,
    num_tokens: usize,
}

impl SequenceSet {
    /// The set of `sequences` over a vocabulary of `num_tokens`.
    ///
    /// # Panics
    /// When a sequence holds a token outside the vocabulary.
    pub fn new(
        num_tokens: usize,
        sequences: impl IntoIterator<Item = impl IntoIterator<Item = u32>>,
    ) -> Self {
        let sequences: BTreeSet<Vec<TokenId>> =
            sequences.into_iter().map(|s| s.into_iter().map(TokenId).collect()).collect();
        assert!(sequences.iter().flatten().all(|t| t.index() < num_tokens));
        Self { sequences, num_tokens }
    }

    /// The sequences, in ascending order.
    pub fn sequences(&self) -> impl ExactSizeIterator<Item = &[TokenId]> {
        self.sequences.iter().map(Vec::as_slice)
    }

    /// Length of the longest sequence; 0 for the empty set.
    pub fn max_len(&self) -> usize {
        self.sequences.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The tokens that continue `prefix` within the set, ascending.
    pub fn allowed(&self, prefix: &[TokenId]) -> BTreeSet<TokenId> {
        let rests = self.sequences.iter().filter_map(|s| s.strip_prefix(prefix));
        rests.filter_map(|rest| rest.first().copied()).collect()
    }

    /// Lengths of the rests of `prefix` within the set.
    pub fn lengths<'a>(&'a self, prefix: &'a [TokenId]) -> impl Iterator<Item = usize> + 'a {
        self.sequences.iter().filter_map(move |s| s.strip_prefix(prefix)).map(<[_]>::len)
    }

    /// Tokens of the shortest rest of `prefix` within the set.
    pub fn fewest(&self, prefix: &[TokenId]) -> Option<usize> {
        self.lengths(prefix).min()
    }
}

impl Constraint for SequenceSet {
    type State = Vec<TokenId>;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    fn start(&self) -> Vec<TokenId> {
        Vec::new()
    }

    fn fill_mask(
        &self,
        state: &Vec<TokenId>,
        (): &mut (),
        words: &mut [u32],
    ) -> Result<(), Infallible> {
        assert_eq!(words.len(), mask::num_words(self.num_tokens));
        words.fill(0);
        self.allowed(state).into_iter().for_each(|token| mask::insert(words, token));
        Ok(())
    }

    fn fewest_tokens(
        &self,
        state: &Vec<TokenId>,
        (): &mut (),
    ) -> Result<Option<usize>, Infallible> {
        Ok(self.fewest(state))
    }

    fn has_way(
        &self,
        state: &Vec<TokenId>,
        lengths: Lengths,
        (): &mut (),
    ) -> Result<bool, Infallible> {
        Ok(self.lengths(state).any(|len| lengths.contains(len)))
    }

    fn fill_ending_mask(
        &self,
        state: &Vec<TokenId>,
        lengths: Lengths,
        (): &mut (),
        words: &mut [u32],
    ) -> Result<(), Infallible> {
        words.fill(0);
        let Some(after) = lengths.after(1) else { return Ok(()) };
        for token in self.allowed(state) {
            let after_it = [state.as_slice(), &[token]].concat();
            if self.lengths(&after_it).any(|len| after.contains(len)) {
                mask::insert(words, token);
            }
        }
        Ok(())
    }

    fn visit_ways(
        &self,
        state: &Vec<TokenId>,
        (): &mut (),
        mut visit: impl FnMut(TokenId, Option<usize>),
    ) -> Result<(), Infallible> {
        for token in self.allowed(state) {
            visit(token, self.fewest(&[state.as_slice(), &[token]].concat()));
        }
        Ok(())
    }

    fn successors(
        &self,
        state: &Vec<TokenId>,
        (): &mut (),
        mut visit: impl FnMut(TokenId, Vec<TokenId>),
    ) -> Result<(), Infallible> {
        for token in self.allowed(state) {
            visit(token, [state.as_slice(), &[token]].concat());
        }
        Ok(())
    }

    fn commit(
        &self,
        state: &mut Vec<TokenId>,
        token: TokenId,
        (): &mut (),
    ) -> Result<(), CommitError> {
        if token.index() >= self.num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens: self.num_tokens });
        }
        if !self.allowed(state).contains(&token) {
            return Err(CommitError::NotAllowed { token, position: state.len() });
        }
        state.push(token);
        Ok(())
    }

    fn rollback(&self, state: &mut Vec<TokenId>, num_tokens: usize) -> Result<(), RollbackError> {
        let kept = RollbackError::remaining(state.len(), num_tokens)?;
        state.truncate(kept);
        Ok(())
    }

    fn is_accepting(&self, state: &Vec<TokenId>, (): &mut ()) -> Result<bool, Infallible> {
        Ok(self.sequences.contains(state))
    }
}
