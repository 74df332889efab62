//! A catalog as one request sees it: a frozen file, or the snapshot of a live one.

use std::sync::Arc;

use palmette_catalog::index::ItemSet;
use palmette_catalog::{Catalog, FilterCache, FilterLookUps, FilterStatistics, Item};
use palmette_catalog_filter::{ColumnKind, ColumnReader, Filter, FilterError, RankSet};

use crate::live::LiveCatalog;
use crate::reader::LiveReader;
use crate::snapshot::{DamagedSegment, ItemRef, Snapshot, SnapshotItems};

/// A catalog that requests take views of: frozen, or changing while they are answered.
#[derive(Clone, Debug)]
pub enum CatalogSource {
    /// One that never changes, with the filters that were asked for last.
    Frozen(Arc<FilterCache>),
    /// One that changes: every view is of its newest generation.
    Live(Arc<LiveCatalog>),
    /// One that another process changes: every view is of the newest generation that was seen.
    Reader(Arc<LiveReader>),
    /// One generation of a live catalog, whatever comes after it. The directory need not stay open
    /// for it.
    Snapshot(Arc<Snapshot>),
}

/// Memory for the compiled filters of a frozen catalog, at most.
pub const FILTER_BYTES: usize = 64 << 20;

impl CatalogSource {
    /// The items as they are now. Cost: a reference count, and for a live catalog a load.
    pub fn view(&self) -> CatalogView {
        match self {
            Self::Frozen(filters) => CatalogView::Frozen(Arc::clone(filters)),
            Self::Live(live) => CatalogView::Snapshot(live.snapshot()),
            Self::Reader(reader) => CatalogView::Snapshot(reader.snapshot()),
            Self::Snapshot(snapshot) => CatalogView::Snapshot(Arc::clone(snapshot)),
        }
    }
}

impl LiveCatalog {
    /// The items as they are now: what a request sees from its beginning to its end.
    pub fn view(&self) -> CatalogView {
        self.snapshot().into()
    }
}

impl LiveReader {
    /// The items as they were seen last: what a request sees from its beginning to its end.
    pub fn view(&self) -> CatalogView {
        self.snapshot().into()
    }
}

impl From<Arc<Catalog>> for CatalogSource {
    fn from(catalog: Arc<Catalog>) -> Self {
        Self::Frozen(Arc::new(FilterCache::new(catalog, FILTER_BYTES)))
    }
}

impl From<Catalog> for CatalogSource {
    fn from(catalog: Catalog) -> Self {
        Arc::new(catalog).into()
    }
}

impl From<Arc<LiveCatalog>> for CatalogSource {
    fn from(live: Arc<LiveCatalog>) -> Self {
        Self::Live(live)
    }
}

impl From<LiveCatalog> for CatalogSource {
    fn from(live: LiveCatalog) -> Self {
        Arc::new(live).into()
    }
}

impl From<Arc<LiveReader>> for CatalogSource {
    fn from(reader: Arc<LiveReader>) -> Self {
        Self::Reader(reader)
    }
}

impl From<LiveReader> for CatalogSource {
    fn from(reader: LiveReader) -> Self {
        Arc::new(reader).into()
    }
}

impl From<Arc<Snapshot>> for CatalogSource {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self::Snapshot(snapshot)
    }
}

/// All items of a catalog at one moment; hold it for as long as you want to see them. Cheap to
/// clone.
///
/// Items are numbered from 0, segment by segment and in each by rank: in a frozen catalog an item's
/// number is its rank. Numbers of items that are gone are skipped, so they may be sparse. They are
/// numbers of one view, and mean nothing in another.
#[derive(Clone, Debug)]
pub enum CatalogView {
    /// A frozen catalog.
    Frozen(Arc<FilterCache>),
    /// A live catalog at one generation.
    Snapshot(Arc<Snapshot>),
}

/// Some items of a view.
#[derive(Clone, Debug)]
pub enum ViewItems {
    /// Items of a frozen catalog.
    Frozen(Arc<ItemSet>),
    /// Items of a snapshot.
    Snapshot(Arc<SnapshotItems>),
}

