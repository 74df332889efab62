//! Shape of a request: the sizes that its buffers are made for.

use std::num::NonZeroUsize;

use crate::bounds::{MAX_BEAM_WIDTH, checked};
use crate::error::RecommendError;
use crate::mode::Verification;

/// Key of a plan: buffers serve requests of an equal shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Verification of a draft head's search; `None` where the decoder searches.
    pub(crate) draft: Option<Verification>,
    /// Beam width of each level.
    pub(crate) widths: Vec<usize>,
    /// The least width of every level: 0, except for a request that wants more items.
    pub(crate) least: usize,
    /// The least width of every level of a second search; `None` where there is none.
    pub(crate) widest: Option<NonZeroUsize>,
    /// Tokens of free text that the prompt may grow by.
    pub(crate) free_tokens: usize,
}

impl Shape {
    fn checked_widths(&self, least: usize) -> Result<Vec<NonZeroUsize>, RecommendError> {
        let wide = |&width: &usize| {
            checked("beam width", width, MAX_BEAM_WIDTH)?;
            checked("beam width", width.max(least), MAX_BEAM_WIDTH)
        };
        self.widths.iter().map(wide).collect()
    }

    /// The widths of all steps of the first search: those of the levels, and the last of them for
    /// each of the tokens that end an item.
    pub(crate) fn steps(&self, num_ends: usize) -> Result<Vec<NonZeroUsize>, RecommendError> {
        self.steps_of(self.least, num_ends)
    }

    /// The widths of all steps of the widest search.
    pub(crate) fn widest_steps(
        &self,
        num_ends: usize,
    ) -> Result<Vec<NonZeroUsize>, RecommendError> {
        let widest = self.widest.map_or(0, NonZeroUsize::get);
        self.steps_of(self.least.max(widest), num_ends)
    }

    fn steps_of(&self, least: usize, num_ends: usize) -> Result<Vec<NonZeroUsize>, RecommendError> {
        let mut widths = self.checked_widths(least)?;
        if let Some(&last) = widths.last() {
            widths.extend(std::iter::repeat_n(last, num_ends));
        }
        Ok(widths)
    }
}
