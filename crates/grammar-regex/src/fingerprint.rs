//! Fingerprints: hashes by which things are known without being kept.

use std::hash::Hash;

use xxhash_rust::xxh3::Xxh3Default;

/// Fingerprint of a key: 128 bits, by which no two of any number that there is room for are likely
/// to agree, unless somebody made them so. The same in each process of a build.
pub fn fingerprint(key: &impl Hash) -> u128 {
    let mut hasher = Xxh3Default::new();
    key.hash(&mut hasher);
    hasher.digest128()
}
