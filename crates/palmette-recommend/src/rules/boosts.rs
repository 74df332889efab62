//! Boosts of all items of a view, and range maxima over them: the bounds of a search with boosts.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_attributes::{ColumnKind, RankSet};
use palmette_catalog::{Catalog, CatalogState};
use palmette_decode::Gains;
use palmette_live::{CatalogView, SnapshotState, ViewItems};

use super::error::RulesError;
use super::order::kind_of;
use super::{Amount, Boost};

/// The boost of every item, by segment and rank, with maxima over blocks of them.
///
/// Cost: a pass over all items for each boost. Memory: `4.3` bytes an item.
#[derive(Debug)]
pub(crate) struct ItemBoosts {
    segments: Vec<RangeMaxima>,
    /// The smallest of an item that is there.
    least: f32,
}

impl ItemBoosts {
    fn new(view: &CatalogView, boosts: &[Boost]) -> Result<Self, RulesError> {
        let sizes = view.segment_sizes();
        let mut sums: Vec<Vec<f64>> = sizes.iter().map(|&size| vec![0.0; size as usize]).collect();
        for (place, boost) in boosts.iter().enumerate() {
            add(view, boost, &format!("boosts[{place}]"), &mut sums)?;
        }
        let there = matches!(view, CatalogView::Snapshot(_)).then(|| view.all_items());
        let there = there.as_ref().map(|items| view.rank_sets(items));
        let mut least = f32::INFINITY;
        let mut segments = Vec::with_capacity(sizes.len());
        let mut before = 0;
        for (segment, sums) in sums.into_iter().enumerate() {
            let mut values = vec![f32::NEG_INFINITY; sums.len()];
            let mut is_score = |rank: u64| {
                // Adding 0 turns −0 into +0.
                let value = sums[rank as usize] as f32 + 0.0;
                values[rank as usize] = value;
                least = least.min(value);
                value.is_finite()
            };
            let no_score = match &there {
                Some(sets) => sets[segment].iter().find(|&rank| !is_score(rank)),
                None => (0..sizes[segment]).find(|&rank| !is_score(rank)),
            };
            if let Some(rank) = no_score {
                let id = view.id(before + rank).to_owned();
                return Err(RulesError::NoScore { id, sum: sums[rank as usize] });
            }
            before += sizes[segment];
            segments.push(RangeMaxima::new(values));
        }
        Ok(Self { segments, least })
    }

    /// The boost of an item.
    pub(crate) fn of(&self, (segment, rank): (usize, u64)) -> f32 {
        self.segments[segment].levels[0][rank as usize]
    }

    fn bytes(&self) -> usize {
        let levels = self.segments.iter().flat_map(|segment| &segment.levels);
        levels.map(|level| size_of_val(&**level)).sum()
    }
}

/// Adds one boost to the items that it is for.
fn add(
    view: &CatalogView,
    boost: &Boost,
    rule: &str,
    sums: &mut [Vec<f64>],
) -> Result<(), RulesError> {
    let filtered = boost.filter.as_ref().map(|filter| view.filter(filter)).transpose();
    let filtered = filtered.map_err(|error| RulesError::filter(format!("{rule}.filter"), error))?;
    let sets = filtered.as_ref().map(|items| view.rank_sets(items));
    let mut each = |amount: &dyn Fn(usize, u64) -> f64| {
        for (segment, sums) in sums.iter_mut().enumerate() {
            let num_ranks = sums.len() as u64;
            let mut add = |rank: u64| sums[rank as usize] += amount(segment, rank);
            match &sets {
                Some(sets) => sets[segment].iter().for_each(add),
                None => (0..num_ranks).for_each(&mut add),
            }
        }
    };
    match &boost.amount {
        Amount::Add(amount) => each(&|_, _| *amount),
        Amount::Linear { attribute, weight, offset } => {
            let kind = kind_of(view, attribute, rule)?;
            if kind != ColumnKind::Number {
                let (rule, attribute) = (rule.to_owned(), attribute.clone());
                return Err(RulesError::WrongKind {
                    rule,
                    attribute,
                    kind,
                    needed: "a number attribute",
                });
            }
            let readers = view.readers(attribute);
            each(&|segment, rank| {
                let reader = readers[segment].as_ref();
                let value = reader.and_then(|reader| reader.number(reader.code(rank)));
                value.map_or(0.0, |value| weight * value + offset)
            });
        }
    }
    Ok(())
}

/// Numbers with the maxima of blocks of 16, of 16 such blocks, and so on.
#[derive(Debug)]
struct RangeMaxima {
    /// The numbers first.
    levels: Vec<Vec<f32>>,
}

