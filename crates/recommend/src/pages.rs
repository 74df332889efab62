//! Proven items behind an answer, kept for the page that comes next.
//!
//! A search finds more items than its answer has; those that are proven are the first of all that
//! are left, so that they are the next page whoever computes it. Kept by cursor and generation in
//! a cache of bounded bytes, for a while; what is not there any more is searched for, and comes out
//! the same.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::mode::Mode;
use crate::recommended::Recommended;

/// Items that follow an answer, and what the next answer says of them.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    /// Items in order: all that may be recommended and are no worse than the last.
    pub(crate) items: Vec<Recommended>,
    /// Items that may be recommended yet, these among them.
    pub(crate) eligible: u64,
    pub(crate) mode: Mode,
    pub(crate) history_used: usize,
    pub(crate) beam_width: usize,
}

/// A page: the generation of its catalog, and the cursor that it begins at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    pub(crate) generation: Option<u64>,
    pub(crate) cursor: Arc<str>,
}

/// Cache of [`Ahead`]s.
#[derive(Debug)]
pub(crate) struct Pages(Cache<PageKey, (Instant, Arc<Ahead>), Bytes>);

impl Pages {
    /// Bytes that are kept at most.
    const MAX_BYTES: u64 = 16 << 20;
    /// Time for which a page is kept: somebody who reads the one before comes back by then.
    const LIFETIME: Duration = Duration::from_secs(600);

    pub(crate) fn get(&self, key: &PageKey) -> Option<Arc<Ahead>> {
        let (kept, ahead) = self.0.get(key)?;
        (kept.elapsed() <= Self::LIFETIME).then_some(ahead)
    }

    pub(crate) fn insert(&self, key: PageKey, ahead: Ahead) {
        self.0.insert(key, (Instant::now(), Arc::new(ahead)));
    }

    /// Bytes of what is kept, about.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.weight()
    }
}

impl Default for Pages {
    fn default() -> Self {
        // About a kilobyte a page.
        let pages = (Self::MAX_BYTES / 1024) as usize;
        Self(Cache::with_weighter(pages, Self::MAX_BYTES, Bytes))
    }
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<PageKey, (Instant, Arc<Ahead>)> for Bytes {
    fn weight(&self, key: &PageKey, (_, ahead): &(Instant, Arc<Ahead>)) -> u64 {
        (key.cursor.len() + size_of_val(&*ahead.items) + size_of::<Ahead>() + 128) as u64
    }
}
