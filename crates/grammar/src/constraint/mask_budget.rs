//! Budget of work for one mask.

use std::sync::atomic::AtomicBool;

use crate::Budget;

/// Budget of work for one mask.
///
/// A unit is a node of the vocabulary's trie, or one of its branches: some tens of nanoseconds, and
/// about half a million for the largest masks over 200 thousand tokens. No clock is read: the same
/// question in the same order always stops at the same place.
#[derive(Clone, Copy, Debug)]
pub struct MaskBudget<'a> {
    /// Steps for what the mask engine has to compute first. What it found is kept, so this is
    /// needed once; where it is used up in the middle of a node, that node is begun again at the
    /// next mask that needs it.
    pub explore: u64,
    /// Steps for walking the vocabulary for this one mask, which is tried when exploring takes too
    /// much: it finds out nothing for others, but does not depend on how deep the stack has to be
    /// read.
    pub walk: u64,
    /// Calls the work off when it becomes true.
    pub cancelled: Option<&'a AtomicBool>,
}

impl Default for MaskBudget<'_> {
    fn default() -> Self {
        Self::unlimited()
    }
}

impl<'a> MaskBudget<'a> {
    /// Steps for the masks of strangers' grammars, where nobody says otherwise.
    ///
    /// Over the 200,000 tokens of `o200k_base` none of 286,000 masks along the instances of
    /// JSONSchemaBench's 792 schemas takes a million, nor one of the grammars of C, Go, Java, JSON,
    /// Python and SQL that Lark's users have; seven of the schemas have one above 300,000
    /// (`palmette bench grammar --mask-steps`). A mask of an ambiguous grammar, whose steps are the
    /// dearest, ends within some two seconds.
    pub const DEFAULT_STEPS: u64 = 3_000_000;

    /// A budget of so many steps for exploring, and as many for walking where that was not enough.
    pub fn of_steps(steps: u64, cancelled: Option<&'a AtomicBool>) -> Self {
        Self { explore: steps, walk: steps, cancelled }
    }

    /// A budget without limits.
    pub fn unlimited() -> Self {
        Self { explore: u64::MAX, walk: u64::MAX, cancelled: None }
    }

    pub(super) fn exploring(&self) -> Budget<'a> {
        self.budget(self.explore)
    }

    pub(super) fn budget(&self, units: u64) -> Budget<'a> {
        match self.cancelled {
            Some(cancelled) => Budget::cancellable(units, cancelled),
            None => Budget::new(units),
        }
    }
}
