//! Catalogs on a device: tables of their levels, filters, and searches that need no host.
//!
//! An item is its rank in a segment, a prefix a range of ranks, as in
//! [`palmette_catalog::index`]; `kernels/select.cu` has the forms of a level, of which each takes
//! the smallest ([`TablePlan`]): 12.9 bytes an item at 20 million items of 8 levels of 2,048 codes.
//!
//! [`DeviceCatalog`] keeps the newest generation of a catalog. What a view has is immutable there
//! too, a [`DeviceSnapshot`]: its successor takes over the tables of the segments that both have,
//! and is put in its place when all of it is on the device; requests hold theirs. Tombstones are a
//! filter of their segment. Filters are rows of bits, uploaded when they are first asked for;
//! what one request excludes is a list of ranks beside them.
//!
//! [`DeviceSearch`] runs beam searches over such snapshots: a level a call, or all levels one after
//! another without the host. It takes logits where they lie, by address, on any stream.
//!
//! [`CallerTables`] are for engines of others: a level a call over arrays of the caller's, on the
//! caller's stream, without memory or copies of their own.

mod caller;
mod error;
mod filters;
mod layout;
mod plan;
mod search;
mod snapshot;
mod store;
mod tables;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palmette_catalog::index::ItemSet;
use palmette_catalog_live::{CatalogView, ViewItems};

pub use caller::{CallerArrays, CallerFilters, CallerShape, CallerTables};
pub use error::CatalogError;
pub(crate) use layout::SearchSizes;
pub use plan::{LevelForm, LevelPlan, TablePlan};
pub use search::{
    CatalogRequest, DeviceHypothesis, DeviceLogits, DeviceSearch, LevelRows, LogitsPlace,
};
pub use snapshot::DeviceSnapshot;
pub use store::CatalogCounts;
pub(crate) use store::{CatalogStore, SearchPart};

use crate::{DeviceError, Driver, Region, RegionPlan, Stream};
use filters::FilterStore;

/// A catalog on a device, by its newest generation.
#[derive(Debug)]
pub struct DeviceCatalog {
    driver: Arc<dyn Driver>,
    codes: Vec<u32>,
    current: Mutex<Option<Arc<DeviceSnapshot>>>,
    /// Held by the one that uploads.
    refresh: Mutex<()>,
    filters: FilterStore,
}

/// Bytes of a catalog on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogMemory {
    /// Items of the newest generation, those that are gone and still in its segments included.
    pub items: u64,
    /// Bytes of its tables.
    pub table_bytes: usize,
    /// Filters that are kept.
    pub filters: usize,
    /// Bytes of these.
    pub filter_bytes: usize,
    /// Bytes of filters that may be kept.
    pub max_filter_bytes: usize,
}

impl DeviceCatalog {
    /// A catalog of semantic IDs of as many codes as `codes` has levels, each below that level's
    /// number. At most `max_filter_bytes` of filters are kept.
    ///
    /// Nothing is uploaded before a [`snapshot`](Self::snapshot) is asked for.
    pub fn new(driver: Arc<dyn Driver>, codes: Vec<u32>, max_filter_bytes: usize) -> Self {
        let (current, refresh) = (Mutex::default(), Mutex::default());
        Self { driver, codes, current, refresh, filters: FilterStore::new(max_filter_bytes) }
    }

