//! Catalogs beside a model: those that were searched last.

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palmette_catalog_live::CatalogView;
use palmette_model::{CatalogSearch, WarningListener};

use super::error::CatalogError;
use super::search::CatalogRequest;
use super::snapshot::have_in_common;
use super::{CatalogMemory, DeviceCatalog};
use crate::DeviceError;
use crate::meeting::Shared;

/// Catalogs that a device has at once.
const MOST_CATALOGS: usize = 4;
/// Bytes of filters that are kept for each.
const FILTER_BYTES: usize = 256 << 20;

/// Catalogs on a device beside a model, and searches that ran there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogCounts {
    /// Memory of each catalog.
    pub catalogs: Vec<CatalogMemory>,
    /// Searches that ran on the device as a whole.
    pub searches: u64,
    /// Catalogs that are searched level by level, since they or the memory for them are not what
    /// the device takes.
    pub refused: usize,
}

/// The catalogs that were searched last, each by the segments of its views.
#[derive(Debug)]
pub(crate) struct CatalogStore {
    shared: Arc<Shared>,
    /// The one that was searched last at the end.
    entries: Mutex<Vec<Entry>>,
    searches: AtomicU64,
    listener: Mutex<Listener>,
}

/// Listener to warnings of catalogs that are searched level by level.
#[derive(Default)]
struct Listener(Option<Arc<WarningListener>>);

impl Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Listener" } else { "none" })
    }
}

/// Part of searches on a device that was not there, for want of memory or since no kernel does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchPart {
    /// The catalog's tables: it is not searched on the device.
    Tables,
    /// The rows of a filter.
    Filter,
    /// A search's own memory.
    Search,
}

#[derive(Debug)]
struct Entry {
    /// The latest that was asked for: views with a segment of it are of the same catalog.
    view: CatalogView,
    catalog: Arc<DeviceCatalog>,
    is_refused: bool,
    /// Parts that were warned of.
    told: Vec<SearchPart>,
}

impl CatalogStore {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (entries, listener) = (Mutex::default(), Mutex::default());
        Self { shared, entries, searches: AtomicU64::new(0), listener }
    }

    /// Has a listener, in place of the one before, hear of catalogs that are searched level by
    /// level.
    pub(crate) fn on_warning(&self, listener: WarningListener) {
        let mut place = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Listener(Some(Arc::new(listener)));
    }

    /// The request of a search, over tables that are uploaded where they were not; none where the
    /// device does not take the catalog, or has not the memory.
    pub(crate) fn request(
        &self,
        search: &CatalogSearch<'_>,
    ) -> Result<Option<CatalogRequest>, DeviceError> {
        let codes: Option<Vec<u32>> =
            search.levels.iter().map(|level| u32::try_from(level.tokens.len()).ok()).collect();
        let Some(codes) = codes.filter(|_| search.view.parts().next().is_some()) else {
            return Ok(None);
        };
        let Some(catalog) = self.catalog(search.view, codes) else { return Ok(None) };
        let room = || self.check_room(&catalog, search.view);
        let snapshot = match room().and_then(|()| catalog.snapshot(search.view)) {
            Ok(snapshot) => snapshot,
            Err(CatalogError::Device(error)) if !is_memory(&error) => return Err(error),
            Err(error) => {
                self.warn(search.view, SearchPart::Tables, &error);
                return Ok(None);
            }
        };
        let widths = search.levels.iter().map(|level| level.width).collect();
        let excluded = search.excluded.iter().copied();
        match catalog.request(&snapshot, search.items, excluded, widths, search.floor) {
            Ok(request) => Ok(Some(request)),
            Err(CatalogError::Device(error)) if !is_memory(&error) => Err(error),
            Err(error) => {
                self.warn(search.view, SearchPart::Filter, &error);
                Ok(None)
            }
        }
    }

    /// Fails where a catalog's new tables are more than what the model, its pages and the requests
    /// that it is planned for leave.
    fn check_room(&self, catalog: &DeviceCatalog, view: &CatalogView) -> Result<(), CatalogError> {
        let is_there = catalog.newest().is_some_and(|newest| newest.is_of(view));
        if is_there {
            return Ok(());
        }
        let (needed, room) = (catalog.needed_bytes(view)?, self.shared.room()?);
        if needed <= room { Ok(()) } else { Err(CatalogError::NoRoom { needed, room }) }
    }

    /// Tells the listener why searches of a catalog go level by level: once each part. Without
    /// tables, all of them do until the next generation.
    pub(crate) fn warn(&self, view: &CatalogView, part: SearchPart, error: &CatalogError) {
        {
            let mut entries = self.entries();
            let entry = entries.iter_mut().rfind(|entry| have_in_common(&entry.view, view));
            let Some(entry) = entry else { return };
            // A request that began earlier says nothing of the tables that are there now.
            let is_newest = entry.view.generation() <= view.generation();
            entry.is_refused |= part == SearchPart::Tables && is_newest;
            if entry.told.contains(&part) {
                return;
            }
            entry.told.push(part);
        }
        let items = view.num_items();
        let which = match part {
            SearchPart::Tables => format!("a catalog of {items} items is searched"),
            SearchPart::Filter => {
                format!("under some filters, a catalog of {items} items is searched")
            }
            SearchPart::Search => format!("at times, a catalog of {items} items is searched"),
        };
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        if let Some(listener) = listener {
            listener(&format!("{which} level by level, which takes longer: {error}"));
        }
    }

    /// Counts a search that ran.
    pub(crate) fn count(&self) {
        self.searches.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> CatalogCounts {
        let entries = self.entries();
        let taken = entries.iter().filter(|entry| !entry.is_refused);
        CatalogCounts {
            catalogs: taken.map(|entry| entry.catalog.memory()).collect(),
            searches: self.searches.load(Ordering::Relaxed),
            refused: entries.iter().filter(|entry| entry.is_refused).count(),
        }
    }

    /// The catalog of a view; none where it was refused.
    fn catalog(&self, view: &CatalogView, codes: Vec<u32>) -> Option<Arc<DeviceCatalog>> {
        let mut entries = self.entries();
        let is_it =
            |entry: &Entry| entry.catalog.codes() == codes && have_in_common(&entry.view, view);
        let entry = match entries.iter().position(is_it) {
            Some(place) => {
                let mut entry = entries.remove(place);
                if entry.view.generation() < view.generation() {
                    // Tables of other segments: there may be room for them.
                    (entry.view, entry.is_refused) = (view.clone(), false);
                }
                entry
            }
            None => {
                if entries.len() == MOST_CATALOGS {
                    entries.remove(0);
                }
                let driver = Arc::clone(&self.shared.driver);
                let catalog = Arc::new(DeviceCatalog::new(driver, codes, FILTER_BYTES));
                Entry { view: view.clone(), catalog, is_refused: false, told: Vec::new() }
            }
        };
        let catalog = (!entry.is_refused).then(|| Arc::clone(&entry.catalog));
        entries.push(entry);
        catalog
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_memory(error: &DeviceError) -> bool {
    matches!(error, DeviceError::OutOfMemory { .. })
}
