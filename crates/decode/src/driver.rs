//! The one driver of every search: policy and backend step by step, with a control that may end it.

use std::cell::RefCell;
use std::ops::ControlFlow;

use palmette_core::Constraint;

use crate::beam_search::BeamSearch;
use crate::error::DecodeError;
use crate::gains::Objective;
use crate::step::{Extension, SearchPlan, StepBackend, dropped_at_most};

/// A part of a search, reported when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The backend read the prompt.
    Prefill,
    /// The backend read one more token of every beam.
    Decode,
    /// Beams moved on, or their masks were made. Twice a step: a pass comes between both, which
    /// needs no masks.
    Mask,
    /// The best extensions of all beams were chosen.
    TopK,
}

/// Callback of a running search: it is called when a stage ends, and ends the search by
/// [`ControlFlow::Break`]. A flag, a deadline by the caller's own clock and timings all fit here.
pub type Control<'a> = dyn FnMut(Stage) -> ControlFlow<()> + 'a;

/// The control that never breaks off.
pub fn run_on(_: Stage) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl<C: Constraint + ?Sized> BeamSearch<C> {
    /// Runs to the end; [`results`](Self::results) then gives what was found.
    ///
    /// # Errors
    /// A [`DecodeError`], or the backend's own error.
    pub fn run<B: StepBackend>(&mut self, constraint: &C, backend: &mut B) -> Result<(), B::Error> {
        self.run_controlled(constraint, backend, &mut run_on)
    }

    /// [`run`](Self::run) under a control, over a constraint or an [`Objective`].
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`DecodeError::Cancelled`] where the control broke off.
    pub fn run_controlled<'a, B: StepBackend>(
        &mut self,
        objective: impl Into<Objective<'a, C>>,
        backend: &mut B,
        control: &mut Control<'_>,
    ) -> Result<(), B::Error>
    where
        C: 'a,
    {
        let objective = objective.into();
        self.start_above(f32::NEG_INFINITY, objective)?;
        self.finish(objective, backend, control, Stage::Prefill)
    }

    /// Searches with `probe`, usually much narrower, then with this search above the probe's `k`-th
    /// total. Its first `k` results are to the bit those that it has without a probe; below the
    /// probe's `k`-th total there are none.
    ///
    /// Totals only fall, so a hypothesis below that one leads to no result above it. How many
    /// hypotheses are above depends on the model, not on the width: each step's probabilities sum
    /// to 1, so at most `1 / p` reach `p`. It happens that a probe follows a hypothesis to the end
    /// which a wide search loses on the way to others that end badly, and that the wide search has
    /// fewer than `k` results above the floor; then it runs again without one. Where all that the
    /// probe let go is below its `k`-th total, its results are those of any wider search, and there
    /// is no second.
    ///
    /// Best-first beam search (Meister, Vieira, Cotterell, TACL 2020) rests on scores that only
    /// fall too. It reads the best hypothesis next; here a step's are read together, as a model
    /// wants them.
    ///
    /// # Errors
    /// As [`run_controlled`](Self::run_controlled).
    pub fn run_after_probe<'a, B: StepBackend>(
        &mut self,
        probe: &mut Self,
        objective: impl Into<Objective<'a, C>>,
        k: usize,
        backend: &mut B,
        control: &mut Control<'_>,
    ) -> Result<(), B::Error>
    where
        C: 'a,
    {
        let kth = |search: &Self| Some(search.results().nth(k.checked_sub(1)?)?.total());
        self.run_above_probe(probe, objective, kth, backend, control)
    }

    /// [`run_after_probe`](Self::run_after_probe) for a caller that does not take every result:
    /// `last_wanted` is the total of the last one that it takes, of a search's results, best first;
    /// `None` where they are too few.
    ///
    /// # Errors
    /// As [`run_controlled`](Self::run_controlled).
    pub fn run_above_probe<'a, B: StepBackend>(
        &mut self,
        probe: &mut Self,
        objective: impl Into<Objective<'a, C>>,
        last_wanted: impl Fn(&Self) -> Option<f32>,
        backend: &mut B,
        control: &mut Control<'_>,
    ) -> Result<(), B::Error>
    where
        C: 'a,
    {
        let objective = objective.into();
        probe.run_controlled(objective, backend, control)?;
        // The prompt is read: what comes first of another search is a decode step of this one.
        if let Some(floor) = last_wanted(probe) {
            // What the probe let go is below: it kept all that this search would have kept above.
            let is_final = probe.missed_at_most().is_none_or(|missed| missed < floor);
            if is_final && self.is_as_wide_as(probe) {
                self.copy_results(probe, floor);
                return Ok(());
            }
            self.run_above(floor, objective, backend, control)?;
            if last_wanted(self).is_some_and(|last| last >= floor) {
                return Ok(());
            }
        }
        self.run_again(objective, backend, control)
    }

    /// Searches again after a prompt that has been read, for results of at least a total:
    /// [`start_above`](Self::start_above).
    ///
    /// # Errors
    /// As [`run_controlled`](Self::run_controlled).
    pub fn run_above<'a, B: StepBackend>(
        &mut self,
        floor: f32,
        objective: impl Into<Objective<'a, C>>,
        backend: &mut B,
        control: &mut Control<'_>,
    ) -> Result<(), B::Error>
    where
        C: 'a,
    {
        let objective = objective.into();
        self.start_above(floor, objective)?;
        self.finish(objective, backend, control, Stage::Decode)
    }

    /// Searches again after a prompt that has been read.
    ///
    /// # Errors
    /// As [`run_controlled`](Self::run_controlled).
    pub fn run_again<'a, B: StepBackend>(
        &mut self,
        objective: impl Into<Objective<'a, C>>,
        backend: &mut B,
        control: &mut Control<'_>,
    ) -> Result<(), B::Error>
    where
        C: 'a,
    {
        self.run_above(f32::NEG_INFINITY, objective, backend, control)
    }

    /// Moves a started search over the extensions of all of its steps.
    fn move_over(
        &mut self,
        objective: Objective<'_, C>,
        steps: &[Vec<Extension>],
    ) -> Result<(), DecodeError> {
        for (step, best) in steps.iter().enumerate() {
            if !self.is_live() {
                return Ok(());
            }
            let SearchPlan { widths, floor } = self.search_plan();
            let dropped = dropped_at_most(widths[step].get(), floor, best);
            self.advance(objective, best, dropped)?;
        }
        match self.is_live() {
            true => {
                let reason = "fewer steps than the search has".to_owned();
                Err(DecodeError::BrokenBackend { step: steps.len(), reason })
            }
            false => Ok(()),
        }
    }

    /// Takes a started search to its end. Every search of this library passes here.
    fn finish<B: StepBackend>(
        &mut self,
        objective: Objective<'_, C>,
        backend: &mut B,
        control: &mut Control<'_>,
        first_pass: Stage,
    ) -> Result<(), B::Error> {
        let constraint = objective.constraint;
        let (model, constrained) = (backend.num_tokens(), constraint.num_tokens());
        if model != constrained {
            return Err(DecodeError::VocabularyMismatch { model, constraint: constrained }.into());
        }
        let (mut best, mut steps) = (self.take_extensions(), self.take_steps());
        let mut report = |stage, step| match control(stage) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(DecodeError::Cancelled { step }),
        };
        let scratch = objective.gains.map(|_| RefCell::new(C::Scratch::default()));
        let mut run = || {
            report(Stage::Mask, 0)?;
            if objective.gains.is_none()
                && self.is_live()
                && backend.search(&self.search_plan(), &mut steps)?
            {
                report(first_pass, 0)?;
                self.move_over(objective, &steps)?;
                return report(Stage::Mask, steps.len()).map_err(B::Error::from);
            }
            while self.is_live() {
                let pass = self.pass();
                let index = pass.index;
                backend.compute(&pass)?;
                report(if index == 0 { first_pass } else { Stage::Decode }, index)?;
                // A device computes on meanwhile.
                self.fill_masks(constraint)?;
                report(Stage::Mask, index)?;
                let gains = self.step_gains(objective, scratch.as_ref());
                let step = self.step_with(gains.as_ref().map(|gains| gains as _));
                backend.select(&step, &mut best)?;
                let dropped = backend.dropped_at_most(&step, &best);
                report(Stage::TopK, index)?;
                self.advance(objective, &best, dropped)?;
                report(Stage::Mask, index)?;
            }
            Ok(())
        };
        let ended = run();
        self.keep_extensions(best);
        self.keep_steps(steps);
        ended
    }
}
