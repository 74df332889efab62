//! Immutable pieces of a live catalog, and which of their items are still there.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use palmette_catalog::Catalog;
use palmette_catalog::index::ItemSet;
use palmette_catalog_filter::RankSet;

use crate::error::LiveError;
use crate::segment_filters::SegmentFilters;

/// Largest number of segments of a snapshot, the memory segment included.
pub const MAX_SEGMENTS: usize = 8;

/// A catalog that is a part of a live one, and never changes.
pub struct Segment {
    catalog: Catalog,
    /// Ids and codes of items that were deleted and are in no segment any more; newer than none of
    /// `catalog`.
    departed: Option<Catalog>,
    /// Tells segments of this process apart.
    key: u64,
    /// The number of its file. A segment that was rolled back to has the file of the one it was.
    file_number: u64,
    /// True if that file is there, whole.
    is_written: AtomicBool,
    /// Ranks in the order in which they were cleared since this segment was made. A view knows how
    /// many of them are its own.
    cleared: RwLock<Vec<u64>>,
    /// The largest code in use at each level.
    largest_codes: OnceLock<Vec<Option<u32>>>,
    /// Ranks of items with fewer codes than others have.
    shorter: OnceLock<Vec<u64>>,
    pub(crate) filters: SegmentFilters,
}

/// A segment as one generation sees it.
#[derive(Clone, Debug)]
pub struct SegmentView {
    pub(crate) segment: Arc<Segment>,
    /// The items that are there; `None` for all.
    pub(crate) live: Option<Arc<ItemSet>>,
    /// Number of the segment's cleared ranks that are cleared here.
    pub(crate) num_cleared: usize,
}

impl Segment {
    pub(crate) fn new(
        catalog: Catalog,
        departed: Option<Catalog>,
        file_number: u64,
        is_written: bool,
        filter_bytes: usize,
    ) -> Self {
        static NEXT_KEY: AtomicU64 = AtomicU64::new(0);
        Self {
            catalog,
            departed,
            key: NEXT_KEY.fetch_add(1, Ordering::Relaxed),
            file_number,
            is_written: AtomicBool::new(is_written),
            cleared: RwLock::default(),
            largest_codes: OnceLock::new(),
            shorter: OnceLock::new(),
            filters: SegmentFilters::new(filter_bytes),
        }
    }

    /// Number that no other segment of this process has; the same in every generation.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Catalog of its items, those that are no longer there included.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Bytes of its files, as they are or would be.
    pub(crate) fn bytes(&self) -> u64 {
        self.catalog.file_bytes() + self.departed.as_ref().map_or(0, Catalog::file_bytes)
    }

    /// Ids and codes of items that were deleted, and dropped by a merge.
    pub fn departed(&self) -> Option<&Catalog> {
        self.departed.as_ref()
    }

    /// Verifies the checksums of its files as they are now; nothing where it is in memory alone.
    pub(crate) fn verify(&self) -> Result<(), LiveError> {
        let catalogs = [Some(&self.catalog), self.departed.as_ref()];
        catalogs
            .into_iter()
            .flatten()
            .try_for_each(|catalog| catalog.verify().map_err(|e| LiveError::of_file(e.path(), &e)))
    }

    /// This segment in files, as new: with no item cleared in it. What was found out of its items
    /// goes with it.
    pub(crate) fn again(&self) -> Self {
        let (catalog, departed) = (self.catalog.clone(), self.departed.clone());
        let mut again = Self::new(catalog, departed, self.file_number, self.is_written(), 0);
        again.largest_codes = self.largest_codes.clone();
        again.shorter = self.shorter.clone();
        again.filters = self.filters.of_other_views();
        again
    }

    pub(crate) fn file_number(&self) -> u64 {
        self.file_number
    }

    pub(crate) fn is_written(&self) -> bool {
        self.is_written.load(Ordering::Acquire)
    }

    pub(crate) fn set_written(&self) {
        self.is_written.store(true, Ordering::Release);
    }

    /// Ranks that were cleared, from the `from`th to before the `to`th.
    pub(crate) fn cleared(&self, from: usize, to: usize) -> Vec<u64> {
        let cleared = self.cleared.read().unwrap_or_else(PoisonError::into_inner);
        cleared[from..to].to_vec()
    }

