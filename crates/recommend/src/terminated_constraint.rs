//! A constraint whose sequences end with given tokens: semantic IDs as a model writes them, with
//! what it writes after them.

use palmette_catalog::CodeTokens;
use palmette_core::{
    CommitAllError, CommitError, Constraint, MaskWindow, RollbackError, TokenId, mask,
};

/// The sequences of `C`, each followed by the same tokens.
///
/// Where `C` may stop or go on, the first end token stands for stopping: a sequence may be a prefix
/// of another, and their scores have a term for every choice. The first end token must follow no
/// sequence of `C` otherwise; [`PromptFormat`](crate::PromptFormat) checks that.
#[derive(Clone, Debug)]
pub(crate) struct TerminatedConstraint<C> {
    inner: C,
    /// At least one.
    end: Box<[TokenId]>,
}

/// A position of `C`, and how many of the end tokens have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndedState<S> {
    pub(crate) inner: S,
    ended: u32,
}

impl<S> EndedState<S> {
    /// True once an end token has come: no code can follow.
    pub(crate) fn is_ending(&self) -> bool {
        self.ended > 0
    }
}

/// The scratch of `C`, and its positions side by side.
pub(crate) struct EndedScratch<C: Constraint> {
    inner: C::Scratch,
    states: Vec<C::State>,
    tokens: Vec<TokenId>,
    places: Vec<usize>,
}

impl<C: Constraint> Default for EndedScratch<C> {
    fn default() -> Self {
        let inner = C::Scratch::default();
        Self { inner, states: Vec::new(), tokens: Vec::new(), places: Vec::new() }
    }
}

impl<C: Constraint> TerminatedConstraint<C> {
    /// # Panics
    /// Without end tokens.
    pub(crate) fn new(inner: C, end: &[TokenId]) -> Self {
        assert!(!end.is_empty(), "sequences that end with nothing are their own");
        Self { inner, end: end.into() }
    }

    pub(crate) fn inner(&self) -> &C {
        &self.inner
    }

    /// True where the next end token may come, if there is one.
    fn may_end(
        &self,
        state: &EndedState<C::State>,
        inner: &mut C::Scratch,
    ) -> Result<bool, C::Error> {
        Ok(state.ended > 0 || self.inner.is_accepting(&state.inner, inner)?)
    }

    /// The end token that comes next, if not all have come.
    fn next_end(&self, state: &EndedState<C::State>) -> Option<TokenId> {
        self.end.get(state.ended as usize).copied()
    }
}

impl<C: Constraint> Constraint for TerminatedConstraint<C> {
    type State = EndedState<C::State>;
    type Scratch = EndedScratch<C>;
    type Error = C::Error;

    fn num_tokens(&self) -> usize {
        self.inner.num_tokens()
    }

    fn start(&self) -> Self::State {
        EndedState { inner: self.inner.start(), ended: 0 }
    }

    fn fill_mask(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        words: &mut [u32],
    ) -> Result<(), C::Error> {
        self.fill_masks(std::slice::from_ref(state), scratch, words)
    }

    fn fill_masks(
        &self,
        states: &[Self::State],
        scratch: &mut Self::Scratch,
        masks: &mut [u32],
    ) -> Result<(), C::Error> {
        let EndedScratch { inner, states: positions, .. } = scratch;
        positions.clear();
        positions.extend(states.iter().map(|state| state.inner.clone()));
        // Rows of those that are ending are filled too, and written over.
        self.inner.fill_masks(positions, inner, masks)?;
        let words = mask::num_words(self.num_tokens());
        for (state, row) in states.iter().zip(masks.chunks_exact_mut(words.max(1))) {
            if state.ended > 0 {
                row.fill(0);
            }
            if self.may_end(state, inner)?
                && let Some(token) = self.next_end(state)
            {
                mask::insert(row, token);
            }
        }
        Ok(())
    }

