//! A live catalog at one generation.

use std::sync::Arc;

use palmette_catalog::index::ItemSet;
use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, Catalog, CatalogBuilder, FilterLookUps, Item};
use palmette_catalog_filter::{Columns, Filter, FilterError, RankSet};
use serde::Serialize;

use crate::error::LiveError;
use crate::schema::{Schema, check_filter};
use crate::segment::{MAX_SEGMENTS, SegmentView};

/// All items of one generation. It never changes; hold the `Arc` for as long as you want to see it.
#[derive(Debug)]
pub struct Snapshot {
    generation: u64,
    /// The oldest first: at most [`MAX_SEGMENTS`].
    segments: Vec<SegmentView>,
    num_items: u64,
    schema: Arc<Schema>,
    /// The schema's columns, of no items.
    columns: Arc<Columns>,
    damaged: Vec<DamagedSegment>,
}

/// A segment that is left out because its file is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedSegment {
    /// The file's name.
    pub file: String,
    /// Items of it that should be there.
    pub num_items: u64,
    /// The damage, with its place.
    pub problem: String,
}

/// Place of an item in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemRef {
    /// Place of the segment, the oldest first.
    pub segment: u32,
    /// Rank within the segment.
    pub rank: u64,
}

/// Some of a snapshot's items, a set for each segment.
#[derive(Clone, Debug)]
pub struct SnapshotItems {
    pub(crate) sets: Vec<Arc<ItemSet>>,
}

impl Snapshot {
    pub(crate) fn new(
        generation: u64,
        segments: Vec<SegmentView>,
        schema: Arc<Schema>,
        columns: Arc<Columns>,
        damaged: Vec<DamagedSegment>,
    ) -> Self {
        assert!(segments.len() <= MAX_SEGMENTS, "{} segments", segments.len());
        let num_items = segments.iter().map(SegmentView::num_live).sum();
        Self { generation, segments, num_items, schema, columns, damaged }
    }

    /// The number of this state of the catalog: one more with each batch.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Items in all.
    pub fn num_items(&self) -> u64 {
        self.num_items
    }

    /// The segments, the oldest first.
    pub fn segments(&self) -> &[SegmentView] {
        &self.segments
    }

    /// Rules that all items keep to.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Segments that are left out because their files are damaged: only a
    /// [degraded](crate::ReaderOptions::degraded) reader has any.
    pub fn damaged(&self) -> &[DamagedSegment] {
        &self.damaged
    }

    /// The codes of an item that was deleted: histories still have it. `None` of an item that is
    /// there or never was.
    pub fn departed(&self, id: &str) -> Option<Vec<u32>> {
        let newest = self.segments.iter().rev().find_map(|view| match view.find(id) {
            Some(_) => Some(None),
            None => view.departed(id).map(Some),
        });
        newest.flatten()
    }

    /// The item with this id. Cost: a look-up in each segment until it is found.
    pub fn find(&self, id: &str) -> Option<ItemRef> {
        let find = |(at, view): (usize, &SegmentView)| {
            Some(ItemRef { segment: at as u32, rank: view.find(id)? })
        };
        self.segments.iter().enumerate().rev().find_map(find)
    }

    /// An item: id, codes and attributes.
    ///
    /// # Panics
    /// When the reference is of another snapshot and leads nowhere in this one; so do the next two.
    pub fn item(&self, at: ItemRef) -> Item {
        let (catalog, rank) = self.place(at);
        Item {
            id: catalog.id(rank).to_owned(),
            codes: catalog.codes(rank),
            attributes: catalog.attributes(rank),
        }
    }

    /// The id of an item.
    pub fn id(&self, at: ItemRef) -> &str {
        let (catalog, rank) = self.place(at);
        catalog.id(rank)
    }

    /// The catalog of an item's segment, and its rank there.
    pub fn place(&self, at: ItemRef) -> (&Catalog, u64) {
        (self.segments[at.segment as usize].segment.catalog(), at.rank)
    }

