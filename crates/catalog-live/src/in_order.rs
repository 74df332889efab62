//! Items of a view in catalog order: a merge of its segments.
//!
//! The order is that of ranks in a catalog built of the items: by codes, items that share them as
//! they were upserted. It depends on the items alone and not on the segments, which a merge in the
//! background changes within one generation.
//!
//! Cost: to begin after an item, a binary search in each segment; for each item, a comparison of
//! codes for each segment.

use std::cmp::Ordering;

use palmette_catalog::Catalog;
use palmette_catalog_filter::RankSet;

use crate::view::{CatalogView, ViewItems};

/// The numbers of some items, in catalog order.
#[derive(Debug)]
pub struct InOrder<'v> {
    /// The oldest first: of equal codes the older come first.
    segments: Vec<Head<'v>>,
}

/// The next item of a segment.
#[derive(Debug)]
struct Head<'v> {
    catalog: &'v Catalog,
    ranks: &'v RankSet,
    /// Number of the item of rank 0.
    first_number: u64,
    /// `None` at the end.
    next: Option<(Vec<u32>, u64)>,
}

impl CatalogView {
    /// The numbers of some items in the order of a catalog built of all: those after an item of the
    /// view, or all of them.
    ///
    /// # Panics
    /// When the items are of another kind of view, or no item has the number.
    pub fn in_order<'v>(&'v self, items: &'v ViewItems, after: Option<u64>) -> InOrder<'v> {
        let after = after.map(|number| (self.segment_of(number), self.codes(number)));
        let mut first_number = 0;
        let catalogs = self.parts().map(|(catalog, _)| catalog);
        let segments = self.rank_sets(items).into_iter().zip(catalogs).enumerate();
        let head = |(segment, (ranks, catalog)): (usize, (&'v RankSet, &'v Catalog))| {
            let first_rank =
                after.as_ref().map_or(0, |((of, rank), codes)| match segment.cmp(of) {
                    // Older items with the same codes come before it, newer ones after.
                    Ordering::Less => partition_point(catalog, |of| of <= codes.as_slice()),
                    Ordering::Equal => rank + 1,
                    Ordering::Greater => partition_point(catalog, |of| of < codes.as_slice()),
                });
            let mut head = Head { catalog, ranks, first_number, next: None };
            first_number += catalog.num_items();
            head.move_to(first_rank);
            head
        };
        InOrder { segments: segments.map(head).collect() }
    }
}

/// Items at the beginning of a catalog whose codes are so.
fn partition_point(catalog: &Catalog, is_before: impl Fn(&[u32]) -> bool) -> u64 {
    let (mut low, mut high) = (0, catalog.num_items());
    while low < high {
        let middle = low + (high - low) / 2;
        match is_before(&catalog.codes(middle)) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

impl Head<'_> {
    /// Moves to the first item of this rank or a higher one.
    fn move_to(&mut self, rank: u64) {
        let rest = rank..self.catalog.num_items();
        let next = if rest.is_empty() { None } else { self.ranks.next_in(rest) };
        self.next = next.map(|rank| (self.catalog.codes(rank), rank));
    }
}

impl Iterator for InOrder<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let heads = self.segments.iter_mut().filter(|head| head.next.is_some());
        // Of equal ones the first.
        let head = heads.min_by(|a, b| {
            a.next.as_ref().map(|(codes, _)| codes).cmp(&b.next.as_ref().map(|(codes, _)| codes))
        })?;
        let (_, rank) = head.next.take()?;
        head.move_to(rank + 1);
        Some(head.first_number + rank)
    }
}