impl From<Arc<Catalog>> for CatalogView {
    fn from(catalog: Arc<Catalog>) -> Self {
        CatalogSource::from(catalog).view()
    }
}

impl From<Catalog> for CatalogView {
    fn from(catalog: Catalog) -> Self {
        Arc::new(catalog).into()
    }
}

impl From<Arc<Snapshot>> for CatalogView {
    fn from(snapshot: Arc<Snapshot>) -> Self {
        Self::Snapshot(snapshot)
    }
}

impl CatalogView {
    /// Counters of the filters that are kept: of a live catalog those of all segments together.
    pub fn filter_statistics(&self) -> FilterStatistics {
        match self {
            Self::Frozen(filters) => filters.statistics(),
            Self::Snapshot(snapshot) => {
                let all = snapshot.segments().iter().map(|of| of.segment().filters.statistics());
                all.fold(FilterStatistics::default(), FilterStatistics::plus)
            }
        }
    }

    /// Lets go of the filters that are kept; sets that somebody has stay as they are.
    pub fn clear_filters(&self) {
        match self {
            Self::Frozen(filters) => filters.clear(),
            Self::Snapshot(snapshot) => {
                snapshot.segments().iter().for_each(|of| of.segment().filters.clear());
            }
        }
    }

    /// The generation of a live catalog; `None` for a frozen one.
    pub fn generation(&self) -> Option<u64> {
        match self {
            Self::Frozen(_) => None,
            Self::Snapshot(snapshot) => Some(snapshot.generation()),
        }
    }

    /// Segments that are left out because their files are damaged: only a degraded reader's views
    /// have any.
    pub fn damaged(&self) -> &[DamagedSegment] {
        match self {
            Self::Frozen(_) => &[],
            Self::Snapshot(snapshot) => snapshot.damaged(),
        }
    }

    /// The codes of an item that was deleted: histories still have it. `None` of an item that is
    /// there or never was, and in a frozen catalog.
    pub fn departed(&self, id: &str) -> Option<Vec<u32>> {
        match self {
            Self::Frozen(_) => None,
            Self::Snapshot(snapshot) => snapshot.departed(id),
        }
    }

    /// Items in all.
    pub fn num_items(&self) -> u64 {
        match self {
            Self::Frozen(filters) => filters.catalog().num_items(),
            Self::Snapshot(snapshot) => snapshot.num_items(),
        }
    }

    /// Bytes of the compiled filters that are kept.
    pub fn filter_bytes(&self) -> usize {
        match self {
            Self::Frozen(filters) => filters.bytes(),
            Self::Snapshot(snapshot) => {
                snapshot.segments().iter().map(|view| view.segment().filters.bytes()).sum()
            }
        }
    }

    /// One past the largest number of an item.
    pub fn num_numbers(&self) -> u64 {
        self.catalogs().map(Catalog::num_items).sum()
    }

    /// Codes of the longest semantic ID.
    pub fn num_levels(&self) -> usize {
        self.catalogs().map(Catalog::num_levels).max().unwrap_or(0)
    }

    /// The number of an item that has fewer codes than `levels`; `None` where every item has as
    /// many.
    pub fn shorter_item(&self, levels: usize) -> Option<u64> {
        match self {
            Self::Frozen(filters) => {
                let catalog = filters.catalog();
                if catalog.num_levels() < levels {
                    return (catalog.num_items() > 0).then_some(0);
                }
                catalog.index().shorter_items().first().copied()
            }
            Self::Snapshot(snapshot) => {
                (0_u32..).zip(snapshot.segments()).find_map(|(at, view)| {
                    let is_short = view.segment().catalog().num_levels() < levels;
                    let found = match is_short {
                        true => view.ranks().next(),
                        false => {
                            let mut shorter = view.segment().shorter_items().iter().copied();
                            shorter.find(|&rank| {
                                view.live().is_none_or(|of| of.ranks().contains(rank))
                            })
                        }
                    };
                    found.map(|rank| self.number(ItemRef { segment: at, rank }))
                })
            }
        }
    }

