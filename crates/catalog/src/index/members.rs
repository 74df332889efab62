//! Members of a set of items, as one sparse level asks for them.

use std::ops::Range;

use palmette_catalog_filter::RankSet;

/// A set as one sparse level sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members<'a> {
    pub(super) ranks: &'a RankSet,
    /// The level's prefixes that are in; `None` where that is to be found out by their ranks.
    pub(super) prefixes: Option<&'a RankSet>,
}

impl Members<'_> {
    /// Asks for what [`has_child`](Self::has_child) will read.
    #[inline]
    pub(super) fn prefetch_child(&self, prefix: u64, ranks: &Range<u64>) {
        match self.prefixes {
            Some(prefixes) => prefixes.prefetch(prefix),
            None => self.ranks.prefetch(ranks.start),
        }
    }

    /// True if the prefix with this number and range is in the set.
    #[inline]
    pub(super) fn has_child(&self, prefix: u64, ranks: Range<u64>) -> bool {
        match self.prefixes {
            Some(prefixes) => prefixes.contains(prefix),
            None => self.ranks.any_in(ranks),
        }
    }
}