/// Ranges that are read number by number.
const SHORT: u64 = 32;
/// A block's maxima lie in one cache line.
const BLOCK: usize = 16;

impl RangeMaxima {
    fn new(numbers: Vec<f32>) -> Self {
        let mut levels = vec![numbers];
        while levels[levels.len() - 1].len() > BLOCK {
            let below = &levels[levels.len() - 1];
            let max = |block: &[f32]| block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            levels.push(below.chunks(BLOCK).map(max).collect());
        }
        Self { levels }
    }

    /// The largest number of a range, or of those in it that are allowed: branch and bound, the largest block first. Cost: a
    /// few blocks where the best are allowed; at most a look at each number that is larger than the answer.
    fn max_in(&self, range: Range<u64>, allowed: Option<&RankSet>) -> f32 {
        if range.is_empty() {
            return f32::NEG_INFINITY;
        }
        if range.end - range.start <= SHORT {
            return self.max_in_short(range, allowed);
        }
        // The level at which the range begins and ends in neighbouring blocks.
        let (mut level, mut span) = (0, 1_u64);
        while level + 1 < self.levels.len() && (range.end - 1) / span - range.start / span > 1 {
            (level, span) = (level + 1, span * BLOCK as u64);
        }
        let mut best = f32::NEG_INFINITY;
        let blocks = range.start / span..(range.end - 1) / span + 1;
        Query { range, allowed }.raise(self, (level, span), blocks, &mut best);
        best
    }
}

impl RangeMaxima {
    /// PERF: deep prefixes have few items; reading each in place of blocks took the steps of a request with two boosts from 1.36
    /// to 1.24 ms (`palmette-bench/examples/rules.rs`, a million items, on an AMD EPYC with other work beside it).
    fn max_in_short(&self, range: Range<u64>, allowed: Option<&RankSet>) -> f32 {
        let values = &self.levels[0][range.start as usize..range.end as usize];
        let Some(allowed) = allowed else {
            return values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        };
        let (mut bits, mut best) = (allowed.bits_in(range), f32::NEG_INFINITY);
        while bits != 0 {
            best = best.max(values[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        best
    }
}

/// A range, and those of it that are allowed; `None` for all.
struct Query<'a> {
    range: Range<u64>,
    allowed: Option<&'a RankSet>,
}

impl Query<'_> {
    /// Raises `best` to the largest number of some blocks, each of `span` numbers. All overlap the range.
    fn raise(
        &self,
        maxima: &RangeMaxima,
        (level, span): (usize, u64),
        blocks: Range<u64>,
        best: &mut f32,
    ) {
        let values = &maxima.levels[level][blocks.start as usize..blocks.end as usize];
        let largest = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]));
        // The largest first, which mostly leaves nothing to look for in the others.
        let in_order =
            largest.into_iter().chain((0..values.len()).filter(|&at| Some(at) != largest));
        for at in in_order {
            if values[at] > *best {
                let block = blocks.start + at as u64;
                self.raise_by_block(maxima, (level, span), (block, values[at]), best);
            }
        }
    }

    fn raise_by_block(
        &self,
        maxima: &RangeMaxima,
        (level, span): (usize, u64),
        (block, max): (u64, f32),
        best: &mut f32,
    ) {
        let (first, end) = (block * span, (block + 1) * span);
        let end = end.min(maxima.levels[0].len() as u64);
        let within = self.range.start.max(first)..self.range.end.min(end);
        if self.allowed.is_some_and(|allowed| !allowed.any_in(within.clone())) {
            return;
        }
        let is_whole = within == (first..end);
        if level == 0 || self.allowed.is_none() && is_whole {
            *best = max;
            return;
        }
        let below = span / BLOCK as u64;
        let children = within.start / below..(within.end - 1) / below + 1;
        self.raise(maxima, (level - 1, below), children, best);
    }
}

/// Boosts of the items that one search may return.
#[derive(Debug)]
pub(crate) struct BoostedItems<'a> {
    view: &'a CatalogView,
    boosts: &'a ItemBoosts,
    /// By segment; `None` for all.
    allowed: Option<Vec<&'a RankSet>>,
}

impl<'a> BoostedItems<'a> {
    pub(crate) fn new(
        view: &'a CatalogView,
        boosts: &'a ItemBoosts,
        items: Option<&'a ViewItems>,
    ) -> Self {
        Self { view, boosts, allowed: items.map(|items| view.rank_sets(items)) }
    }

