//! Vocabularies by content.

use std::fmt;

use palmette_core::Vocabulary;
use xxhash_rust::xxh3::Xxh3;

/// A hash of all that a vocabulary is: its texts in the order of their ids, and its end tokens.
/// Equal vocabularies have equal ones, on every machine; different ones, unless someone made them
/// so on purpose, different ones.
///
/// Cost: reads every text once (1.3 MB for 200 thousand tokens).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VocabularyFingerprint(pub u128);

impl VocabularyFingerprint {
    /// That of `vocabulary`.
    pub fn of(vocabulary: &Vocabulary) -> Self {
        let mut hasher = Xxh3::new();
        let mut add = |number: usize| hasher.update(&(number as u64).to_le_bytes());
        add(vocabulary.num_tokens());
        add(vocabulary.ends().len());
        vocabulary.ends().iter().for_each(|end| add(end.index()));
        for (token, text) in vocabulary.texts() {
            hasher.update(&token.0.to_le_bytes());
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        Self(hasher.digest128())
    }
}

impl fmt::Display for VocabularyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for VocabularyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VocabularyFingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use palmette_core::TokenId;

    use super::*;

    fn fingerprint<const N: usize>(
        tokens: [Option<&str>; N],
        ends: &[u32],
    ) -> VocabularyFingerprint {
        let ends = ends.iter().map(|&end| TokenId(end));
        VocabularyFingerprint::of(&Vocabulary::new(tokens, ends).unwrap())
    }

    #[test]
    fn whatever_differs_makes_another_fingerprint() {
        let all = [
            fingerprint([Some("ab"), Some("c"), None], &[2]),
            fingerprint([Some("a"), Some("bc"), None], &[2]),
            fingerprint([Some("c"), Some("ab"), None], &[2]),
            fingerprint([None, Some("ab"), Some("c")], &[0]),
            fingerprint([Some("ab"), Some("c"), None], &[]),
            fingerprint([Some("ab"), Some("c"), None, None], &[2]),
            fingerprint([Some("ab"), Some("c"), None, None], &[3]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
        assert_eq!(fingerprint([Some("ab"), Some("c"), Some("")], &[2]), all[0]);
        // The same on every machine.
        assert_eq!(all[0].to_string().len(), 32);
    }
}