    /// Number of codes of each level.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The items of a view on the device. Those of a later generation than the newest take its
    /// place; what is there already is not uploaded again.
    ///
    /// Cost: for a new view its new segments, about 30 ns a prefix and the copy; who asks for the
    /// newest meanwhile waits for nothing.
    ///
    /// # Errors
    /// When an item has fewer codes than there are levels, or one that is not below its level's
    /// number, or the device fails or has not the memory.
    pub fn snapshot(&self, view: &CatalogView) -> Result<Arc<DeviceSnapshot>, CatalogError> {
        if let Some(current) = self.newest().filter(|current| current.is_of(view)) {
            return Ok(current);
        }
        let _refresh = self.refresh.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.newest();
        if let Some(current) = known.as_ref().filter(|current| current.is_of(view)) {
            return Ok(Arc::clone(current));
        }
        let (driver, known) = (&*self.driver, known.as_deref());
        let snapshot = DeviceSnapshot::upload(driver, view.clone(), &self.codes, known)?;
        let snapshot = Arc::new(snapshot);
        // A request that began before the newest generation keeps its own to itself.
        if known.is_none_or(|known| known.is_before(view)) {
            *self.current() = Some(Arc::clone(&snapshot));
        }
        Ok(snapshot)
    }

    /// Bytes that a [`snapshot`](Self::snapshot) of a view would take beside what is there.
    ///
    /// # Errors
    /// As those of a snapshot, without the device's.
    pub fn needed_bytes(&self, view: &CatalogView) -> Result<u64, CatalogError> {
        DeviceSnapshot::needed_bytes(view, &self.codes, self.newest().as_deref())
    }

    /// The newest generation that was asked for.
    pub fn newest(&self) -> Option<Arc<DeviceSnapshot>> {
        self.current().clone()
    }

    /// A request over a snapshot: of some of its items, or of all that are there; without those of
    /// these numbers.
    ///
    /// # Errors
    /// When the device fails or has not the memory for a filter.
    ///
    /// # Panics
    /// When the items are of another kind of view, or no item has a number.
    pub fn request(
        &self,
        snapshot: &Arc<DeviceSnapshot>,
        items: Option<&ViewItems>,
        excluded: impl IntoIterator<Item = u64>,
        widths: Vec<usize>,
        floor: f32,
    ) -> Result<CatalogRequest, CatalogError> {
        let view = snapshot.view();
        let sets: Vec<Option<Arc<ItemSet>>> = match items {
            Some(items) => view.item_sets(items).iter().cloned().map(Some).collect(),
            None => snapshot.live(),
        };
        let mut lists = vec![Vec::new(); snapshot.num_segments()];
        for number in excluded {
            let (segment, rank) = view.segment_of(number);
            // Lists hold what filters keep: kernels subtract one's count from the other's.
            if sets[segment].as_ref().is_none_or(|items| items.ranks().contains(rank)) {
                lists[segment].push(rank as u32);
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        let rows = sets.iter().map(|items| match items {
            Some(items) => self.filters.row(&*self.driver, items),
            None => Ok(None),
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(CatalogRequest { snapshot: Arc::clone(snapshot), sets, rows, lists, widths, floor })
    }

    /// Bytes on the device.
    pub fn memory(&self) -> CatalogMemory {
        let newest = self.newest();
        let (filters, filter_bytes) = self.filters.statistics();
        CatalogMemory {
            items: newest.as_ref().map_or(0, |newest| newest.view().num_numbers()),
            table_bytes: newest.as_ref().map_or(0, |newest| newest.bytes()),
            filters,
            filter_bytes,
            max_filter_bytes: self.filters.max_bytes(),
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<DeviceSnapshot>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes one region.
fn take(driver: &dyn Driver, plan: RegionPlan) -> Result<Region, DeviceError> {
    driver.regions(&[plan])?.pop().ok_or(DeviceError::Foreign("no region"))
}

/// Copies bytes to the beginning of a region, and waits for them.
fn upload(driver: &dyn Driver, to: &Region, bytes: &[u8]) -> Result<(), DeviceError> {
    const STAGED: usize = 16 << 20;
    let mut staged = driver.pinned(bytes.len().min(STAGED))?;
    for (number, part) in bytes.chunks(STAGED).enumerate() {
        staged.bytes()?[..part.len()].copy_from_slice(part);
        driver.write(Stream::Upload, to, number * STAGED, &mut staged, part.len())?;
        driver.finish(&driver.record(Stream::Upload)?)?;
    }
    Ok(())
}
