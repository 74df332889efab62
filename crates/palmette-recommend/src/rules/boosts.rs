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
        let mut least = f32::INFINITY;
        let mut values: Vec<Vec<f32>> =
            sizes.iter().map(|&size| vec![f32::NEG_INFINITY; size as usize]).collect();
        for number in view.numbers() {
            let (segment, rank) = view.segment_of(number);
            let sum = sums[segment][rank as usize];
            let value = sum as f32;
            if !value.is_finite() {
                return Err(RulesError::NoScore { id: view.id(number).to_owned(), sum });
            }
            // Adding 0 turns −0 into +0.
            values[segment][rank as usize] = value + 0.0;
            least = least.min(value + 0.0);
        }
        Ok(Self { segments: values.into_iter().map(RangeMaxima::new).collect(), least })
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
    let filtered =
        filtered.map_err(|error| RulesError::Filter { rule: format!("{rule}.filter"), error })?;
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

    /// The largest number of a range, or of those in it that are allowed. Cost: a few blocks where the best are allowed; at
    /// most a look at each number that is larger than the answer.
    fn max_in(&self, range: Range<u64>, allowed: Option<&RankSet>) -> f32 {
        let mut best = f32::NEG_INFINITY;
        if range.is_empty() {
            return best;
        }
        // The level at which the range begins and ends in neighbouring blocks.
        let (mut level, mut span) = (0, 1_u64);
        while level + 1 < self.levels.len() && (range.end - 1) / span - range.start / span > 1 {
            (level, span) = (level + 1, span * BLOCK as u64);
        }
        for block in range.start / span..=(range.end - 1) / span {
            self.raise(level, span, block, &range, allowed, &mut best);
        }
        best
    }

    /// Raises `best` to the largest number of a block within the range. `span`: numbers of a block of this level.
    fn raise(
        &self,
        level: usize,
        span: u64,
        block: u64,
        range: &Range<u64>,
        allowed: Option<&RankSet>,
        best: &mut f32,
    ) {
        let max = self.levels[level][block as usize];
        if max <= *best {
            return;
        }
        let within = range.start.max(block * span)..range.end.min((block + 1) * span);
        if within.is_empty() || allowed.is_some_and(|allowed| !allowed.any_in(within.clone())) {
            return;
        }
        let is_whole =
            within.end - within.start == span.min(self.levels[0].len() as u64 - block * span);
        if level == 0 || allowed.is_none() && is_whole {
            *best = max;
            return;
        }
        let first = block * BLOCK as u64;
        let end = (first + BLOCK as u64).min(self.levels[level - 1].len() as u64);
        for child in first..end {
            self.raise(level - 1, span / BLOCK as u64, child, range, allowed, best);
        }
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
