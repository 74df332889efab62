//! Whole semantic IDs as numbers in a hash set.

use std::collections::HashSet;

use crate::catalog::Catalog;

/// The semantic IDs of a catalog as mixed-radix numbers: to verify whole IDs by one look-up each.
///
/// The key of codes c₁ … c_L is `Σ c_l · T₁ ⋯ T_l₋₁`, T_l the size of level l's codebook: different
/// IDs have different keys. It says nothing of prefixes;
/// [`CatalogConstraint`](crate::CatalogConstraint) does. Some 20 to 40 bytes an ID. Source: NEZHA
/// (WWW 2026), equation 4.
#[derive(Clone, Debug)]
pub struct CatalogKeys {
    /// T of each level.
    radices: Vec<u32>,
    keys: HashSet<u128>,
}

/// A catalog whose semantic IDs have no keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The IDs differ in length, so that one could begin another.
    #[error(
        "semantic IDs of {levels} codes can be verified by key, but item {item:?} has {len}: verify by the catalog's masks"
    )]
    OtherLength {
        /// The catalog's levels.
        levels: usize,
        /// An item that has fewer codes.
        item: String,
        /// Number of its codes.
        len: usize,
    },
    /// There are more possible IDs than a key can number.
    #[error(
        "the codebooks allow more than 2^128 semantic IDs, which keys cannot number: verify by the catalog's masks"
    )]
    TooMany,
}

impl CatalogKeys {
    /// The keys of all items.
    ///
    /// # Errors
    /// When the IDs differ in length, or there are too many possible ones.
    pub fn new(catalog: &Catalog) -> Result<Self, KeysError> {
        let radices = catalog.codes_per_level().to_vec();
        let product = |product: u128, &radix: &u32| product.checked_mul(u128::from(radix));
        radices.iter().try_fold(1, product).ok_or(KeysError::TooMany)?;
        let mut keys = Self { radices, keys: HashSet::new() };
        for rank in 0..catalog.num_items() {
            let codes = catalog.codes(rank);
            let (levels, len) = (keys.radices.len(), codes.len());
            let Some(key) = keys.key(&codes) else {
                let item = catalog.id(rank).to_owned();
                return Err(KeysError::OtherLength { levels, item, len });
            };
            keys.keys.insert(key);
        }
        Ok(keys)
    }

    /// The key of an ID; `None` for one of another length, or with a code that its codebook lacks.
    pub fn key(&self, codes: &[u32]) -> Option<u128> {
        if codes.len() != self.radices.len() {
            return None;
        }
        let (mut key, mut place) = (0, 1);
        for (&code, &radix) in codes.iter().zip(&self.radices) {
            if code >= radix {
                return None;
            }
            key += u128::from(code) * place;
            // Overflows only after the last level, if at all.
            place = place.wrapping_mul(u128::from(radix));
        }
        Some(key)
    }

    /// True if an item has this ID.
    pub fn contains(&self, codes: &[u32]) -> bool {
        self.key(codes).is_some_and(|key| self.keys.contains(&key))
    }

    /// Number of different IDs.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BuildOptions, Item};

    fn catalog(items: &[&[u32]], codes_per_level: Option<Vec<u32>>) -> Catalog {
        let item = |(n, codes): (usize, &&[u32])| Item {
            id: format!("i{n}"),
            codes: codes.to_vec(),
            attributes: Default::default(),
        };
        let items: Vec<Item> = items.iter().enumerate().map(item).collect();
        let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
        Catalog::build(items.into(), &options).unwrap()
    }

    /// The paper's example: 243 + 129 · 512 + 3 · 512² — which is 852,723.
    #[test]
    fn keys_are_mixed_radix_numbers() {
        let keys = CatalogKeys::new(&catalog(&[&[243, 129, 3]], Some(vec![512; 3]))).unwrap();
        assert_eq!(keys.key(&[243, 129, 3]), Some(852_723));
        assert_eq!(keys.key(&[512, 0, 0]), None);
        assert_eq!(keys.key(&[0, 0]), None);
    }

    #[test]
    fn contained_is_what_some_item_has() {
        let ids: [&[u32]; 4] = [&[0, 1, 2], &[2, 1, 0], &[2, 1, 0], &[1, 1, 1]];
        let keys = CatalogKeys::new(&catalog(&ids, Some(vec![3, 2, 4]))).unwrap();
        assert_eq!(keys.len(), 3);
        for (a, b, c) in
            (0..4).flat_map(|a| (0..3).flat_map(move |b| (0..5).map(move |c| (a, b, c))))
        {
            let codes = [a, b, c];
            assert_eq!(keys.contains(&codes), ids.contains(&&codes[..]), "{codes:?}");
        }
    }

    #[test]
    fn what_keys_cannot_number_is_an_error() {
        let error = CatalogKeys::new(&catalog(&[&[1, 2, 3], &[1, 2]], None)).unwrap_err();
        assert!(error.to_string().contains("item \"i1\" has 2"), "{error}");
        let ids: [&[u32]; 1] = [&[0; 5]];
        let error = CatalogKeys::new(&catalog(&ids, Some(vec![1 << 30; 5]))).unwrap_err();
        assert_eq!(error, KeysError::TooMany);
    }
}