    /// The end tokens alone where all states end, and the window of `C` where none may. Where some
    /// may and others go on, both may lie anywhere, and the window is the vocabulary.
    fn fill_window(
        &self,
        states: &[Self::State],
        scratch: &mut Self::Scratch,
        window: &mut MaskWindow,
    ) -> Result<(), C::Error> {
        let EndedScratch { inner, states: positions, .. } = scratch;
        let (mut some_go_on, mut some_end) = (false, false);
        for state in states {
            some_end |= self.may_end(state, inner)?;
            some_go_on |=
                state.ended == 0 && self.inner.goes_on(&state.inner, inner)? != Some(false);
        }
        if !some_go_on {
            let next = states.iter().filter_map(|state| self.next_end(state)).map(TokenId::index);
            let range = next.clone().min().zip(next.max()).map_or(0..0, |(a, b)| a..b + 1);
            window.reset(range, states.len());
            let (first_token, words) = (window.first_token(), window.columns().len());
            window.words_mut().fill(0);
            let rows = window.words_mut().chunks_exact_mut(words.max(1));
            for (state, row) in states.iter().zip(rows) {
                if self.may_end(state, inner)?
                    && let Some(TokenId(token)) = self.next_end(state)
                {
                    mask::insert(row, TokenId(token - first_token));
                }
            }
            return Ok(());
        }
        if some_end {
            window.reset(0..self.num_tokens(), states.len());
            return self.fill_masks(states, scratch, window.words_mut());
        }
        positions.clear();
        positions.extend(states.iter().map(|state| state.inner.clone()));
        self.inner.fill_window(positions, inner, window)
    }

    fn goes_on(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
    ) -> Result<Option<bool>, C::Error> {
        if self.may_end(state, &mut scratch.inner)? {
            return Ok(Some(self.next_end(state).is_some()));
        }
        self.inner.goes_on(&state.inner, &mut scratch.inner)
    }

    fn successors(
        &self,
        state: &Self::State,
        scratch: &mut Self::Scratch,
        mut visit: impl FnMut(TokenId, Self::State),
    ) -> Result<(), C::Error> {
        let inner = &mut scratch.inner;
        let may_end = state.ended > 0 || self.inner.is_accepting(&state.inner, inner)?;
        let mut end = self.next_end(state).filter(|_| may_end);
        let after = EndedState { inner: state.inner.clone(), ended: state.ended + 1 };
        if state.ended == 0 {
            self.inner.successors(&state.inner, inner, |token, next| {
                if let Some(end) = end.take_if(|end| *end < token) {
                    visit(end, after.clone());
                }
                visit(token, EndedState { inner: next, ended: 0 });
            })?;
        }
        if let Some(end) = end {
            visit(end, after);
        }
        Ok(())
    }

    fn commit(
        &self,
        state: &mut Self::State,
        token: TokenId,
        scratch: &mut Self::Scratch,
    ) -> Result<(), CommitError<C::Error>> {
        let (num_tokens, inner) = (self.num_tokens(), &mut scratch.inner);
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        if state.ended == 0 {
            let of_inner = self.inner.commit(&mut state.inner, token, inner);
            let Err(CommitError::NotAllowed { position, .. }) = of_inner else { return of_inner };
            let accepts = self.inner.is_accepting(&state.inner, inner);
            let accepts =
                accepts.map_err(|error| CommitError::Failed { token, position, error })?;
            if !accepts || self.end[0] != token {
                return Err(CommitError::NotAllowed { token, position });
            }
        } else if self.next_end(state) != Some(token) {
            // The constraint within does not say how many tokens came before.
            return Err(CommitError::NotAllowed { token, position: state.ended as usize });
        }
        state.ended += 1;
        Ok(())
    }

    fn commit_all(
        &self,
        states: &mut [Self::State],
        tokens: &[TokenId],
        scratch: &mut Self::Scratch,
    ) -> Result<(), CommitAllError<C::Error>> {
        assert_eq!(states.len(), tokens.len(), "a token for each state");
        let EndedScratch { inner, states: positions, tokens: codes, places } = scratch;
        positions.clear();
        codes.clear();
        places.clear();
        for (place, (state, &token)) in states.iter_mut().zip(tokens).enumerate() {
            match state.ended {
                0 if token != self.end[0] => {
                    positions.push(state.inner.clone());
                    codes.push(token);
                    places.push(place);
                    continue;
                }
                0 => {
                    let accepts = self.inner.is_accepting(&state.inner, inner);
                    let failed = |error| CommitAllError::Failed { place, token, error };
                    if !accepts.map_err(failed)? {
                        return Err(CommitAllError::NotAllowed { place, token });
                    }
                }
                _ if self.next_end(state) != Some(token) => {
                    return Err(CommitAllError::NotAllowed { place, token });
                }
                _ => {}
            }
            state.ended += 1;
        }
        self.inner.commit_all(positions, codes, inner).map_err(|error| match error {
            CommitAllError::NotAllowed { place, token } => {
                CommitAllError::NotAllowed { place: places[place], token }
            }
            CommitAllError::Failed { place, token, error } => {
                CommitAllError::Failed { place: places[place], token, error }
            }
        })?;
        for (position, &place) in positions.drain(..).zip(places.iter()) {
            states[place].inner = position;
        }
        Ok(())
    }

