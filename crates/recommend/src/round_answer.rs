//! Items of one search, and the bound on those that it missed.

use crate::recommended::Recommended;

/// Items that a walk over one search's results takes, best first, with the search's
/// [bound](palmette_decode::BeamSearch::missed_at_most).
#[derive(Debug)]
pub(crate) struct RoundAnswer {
    pub(crate) items: Vec<Recommended>,
    /// The search found every item of a larger score; `None` where it found all.
    pub(crate) missed_at_most: Option<f32>,
    /// Proven items that the search found behind these, where they are kept for the next page.
    pub(crate) ahead: Vec<Recommended>,
    /// Width of the search after its last level.
    pub(crate) beam_width: usize,
}

impl RoundAnswer {
    /// Bound on the items that a walk over all `eligible` items takes in place of these, where
    /// `need` are asked for; `None` where it takes the same.
    ///
    /// Items that were found and are no worse than the bound are the first of all in order, ties
    /// included, since IDs are of one length. Where no worse item was taken both walks are at the
    /// same place, under the same caps: what caps hold back here they hold back there. `goes_on`
    /// says that another round follows over what is left.
    pub(crate) fn shortfall_bound(&self, need: usize, eligible: u64, goes_on: bool) -> Option<f32> {
        let missed = self.missed_at_most?;
        if self.items.len() as u64 == eligible {
            return None;
        }
        let is_complete = self.items.len() == need || (goes_on && !self.items.is_empty());
        let is_first = self.items.last().is_none_or(|last| last.score >= missed);
        (!is_complete || !is_first).then_some(missed)
    }
}
