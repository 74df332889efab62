//! Rows of masks, delta-encoded: a base and the words that differ from it.

use hashbrown::HashTable;
use palmette_core::mask::copy;

use super::bases::{BaseId, Bases};
use crate::residuals::MaskBuilder;
use crate::table_bytes;

/// A set of tokens: the words of a base, or zeros, but for its patches: words that differ, each after its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    base: Option<BaseId>,
    patches: Box<[u32]>,
}

/// A number into [`Rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowId(u32);

/// A row has patches where no more than one word of so many is: filling one is then little more than clearing, or copying
/// the base.
pub(crate) const FEW: usize = 8;

/// Rows by number.
///
/// PERF: a mask of 200 thousand tokens takes 25 KB, mostly of memory that the process has not touched before. Inside strings masks are
/// mostly those of other places but for some tokens.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: boxcar::Vec<Row>,
    /// Those that were interned.
    ids: HashTable<(u64, RowId)>,
    bases: Bases,
    /// A row in the making.
    words: Vec<u32>,
    /// Of the rows, without the bases.
    bytes: usize,
}

impl Rows {
    /// About how much memory they take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + table_bytes::<(u64, RowId)>(self.ids.len()) + self.bases.bytes()
    }

    /// One of them.
    pub(crate) fn row(&self, id: RowId) -> &Row {
        &self.rows[id.0 as usize]
    }

    /// Writes a row.
    pub(crate) fn copy(&self, row: &Row, mask: &mut [u32]) {
        match row.base {
            Some(base) => copy(self.bases.words(base), mask),
            None => mask.fill(0),
        }
        row.patches().for_each(|(at, word)| mask[at] = word);
    }

    /// Adds its tokens to a mask.
    pub(crate) fn insert(&self, row: &Row, mask: &mut [u32]) {
        let Some(base) = row.base else {
            row.patches().for_each(|(at, word)| mask[at] |= word);
            return;
        };
        let unite = |mask: &mut [u32], own: &[u32]| {
            mask.iter_mut().zip(own).for_each(|(word, own)| *word |= own);
        };
        let base = self.bases.words(base);
        let mut from = 0;
        for (at, word) in row.patches() {
            unite(&mut mask[from..at], &base[from..at]);
            mask[at] |= word;
            from = at + 1;
        }
        unite(&mut mask[from..], &base[from..]);
    }

    /// A mask as a row, without a number.
    pub(crate) fn row_of(&mut self, mask: &[u32]) -> Row {
        if let Some(few) = differing(mask, None) {
            return Row::new(None, few);
        }
        for &base in self.bases.recent() {
            if let Some(patches) = differing(mask, Some(self.bases.words(base))) {
                self.bases.used(base);
                return Row::new(Some(base), patches);
            }
        }
        let base = self.bases.add(mask);
        self.bases.used(base);
        Row::new(Some(base), Vec::new())
    }

    /// The number of a mask, equal ones under one.
    pub(crate) fn intern(&mut self, mask: &[u32]) -> RowId {
        let hash = hash_of_words(mask);
        let same = |&(other, id): &(u64, RowId)| other == hash && self.is(self.row(id), mask);
        if let Some(&(_, known)) = self.ids.find(hash, same) {
            return known;
        }
        let row = self.row_of(mask);
        let id = self.add(row);
        self.ids.insert_unique(hash, (hash, id), |&(hash, _)| hash);
        id
    }

    /// The number of a set as it was built, whether there are others for the same or not.
    pub(crate) fn add_built(&mut self, builder: &MaskBuilder) -> RowId {
        let row = self.row_of_built(builder);
        self.add(row)
    }

    /// The number of a row, or of none, with some bits besides: their words' places, ascending, each once. Whether there are others for the
    /// same or not.
    pub(crate) fn add_with(&mut self, row: Option<RowId>, bits: &[(u32, u32)]) -> RowId {
        let row = row.map(|id| self.row(id));
        let base = row.and_then(|row| row.base);
        let base_words = base.map(|base| self.bases.words(base));
        let mut patches = Vec::new();
        let mut known = row.into_iter().flat_map(Row::patches).peekable();
        for &(at, bits) in bits {
            let before = |&(other, _): &(usize, u32)| other < at as usize;
            while let Some((other, word)) = known.next_if(before) {
                patches.extend([other as u32, word]);
            }
            match known.next_if(|&(other, _)| other == at as usize) {
                Some((_, word)) => patches.extend([at, word | bits]),
                None => {
                    let word = base_words.map_or(0, |words| words[at as usize]);
                    if word | bits != word {
                        patches.extend([at, word | bits]);
                    }
                }
            }
        }
        patches.extend(known.flat_map(|(at, word)| [at as u32, word]));
        self.add(Row::new(base, patches))
    }

    fn row_of_built(&mut self, builder: &MaskBuilder) -> Row {
        let base = self.bases.of_union(builder.rows(), &mut self.words);
        let base_words = base.map(|base| self.bases.words(base));
        let mut patches = Vec::new();
        for (at, word) in builder.words() {
            if word != base_words.map_or(0, |words| words[at]) {
                patches.extend([at as u32, word]);
            }
        }
        let row = Row::new(base, patches);
        if row.patches.len() / 2 * FEW <= builder.num_words() {
            return row;
        }
        let mut words = std::mem::take(&mut self.words);
        words.resize(builder.num_words(), 0);
        self.copy(&row, &mut words);
        let row = self.row_of(&words);
        self.words = words;
        row
    }

    fn add(&mut self, row: Row) -> RowId {
        let id = RowId(self.rows.count() as u32);
        self.bytes += row.memory_bytes();
        self.rows.push(row);
        id
    }

    /// True when it is this mask.
    fn is(&self, row: &Row, mask: &[u32]) -> bool {
        let base = row.base.map(|base| self.bases.words(base));
        let same_between = |from: usize, to: usize| match base {
            Some(base) => base[from..to] == mask[from..to],
            None => mask[from..to].iter().all(|&word| word == 0),
        };
        let mut from = 0;
        let patches_are_same = row.patches().all(|(at, word)| {
            let same = mask[at] == word && same_between(from, at);
            from = at + 1;
            same
        });
        patches_are_same && same_between(from, mask.len())
    }
}

