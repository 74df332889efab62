//! Filters compiled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_catalog_filter::{Filter, FilterError};

use crate::catalog::Catalog;
use crate::index::ItemSet;

/// The item sets of the filters that were asked for last, up to a number of bytes.
///
/// Filters are told apart by what they mean, not by how they are written. Ids to exclude, which
/// differ from request to request, are no part of what is kept: they are taken out of a copy.
#[derive(Debug)]
pub struct FilterCache {
    catalog: Arc<Catalog>,
    max_bytes: usize,
    kept: Mutex<CacheContents>,
}

/// Look-ups of compiled filters: one in each cache that was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterLookUps {
    /// Look-ups that found the set.
    pub hits: u64,
    /// Look-ups after which it was compiled.
    pub misses: u64,
}

impl FilterLookUps {
    /// Counts a look-up.
    pub fn add(&mut self, is_hit: bool) {
        match is_hit {
            true => self.hits += 1,
            false => self.misses += 1,
        }
    }
}

/// Counters of caches of filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterStatistics {
    /// Filters whose sets are kept.
    pub filters: usize,
    /// Bytes of these.
    pub bytes: usize,
    /// Bytes that may be kept.
    pub max_bytes: usize,
    /// Look-ups since the beginning.
    pub look_ups: FilterLookUps,
}

impl FilterStatistics {
    /// The counters of two caches together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            filters: self.filters + other.filters,
            bytes: self.bytes + other.bytes,
            max_bytes: self.max_bytes.saturating_add(other.max_bytes),
            look_ups: FilterLookUps {
                hits: self.look_ups.hits + other.look_ups.hits,
                misses: self.look_ups.misses + other.look_ups.misses,
            },
        }
    }
}

#[derive(Debug, Default)]
struct CacheContents {
    sets: HashMap<Filter, Entry>,
    bytes: usize,
    look_ups: FilterLookUps,
    /// Counts requests: what was used last has the largest number.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    items: Arc<ItemSet>,
    bytes: usize,
    used: u64,
}

impl FilterCache {
    /// A cache for one catalog. A set larger than `max_bytes` is handed out and not kept.
    pub fn new(catalog: Arc<Catalog>, max_bytes: usize) -> Self {
        Self { catalog, max_bytes, kept: Mutex::default() }
    }

    /// The catalog that the sets are of.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The items that match `filter`.
    ///
    /// Cost: a hash of the filter where its set is kept; else compiling it; and for each excluded
    /// id a look-up and a change to a copy, whose masks are copied whole.
    ///
    /// # Errors
    /// When the filter names an attribute that is not there, or asks of one what its kind cannot
    /// answer.
    pub fn item_set(&self, filter: &Filter) -> Result<Arc<ItemSet>, FilterError> {
        self.look_up_item_set(filter, &mut FilterLookUps::default())
    }

    /// [`item_set`](Self::item_set), and whether it was kept.
    ///
    /// # Errors
    /// As [`item_set`](Self::item_set).
    pub fn look_up_item_set(
        &self,
        filter: &Filter,
        look_ups: &mut FilterLookUps,
    ) -> Result<Arc<ItemSet>, FilterError> {
        if filter.excluded().is_empty() {
            return self.kept_or_made(filter, look_ups);
        }
        let items = self.kept_or_made(&filter.without_excluded(), look_ups)?;
        let excluded = filter.excluded().iter().filter_map(|id| self.catalog.rank_of(id));
        Ok(Arc::new(items.without(self.catalog.index(), excluded)))
    }

    /// Bytes of the sets that are kept, and of their filters.
    pub fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Counters of what is kept, and of look-ups.
    pub fn statistics(&self) -> FilterStatistics {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        FilterStatistics {
            filters: kept.sets.len(),
            bytes: kept.bytes,
            max_bytes: self.max_bytes,
            look_ups: kept.look_ups,
        }
    }

    /// Lets go of all sets; who still has one keeps it.
    pub fn clear(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.sets.clear();
        kept.bytes = 0;
    }

    fn kept_or_made(
        &self,
        filter: &Filter,
        look_ups: &mut FilterLookUps,
    ) -> Result<Arc<ItemSet>, FilterError> {
        let found = self.look_up(filter);
        look_ups.add(found.is_some());
        if let Some(items) = found {
            return Ok(items);
        }
        // Made without the lock, so that others need not wait; two may make the same.
        let items = Arc::new(self.catalog.item_set(filter)?);
        let bytes = items.bytes() + filter.bytes() + size_of::<Entry>();
        if bytes <= self.max_bytes {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.insert(
                filter.clone(),
                Entry { items: items.clone(), bytes, used: 0 },
                self.max_bytes,
            );
        }
        Ok(items)
    }

    fn look_up(&self, filter: &Filter) -> Option<Arc<ItemSet>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.now += 1;
        let now = kept.now;
        let items = kept.sets.get_mut(filter).map(|entry| {
            entry.used = now;
            entry.items.clone()
        });
        kept.look_ups.add(items.is_some());
        items
    }
}

impl CacheContents {
    /// Adds an entry, and lets go of those that were not used for longest until it fits.
    fn insert(&mut self, filter: Filter, entry: Entry, max_bytes: usize) {
        self.bytes += entry.bytes;
        let replaced = self.sets.insert(filter, Entry { used: self.now, ..entry });
        self.bytes -= replaced.map_or(0, |entry| entry.bytes);
        while self.bytes > max_bytes {
            let oldest = self.sets.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(filter, _)| filter.clone()) else { break };
            let gone = self.sets.remove(&oldest).expect("it was found");
            self.bytes -= gone.bytes;
        }
    }
}
