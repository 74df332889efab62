//! Hash tables whose entries have numbers or an order, and their memory.

use hashbrown::DefaultHashBuilder;

/// Values by number, in the order in which they came.
pub(crate) type IndexSet<T> = indexmap::IndexSet<T, DefaultHashBuilder>;

/// A map that is gone through in the order in which its keys came.
pub(crate) type IndexMap<K, V> = indexmap::IndexMap<K, V, DefaultHashBuilder>;

/// About how much memory a hash table of so many entries takes, without what these own.
pub(crate) fn table_bytes<T>(num_entries: usize) -> usize {
    num_entries * (size_of::<T>() + 16)
}
