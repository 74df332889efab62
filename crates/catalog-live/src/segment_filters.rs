//! Filters compiled once for a segment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_catalog::index::ItemSet;
use palmette_catalog::{FilterLookUps, FilterStatistics};
use palmette_catalog_filter::{Filter, FilterError, RankSet};

use crate::segment::SegmentView;

/// The item sets of the filters that were asked for last, up to a number of bytes.
///
/// For each filter two sets are kept: the one of all items that match, which never changes since
/// the segment does not, and the one of those that were there when it was last asked for. A later
/// view has only cleared more: its set is a copy of that one without what was cleared since.
#[derive(Debug)]
pub(crate) struct SegmentFilters {
    max_bytes: usize,
    kept: Mutex<CacheContents>,
}

#[derive(Debug, Default)]
struct CacheContents {
    entries: HashMap<Filter, Entry>,
    bytes: usize,
    look_ups: FilterLookUps,
    /// Counts requests: what was used last has the largest number.
    now: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    matching: Arc<RankSet>,
    /// `None` until views of this segment ask.
    live: Option<Arc<ItemSet>>,
    /// Number of ranks that were cleared in `live`.
    num_cleared: usize,
    /// Bytes of the filter, which is the key.
    key_bytes: usize,
    used: u64,
}

impl SegmentFilters {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, kept: Mutex::default() }
    }

    /// Bytes of what is kept.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// The items of a view of this segment that match. `filter` excludes no ids.
    pub(crate) fn items(
        &self,
        view: &SegmentView,
        filter: &Filter,
        is_known: &dyn Fn(&str) -> bool,
        look_ups: &mut FilterLookUps,
    ) -> Result<Arc<ItemSet>, FilterError> {
        let found = self.look_up(filter);
        look_ups.add(found.is_some());
        if let Some(Entry { live: Some(live), num_cleared, .. }) = &found
            && *num_cleared == view.num_cleared
        {
            return Ok(live.clone());
        }
        // Made without the lock, so that others need not wait; two may make the same.
        let catalog = view.segment.catalog();
        let (matching, live) = match found {
            Some(Entry { live: Some(live), num_cleared, matching, .. })
                if num_cleared < view.num_cleared =>
            {
                let cleared = view.segment.cleared(num_cleared, view.num_cleared);
                (matching, Arc::new(live.without(catalog.index(), cleared)))
            }
            // A view that is older than what was kept: what it needs is not worth keeping.
            Some(Entry { live: Some(_), matching, .. }) => {
                return Ok(Arc::new(live_part(view, &matching)));
            }
            Some(Entry { live: None, matching, .. }) => {
                let live = Arc::new(live_part(view, &matching));
                (matching, live)
            }
            None => {
                let ids = |id: &str| catalog.rank_of(id);
                let matching = catalog.columns().select_among(filter, &ids, is_known)?;
                let live = Arc::new(live_part(view, &matching));
                (Arc::new(matching), live)
            }
        };
        let num_cleared = view.num_cleared;
        let live_set = Some(live.clone());
        let key_bytes = filter.bytes();
        let entry = Entry { matching, live: live_set, num_cleared, key_bytes, used: 0 };
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(
            filter,
            entry,
            self.max_bytes,
        );
        Ok(live)
    }

    /// The items that match, which are those of any view of the file, without those that were there
    /// in views of this segment.
    pub(crate) fn of_other_views(&self) -> Self {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others =
            CacheContents { now: kept.now, look_ups: kept.look_ups, ..CacheContents::default() };
        for (filter, entry) in &kept.entries {
            let entry = Entry { live: None, num_cleared: 0, ..entry.clone() };
            others.bytes += entry.bytes();
            others.entries.insert(filter.clone(), entry);
        }
        Self { max_bytes: self.max_bytes, kept: Mutex::new(others) }
    }

    /// Counters of what is kept, and of look-ups.
    pub(crate) fn statistics(&self) -> FilterStatistics {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        FilterStatistics {
            filters: kept.entries.len(),
            bytes: kept.bytes,
            max_bytes: self.max_bytes,
            look_ups: kept.look_ups,
        }
    }

    /// Lets go of all sets; who still has one keeps it.
    pub(crate) fn clear(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entries.clear();
        kept.bytes = 0;
    }

    fn look_up(&self, filter: &Filter) -> Option<Entry> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.now += 1;
        let now = kept.now;
        let entry = kept.entries.get_mut(filter).map(|entry| {
            entry.used = now;
            entry.clone()
        });
        kept.look_ups.add(entry.is_some());
        entry
    }
}

/// Members of a set that are there.
fn live_part(view: &SegmentView, matching: &RankSet) -> ItemSet {
    let index = view.segment.catalog().index();
    match &view.live {
        Some(live) => index.item_set(matching.and(live.ranks())),
        None => index.item_set(matching.clone()),
    }
}

impl CacheContents {
    /// Adds an entry unless a newer one is there, and lets go of those that were not used for
    /// longest until all fit.
    fn insert(&mut self, filter: &Filter, entry: Entry, max_bytes: usize) {
        let newer = |kept: &Entry| kept.live.is_some() && kept.num_cleared >= entry.num_cleared;
        if entry.bytes() > max_bytes || self.entries.get(filter).is_some_and(newer) {
            return;
        }
        self.bytes += entry.bytes();
        let replaced = self.entries.insert(filter.clone(), Entry { used: self.now, ..entry });
        self.bytes -= replaced.map_or(0, |entry| entry.bytes());
        while self.bytes > max_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(filter, _)| filter.clone()) else { break };
            let gone = self.entries.remove(&oldest).expect("it was found");
            self.bytes -= gone.bytes();
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let sets = self.matching.bytes() + self.live.as_ref().map_or(0, |live| live.bytes());
        size_of::<Self>() + self.key_bytes + sets
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_take_room_themselves() {
        let mut kept = CacheContents::default();
        let none = Arc::new(RankSet::empty(10));
        for number in 0..10_000 {
            let filter = Filter::from_value(
                &json!({"key": "brand", "match": {"value": format!("b{number}")}}),
            );
            let filter = filter.unwrap();
            kept.now += 1;
            let key_bytes = filter.bytes();
            let matching = Arc::clone(&none);
            let entry = Entry { matching, live: None, num_cleared: 0, key_bytes, used: 0 };
            kept.insert(&filter, entry, 64 << 10);
            assert!(kept.bytes <= 64 << 10);
        }
        let held: usize = kept.entries.values().map(Entry::bytes).sum();
        assert_eq!(held, kept.bytes);
        assert!((10..1000).contains(&kept.entries.len()), "{}", kept.entries.len());
    }
}
