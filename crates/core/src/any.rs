//! The object-safe twin of [`Constraint`]: one type for servers and bindings that hold many kinds
//! at once.

use std::any::Any;
use std::error::Error;
use std::fmt;

use crate::{CommitError, Constraint, Lengths, RollbackError, SequencePart, TokenId};

/// Any [`Constraint`], erased: `Arc<dyn AnyConstraint>` holds a catalog or a grammar alike.
///
/// Every constraint is one whose parts are `'static` and may be sent between threads; and `dyn
/// AnyConstraint` is itself a [`Constraint`], over [`AnyState`] and [`AnyScratch`], so that
/// whatever is written for the contract runs over it unchanged. The methods here are the bridge
/// between the two and are not called by users.
///
/// Cost beside the constraint itself: a virtual call, and a box for each state; batches
/// ([`fill_masks`](Constraint::fill_masks), [`commit_all`](Constraint::commit_all)) go state by
/// state.
///
/// ```
/// use std::sync::Arc;
/// use palmette_core::{AnyConstraint, AnyScratch, Constraint, TokenId, Unconstrained};
///
/// let constraint: Arc<dyn AnyConstraint> = Arc::new(Unconstrained::new(40, 2));
/// let (mut state, mut scratch) = (constraint.start(), AnyScratch::default());
/// constraint.commit(&mut state, TokenId(7), &mut scratch)?;
/// assert!(!constraint.is_accepting(&state, &mut scratch)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait AnyConstraint: Send + Sync {
    #[doc(hidden)]
    fn erased_num_tokens(&self) -> usize;
    #[doc(hidden)]
    fn erased_start(&self) -> AnyState;
    #[doc(hidden)]
    fn erased_fill_mask(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<(), AnyError>;
    #[doc(hidden)]
    fn erased_fewest_tokens(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<Option<usize>, AnyError>;
    #[doc(hidden)]
    fn erased_has_way(
        &self,
        state: &AnyState,
        lengths: Lengths,
        scratch: &mut AnyScratch,
    ) -> Result<bool, AnyError>;
    #[doc(hidden)]
    fn erased_fill_ending_mask(
        &self,
        state: &AnyState,
        lengths: Lengths,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<(), AnyError>;
    #[doc(hidden)]
    fn erased_visit_ways(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        visit: &mut dyn FnMut(TokenId, Option<usize>),
    ) -> Result<(), AnyError>;
    #[doc(hidden)]
    fn erased_successors(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        visit: &mut dyn FnMut(TokenId, AnyState),
    ) -> Result<(), AnyError>;
    #[doc(hidden)]
    fn erased_commit(
        &self,
        state: &mut AnyState,
        token: TokenId,
        scratch: &mut AnyScratch,
    ) -> Result<(), CommitError<AnyError>>;
    #[doc(hidden)]
    fn erased_rollback(&self, state: &mut AnyState, num_tokens: usize)
    -> Result<(), RollbackError>;
    #[doc(hidden)]
    fn erased_is_accepting(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<bool, AnyError>;
    #[doc(hidden)]
    fn erased_forced_token(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<Option<TokenId>, AnyError>;
    #[doc(hidden)]
    fn erased_forced_stretch(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<Vec<TokenId>, AnyError>;
    #[doc(hidden)]
    fn erased_next_part(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &[u32],
    ) -> Result<Option<SequencePart>, AnyError>;
}

/// A position in an erased constraint: a box around the constraint's own state.
///
/// Valid for constraints of the kind it came from; another kind panics.
pub struct AnyState(Box<dyn StateObject>);

/// Scratch for erased constraints of any kind. It is made for the first kind that it is lent to,
/// and again when that changes.
#[derive(Default)]
pub struct AnyScratch(Option<Box<dyn Any + Send>>);

/// An exceeded limit of an erased constraint: its own error in a box, printed as it is.
pub struct AnyError(Box<dyn Error + Send + Sync>);

/// A state that can be cloned, compared and printed behind a pointer.
trait StateObject: Any + Send + Sync {
    fn boxed_clone(&self) -> Box<dyn StateObject>;
    fn equals(&self, other: &dyn Any) -> bool;
    fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<S: Clone + fmt::Debug + PartialEq + Send + Sync + 'static> StateObject for S {
    fn boxed_clone(&self) -> Box<dyn StateObject> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<S>().is_some_and(|other| self == other)
    }

    fn debug(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

const OTHER_KIND: &str = "the state is of another kind of constraint";

impl AnyState {
    fn new<S: Clone + fmt::Debug + PartialEq + Send + Sync + 'static>(state: S) -> Self {
        Self(Box::new(state))
    }

    /// The constraint's own state, if it is of this type.
    pub fn downcast_ref<S: 'static>(&self) -> Option<&S> {
        (*self.0).as_any().downcast_ref()
    }

    fn of<S: 'static>(&self) -> &S {
        self.downcast_ref().expect(OTHER_KIND)
    }

    fn of_mut<S: 'static>(&mut self) -> &mut S {
        (*self.0).as_any_mut().downcast_mut().expect(OTHER_KIND)
    }
}

impl Clone for AnyState {
    fn clone(&self) -> Self {
        Self((*self.0).boxed_clone())
    }
}

impl PartialEq for AnyState {
    fn eq(&self, other: &Self) -> bool {
        (*self.0).equals((*other.0).as_any())
    }
}

impl fmt::Debug for AnyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.0).debug(f)
    }
}

