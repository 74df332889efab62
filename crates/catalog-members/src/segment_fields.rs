//! Indexes of a frozen catalog's fields, and the values of its filters, kept with the catalog.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use palmette_catalog::Catalog;
use palmette_catalog::index::ItemSet;
use palmette_lexicon::Selection;

use crate::error::FieldError;
use crate::field_index::{FieldIndex, ItemValues};
use crate::fields::ID_FIELD;

/// Memory for the values of filters of one catalog or segment, at most.
const VALUE_BYTES: usize = 32 << 20;

/// Indexes of a catalog's fields, one for each that was asked for, and the values of item sets that
/// are still there.
#[derive(Debug, Default)]
pub(crate) struct SegmentFields {
    /// Indexes by the names of fields that there are, so that they are no more than columns.
    indexes: Mutex<HashMap<String, Arc<IndexCell>>>,
    values: Mutex<ValueCache>,
}

type IndexCell = OnceLock<Result<Option<Arc<FieldIndex>>, FieldError>>;

/// Values by field and item set. A set is known by its address, which no other has while a weak
/// reference to it is held.
#[derive(Debug, Default)]
struct ValueCache {
    entries: HashMap<(String, usize), ValueEntry>,
    bytes: usize,
    /// Counts look-ups: what was used last has the largest number.
    now: u64,
}

#[derive(Debug)]
struct ValueEntry {
    items: Weak<ItemSet>,
    values: ItemValues,
    bytes: usize,
    used: u64,
}

impl SegmentFields {
    /// The index of a field, made at first use; `None` where no item of this catalog has it. Others
    /// that ask for the same meanwhile wait for it.
    pub(crate) fn index(
        &self,
        catalog: &Catalog,
        field: &str,
    ) -> Result<Option<Arc<FieldIndex>>, FieldError> {
        if field != ID_FIELD && catalog.columns().reader(field).is_none() {
            return Ok(None);
        }
        let cell = Arc::clone(lock(&self.indexes).entry(field.to_owned()).or_default());
        let made = || match field {
            ID_FIELD => FieldIndex::of_ids(catalog).map(|index| Some(index.into())),
            _ => Ok(FieldIndex::of_attribute(catalog, field)?.map(Arc::new)),
        };
        cell.get_or_init(made).clone()
    }

    /// The values that items of the catalog have; of all items where there is no set.
    pub(crate) fn values(
        &self,
        catalog: &Catalog,
        (field, index): (&str, &FieldIndex),
        items: Option<&Arc<ItemSet>>,
    ) -> ItemValues {
        let Some(items) = items.filter(|items| !items.ranks().is_full()) else {
            return index.all_values(catalog, field).clone();
        };
        let key = (field.to_owned(), Arc::as_ptr(items).addr());
        if let Some(values) = lock(&self.values).look_up(&key) {
            return values;
        }
        // Made without the lock, so that others need not wait; two may make the same.
        let values = index.values(catalog, field, items.ranks());
        lock(&self.values).insert(key, Arc::downgrade(items), values.clone());
        values
    }

    /// Bytes of the indexes and of the values that are kept.
    pub(crate) fn bytes(&self) -> usize {
        let cells: Vec<Arc<IndexCell>> = lock(&self.indexes).values().cloned().collect();
        let index_bytes = |cell: &Arc<IndexCell>| match cell.get() {
            Some(Ok(Some(index))) => index.bytes(),
            _ => 0,
        };
        let indexes: usize = cells.iter().map(index_bytes).sum();
        indexes + lock(&self.values).bytes
    }
}

impl ValueCache {
    fn look_up(&mut self, key: &(String, usize)) -> Option<ItemValues> {
        self.now += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.now;
        Some(entry.values.clone())
    }

    /// Adds an entry, without those whose items are gone, and without those that were not used for
    /// longest until all fit.
    fn insert(&mut self, key: (String, usize), items: Weak<ItemSet>, values: ItemValues) {
        let selected = match &values.selection {
            Selection::All => 0,
            Selection::Ranks(ranks) => ranks.bytes(),
            Selection::List(list) => list.len() * size_of::<u32>(),
        };
        let bytes = selected + key.0.len() + size_of::<ValueEntry>();
        if bytes > VALUE_BYTES {
            return;
        }
        self.entries.retain(|_, entry| entry.items.strong_count() > 0);
        self.entries.insert(key, ValueEntry { items, values, bytes, used: self.now });
        self.bytes = self.entries.values().map(|entry| entry.bytes).sum();
        while self.bytes > VALUE_BYTES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            let gone = self.entries.remove(&oldest).expect("it was found");
            self.bytes -= gone.bytes;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
