//! From a filter to the ranks that match it.
//!
//! Every value in the filter is looked up in the dictionary of its column once, which gives a set
//! of codes. Then the codes are gone through, 2^15 ranks at a time, all conditions for one chunk of
//! ranks before the next.

mod code_set;
mod compile;
mod plan;
mod scan;
mod unfit;
mod within_json;

use palmette_mapped::RankSet;

use crate::columns::Columns;
use crate::filter::{Filter, FilterError};

use compile::Compiler;

impl Columns {
    /// The ranks of the items that match `filter`. `ids` gives the rank of an item by its id; an id
    /// that no item has matches nothing.
    ///
    /// Cost: reads the codes of the columns that the filter names, in parallel, 2 to 4 bytes a
    /// nanosecond and thread; for a column of lists of text also the dictionary. Where a chunk of
    /// ranks has no match left, the remaining columns are not read. The result does not depend on
    /// the number of threads.
    ///
    /// # Errors
    /// When the filter names an attribute that is not there, or asks of one what its kind cannot
    /// answer.
    pub fn select(
        &self,
        filter: &Filter,
        ids: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<RankSet, FilterError> {
        self.select_among(filter, ids, &|_| false)
    }

    /// Selects as [`select`](Self::select) does, where these items are some of many. An attribute
    /// that none of these has, but of which `is_known` says that others have it, is missing here,
    /// and no error.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn select_among(
        &self,
        filter: &Filter,
        ids: &dyn Fn(&str) -> Option<u64>,
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<RankSet, FilterError> {
        let plan = Compiler { columns: self, ids, is_known }.filter(filter)?;
        Ok(RankSet::from_kept(self.num_ranks(), |chunk, words| plan.keep(chunk, words)))
    }
}
