//! Catalogs beside a model: those that were searched last.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palmette_catalog_live::CatalogView;
use palmette_model::CatalogSearch;

use super::error::CatalogError;
use super::search::CatalogRequest;
use super::snapshot::have_in_common;
use super::{CatalogMemory, DeviceCatalog};
use crate::{DeviceError, Driver};

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
    driver: Arc<dyn Driver>,
    /// The one that was searched last at the end.
    entries: Mutex<Vec<Entry>>,
    searches: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    /// The latest that was asked for: views with a segment of it are of the same catalog.
    view: CatalogView,
    catalog: Arc<DeviceCatalog>,
    is_refused: bool,
}

impl CatalogStore {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, entries: Mutex::default(), searches: AtomicU64::new(0) }
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
        let snapshot = match catalog.snapshot(search.view) {
            Ok(snapshot) => snapshot,
            Err(CatalogError::Device(error)) if !is_memory(&error) => return Err(error),
            Err(_) => {
                self.refuse(&catalog);
                return Ok(None);
            }
        };
        let widths = search.levels.iter().map(|level| level.width).collect();
        let excluded = search.excluded.iter().copied();
        match catalog.request(&snapshot, search.items, excluded, widths, search.floor) {
            Ok(request) => Ok(Some(request)),
            Err(CatalogError::Device(error)) if !is_memory(&error) => Err(error),
            Err(_) => Ok(None),
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
                    entry.view = view.clone();
                }
                entry
            }
            None => {
                if entries.len() == MOST_CATALOGS {
                    entries.remove(0);
                }
                let driver = Arc::clone(&self.driver);
                let catalog = Arc::new(DeviceCatalog::new(driver, codes, FILTER_BYTES));
                Entry { view: view.clone(), catalog, is_refused: false }
            }
        };
        let catalog = (!entry.is_refused).then(|| Arc::clone(&entry.catalog));
        entries.push(entry);
        catalog
    }

    fn refuse(&self, catalog: &Arc<DeviceCatalog>) {
        let mut entries = self.entries();
        let entry = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.catalog, catalog));
        if let Some(entry) = entry {
            entry.is_refused = true;
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_memory(error: &DeviceError) -> bool {
    matches!(error, DeviceError::OutOfMemory { .. })
}