    /// The letters of each level where codes are spelled as `<a_12>`.
    pub fn level_prefixes(&self) -> Option<&[String]> {
        match self {
            Self::Frozen(filters) => filters.catalog().level_prefixes(),
            Self::Snapshot(snapshot) => snapshot.schema().level_prefixes.as_deref(),
        }
    }

    /// The numbers of all items, ascending.
    pub fn numbers(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::Frozen(filters) => Box::new(0..filters.catalog().num_items()),
            Self::Snapshot(snapshot) => Box::new(snapshot.items().map(|at| self.number(at))),
        }
    }

    /// The number of the item with this id. Cost: a look-up in each segment until it is found.
    pub fn find(&self, id: &str) -> Option<u64> {
        match self {
            Self::Frozen(filters) => filters.catalog().rank_of(id),
            Self::Snapshot(snapshot) => snapshot.find(id).map(|at| self.number(at)),
        }
    }

    /// The numbers of the items with exactly this semantic ID, in the order in which they are
    /// recommended.
    pub fn find_codes(&self, codes: &[u32]) -> Vec<u64> {
        match self {
            Self::Frozen(filters) => filters.catalog().find(codes).collect(),
            Self::Snapshot(snapshot) => {
                let segments = (0_u32..).zip(snapshot.segments());
                let found = segments.flat_map(|(segment, view)| {
                    let ranks = view.segment().catalog().find(codes);
                    let is_live =
                        |rank: &u64| view.live().is_none_or(|live| live.ranks().contains(*rank));
                    ranks.filter(is_live).map(move |rank| ItemRef { segment, rank })
                });
                found.map(|at| self.number(at)).collect()
            }
        }
    }

    /// The number of an item of a snapshot.
    pub fn number(&self, at: ItemRef) -> u64 {
        let before = self.catalogs().take(at.segment as usize).map(Catalog::num_items);
        before.sum::<u64>() + at.rank
    }

    /// The catalog that an item lies in, and its rank there.
    ///
    /// # Panics
    /// When no item has this number, as do the other look-ups by number.
    pub fn place(&self, number: u64) -> (&Catalog, u64) {
        let (segment, rank) = self.segment_of(number);
        (self.catalogs().nth(segment).expect("a segment of this view"), rank)
    }

    /// The id of an item.
    pub fn id(&self, number: u64) -> &str {
        let (catalog, rank) = self.place(number);
        catalog.id(rank)
    }

    /// The semantic ID of an item.
    pub fn codes(&self, number: u64) -> Vec<u32> {
        let (catalog, rank) = self.place(number);
        catalog.codes(rank)
    }

    /// An item: id, codes and attributes.
    pub fn item(&self, number: u64) -> Item {
        let (catalog, rank) = self.place(number);
        let (id, codes) = (catalog.id(rank).to_owned(), catalog.codes(rank));
        Item { id, codes, attributes: catalog.attributes(rank) }
    }

    /// The item with this id.
    pub fn get(&self, id: &str) -> Option<Item> {
        self.find(id).map(|number| self.item(number))
    }

    /// Ids of the items that match a filter, in the order of their numbers.
    ///
    /// # Errors
    /// As [`filter`](Self::filter).
    pub fn matching_ids(&self, filter: &Filter) -> Result<Vec<String>, FilterError> {
        let items = self.filter(filter)?;
        Ok(self.numbers_in(&items).map(|number| self.id(number).to_owned()).collect())
    }

    /// The items that match a filter; compiled sets are kept for the next request.
    ///
    /// # Errors
    /// When the filter names an attribute that is not there, or asks of one what its kind cannot
    /// answer.
    pub fn filter(&self, filter: &Filter) -> Result<ViewItems, FilterError> {
        self.look_up_filter(filter, &mut FilterLookUps::default())
    }

    /// [`filter`](Self::filter), counting the look-ups of compiled sets: one, or in a live catalog
    /// one for each segment.
    ///
    /// # Errors
    /// As [`filter`](Self::filter).
    pub fn look_up_filter(
        &self,
        filter: &Filter,
        look_ups: &mut FilterLookUps,
    ) -> Result<ViewItems, FilterError> {
        Ok(match self {
            Self::Frozen(filters) => ViewItems::Frozen(filters.look_up_item_set(filter, look_ups)?),
            Self::Snapshot(snapshot) => {
                ViewItems::Snapshot(Arc::new(snapshot.look_up_filter(filter, look_ups)?))
            }
        })
    }

    /// The kind of an attribute.
    ///
    /// # Errors
    /// When no item has it.
    pub fn kind_of(&self, name: &str) -> Result<ColumnKind, FilterError> {
        let kind = match self {
            Self::Frozen(filters) => {
                filters.catalog().columns().reader(name).map(|column| column.kind())
            }
            Self::Snapshot(snapshot) => snapshot.schema().kind_of(name),
        };
        match kind {
            Some(kind) => Ok(kind),
            // A filter says it, with the names that there are.
            None => self.filter(&Filter::exists(name)).map(|_| ColumnKind::Json),
        }
    }

    /// The column of an attribute in each catalog of [`segment_of`](Self::segment_of).
    pub fn readers(&self, name: &str) -> Vec<Option<ColumnReader<'_>>> {
        self.catalogs().map(|catalog| catalog.columns().reader(name)).collect()
    }

    /// Items in all, gone ones included, of each catalog of [`segment_of`](Self::segment_of).
    pub fn segment_sizes(&self) -> Vec<u64> {
        self.catalogs().map(Catalog::num_items).collect()
    }

    /// All items, as a set to take some out of.
    pub fn all_items(&self) -> ViewItems {
        match self {
            Self::Frozen(filters) => ViewItems::Frozen(Arc::new(filters.catalog().all_items())),
            Self::Snapshot(snapshot) => {
                let sets = snapshot.segments().iter().map(|view| match view.live() {
                    Some(live) => Arc::clone(live),
                    None => Arc::new(view.segment().catalog().all_items()),
                });
                ViewItems::Snapshot(Arc::new(SnapshotItems { sets: sets.collect() }))
            }
        }
    }

    /// The ranks of some items in each catalog of [`segment_of`](Self::segment_of).
    ///
    /// # Panics
    /// When the items are of another kind of view.
    pub fn rank_sets<'a>(&self, items: &'a ViewItems) -> Vec<&'a RankSet> {
        self.item_sets(items).iter().map(|set| set.ranks()).collect()
    }

    /// Sets of some items, one for each catalog of [`segment_of`](Self::segment_of). Where the items
    /// are those of a filter, the sets are the ones that are kept for it.
    ///
    /// # Panics
    /// When the items are of another kind of view.
    pub fn item_sets<'a>(&self, items: &'a ViewItems) -> &'a [Arc<ItemSet>] {
        match (self, items) {
            (Self::Frozen(_), ViewItems::Frozen(items)) => std::slice::from_ref(items),
            (Self::Snapshot(_), ViewItems::Snapshot(items)) => &items.sets,
            _ => panic!("items of another kind of view"),
        }
    }

    /// The numbers of some items, ascending.
    ///
    /// # Panics
    /// When the items are of another kind of view.
    pub fn numbers_in(&self, items: &ViewItems) -> impl Iterator<Item = u64> {
        let mut first = 0;
        self.rank_sets(items).into_iter().zip(self.catalogs()).flat_map(move |(set, catalog)| {
            let before = first;
            first += catalog.num_items();
            set.iter().map(move |rank| before + rank)
        })
    }

    /// The items in both sets.
    ///
    /// # Panics
    /// When the items are of another kind of view; so do [`union`](Self::union) and
    /// [`minus`](Self::minus).
    pub fn intersection(&self, items: &ViewItems, others: &ViewItems) -> ViewItems {
        self.combined(items, others, RankSet::and)
    }

    /// The items that are in either set.
    pub fn union(&self, items: &ViewItems, others: &ViewItems) -> ViewItems {
        self.combined(items, others, RankSet::or)
    }

    /// The items of one set that are not in another.
    pub fn minus(&self, items: &ViewItems, others: &ViewItems) -> ViewItems {
        self.combined(items, others, RankSet::and_not)
    }

    fn combined(
        &self,
        items: &ViewItems,
        others: &ViewItems,
        op: impl Fn(&RankSet, &RankSet) -> RankSet,
    ) -> ViewItems {
        let pairs = self.rank_sets(items).into_iter().zip(self.rank_sets(others));
        self.of_rank_sets(pairs.map(|(items, others)| op(items, others)))
    }

    /// The items with these numbers.
    ///
    /// # Panics
    /// When there is a number that no item has.
    pub fn choose(&self, numbers: impl IntoIterator<Item = u64>) -> ViewItems {
        let mut ranks: Vec<Vec<u64>> = self.catalogs().map(|_| Vec::new()).collect();
        for number in numbers {
            let (segment, rank) = self.segment_of(number);
            ranks[segment].push(rank);
        }
        let sets = self.catalogs().zip(ranks);
        self.of_rank_sets(
            sets.map(|(catalog, ranks)| RankSet::from_ranks(catalog.num_items(), ranks)),
        )
    }

    /// The items that are there of a set of ranks for each catalog.
    fn of_rank_sets(&self, mut sets: impl Iterator<Item = RankSet>) -> ViewItems {
        match self {
            Self::Frozen(filters) => {
                let ranks = sets.next().expect("a frozen catalog is one");
                ViewItems::Frozen(Arc::new(filters.catalog().index().item_set(ranks)))
            }
            Self::Snapshot(snapshot) => {
                let sets: Vec<RankSet> = sets.collect();
                ViewItems::Snapshot(Arc::new(snapshot.choose(&sets)))
            }
        }
    }

    /// Some items without others, given by number. Sets of segments that lose none are shared.
    ///
    /// # Panics
    /// When the items are of another kind of view.
    pub fn without(&self, items: &ViewItems, numbers: impl IntoIterator<Item = u64>) -> ViewItems {
        match (self, items) {
            (Self::Frozen(filters), ViewItems::Frozen(items)) => {
                ViewItems::Frozen(Arc::new(items.without(filters.catalog().index(), numbers)))
            }
            (Self::Snapshot(snapshot), ViewItems::Snapshot(items)) => {
                let mut sets = items.sets.clone();
                for number in numbers {
                    let (segment, rank) = self.segment_of(number);
                    if sets[segment].ranks().contains(rank) {
                        let index = snapshot.segments()[segment].segment().catalog().index();
                        Arc::make_mut(&mut sets[segment]).remove(index, rank);
                    }
                }
                ViewItems::Snapshot(Arc::new(SnapshotItems { sets }))
            }
            _ => panic!("items of another kind of view"),
        }
    }

    /// The catalog that an item lies in, counted from 0, the oldest first, and its rank there: a
    /// frozen catalog is one, a snapshot has one for each segment.
    pub fn segment_of(&self, number: u64) -> (usize, u64) {
        let mut rank = number;
        for (segment, catalog) in self.catalogs().enumerate() {
            if rank < catalog.num_items() {
                return (segment, rank);
            }
            rank -= catalog.num_items();
        }
        panic!("item number {number} of {}", self.num_numbers())
    }

    /// The frozen catalog, or those of the segments, the oldest first.
    fn catalogs(&self) -> impl Iterator<Item = &Catalog> {
        self.parts().map(|(catalog, _)| catalog)
    }

    /// The frozen catalog, or those of the segments, the oldest first, each with those of its items
    /// that are there, `None` for all.
    pub fn parts(&self) -> impl Iterator<Item = (&Catalog, Option<&ItemSet>)> {
        let (frozen, segments) = match self {
            Self::Frozen(filters) => (Some(&**filters.catalog()), &[][..]),
            Self::Snapshot(snapshot) => (None, snapshot.segments()),
        };
        let segments =
            segments.iter().map(|view| (view.segment().catalog(), view.live().map(|live| &**live)));
        frozen.map(|catalog| (catalog, None)).into_iter().chain(segments)
    }
}

impl ViewItems {
    /// Items in the set.
    pub fn len(&self) -> u64 {
        match self {
            Self::Frozen(items) => items.len(),
            Self::Snapshot(items) => items.len(),
        }
    }

    /// Bytes of the set.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Frozen(items) => items.bytes(),
            Self::Snapshot(items) => items.sets.iter().map(|set| set.bytes()).sum(),
        }
    }

    /// True when no item may be returned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
