//! The oracles against each other and against deliberate mistakes: a check must be able to fail.

use std::convert::Infallible;

use palmette_core::{CommitError, Constraint, MaskWindow, RollbackError, TokenId, Unconstrained};
use palmette_testkit::logits::TableLogits;
use palmette_testkit::{SequenceSet, generate, laws, search};
use proptest::prelude::*;

proptest! {
    #[test]
    fn the_definition_obeys_the_laws(set in generate::sequence_sets(), seed: u64) {
        laws::check(&set, seed, 3, 6);
    }

    #[test]
    fn a_wide_naive_beam_is_exhaustive(
        set in generate::sequence_sets(),
        seed: u64,
        grades in 2_u32..50,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        let width = set.sequences().len().max(1);
        prop_assert_eq!(
            search::naive_beam_search(&set, &logits, width),
            search::exhaustive(&set, &logits)
        );
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Lie {
    MaskLacksAToken,
    MaskKeepsGarbage,
    DeadEnd,
    RollbackDoesNothing,
    WindowLeavesOneOut,
    GoesOnFromTheEnd,
}

/// A set that answers one question wrongly.
struct Liar(SequenceSet, Lie);

impl Constraint for Liar {
    type State = Vec<TokenId>;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        self.0.num_tokens()
    }

    fn start(&self) -> Self::State {
        self.0.start()
    }

    fn fill_mask(
        &self,
        state: &Self::State,
        (): &mut (),
        words: &mut [u32],
    ) -> Result<(), Infallible> {
        let before = words.to_vec();
        self.0.fill_mask(state, &mut (), words)?;
        match self.1 {
            Lie::MaskLacksAToken => words[0] &= words[0].wrapping_sub(1),
            Lie::MaskKeepsGarbage => words[0] |= before[0] & 1,
            _ => {}
        }
        Ok(())
    }

    fn fill_window(
        &self,
        states: &[Self::State],
        (): &mut (),
        window: &mut MaskWindow,
    ) -> Result<(), Infallible> {
        window.reset(0..self.num_tokens(), states.len());
        self.fill_masks(states, &mut (), window.words_mut())?;
        if self.1 == Lie::WindowLeavesOneOut {
            let words = window.words_mut();
            words[0] &= words[0].wrapping_sub(1);
        }
        Ok(())
    }

    fn goes_on(&self, _: &Self::State, (): &mut ()) -> Result<Option<bool>, Infallible> {
        Ok((self.1 == Lie::GoesOnFromTheEnd).then_some(true))
    }

    fn successors(
        &self,
        state: &Self::State,
        (): &mut (),
        visit: impl FnMut(TokenId, Self::State),
    ) -> Result<(), Infallible> {
        self.0.successors(state, &mut (), visit)
    }

    fn commit(
        &self,
        state: &mut Self::State,
        token: TokenId,
        (): &mut (),
    ) -> Result<(), CommitError> {
        self.0.commit(state, token, &mut ())
    }

    fn rollback(&self, state: &mut Self::State, n: usize) -> Result<(), RollbackError> {
        if self.1 == Lie::RollbackDoesNothing { Ok(()) } else { self.0.rollback(state, n) }
    }

    fn is_accepting(&self, state: &Self::State, (): &mut ()) -> Result<bool, Infallible> {
        Ok(self.1 != Lie::DeadEnd && self.0.is_accepting(state, &mut ())?)
    }
}

#[track_caller]
fn check_caught(lie: Lie, law: &str) {
    let set = SequenceSet::new(8, [vec![1, 2], vec![1, 3], vec![4, 0]]);
    let caught = std::panic::catch_unwind(|| laws::check(&Liar(set, lie), 7, 4, 5));
    let message = caught.expect_err("the lie passed");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(message.contains(law), "{message}");
}

#[test]
fn lies_are_caught() {
    check_caught(Lie::MaskLacksAToken, "law 1");
    check_caught(Lie::MaskKeepsGarbage, "law 3");
    check_caught(Lie::DeadEnd, "law 2");
    check_caught(Lie::RollbackDoesNothing, "law 5");
    check_caught(Lie::WindowLeavesOneOut, "law 3: fill_window");
    check_caught(Lie::GoesOnFromTheEnd, "law 3: goes_on");
}

#[test]
fn no_constraint_but_the_length_obeys_the_laws() {
    for (num_tokens, len) in [(1, 1), (5, 3), (32, 1), (33, 2), (7, 0)] {
        laws::check(&Unconstrained::new(num_tokens, len), 3, 4, 5);
    }
}