    /// The largest code in use at a level, items that are no longer there included. Cost: a pass
    /// over all codes, once.
    pub(crate) fn largest_code(&self, level: usize) -> Option<u32> {
        let index = self.catalog.index();
        let all = || (0..index.num_levels()).map(|level| index.largest_code(level)).collect();
        self.largest_codes.get_or_init(all).get(level).copied().flatten()
    }
}

impl Segment {
    /// Ranks of items that have fewer codes than the catalog has levels, ascending, those that are
    /// no longer there included. Cost: at most a pass over all prefixes, once.
    pub(crate) fn shorter_items(&self) -> &[u64] {
        self.shorter.get_or_init(|| self.catalog.index().shorter_items())
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("file_number", &self.file_number)
            .field("num_items", &self.catalog.num_items())
            .finish_non_exhaustive()
    }
}

impl SegmentView {
    /// All items of a segment.
    pub(crate) fn whole(segment: Arc<Segment>) -> Self {
        Self { segment, live: None, num_cleared: 0 }
    }

    /// The items of a segment that is new in this process, of which only `live` are there.
    pub(crate) fn of_live(segment: Arc<Segment>, live: Option<RankSet>) -> Self {
        let live = live.filter(|live| !live.is_full());
        let live = live.map(|live| Arc::new(segment.catalog.index().item_set(live)));
        Self { segment, live, num_cleared: 0 }
    }

    /// The segment.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// The items of the segment that are there; `None` for all.
    pub fn live(&self) -> Option<&Arc<ItemSet>> {
        self.live.as_ref()
    }

    /// Number of items that are there.
    pub fn num_live(&self) -> u64 {
        self.live.as_ref().map_or(self.segment.catalog.num_items(), |live| live.len())
    }

    /// True where it has neither items nor departed ones.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.segment.catalog.num_items() == 0 && self.segment.departed.is_none()
    }

    /// Number of the segment's items that are not there.
    pub fn num_tombstones(&self) -> u64 {
        self.segment.catalog.num_items() - self.num_live()
    }

    /// The rank of an item that is there.
    pub(crate) fn find(&self, id: &str) -> Option<u64> {
        self.segment.catalog.rank_of(id).filter(|&rank| self.has(rank))
    }

    /// True if the item of a rank is there.
    pub(crate) fn has(&self, rank: u64) -> bool {
        self.live.as_ref().is_none_or(|live| live.ranks().contains(rank))
    }

    /// The codes of an item that is not there any more, by its latest version here.
    pub(crate) fn departed(&self, id: &str) -> Option<Vec<u32>> {
        let of = |catalog: &Catalog| catalog.rank_of(id).map(|rank| catalog.codes(rank));
        of(&self.segment.catalog).or_else(|| self.segment.departed.as_ref().and_then(of))
    }

    /// Ids and codes of items that are not there any more, the later versions first.
    pub(crate) fn all_departed(&self) -> impl Iterator<Item = (&str, Vec<u32>)> {
        let catalog = &self.segment.catalog;
        let all = if self.num_tombstones() > 0 { catalog.num_items() } else { 0 };
        let is_live =
            |rank: &u64| self.live.as_ref().is_none_or(|live| live.ranks().contains(*rank));
        let tombstones =
            (0..all).filter(move |rank| !is_live(rank)).map(move |rank| (catalog, rank));
        let departed = self.segment.departed.iter();
        let departed = departed.flat_map(|of| (0..of.num_items()).map(move |rank| (of, rank)));
        tombstones.chain(departed).map(|(catalog, rank)| (catalog.id(rank), catalog.codes(rank)))
    }

    /// Ranks of the items that are there, ascending.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = u64> + '_ {
        let all = if self.live.is_none() { self.segment.catalog.num_items() } else { 0 };
        (0..all).chain(self.live.iter().flat_map(|live| live.ranks().iter()))
    }

    /// Takes an item out. Views that were cloned before still have it.
    ///
    /// Cost: copies of the few kilobytes around it, once for each clone.
    pub(crate) fn clear(&mut self, rank: u64) {
        let index = self.segment.catalog.index();
        let live = self.live.get_or_insert_with(|| Arc::new(index.all_items()));
        if !Arc::make_mut(live).remove(index, rank) {
            return;
        }
        let mut cleared = self.segment.cleared.write().unwrap_or_else(PoisonError::into_inner);
        debug_assert_eq!(cleared.len(), self.num_cleared, "only the newest view is changed");
        cleared.push(rank);
        self.num_cleared += 1;
    }
}
