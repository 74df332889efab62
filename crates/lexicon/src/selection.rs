//! Selections: which strings of a lexicon are members.

use std::sync::Arc;

use palmette_mapped::RankSet;

/// The strings of a lexicon that are members of a set.
#[derive(Clone, Debug, Default)]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// Strings of a set of ranks: what a filter leaves.
    Ranks(Arc<RankSet>),
    /// Strings of a short ascending list: what is left where most is decided.
    List(Arc<[u32]>),
}

/// A filter of ranks that joins ask, mostly in ascending order.
pub(crate) trait RankFilter: Copy {
    /// Flag of a filter that chooses every rank.
    const IS_ALL: bool;

    /// The first chosen rank in `from..to`.
    fn next(self, from: usize, to: usize) -> Option<usize>;

    /// The last chosen rank in `from..to`.
    fn last(self, from: usize, to: usize) -> Option<usize>;

    /// About how many ranks in `from..to` are chosen.
    fn estimate(self, from: usize, to: usize) -> usize;
}

/// The filter that chooses all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EveryRank;

impl RankFilter for EveryRank {
    const IS_ALL: bool = true;

    #[inline(always)]
    fn next(self, from: usize, to: usize) -> Option<usize> {
        (from < to).then_some(from)
    }

    fn last(self, from: usize, to: usize) -> Option<usize> {
        (from < to).then(|| to - 1)
    }

    fn estimate(self, from: usize, to: usize) -> usize {
        to - from
    }
}

impl RankFilter for &RankSet {
    const IS_ALL: bool = false;

    #[inline]
    fn next(self, from: usize, to: usize) -> Option<usize> {
        self.next_in(from as u64..to as u64).map(|rank| rank as usize)
    }

    fn last(self, from: usize, to: usize) -> Option<usize> {
        self.last_in(from as u64..to as u64).map(|rank| rank as usize)
    }

    /// Estimates as if members lay evenly: counting would read all words between.
    fn estimate(self, from: usize, to: usize) -> usize {
        let share = (to - from) as f64 / self.num_ranks().max(1) as f64;
        (share * self.len() as f64) as usize
    }
}

impl RankFilter for &[u32] {
    const IS_ALL: bool = false;

    #[inline]
    fn next(self, from: usize, to: usize) -> Option<usize> {
        let at = self.partition_point(|&rank| (rank as usize) < from);
        self.get(at).map(|&rank| rank as usize).filter(|&rank| rank < to)
    }

    fn last(self, from: usize, to: usize) -> Option<usize> {
        let after = self.partition_point(|&rank| (rank as usize) < to);
        let last = self.get(after.checked_sub(1)?)?;
        Some(*last as usize).filter(|&rank| rank >= from)
    }

    fn estimate(self, from: usize, to: usize) -> usize {
        let place = |to: usize| self.partition_point(|&rank| (rank as usize) < to);
        place(to) - place(from)
    }
}

/// Evaluates an expression with the ranks of a selection, whatever its kind.
macro_rules! with_filter {
    ($selection:expr, $chosen:ident => $value:expr) => {
        match $selection {
            $crate::selection::Selection::All => {
                let $chosen = $crate::selection::EveryRank;
                $value
            }
            $crate::selection::Selection::Ranks(ranks) => {
                let $chosen = &**ranks;
                $value
            }
            $crate::selection::Selection::List(list) => {
                let $chosen = &**list;
                $value
            }
        }
    };
}
pub(crate) use with_filter;
