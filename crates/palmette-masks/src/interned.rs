//! Interned values, by number, in lists that do not move.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;

use super::hash_index::HashIndex;

/// Different values by number, in the order in which they came.
#[derive(Debug)]
pub(super) struct Interned<T> {
    values: boxcar::Vec<T>,
    numbers: HashIndex,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self {
            values: boxcar::Vec::new(),
            numbers: HashIndex::default(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl<T: Eq + Hash> Interned<T> {
    pub(super) fn len(&self) -> usize {
        self.values.count()
    }

    /// About how much memory they take, without what they own.
    pub(super) fn memory_bytes(&self) -> usize {
        self.len() * size_of::<T>() + self.numbers.memory_bytes()
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.values[number as usize]
    }

    /// The number of a value, if it is there.
    pub(super) fn find<Q>(&self, value: &Q) -> Option<u32>
    where
        T: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let same = |number: u32| self.get(number).borrow() == value;
        self.numbers.find(self.hasher.hash_one(value), same)
    }

    /// The number of a value, and whether it is new.
    pub(super) fn intern(&mut self, value: T) -> (u32, bool) {
        let hash = self.hasher.hash_one(&value);
        let same = |number: u32| *self.get(number) == value;
        if let Some(known) = self.numbers.find(hash, same) {
            return (known, false);
        }
        let number = self.len() as u32;
        self.numbers.insert(hash, number);
        self.values.push(value);
        (number, true)
    }
}

/// A map whose entries stay where they are when there are more.
#[derive(Debug)]
pub(super) struct GrowingMap<K, V> {
    keys: Interned<K>,
    values: boxcar::Vec<V>,
}

impl<K, V> Default for GrowingMap<K, V> {
    fn default() -> Self {
        Self { keys: Interned::default(), values: boxcar::Vec::new() }
    }
}

impl<K: Eq + Hash, V> GrowingMap<K, V> {
    /// About how much memory it takes, without what keys and values own.
    pub(super) fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.values.count() * size_of::<V>()
    }

    pub(super) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.keys.find(key).map(|number| &self.values[number as usize])
    }

    /// Adds a value for a key, or replaces the one it has.
    pub(super) fn insert(&mut self, key: K, value: V) {
        let (number, is_new) = self.keys.intern(key);
        if is_new {
            self.values.push(value);
        } else {
            *self.values.get_mut(number as usize).expect("each key has a value") = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_values_have_one_number(
            values in prop::collection::vec(prop::collection::vec(0..3_u8, 0..4), 0..300),
        ) {
            let mut interned = Interned::<Box<[u8]>>::default();
            let mut expected: Vec<Vec<u8>> = Vec::new();
            for value in values {
                let known = expected.iter().position(|other| *other == value);
                prop_assert_eq!(interned.find(&*value), known.map(|at| at as u32));
                let number = known.unwrap_or(expected.len());
                prop_assert_eq!(
                    interned.intern(value.clone().into()),
                    (number as u32, known.is_none())
                );
                if known.is_none() {
                    expected.push(value);
                }
            }
            prop_assert_eq!(interned.len(), expected.len());
            for (value, number) in expected.iter().zip(0..) {
                prop_assert_eq!(&**interned.get(number), value.as_slice());
            }
        }

        #[test]
        fn keys_have_the_values_last_given(
            entries in prop::collection::vec((0..100_u32, any::<u32>()), 0..300),
        ) {
            let mut map = GrowingMap::default();
            let mut expected = BTreeMap::new();
            for (key, value) in entries {
                map.insert(key, value);
                expected.insert(key, value);
            }
            for key in 0..100 {
                prop_assert_eq!(map.get(&key), expected.get(&key));
            }
        }
    }
}
