//! Boosts of all items of a view, and the gains of a search with boosts.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_catalog::{Catalog, CatalogState};
use palmette_catalog_filter::{ColumnKind, RankSet};
use palmette_catalog_live::{CatalogView, SnapshotState, ViewItems};
use palmette_decode::Gains;

use super::attribute_kind::kind_of;
use super::error::RulesError;
use super::range_maxima::RangeMaxima;
use super::{Amount, Boost};
use crate::terminated_constraint::EndedState;

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
        self.segments[segment].get(rank)
    }

    fn bytes(&self) -> usize {
        self.segments.iter().map(RangeMaxima::bytes).sum()
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

/// Boosts of the items that one search may return.
#[derive(Debug)]
pub(crate) struct BoostedItems<'a> {
    view: &'a CatalogView,
    boosts: &'a ItemBoosts,
    /// Ranks that may be returned, by segment; `None` for all.
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
        let max =
            |(at, (part, view)): (usize, (&CatalogState, &palmette_catalog_live::SegmentView))| {
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

/// Gains at ends of items. An end changes nothing of what may come of a position.
impl<S> Gains<EndedState<S>> for BoostedItems<'_>
where
    Self: Gains<S>,
{
    fn bound(&self, state: &EndedState<S>) -> f32 {
        match state.is_ending() {
            true => Gains::<S>::gain(self, &state.inner),
            false => Gains::<S>::bound(self, &state.inner),
        }
    }

    fn gain(&self, state: &EndedState<S>) -> f32 {
        Gains::<S>::gain(self, &state.inner)
    }

    fn least(&self) -> f32 {
        Gains::<S>::least(self)
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
