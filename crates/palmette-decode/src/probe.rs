//! A wide search made short by a narrow one.

use palmette_core::Constraint;

use crate::beam_search::BeamSearch;
use crate::error::DecodeError;

impl<C: Constraint> BeamSearch<C> {
    /// Searches with `probe`, usually much narrower, then with this search above the probe's `k`-th score. Its first `k`
    /// results are to the bit those that it has without a probe; below the probe's `k`-th score there are none.
    ///
    /// Scores only fall, so a hypothesis below that score leads to no result above it. How many hypotheses are above
    /// depends on the model, not on the width: each step's probabilities sum to 1, so at most `1 / p` reach `p`. It
    /// happens that a probe follows a hypothesis to the end which a wide search loses on the way to others that end
    /// badly, and that the wide search has fewer than `k` results above the floor; then it runs again without one.
    ///
    /// `finish` takes a search that has been started to its end, two or three times.
    ///
    /// Best-first beam search (Meister, Vieira, Cotterell, TACL 2020) rests on scores that only fall too. It reads the best
    /// hypothesis next; here a step's are read together, as a model wants them.
    ///
    /// # Errors
    /// Those of [`start`](Self::start) and of `finish`.
    pub fn run_after_probe<E: From<DecodeError>>(
        &mut self,
        probe: &mut Self,
        constraint: &C,
        k: usize,
        mut finish: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        probe.start(constraint)?;
        finish(probe)?;
        let kth = k.checked_sub(1).and_then(|before| probe.results().nth(before));
        if let Some(floor) = kth.map(|kth| kth.score) {
            self.start_above(floor, constraint)?;
            finish(self)?;
            if self.results().len() >= k {
                return Ok(());
            }
        }
        self.start(constraint)?;
        finish(self)
    }
}