    /// All items, segment by segment and in the order of ranks within: those that share a semantic
    /// ID come in the order in which they were upserted.
    pub fn items(&self) -> impl Iterator<Item = ItemRef> + '_ {
        self.segments.iter().enumerate().flat_map(|(segment, view)| {
            view.ranks().map(move |rank| ItemRef { segment: segment as u32, rank })
        })
    }

    /// The catalog of these items, as one built from them in their order: whatever the segments,
    /// equal items give an equal catalog. `item_added` is called after each.
    ///
    /// Cost: 2 to 4 microseconds an item; memory as for building.
    ///
    /// # Errors
    /// When there are more items than a catalog holds, or the file of a segment is damaged by now.
    pub fn to_catalog(&self, mut item_added: impl FnMut()) -> Result<Catalog, LiveError> {
        for view in &self.segments {
            view.segment.verify()?;
        }
        let mut builder = CatalogBuilder::new(BuildOptions {
            dense_bytes: None,
            ..self.schema.build_options(self.num_items)
        })?;
        for (number, at) in (1..).zip(self.items()) {
            let item = self.item(at);
            builder.push(number, item.id, &item.codes, item.attributes)?;
            item_added();
        }
        Ok(builder.finish(self.schema.level_prefixes.clone(), |_| {})?)
    }

    /// The items that match a filter. Compiled sets are kept for each segment and brought up to
    /// date with what was cleared since.
    ///
    /// An attribute that no item of a segment has is missing there. An attribute stays known when
    /// the last item that had it is gone: the filter then matches nothing, where a catalog built of
    /// the items that are left would not know it. A field within an attribute is known while an
    /// item has it.
    ///
    /// # Errors
    /// When the filter names an attribute that no item ever had, or asks of one what its kind
    /// cannot answer.
    pub fn filter(&self, filter: &Filter) -> Result<SnapshotItems, FilterError> {
        self.look_up_filter(filter, &mut FilterLookUps::default())
    }

    /// [`filter`](Self::filter), counting the segments that had it compiled.
    ///
    /// # Errors
    /// As [`filter`](Self::filter).
    pub fn look_up_filter(
        &self,
        filter: &Filter,
        look_ups: &mut FilterLookUps,
    ) -> Result<SnapshotItems, FilterError> {
        check_filter(&self.columns, filter)?;
        let is_known = |name: &str| self.schema.kind_of(name).is_some();
        self.check_fields(filter, &is_known)?;
        let kept = filter.without_excluded();
        let mut sets = Vec::with_capacity(self.segments.len());
        for view in &self.segments {
            let set = view.segment.filters.items(view, &kept, &is_known, look_ups)?;
            let catalog = view.segment.catalog();
            let mut excluded =
                filter.excluded().iter().filter_map(|id| catalog.rank_of(id)).peekable();
            sets.push(match excluded.peek() {
                Some(_) => Arc::new(set.without(catalog.index(), excluded)),
                None => set,
            });
        }
        Ok(SnapshotItems { sets })
    }

    /// Refuses names of fields within attributes that no item has; the sets of those that have one
    /// are kept as a filter's.
    fn check_fields(
        &self,
        filter: &Filter,
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<(), FilterError> {
        for name in filter.names() {
            if !self.columns.is_field(name) {
                continue;
            }
            let (having, mut look_ups) = (Filter::has_field(name), FilterLookUps::default());
            let is_there = |view: &SegmentView| {
                let items = view.segment.filters.items(view, &having, is_known, &mut look_ups);
                items.is_ok_and(|items| !items.is_empty())
            };
            if !self.segments.iter().any(is_there) {
                return Err(self.columns.unknown_name(name));
            }
        }
        Ok(())
    }

    /// Items chosen by a set of ranks for each segment; those that are not there are left out.
    ///
    /// # Panics
    /// When there is not a set for each segment, over its number of ranks.
    pub fn choose(&self, ranks: &[RankSet]) -> SnapshotItems {
        assert_eq!(ranks.len(), self.segments.len(), "a set for each segment");
        let choose = |(view, ranks): (&SegmentView, &RankSet)| {
            let live = view.live.as_ref().map(|live| ranks.and(live.ranks()));
            let index = view.segment.catalog().index();
            Arc::new(index.item_set(live.unwrap_or_else(|| ranks.clone())))
        };
        SnapshotItems { sets: self.segments.iter().zip(ranks).map(choose).collect() }
    }
}

impl SnapshotItems {
    /// Items in the set.
    pub fn len(&self) -> u64 {
        self.sets.iter().map(|set| set.len()).sum()
    }

    /// True if nothing may be returned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Membership of an item.
    pub fn contains(&self, at: ItemRef) -> bool {
        self.sets.get(at.segment as usize).is_some_and(|set| set.ranks().contains(at.rank))
    }
}
