//! Rows of masks, delta-encoded: a base and the words that differ from it.

use std::sync::Arc;

use palmette_core::mask::copy;

/// A set of tokens: the words of a base, or zeros, but for its patches: words that differ, by
/// ascending place.
///
/// Clones share base and patches; those of token effects are shared by all grammars over a
/// vocabulary.
///
/// PERF: a mask of 200 thousand tokens takes 25 KB, mostly of memory that the process has not
/// touched before. Inside strings masks are mostly those of other places but for some tokens.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    base: Option<Arc<[u32]>>,
    patches: Arc<[(u32, u32)]>,
}

/// A row has patches where no more than one word of so many is: filling one is then little more
/// than clearing, or copying the base.
pub(super) const FEW: usize = 8;

/// Encoder of rows, with the bases that were last of use.
#[derive(Debug, Default)]
pub(crate) struct RowEncoder {
    /// The one that was last of use first.
    recent: Vec<Arc<[u32]>>,
    bytes: usize,
}

/// Number of bases, those last of use, that are looked at for one that a new row is nearly.
const MAX_RECENT: usize = 8;

impl RowEncoder {
    /// The memory of all rows that were encoded, and of their bases.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The row of some words, perhaps near that of another.
    pub(crate) fn encode(&mut self, words: &[u32], like: Option<&Row>) -> Row {
        let likely = like.and_then(|row| row.base.as_ref()).into_iter().chain(&self.recent);
        let mut bases = std::iter::once(None).chain(likely.map(Some));
        let known = bases.find_map(|base| {
            let patches = differing(words, base.map(|base| &**base))?;
            Some(Row { base: base.cloned(), patches: patches.into() })
        });
        let row = known.unwrap_or_else(|| self.base(words));
        self.bytes += size_of_val(&*row.patches);
        if let Some(base) = &row.base {
            match self.recent.iter().position(|other| Arc::ptr_eq(other, base)) {
                Some(at) => self.recent[..=at].rotate_right(1),
                None => {
                    self.recent.truncate(MAX_RECENT - 1);
                    self.recent.insert(0, Arc::clone(base));
                }
            }
        }
        row
    }

    /// The row of some words, which others differ from by patches.
    pub(crate) fn base(&mut self, words: &[u32]) -> Row {
        self.bytes += size_of_val(words);
        Row { base: Some(words.into()), patches: Arc::default() }
    }

    /// A row that has no patches, or no tokens, but for some words, each after its place,
    /// ascending.
    pub(crate) fn patched(&mut self, base: Option<&Row>, patches: &[[u32; 2]]) -> Row {
        self.bytes += size_of_val(patches);
        let base = base.and_then(|row| row.base.clone());
        Row { base, patches: patches.iter().map(|&[at, word]| (at, word)).collect() }
    }
}

impl Row {
    /// True when it has no tokens.
    pub(crate) fn is_empty(&self) -> bool {
        self.base.is_none() && self.patches.is_empty()
    }

    /// True when it has few tokens.
    pub(crate) fn is_sparse(&self) -> bool {
        self.base.is_none()
    }

    /// Writes it.
    pub(crate) fn copy(&self, mask: &mut [u32]) {
        match &self.base {
            Some(base) => copy(base, mask),
            None => mask.fill(0),
        }
        self.patches.iter().for_each(|&(at, word)| mask[at as usize] = word);
    }

    /// Words of it, of which a mask has so many.
    pub(crate) fn to_words(&self, num_words: usize) -> Vec<u32> {
        let mut words = vec![0; num_words];
        self.copy(&mut words);
        words
    }

    /// Adds its tokens to a mask.
    pub(crate) fn insert(&self, mask: &mut [u32]) {
        let Some(base) = &self.base else {
            self.patches.iter().for_each(|&(at, word)| mask[at as usize] |= word);
            return;
        };
        let mut from = 0;
        for &(at, word) in &*self.patches {
            let at = at as usize;
            unite(&mut mask[from..at], &base[from..at]);
            mask[at] |= word;
            from = at + 1;
        }
        unite(&mut mask[from..], &base[from..]);
    }
}

fn unite(mask: &mut [u32], other: &[u32]) {
    mask.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
}

/// The words that are not those of another mask, or not 0, with their places; `None` where they are
/// many.
fn differing(mask: &[u32], other: Option<&[u32]>) -> Option<Vec<(u32, u32)>> {
    /// Words are counted so many at a time, without a branch a word.
    const BLOCK: usize = 32;
    const NOTHING: [u32; BLOCK] = [0; BLOCK];
    let blocks = || {
        mask.chunks(BLOCK).zip((0..).step_by(BLOCK)).map(|(block, first)| {
            let nothing = &NOTHING[..block.len()];
            (first, block, other.map_or(nothing, |other| &other[first..][..block.len()]))
        })
    };
    let mut count = 0;
    for (_, block, other) in blocks() {
        count += block.iter().zip(other).map(|(word, other)| u32::from(word != other)).sum::<u32>();
        if count as usize * FEW > mask.len() {
            return None;
        }
    }
    let mut patches = Vec::with_capacity(count as usize);
    for (first, block, other) in blocks() {
        if block != other {
            let words = (first as u32..).zip(block.iter().zip(other));
            let words = words.filter(|(_, (word, other))| word != other);
            patches.extend(words.map(|(at, (&word, _))| (at, word)));
        }
    }
    Some(patches)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Masks that are alike but for a few words, or that have few.
    fn masks() -> impl Strategy<Value = Vec<Vec<u32>>> {
        let patches = prop::collection::vec((0..200_usize, any::<u32>()), 0..20);
        let mask = (0..4_u32, patches).prop_map(|(factor, patches)| {
            let mut mask: Vec<u32> = (0..200).map(|at| at * factor).collect();
            patches.into_iter().for_each(|(at, word)| mask[at] = word % 3);
            mask
        });
        prop::collection::vec(mask, 0..20)
    }

    proptest! {
        /// After any others, and said to be like any of them.
        #[test]
        fn rows_are_the_words_that_they_encode(
            masks in masks(),
            likes in prop::collection::vec(any::<prop::sample::Index>(), 20),
        ) {
            let (mut encoder, mut rows) = (RowEncoder::default(), Vec::<Row>::new());
            for (mask, like) in masks.iter().zip(likes) {
                let like = (!rows.is_empty()).then(|| like.index(rows.len()));
                let row = encoder.encode(mask, like.map(|like| &rows[like]));
                prop_assert_eq!(&row.to_words(200), mask);
                prop_assert_eq!(row.is_empty(), mask.iter().all(|&word| word == 0));
                let mut union = masks[0].clone();
                row.insert(&mut union);
                let expected: Vec<u32> = masks[0].iter().zip(mask).map(|(a, b)| a | b).collect();
                prop_assert_eq!(union, expected);
                rows.push(row);
            }
        }
    }
}
