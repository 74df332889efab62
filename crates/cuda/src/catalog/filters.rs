//! Filters on a device: bit rows with rank counts, those that were used last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use palmette_catalog::RankSet;
use palmette_catalog::index::ItemSet;

use super::error::CatalogError;
use crate::arguments::Filter;
use crate::{Address, Driver, Region, RegionPlan};

/// A set of ranks on a device: a bit a rank, and the set bits before each word.
#[derive(Debug)]
pub(crate) struct FilterRow {
    region: Region,
    words: usize,
}

impl FilterRow {
    /// Uploads a set. Cost: a quarter of a byte an item.
    fn upload(driver: &dyn Driver, ranks: &RankSet) -> Result<Self, CatalogError> {
        let words = (ranks.num_ranks() as usize).div_ceil(32);
        let mut bytes = vec![0; (words + words + 1) * 4];
        let (bits, counts) = bytes.split_at_mut(words * 4);
        let mut before = 0_u32;
        counts[..4].copy_from_slice(&before.to_le_bytes());
        for (word, (to, count)) in
            bits.chunks_exact_mut(4).zip(counts[4..].chunks_exact_mut(4)).enumerate()
        {
            let half = (ranks.word(word as u64 / 2) >> (word % 2 * 32)) as u32;
            to.copy_from_slice(&half.to_le_bytes());
            before += half.count_ones();
            count.copy_from_slice(&before.to_le_bytes());
        }
        let plan = RegionPlan { name: "a filter of a catalog", bytes: bytes.len() };
        let region = super::take(driver, plan)?;
        super::upload(driver, &region, &bytes)?;
        Ok(Self { region, words })
    }

    /// The set as kernels read it, with no rank excluded.
    pub(crate) fn argument(&self) -> Filter {
        Filter {
            bits: self.region.address(),
            before: self.region.address_at(self.words * 4),
            ..ALL
        }
    }

    fn bytes(&self) -> usize {
        self.region.bytes()
    }
}

/// Every rank.
pub(crate) const ALL: Filter =
    Filter { bits: Address::NULL, before: Address::NULL, excluded: Address::NULL, num_excluded: 0 };

/// The rows of the sets that were asked for last, up to a number of bytes.
///
/// A set is known by its place in host memory, which the caches of filters and the generations of
/// a catalog keep; once it is nowhere else, nobody can ask for its row, which goes first. Rows that
/// requests hold stay until they end, and are no part of the bound.
#[derive(Debug)]
pub(crate) struct FilterStore {
    max_bytes: usize,
    kept: Mutex<StoreContents>,
}

#[derive(Debug, Default)]
struct StoreContents {
    rows: HashMap<usize, Entry>,
    bytes: usize,
    /// Counts look-ups: what was used last has the largest number.
    now: u64,
}

#[derive(Debug)]
struct Entry {
    /// Keeps the place from being another set's.
    items: Weak<ItemSet>,
    row: Arc<FilterRow>,
    used: u64,
}

impl FilterStore {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, kept: Mutex::default() }
    }

    /// The row of a set; none where every rank is in it.
    pub(crate) fn row(
        &self,
        driver: &dyn Driver,
        items: &Arc<ItemSet>,
    ) -> Result<Option<Arc<FilterRow>>, CatalogError> {
        if items.ranks().is_full() {
            return Ok(None);
        }
        let key = Arc::as_ptr(items).addr();
        if let Some(row) = self.contents().look_up(key) {
            return Ok(Some(row));
        }
        // Made without the lock, so that others need not wait; two may make the same.
        let row = Arc::new(FilterRow::upload(driver, items.ranks())?);
        if row.bytes() <= self.max_bytes {
            let items = Arc::downgrade(items);
            let entry = Entry { items, row: Arc::clone(&row), used: 0 };
            self.contents().insert(key, entry, self.max_bytes);
        }
        Ok(Some(row))
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Number of the rows that are kept, and their bytes.
    pub(crate) fn statistics(&self) -> (usize, usize) {
        let kept = self.contents();
        (kept.rows.len(), kept.bytes)
    }

    fn contents(&self) -> std::sync::MutexGuard<'_, StoreContents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreContents {
    fn look_up(&mut self, key: usize) -> Option<Arc<FilterRow>> {
        self.now += 1;
        let now = self.now;
        // A place that is held weakly is no other set's, but the set may be gone from it.
        let entry = self.rows.get_mut(&key).filter(|entry| entry.items.strong_count() > 0)?;
        entry.used = now;
        Some(Arc::clone(&entry.row))
    }

    /// Adds a row; lets go of those of sets that are gone, and then of those that were not used for
    /// longest, until it fits.
    fn insert(&mut self, key: usize, entry: Entry, max_bytes: usize) {
        self.rows.retain(|_, entry| entry.items.strong_count() > 0);
        self.rows.insert(key, Entry { used: self.now, ..entry });
        self.bytes = self.rows.values().map(|entry| entry.row.bytes()).sum();
        while self.bytes > max_bytes {
            let oldest = self.rows.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(&key, _)| key) else { break };
            let gone = self.rows.remove(&oldest).expect("it was there");
            self.bytes -= gone.row.bytes();
        }
    }
}
