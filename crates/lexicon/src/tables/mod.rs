//! Tables of hot prefixes: what a join met, kept for all sets of a lexicon.

mod table;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use palmette_core::Interrupted;

use crate::arrays::Prefix;
use palmette_core::MemberSpelling;

pub(crate) use table::{Table, TableSink};

/// Prefixes of so many strings and more have tables.
///
/// PERF: the 99th percentile of masks is that of joins just below it (example `members`).
pub(crate) const HOT_STRINGS: usize = 1024;
/// Bytes that tables may take in a lexicon of whatever size.
const MIN_BYTES: usize = 1 << 20;
/// Share of the bytes of a lexicon that tables may take: one in so many.
///
/// PERF: ten million stock-keeping units, 64 MB, have 16 MB of tables. Within an eighth, tables are
/// made again and again, and the mask after a token at the 99th percentile takes 133 us instead of
/// 13.
const SHARE: usize = 4;

/// The question that a table answers. It has no filter: tables serve all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Number of the vocabulary's trie.
    pub(crate) trie: u64,
    /// Node of that trie that is begun at.
    pub(crate) node: u32,
    lo: u32,
    hi: u32,
    depth: u32,
    spelling: MemberSpelling,
}

impl Key {
    pub(crate) fn new(trie: u64, node: u32, at: Prefix, spelling: MemberSpelling) -> Self {
        let Prefix { lo, hi, depth } = at;
        Self { trie, node, lo: lo as u32, hi: hi as u32, depth: depth as u32, spelling }
    }
}

/// Tables of a lexicon, the least recently used of them dropped where they take too much.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    max_bytes: usize,
    bytes: AtomicUsize,
    /// Counts questions: what was used last has the largest number.
    now: AtomicU64,
    kept: RwLock<HashMap<Key, CacheEntry>>,
}

/// A table with its last use.
#[derive(Debug)]
struct CacheEntry {
    table: Arc<Table>,
    used: AtomicU64,
}

impl Tables {
    /// Tables of a lexicon of so many bytes.
    pub(crate) fn new(lexicon_bytes: usize) -> Self {
        Self { max_bytes: (lexicon_bytes / SHARE).max(MIN_BYTES), ..Self::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// True if there is room for more only in place of others.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.max_bytes
    }

    /// The table of a key, made where there is none.
    ///
    /// # Errors
    /// Those of making it; it is then not kept.
    pub(crate) fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Table, Interrupted>,
    ) -> Result<Arc<Table>, Interrupted> {
        let now = self.now.fetch_add(1, Ordering::Relaxed);
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&key) {
            found.used.store(now, Ordering::Relaxed);
            return Ok(Arc::clone(&found.table));
        }
        drop(kept);
        let table = Arc::new(make()?);
        if table.bytes() <= self.max_bytes {
            self.keep(key, &table, now);
        }
        Ok(table)
    }

    fn keep(&self, key: Key, table: &Arc<Table>, now: u64) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let added = CacheEntry { table: Arc::clone(table), used: now.into() };
        let mut bytes = self.bytes() + table.bytes();
        // Another thread may have made it meanwhile.
        bytes -= kept.insert(key, added).map_or(0, |other| other.table.bytes());
        while bytes > self.max_bytes {
            let used = |(_, kept): &(&Key, &CacheEntry)| kept.used.load(Ordering::Relaxed);
            let Some(oldest) = kept.iter().min_by_key(used).map(|(&key, _)| key) else { break };
            bytes -= kept.remove(&oldest).map_or(0, |dropped| dropped.table.bytes());
        }
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}