impl Row {
    fn new(base: Option<BaseId>, patches: Vec<u32>) -> Self {
        Self { base, patches: patches.into() }
    }

    /// The memory that it does not share.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.patches)
    }

    /// Words and their places.
    fn patches(&self) -> impl Iterator<Item = (usize, u32)> {
        self.patches.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1]))
    }
}

/// A hash of words that is the same everywhere. Equal hashes are looked into.
fn hash_of_words(words: &[u32]) -> u64 {
    let each = words.iter().zip(0_u64..).map(|(&word, at)| {
        let product = (u64::from(word) << 32 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ product >> 32
    });
    each.fold(0, u64::wrapping_add)
}

/// The words that are not those of another mask, or not 0, each after its place; `None` where they are many.
fn differing(mask: &[u32], other: Option<&[u32]>) -> Option<Vec<u32>> {
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
    let mut patches = Vec::with_capacity(2 * count as usize);
    for (first, block, other) in blocks() {
        if block != other {
            let words = (first as u32..).zip(block.iter().zip(other));
            let words = words.filter(|(_, (word, other))| word != other);
            patches.extend(words.flat_map(|(at, (&word, _))| [at, word]));
        }
    }
    Some(patches)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use palmette_core::TokenId;
    use proptest::prelude::*;

    use super::super::MaskRow;
    use super::*;

    const NUM_WORDS: usize = 200;

    /// Sets as a row and words that are others there, and single tokens.
    type Parts = (Vec<(usize, BTreeMap<u32, u32>)>, Vec<u32>);

    fn parts() -> impl Strategy<Value = Parts> {
        let word = prop::sample::select(vec![0, 1, 3, u32::MAX]);
        let differing = prop::collection::btree_map(0..NUM_WORDS as u32, word, 0..4);
        let sets = prop::collection::vec((0..3_usize, differing), 0..4);
        (sets, prop::collection::vec(0..NUM_WORDS as u32 * 32, 0..40))
    }

    proptest! {
        /// Whatever their parts and what came before.
        #[test]
        fn gathered_masks_are_the_unions_of_their_parts(
            masks in prop::collection::vec(parts(), 0..20),
        ) {
            let row = |factor: u32| (0..NUM_WORDS as u32).map(|at| at % 3 * factor).collect();
            let base_rows = [0, 1, 5].map(|factor| Arc::new(MaskRow::new(row(factor))));
            let mut rows = Rows::default();
            for (sets, tokens) in masks {
                let mut expected = vec![0; NUM_WORDS];
                for (row, differing) in &sets {
                    let mut words = base_rows[*row].words().to_vec();
                    differing.iter().for_each(|(&at, &word)| words[at as usize] = word);
                    expected.iter_mut().zip(words).for_each(|(all, word)| *all |= word);
                }
                tokens.iter().for_each(|&token| expected[token as usize / 32] |= 1 << (token % 32));
                let sets = sets.into_iter().map(|(row, differing)| {
                    (Arc::clone(&base_rows[row]), differing.into_iter().collect())
                });
                let tokens = tokens.into_iter().map(TokenId);
                let builder = MaskBuilder::of(NUM_WORDS, sets, tokens);
                let row = rows.row_of_built(&builder);
                let mut copy = vec![u32::MAX; NUM_WORDS];
                rows.copy(&row, &mut copy);
                prop_assert_eq!(&copy, &expected);
            }
        }

        /// With a base, with patches or both, with bits that are there already and others.
        #[test]
        fn bits_are_added_to_rows(
            parts in prop::option::of(parts()),
            bits in prop::collection::btree_map(0..NUM_WORDS as u32, 1..9_u32, 0..40),
        ) {
            let mut rows = Rows::default();
            let mut expected = vec![0; NUM_WORDS];
            let row = parts.map(|(sets, tokens)| {
                let sets = sets.into_iter().map(|(factor, differing)| {
                    let words = (0..NUM_WORDS as u32).map(|at| at % 3 * factor as u32).collect();
                    (Arc::new(MaskRow::new(words)), differing.into_iter().collect())
                });
                let tokens = tokens.into_iter().map(TokenId);
                let id = rows.add_built(&MaskBuilder::of(NUM_WORDS, sets, tokens));
                rows.copy(rows.row(id), &mut expected);
                id
            });
            bits.iter().for_each(|(&at, &bits)| expected[at as usize] |= bits);
            let bits: Vec<(u32, u32)> = bits.into_iter().collect();
            let id = rows.add_with(row, &bits);
            let mut copy = vec![u32::MAX; NUM_WORDS];
            rows.copy(rows.row(id), &mut copy);
            prop_assert_eq!(&copy, &expected);
        }

        /// Equal masks have one number, others have others, and each is what it was.
        #[test]
        fn masks_stay_what_they_are(
            masks in prop::collection::vec(
                (0..4_u32, prop::collection::vec((0..200_usize, any::<u32>()), 0..20)).prop_map(
                    |(factor, patches)| {
                        let mut mask: Vec<u32> = (0..200).map(|at| at * factor).collect();
                        patches.into_iter().for_each(|(at, word)| mask[at] = word % 3);
                        mask
                    },
                ),
                0..20,
            ),
        ) {
            let mut rows = Rows::default();
            let ids: Vec<RowId> = masks.iter().map(|mask| rows.intern(mask)).collect();
            for (mask, &id) in masks.iter().zip(&ids) {
                let first = masks.iter().position(|other| other == mask).unwrap();
                prop_assert_eq!(id, ids[first]);
                let mut copy = vec![u32::MAX; mask.len()];
                rows.copy(rows.row(id), &mut copy);
                prop_assert_eq!(&copy, mask);
                let row = rows.row_of(mask);
                rows.copy(&row, &mut copy);
                prop_assert_eq!(&copy, mask);
                let mut union = masks[0].clone();
                rows.insert(rows.row(id), &mut union);
                let expected: Vec<u32> = masks[0].iter().zip(mask).map(|(a, b)| a | b).collect();
                prop_assert_eq!(union, expected);
            }
            let mut different = masks.clone();
            different.sort();
            different.dedup();
            prop_assert_eq!(rows.rows.count(), different.len());
        }
    }
}