    fn max_in(&self, segment: usize, ranks: Range<u64>) -> f32 {
        let allowed = self.allowed.as_ref().map(|sets| sets[segment]);
        self.boosts.segments[segment].max_in(ranks, allowed)
    }

    /// The largest in some range of each segment where a position is alive.
    fn max_of(
        &self,
        state: &SnapshotState,
        ranks: impl Fn(&Catalog, &CatalogState) -> Range<u64>,
    ) -> f32 {
        let CatalogView::Snapshot(snapshot) = self.view else {
            panic!("a position of another kind of view")
        };
        let parts = state.parts().iter().zip(snapshot.segments()).enumerate();
        let alive = parts.filter(|(_, (part, _))| !part.is_dead());
        let max = |(at, (part, view)): (usize, (&CatalogState, &palmette_live::SegmentView))| {
            self.max_in(at, ranks(view.segment().catalog(), part))
        };
        alive.map(max).fold(f32::NEG_INFINITY, f32::max)
    }
}

impl Gains<CatalogState> for BoostedItems<'_> {
    fn bound(&self, state: &CatalogState) -> f32 {
        self.max_in(0, state.ranks())
    }

    fn gain(&self, state: &CatalogState) -> f32 {
        let CatalogView::Frozen(filters) = self.view else {
            panic!("a position of another kind of view")
        };
        self.max_in(0, filters.catalog().items_at(state))
    }

    fn least(&self) -> f32 {
        self.boosts.least
    }
}

impl Gains<SnapshotState> for BoostedItems<'_> {
    fn bound(&self, state: &SnapshotState) -> f32 {
        self.max_of(state, |_, part| part.ranks())
    }

    fn gain(&self, state: &SnapshotState) -> f32 {
        self.max_of(state, |catalog, part| catalog.items_at(part))
    }

    fn least(&self) -> f32 {
        self.boosts.least
    }
}

/// The boosts that were asked for last over one view.
#[derive(Debug, Default)]
pub(crate) struct BoostCache {
    /// The latest last.
    kept: Mutex<Vec<(Vec<Boost>, Arc<ItemBoosts>)>>,
}

impl BoostCache {
    const MAX_BYTES: usize = 256 << 20;
    const MAX_ENTRIES: usize = 16;

    /// The boosts of a view's items; `None` where no boost is given.
    pub(crate) fn get(
        &self,
        view: &CatalogView,
        boosts: &[Boost],
    ) -> Result<Option<Arc<ItemBoosts>>, RulesError> {
        if boosts.is_empty() {
            return Ok(None);
        }
        if let Some(made) = self.look_up(boosts) {
            return Ok(Some(made));
        }
        // Made without the lock, so that others need not wait; two may make the same.
        let made = Arc::new(ItemBoosts::new(view, boosts)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((boosts.to_vec(), Arc::clone(&made)));
        let bytes = |kept: &[(Vec<Boost>, Arc<ItemBoosts>)]| -> usize {
            kept.iter().map(|(_, made)| made.bytes()).sum()
        };
        while kept.len() > Self::MAX_ENTRIES || bytes(&kept) > Self::MAX_BYTES {
            kept.remove(0);
        }
        Ok(Some(made))
    }

    fn look_up(&self, boosts: &[Boost]) -> Option<Arc<ItemBoosts>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(key, _)| key == boosts)?;
        let found = kept.remove(at);
        let made = Arc::clone(&found.1);
        kept.push(found);
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_maxima_equal_looking_at_every_number() {
        let mut seed = 1_u64;
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) * bound) >> 31
        };
        for len in [1, 2, 15, 16, 17, 255, 256, 257, 5000] {
            let numbers: Vec<f32> = (0..len).map(|_| below(50) as f32).collect();
            let maxima = RangeMaxima::new(numbers.clone());
            for _ in 0..300 {
                let (a, b) = (below(len + 1), below(len + 1));
                let range = a.min(b)..a.max(b);
                let one_in = below(30) + 1;
                let members: Vec<u64> = (0..len).filter(|_| below(one_in) == 0).collect();
                let allowed = RankSet::from_ranks(len, members.iter().copied());
                let max = |of: &mut dyn Iterator<Item = u64>| {
                    of.map(|rank| numbers[rank as usize]).fold(f32::NEG_INFINITY, f32::max)
                };
                assert_eq!(maxima.max_in(range.clone(), None), max(&mut range.clone()));
                let mut within = range.clone().filter(|rank| members.contains(rank));
                assert_eq!(maxima.max_in(range.clone(), Some(&allowed)), max(&mut within));
            }
        }
    }
}