    fn rollback(&self, state: &mut Self::State, num_tokens: usize) -> Result<(), RollbackError> {
        let ended = state.ended as usize;
        let of_inner = num_tokens.saturating_sub(ended);
        if of_inner > 0 {
            self.inner.rollback(&mut state.inner, of_inner).map_err(|error| RollbackError {
                asked: num_tokens,
                committed: error.committed + ended,
            })?;
        }
        state.ended = ended.saturating_sub(num_tokens) as u32;
        Ok(())
    }

    fn is_accepting(&self, state: &Self::State, _: &mut Self::Scratch) -> Result<bool, C::Error> {
        Ok(state.ended as usize == self.end.len())
    }
}

/// Tokens of a generated sequence without those that end it.
pub(crate) fn codes_of<'t>(tokens: &'t [TokenId], spelled: &CodeTokens) -> &'t [TokenId] {
    let is_code = |&(level, token): &(usize, &TokenId)| spelled.code(level, *token).is_some();
    let codes = tokens.iter().enumerate().take_while(is_code).count();
    &tokens[..codes]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use palmette_catalog::{BuildOptions, Catalog, CatalogConstraint, Item, LevelTokens};
    use palmette_core::TokenMask;

    use super::*;

    /// IDs of one to three codes, some of them prefixes of others; tokens of the levels on both
    /// sides of the end token.
    fn constraint(end: &[u32]) -> TerminatedConstraint<CatalogConstraint> {
        let items = (0..40).map(|n| Item {
            id: format!("i{n}"),
            codes: vec![n % 4, n * 7 % 4, n * 3 % 4][..1 + n as usize % 3].to_vec(),
            attributes: Default::default(),
        });
        let items: Vec<Item> = items.collect();
        let catalog = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
        let level = |first_token| LevelTokens { first_token, num_codes: 4 };
        let tokens = CodeTokens::new(vec![level(3), level(20), level(9)], 40).unwrap();
        let end: Vec<TokenId> = end.iter().copied().map(TokenId).collect();
        TerminatedConstraint::new(CatalogConstraint::new(Arc::new(catalog), tokens).unwrap(), &end)
    }

    #[test]
    fn it_is_a_constraint() {
        palmette_testkit::laws::check(&constraint(&[14]), 1, 200, 8);
        palmette_testkit::laws::check(&constraint(&[39, 0, 0, 21]), 2, 200, 8);
    }

    #[test]
    fn sequences_are_those_of_the_catalog_with_the_end() {
        fn sequences<C: Constraint>(constraint: &C) -> Vec<Vec<TokenId>> {
            let mut scratch = C::Scratch::default();
            let (mut found, mut open) = (vec![], vec![(vec![], constraint.start())]);
            while let Some((tokens, state)) = open.pop() {
                if constraint.is_accepting(&state, &mut scratch).unwrap() {
                    found.push(tokens.clone());
                }
                let mut mask = TokenMask::new(constraint.num_tokens());
                constraint.fill_mask(&state, &mut scratch, mask.as_words_mut()).unwrap();
                for token in mask.iter() {
                    let mut next = state.clone();
                    constraint.commit(&mut next, token, &mut scratch).unwrap();
                    open.push(([tokens.clone(), vec![token]].concat(), next));
                }
            }
            found.sort();
            found
        }
        let ended = constraint(&[14, 2]);
        let mut expected = sequences(ended.inner());
        assert!(expected.iter().any(|one| {
            expected.iter().any(|other| one.len() < other.len() && other.starts_with(one))
        }));
        for tokens in &mut expected {
            tokens.extend([TokenId(14), TokenId(2)]);
        }
        expected.sort();
        assert_eq!(sequences(&ended), expected);
    }
}
