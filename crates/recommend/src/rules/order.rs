//! Found items in order: a lazy merge of the items of each semantic ID, by score and tie order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt;
use std::iter::Peekable;

use palmette_catalog_filter::{ColumnKind, ColumnReader, SortKey};
use palmette_catalog_live::CatalogView;

use super::attribute_kind::kind_of;
use super::boosts::ItemBoosts;
use super::error::RulesError;
use super::{Rules, TieBreak};
use crate::recommended::Recommended;

/// The order of items: score, then semantic IDs as the search found them, then the tie-break, then
/// the catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemOrder<'a> {
    pub(crate) boosts: Option<(&'a CatalogView, &'a ItemBoosts)>,
    ties: Option<Ties<'a>>,
}

/// A semantic ID that was found, with its items in catalog order.
pub(crate) struct IdMatch<I> {
    /// Log-probability of the item.
    pub(crate) score: f32,
    /// The largest boost of its items.
    pub(crate) gain: f32,
    pub(crate) numbers: I,
}

/// The attribute that ties are broken by.
#[derive(Clone, Debug)]
struct Ties<'a> {
    view: &'a CatalogView,
    readers: Vec<Option<ColumnReader<'a>>>,
    descending: bool,
}

impl<'a> ItemOrder<'a> {
    pub(crate) fn new(
        rules: &Rules,
        view: &'a CatalogView,
        boosts: Option<&'a ItemBoosts>,
    ) -> Result<Self, RulesError> {
        let ties = rules.tie_break.as_ref().map(|tie_break| Ties::new(tie_break, view));
        Ok(Self { boosts: boosts.map(|boosts| (view, boosts)), ties: ties.transpose()? })
    }

    /// The items of semantic IDs that come best first, best first. Items are looked at as they are
    /// asked for.
    pub(crate) fn ranked<'s, I: Iterator<Item = u64> + 's>(
        &'s self,
        found: impl Iterator<Item = IdMatch<I>> + 's,
    ) -> impl Iterator<Item = Recommended> + 's {
        Ranked { order: self, rest: found.enumerate().peekable(), open: BinaryHeap::new() }
    }

    /// The items of one semantic ID, best first.
    fn of_one<'s>(
        &'s self,
        score: f32,
        numbers: impl Iterator<Item = u64> + 's,
    ) -> Box<dyn Iterator<Item = Recommended> + 's> {
        let scored = move |number| self.scored(number, score);
        if self.boosts.is_none() && self.ties.is_none() {
            return Box::new(numbers.map(scored));
        }
        let keyed =
            |item: Recommended| (self.ties.as_ref().and_then(|by| by.key(item.number)), item);
        let mut items: Vec<(Option<SortKey<'_>>, Recommended)> =
            numbers.map(scored).map(keyed).collect();
        items.sort_by(|(a_key, a), (b_key, b)| {
            b.score.total_cmp(&a.score).then_with(|| self.compare(a_key, b_key))
        });
        Box::new(items.into_iter().map(|(_, item)| item))
    }

    fn scored(&self, number: u64, score: f32) -> Recommended {
        let boost = self.boosts.map_or(0.0, |(view, boosts)| boosts.of(view.segment_of(number)));
        Recommended { number, score: score + boost, boost, pinned: false }
    }

    fn compare(&self, a: &Option<SortKey<'_>>, b: &Option<SortKey<'_>>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) if self.ties.as_ref().is_some_and(|by| by.descending) => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            // Those without the attribute come last in either order.
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
}

impl<'a> Ties<'a> {
    fn new(tie_break: &TieBreak, view: &'a CatalogView) -> Result<Self, RulesError> {
        let TieBreak { attribute, descending } = tie_break;
        let kind = kind_of(view, attribute, "tie_break")?;
        if matches!(kind, ColumnKind::Keywords | ColumnKind::Json) {
            let (rule, attribute) = ("tie_break".to_owned(), attribute.clone());
            let needed = "a keyword, number, timestamp or boolean attribute";
            return Err(RulesError::WrongKind { rule, attribute, kind, needed });
        }
        Ok(Self { view, readers: view.readers(attribute), descending: *descending })
    }

    fn key(&self, number: u64) -> Option<SortKey<'a>> {
        let (segment, rank) = self.view.segment_of(number);
        let reader = self.readers[segment]?;
        reader.sort_key(reader.code(rank))
    }
}

struct Ranked<'s, 'a, F: Iterator> {
    order: &'s ItemOrder<'a>,
    /// Semantic IDs that no item has been asked of yet.
    rest: Peekable<F>,
    /// The others, by the next item of each.
    open: BinaryHeap<PendingId<'s>>,
}

/// A semantic ID, some of whose items are still to come.
struct PendingId<'s> {
    next: Recommended,
    /// Place among the semantic IDs.
    place: usize,
    rest: Box<dyn Iterator<Item = Recommended> + 's>,
}

impl<'s, I, F> Iterator for Ranked<'s, '_, F>
where
    I: Iterator<Item = u64> + 's,
    F: Iterator<Item = (usize, IdMatch<I>)>,
{
    type Item = Recommended;

    fn next(&mut self) -> Option<Recommended> {
        // Of equal scores the semantic ID that was found first comes first, and all that are open
        // were.
        let is_next = |open: &BinaryHeap<PendingId<'s>>, found: &IdMatch<I>| {
            open.peek().is_none_or(|best| found.score + found.gain > best.next.score)
        };
        while let Some((place, found)) = self.rest.next_if(|(_, found)| is_next(&self.open, found))
        {
            self.open(place, self.order.of_one(found.score, found.numbers));
        }
        let PendingId { next, place, rest } = self.open.pop()?;
        self.open(place, rest);
        Some(next)
    }
}

impl<'s, F: Iterator> Ranked<'s, '_, F> {
    fn open(&mut self, place: usize, mut rest: Box<dyn Iterator<Item = Recommended> + 's>) {
        if let Some(next) = rest.next() {
            self.open.push(PendingId { next, place, rest });
        }
    }
}

impl fmt::Debug for PendingId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("next", &self.next).field("place", &self.place).finish()
    }
}

impl PendingId<'_> {
    fn key(&self) -> (f32, Reverse<usize>) {
        (self.next.score, Reverse(self.place))
    }
}

impl Ord for PendingId<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((a, a_place), (b, b_place)) = (self.key(), other.key());
        a.total_cmp(&b).then(a_place.cmp(&b_place))
    }
}

impl PartialOrd for PendingId<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingId<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PendingId<'_> {}
