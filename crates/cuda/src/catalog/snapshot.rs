//! A catalog on a device as one generation has it.

use std::sync::Arc;

use palmette_catalog::index::ItemSet;
use palmette_catalog_live::CatalogView;

use super::error::CatalogError;
use super::tables::SegmentTables;
use crate::arguments::{Level, Range, array_bytes};
use crate::{Address, Arguments, Driver, Region, RegionPlan};

/// Tables of a view's items on a device. Frozen; requests hold the one that they began with.
#[derive(Debug)]
pub struct DeviceSnapshot {
    view: CatalogView,
    segments: Vec<Arc<SegmentTables>>,
    /// A table of a segment each, `[levels, segments]`.
    levels: Region,
    codes: Vec<u32>,
}

impl DeviceSnapshot {
    /// Uploads the segments of a view that `known` does not have.
    pub(crate) fn upload(
        driver: &dyn Driver,
        view: CatalogView,
        codes: &[u32],
        known: Option<&Self>,
    ) -> Result<Self, CatalogError> {
        let mut segments = Vec::new();
        for (at, (catalog, _)) in view.parts().enumerate() {
            let tables = known.and_then(|known| known.tables_of(segment_at(&view, at)));
            segments.push(match tables {
                Some(tables) => tables,
                None => Arc::new(SegmentTables::upload(driver, catalog, codes)?),
            });
        }
        let by_level = (0..codes.len()).flat_map(|level| {
            let level_of = move |segment: &Arc<SegmentTables>| segment.levels[level];
            segments.iter().map(level_of)
        });
        let bytes = array_bytes(&by_level.collect::<Vec<_>>());
        let plan = RegionPlan { name: "levels of a catalog", bytes: bytes.len().max(1) };
        let levels = super::take(driver, plan)?;
        super::upload(driver, &levels, &bytes)?;
        Ok(Self { view, segments, levels, codes: codes.to_vec() })
    }

    /// Bytes of the tables of a view's segments that `known` does not have.
    pub(crate) fn needed_bytes(
        view: &CatalogView,
        codes: &[u32],
        known: Option<&Self>,
    ) -> Result<u64, CatalogError> {
        let is_known =
            |at| known.is_some_and(|known| known.tables_of(segment_at(view, at)).is_some());
        let new = view.parts().enumerate().filter(|&(at, _)| !is_known(at));
        new.map(|(_, (catalog, _))| Ok(SegmentTables::plan(catalog, codes)?.bytes() as u64)).sum()
    }

    /// The view that this has the items of.
    pub fn view(&self) -> &CatalogView {
        &self.view
    }

    /// Number of segments.
    pub fn num_segments(&self) -> usize {
        self.segments.len()
    }

    /// Levels of a semantic ID.
    pub fn num_levels(&self) -> usize {
        self.codes.len()
    }

    /// Number of codes of each level.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// Items of each segment, those that are gone included.
    pub(crate) fn num_items(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().map(|segment| u64::from(segment.num_items))
    }

    /// Bytes of its tables on the device, those that it shares with other snapshots included.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(|segment| segment.bytes()).sum::<usize>() + self.levels.bytes()
    }

    /// Number of segments whose tables are those of another snapshot too.
    pub fn shared_segments(&self, other: &Self) -> usize {
        let is_shared = |here: &&Arc<SegmentTables>| {
            other.segments.iter().any(|there| Arc::ptr_eq(here, there))
        };
        self.segments.iter().filter(is_shared).count()
    }

    /// Tables of each segment at a level, as kernels read them.
    pub(crate) fn levels(&self, level: usize) -> Address {
        self.levels.address_at(level * self.num_segments() * Level::BYTES)
    }

    /// The position before the first code in each segment.
    pub(crate) fn roots(&self) -> impl Iterator<Item = Range> {
        self.segments.iter().map(|segment| Range { begin: 0, end: segment.num_items, key: 0 })
    }

    /// The items that are there in each segment, `None` for all.
    pub(crate) fn live(&self) -> Vec<Option<Arc<ItemSet>>> {
        match &self.view {
            CatalogView::Frozen(_) => vec![None],
            CatalogView::Snapshot(snapshot) => {
                snapshot.segments().iter().map(|segment| segment.live().cloned()).collect()
            }
        }
    }

    /// The tables of a segment, if they are here.
    fn tables_of(&self, segment: SegmentPlace) -> Option<Arc<SegmentTables>> {
        let at = (0..self.num_segments()).find(|&at| segment_at(&self.view, at) == segment)?;
        Some(Arc::clone(&self.segments[at]))
    }

    /// True if it has the items of this view, and no other generation's.
    pub(crate) fn is_of(&self, view: &CatalogView) -> bool {
        match (&self.view, view) {
            (CatalogView::Frozen(here), CatalogView::Frozen(there)) => {
                Arc::ptr_eq(here.catalog(), there.catalog())
            }
            (CatalogView::Snapshot(here), CatalogView::Snapshot(there)) => Arc::ptr_eq(here, there),
            _ => false,
        }
    }

    /// True if a view is of a later generation, or of another catalog.
    pub(crate) fn is_before(&self, view: &CatalogView) -> bool {
        match (self.view.generation(), view.generation()) {
            (Some(here), Some(there)) => here < there,
            _ => true,
        }
    }
}

/// True if two views, which are held, have a segment in common.
pub(super) fn have_in_common(view: &CatalogView, other: &CatalogView) -> bool {
    let segments = |view: &CatalogView| {
        let count = view.parts().count();
        (0..count).map(|at| segment_at(view, at)).collect::<Vec<_>>()
    };
    let others = segments(other);
    segments(view).iter().any(|segment| others.contains(segment))
}

/// Place of a segment in host memory: no other's as long as a view of it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SegmentPlace(usize);

fn segment_at(view: &CatalogView, at: usize) -> SegmentPlace {
    SegmentPlace(match view {
        CatalogView::Frozen(filters) => Arc::as_ptr(filters.catalog()).addr(),
        CatalogView::Snapshot(snapshot) => Arc::as_ptr(snapshot.segments()[at].segment()).addr(),
    })
}