impl AnyScratch {
    fn of<S: Default + Send + 'static>(&mut self) -> &mut S {
        if !self.0.as_ref().is_some_and(|scratch| scratch.is::<S>()) {
            self.0 = Some(Box::new(S::default()));
        }
        let scratch = self.0.as_mut().and_then(|scratch| scratch.downcast_mut());
        scratch.expect("it was made of this type")
    }
}

impl fmt::Debug for AnyScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyScratch").finish_non_exhaustive()
    }
}

impl AnyError {
    /// An error of any kind.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// The constraint's own error, if it is of this type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for AnyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl<C> AnyConstraint for C
where
    C: Constraint + Send + Sync,
    C::State: Send + Sync + 'static,
    C::Scratch: Send + 'static,
{
    fn erased_num_tokens(&self) -> usize {
        self.num_tokens()
    }

    fn erased_start(&self) -> AnyState {
        AnyState::new(self.start())
    }

    fn erased_fill_mask(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<(), AnyError> {
        self.fill_mask(state.of(), scratch.of(), mask).map_err(AnyError::new)
    }

    fn erased_fewest_tokens(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<Option<usize>, AnyError> {
        self.fewest_tokens(state.of(), scratch.of()).map_err(AnyError::new)
    }

    fn erased_has_way(
        &self,
        state: &AnyState,
        lengths: Lengths,
        scratch: &mut AnyScratch,
    ) -> Result<bool, AnyError> {
        self.has_way(state.of(), lengths, scratch.of()).map_err(AnyError::new)
    }

    fn erased_fill_ending_mask(
        &self,
        state: &AnyState,
        lengths: Lengths,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<(), AnyError> {
        self.fill_ending_mask(state.of(), lengths, scratch.of(), mask).map_err(AnyError::new)
    }

    fn erased_visit_ways(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        visit: &mut dyn FnMut(TokenId, Option<usize>),
    ) -> Result<(), AnyError> {
        self.visit_ways(state.of(), scratch.of(), visit).map_err(AnyError::new)
    }

    fn erased_successors(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        visit: &mut dyn FnMut(TokenId, AnyState),
    ) -> Result<(), AnyError> {
        let visit = |token, next| visit(token, AnyState::new(next));
        self.successors(state.of(), scratch.of(), visit).map_err(AnyError::new)
    }

    fn erased_commit(
        &self,
        state: &mut AnyState,
        token: TokenId,
        scratch: &mut AnyScratch,
    ) -> Result<(), CommitError<AnyError>> {
        self.commit(state.of_mut(), token, scratch.of()).map_err(|error| error.map(AnyError::new))
    }

    fn erased_rollback(
        &self,
        state: &mut AnyState,
        num_tokens: usize,
    ) -> Result<(), RollbackError> {
        self.rollback(state.of_mut(), num_tokens)
    }

    fn erased_is_accepting(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<bool, AnyError> {
        self.is_accepting(state.of(), scratch.of()).map_err(AnyError::new)
    }

    fn erased_forced_token(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<Option<TokenId>, AnyError> {
        self.forced_token(state.of(), scratch.of()).map_err(AnyError::new)
    }

    fn erased_forced_stretch(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<Vec<TokenId>, AnyError> {
        self.forced_stretch(state.of(), scratch.of(), mask).map_err(AnyError::new)
    }

    fn erased_next_part(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &[u32],
    ) -> Result<Option<SequencePart>, AnyError> {
        self.next_part(state.of(), scratch.of(), mask).map_err(AnyError::new)
    }
}

impl Constraint for dyn AnyConstraint + '_ {
    type State = AnyState;
    type Scratch = AnyScratch;
    type Error = AnyError;

    fn num_tokens(&self) -> usize {
        self.erased_num_tokens()
    }

    fn start(&self) -> AnyState {
        self.erased_start()
    }

    fn fill_mask(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<(), AnyError> {
        self.erased_fill_mask(state, scratch, mask)
    }

    fn fewest_tokens(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<Option<usize>, AnyError> {
        self.erased_fewest_tokens(state, scratch)
    }

    fn has_way(
        &self,
        state: &AnyState,
        lengths: Lengths,
        scratch: &mut AnyScratch,
    ) -> Result<bool, AnyError> {
        self.erased_has_way(state, lengths, scratch)
    }

    fn fill_ending_mask(
        &self,
        state: &AnyState,
        lengths: Lengths,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<(), AnyError> {
        self.erased_fill_ending_mask(state, lengths, scratch, mask)
    }

    fn visit_ways(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mut visit: impl FnMut(TokenId, Option<usize>),
    ) -> Result<(), AnyError> {
        self.erased_visit_ways(state, scratch, &mut visit)
    }

    fn successors(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mut visit: impl FnMut(TokenId, AnyState),
    ) -> Result<(), AnyError> {
        self.erased_successors(state, scratch, &mut visit)
    }

    fn commit(
        &self,
        state: &mut AnyState,
        token: TokenId,
        scratch: &mut AnyScratch,
    ) -> Result<(), CommitError<AnyError>> {
        self.erased_commit(state, token, scratch)
    }

    fn rollback(&self, state: &mut AnyState, num_tokens: usize) -> Result<(), RollbackError> {
        self.erased_rollback(state, num_tokens)
    }

    fn is_accepting(&self, state: &AnyState, scratch: &mut AnyScratch) -> Result<bool, AnyError> {
        self.erased_is_accepting(state, scratch)
    }

    fn forced_token(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
    ) -> Result<Option<TokenId>, AnyError> {
        self.erased_forced_token(state, scratch)
    }

    fn forced_stretch(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &mut [u32],
    ) -> Result<Vec<TokenId>, AnyError> {
        self.erased_forced_stretch(state, scratch, mask)
    }

    fn next_part(
        &self,
        state: &AnyState,
        scratch: &mut AnyScratch,
        mask: &[u32],
    ) -> Result<Option<SequencePart>, AnyError> {
        self.erased_next_part(state, scratch, mask)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Unconstrained, mask};

    #[test]
    fn one_scratch_serves_constraints_of_several_kinds() {
        struct Twice(Unconstrained);
        impl Constraint for Twice {
            type State = usize;
            type Scratch = Vec<u8>;
            type Error = fmt::Error;

            fn num_tokens(&self) -> usize {
                self.0.num_tokens()
            }
            fn start(&self) -> usize {
                self.0.start()
            }
            fn fill_mask(
                &self,
                _: &usize,
                scratch: &mut Vec<u8>,
                mask: &mut [u32],
            ) -> Result<(), fmt::Error> {
                scratch.push(0);
                mask.fill(0);
                Err(fmt::Error)
            }
            fn successors(
                &self,
                _: &usize,
                _: &mut Vec<u8>,
                _: impl FnMut(TokenId, usize),
            ) -> Result<(), fmt::Error> {
                Err(fmt::Error)
            }
            fn commit(
                &self,
                state: &mut usize,
                token: TokenId,
                _: &mut Vec<u8>,
            ) -> Result<(), CommitError<fmt::Error>> {
                self.0
                    .commit(state, token, &mut ())
                    .map_err(|error| error.map(|never| match never {}))
            }
            fn rollback(&self, state: &mut usize, n: usize) -> Result<(), RollbackError> {
                self.0.rollback(state, n)
            }
            fn is_accepting(&self, _: &usize, _: &mut Vec<u8>) -> Result<bool, fmt::Error> {
                Err(fmt::Error)
            }
        }

        let kinds: [Arc<dyn AnyConstraint>; 2] =
            [Arc::new(Unconstrained::new(40, 2)), Arc::new(Twice(Unconstrained::new(40, 2)))];
        let mut scratch = AnyScratch::default();
        for (fails, kind) in [false, true].into_iter().zip(&kinds) {
            for _ in 0..2 {
                let mut row = vec![7; mask::num_words(40)];
                let filled = kind.fill_mask(&kind.start(), &mut scratch, &mut row);
                assert_eq!(filled.is_err(), fails);
                assert_eq!(mask::count(&row), if fails { 0 } else { 40 });
            }
        }
        let failed = kinds[1].is_accepting(&kinds[1].start(), &mut scratch).unwrap_err();
        assert_eq!(failed.downcast_ref(), Some(&fmt::Error));
        let (mut state, unknown) = (kinds[0].start(), TokenId(40));
        let refused = kinds[0].commit(&mut state, unknown, &mut scratch).unwrap_err();
        assert!(matches!(refused, CommitError::UnknownToken { token, .. } if token == unknown));
        assert_eq!(state, kinds[0].start());
        assert_eq!(state.downcast_ref::<usize>(), Some(&0));
    }
}
