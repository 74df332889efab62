//! Admissible bounds on what results gain besides their log-probability: the heuristic of a
//! best-first search.

use std::cell::RefCell;
use std::fmt;

use palmette_core::{Constraint, TokenId};

/// Amounts that are added to the scores of results, and their bounds over prefixes.
///
/// A search with gains keeps the hypotheses of the largest score plus bound, so that a prefix is
/// held by the best that may come of it. Bounds never rise along a path, nor do scores: what is
/// found is best first. Bounds are finite.
pub trait Gains<S> {
    /// The largest gain of a result at the state or further on, exactly: a looser bound would
    /// change which hypotheses a narrow search keeps.
    fn bound(&self, state: &S) -> f32;

    /// The gain of the result at an accepting state: at most its bound.
    fn gain(&self, state: &S) -> f32;

    /// A number that no bound is below. Extensions of a prefix whose bound it is need none of their
    /// own.
    fn least(&self) -> f32;
}

/// The set that a search is over, and what its sequences gain.
pub struct Objective<'a, C: Constraint + ?Sized> {
    /// The set.
    pub constraint: &'a C,
    /// Gains of its sequences; `None` where scores are log-probabilities alone.
    pub gains: Option<&'a dyn Gains<C::State>>,
}

impl<C: Constraint + ?Sized> fmt::Debug for Objective<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objective").field("gains", &self.gains).finish_non_exhaustive()
    }
}

impl<C: Constraint + ?Sized> Clone for Objective<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Constraint + ?Sized> Copy for Objective<'_, C> {}

impl<'a, C: Constraint + ?Sized> From<&'a C> for Objective<'a, C> {
    fn from(constraint: &'a C) -> Self {
        Self { constraint, gains: None }
    }
}

impl<C: Constraint + ?Sized> Objective<'_, C> {
    pub(crate) fn bound(&self, state: &C::State) -> f32 {
        self.gains.map_or(0.0, |gains| gains.bound(state))
    }

    pub(crate) fn gain(&self, state: &C::State) -> f32 {
        self.gains.map_or(0.0, |gains| gains.gain(state))
    }
}

impl<S> fmt::Debug for dyn Gains<S> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gains").field("least", &self.least()).finish_non_exhaustive()
    }
}

/// The bounds of a step's extensions, whatever the constraint.
pub(crate) trait ExtensionGains: fmt::Debug {
    /// The bound of a row's extension by an allowed token, given the row's own.
    fn bound(&self, row: usize, row_bound: f32, token: TokenId) -> f32;
}

/// The extensions of live hypotheses, each committed where it is asked about.
pub(crate) struct StepGains<'a, C: Constraint + ?Sized> {
    pub(crate) constraint: &'a C,
    pub(crate) gains: &'a dyn Gains<C::State>,
    pub(crate) states: &'a [C::State],
    pub(crate) scratch: &'a RefCell<C::Scratch>,
}

impl<C: Constraint + ?Sized> ExtensionGains for StepGains<'_, C> {
    fn bound(&self, row: usize, row_bound: f32, token: TokenId) -> f32 {
        if row_bound <= self.gains.least() {
            return row_bound;
        }
        let mut state = self.states[row].clone();
        match self.constraint.commit(&mut state, token, &mut self.scratch.borrow_mut()) {
            Ok(()) => self.gains.bound(&state),
            // A constraint that refuses what its mask allows is reported when the step is expanded.
            Err(_) => row_bound,
        }
    }
}

impl<C: Constraint + ?Sized> fmt::Debug for StepGains<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepGains").field("rows", &self.states.len()).finish_non_exhaustive()
    }
}
