//! Masks, each kept once, and small where few tokens may follow or where it is nearly another.

use hashbrown::HashTable;
use palmette_core::mask::copy;

use super::bases::{BaseId, Bases};
use super::memo::MaskId;
use crate::masks::mask_row::{hash_of_word, hash_of_words};
use crate::masks::pieces::Gathered;

/// A mask as it is kept: the words of a base, or zeros, but for some that are told, each after its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    base: Option<BaseId>,
    told: Box<[u32]>,
}

/// A mask is told by places where no more than one word of so many is: filling one is then little more than clearing, or copying
/// the base.
const FEW: usize = 8;

/// Masks by number, equal ones under one.
///
/// PERF: a mask of 200 thousand tokens takes 25 KB, mostly of memory that the process has not touched before. Inside strings masks are
/// mostly those of other places but for some tokens that end them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    hashes: Vec<u64>,
    ids: HashTable<MaskId>,
    bases: Bases,
    /// A mask in the making.
    words: Vec<u32>,
    /// Of the rows, without the bases.
    bytes: usize,
}

impl Rows {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.bases.bytes()
    }

    /// One of them.
    pub(super) fn row(&self, id: MaskId) -> &Row {
        &self.rows[id.0 as usize]
    }

    /// All masks of so many words, end to end.
    pub(super) fn concat(&self, num_words: usize) -> Vec<u32> {
        let mut all = vec![0; self.rows.len() * num_words];
        let masks = all.chunks_mut(num_words.max(1));
        self.rows.iter().zip(masks).for_each(|(row, mask)| self.copy(row, mask));
        all
    }

    /// Writes a mask.
    pub(super) fn copy(&self, row: &Row, mask: &mut [u32]) {
        match row.base {
            Some(base) => copy(self.bases.words(base), mask),
            None => mask.fill(0),
        }
        row.told().for_each(|(at, word)| mask[at] = word);
    }

    /// Adds its tokens to a mask.
    pub(super) fn insert(&self, row: &Row, mask: &mut [u32]) {
        let Some(base) = row.base else {
            row.told().for_each(|(at, word)| mask[at] |= word);
            return;
        };
        let unite = |mask: &mut [u32], own: &[u32]| {
            mask.iter_mut().zip(own).for_each(|(word, own)| *word |= own);
        };
        let base = self.bases.words(base);
        let mut from = 0;
        for (at, word) in row.told() {
            unite(&mut mask[from..at], &base[from..at]);
            mask[at] |= word;
            from = at + 1;
        }
        unite(&mut mask[from..], &base[from..]);
    }

    /// A mask as it is kept, without a number.
    pub(super) fn row_of(&mut self, mask: &[u32]) -> Row {
        if let Some(few) = differing(mask, None) {
            return Row { base: None, told: few.into() };
        }
        for &base in self.bases.recent() {
            if let Some(told) = differing(mask, Some(self.bases.words(base))) {
                self.bases.used(base);
                return Row { base: Some(base), told: told.into() };
            }
        }
        let base = self.bases.add(mask);
        self.bases.used(base);
        Row { base: Some(base), told: Box::default() }
    }

    /// The number of a mask.
    pub(super) fn intern(&mut self, mask: &[u32]) -> MaskId {
        let hash = hash_of_words(mask);
        self.find(hash, |row| self.is(row, mask)).unwrap_or_else(|| {
            let row = self.row_of(mask);
            self.add(hash, row)
        })
    }

    /// [`intern`](Self::intern) for a mask as it was found.
    pub(super) fn intern_gathered(&mut self, gathered: &Gathered) -> MaskId {
        let mut words = std::mem::take(&mut self.words);
        let base = self.bases.of_union(gathered.rows(), &mut words);
        let base_words = base.map(|base| self.bases.words(base));
        let mut hash = base.map_or(0, |base| self.bases.hash(base));
        let mut told = Vec::new();
        for (at, word) in gathered.words() {
            let base_word = base_words.map_or(0, |words| words[at]);
            if word != base_word {
                told.extend([at as u32, word]);
                let change = hash_of_word(at, word).wrapping_sub(hash_of_word(at, base_word));
                hash = hash.wrapping_add(change);
            }
        }
        let row = Row { base, told: told.into() };
        let same = self.find(hash, |other| *other == row || self.are_equal(other, &row));
        let found = match same {
            Some(known) => known,
            None if row.told.len() / 2 * FEW <= gathered.num_words() => self.add(hash, row),
            None => {
                words.resize(gathered.num_words(), 0);
                self.copy(&row, &mut words);
                let row = self.row_of(&words);
                self.add(hash, row)
            }
        };
        self.words = words;
        found
    }

    fn find(&self, hash: u64, mut same: impl FnMut(&Row) -> bool) -> Option<MaskId> {
        let same = |id: &MaskId| self.hashes[id.0 as usize] == hash && same(self.row(*id));
        self.ids.find(spread(hash), same).copied()
    }

    /// Whether two rows are the same mask, kept in two ways.
    fn are_equal(&self, a: &Row, b: &Row) -> bool {
        let bases = [a, b].map(|row| row.base.map(|base| self.bases.words(base)));
        let same_between = |from: usize, to: usize| match bases {
            [Some(a), Some(b)] => a[from..to] == b[from..to],
            [Some(one), None] | [None, Some(one)] => one[from..to].iter().all(|&word| word == 0),
            [None, None] => true,
        };
        let [mut a, mut b] = [a, b].map(|row| row.told().peekable());
        let mut from = 0;
        loop {
            let places = [a.peek(), b.peek()].map(|told| told.map(|&(at, _)| at));
            let Some(at) = places.into_iter().flatten().min() else { break };
            let told = [&mut a, &mut b].map(|told| told.next_if(|&(other, _)| other == at));
            let words = [0, 1].map(|row: usize| match (told[row], bases[row]) {
                (Some((_, word)), _) => word,
                (None, base) => base.map_or(0, |base| base[at]),
            });
            if words[0] != words[1] || !same_between(from, at) {
                return false;
            }
            from = at + 1;
        }
        let num_words = bases.into_iter().flatten().map(<[u32]>::len).max().unwrap_or(from);
        same_between(from, num_words)
    }

    /// Whether it is this mask.
    fn is(&self, row: &Row, mask: &[u32]) -> bool {
        let base = row.base.map(|base| self.bases.words(base));
        let same_between = |from: usize, to: usize| match base {
            Some(base) => base[from..to] == mask[from..to],
            None => mask[from..to].iter().all(|&word| word == 0),
        };
        let mut from = 0;
        let told_are_same = row.told().all(|(at, word)| {
            let same = mask[at] == word && same_between(from, at);
            from = at + 1;
            same
        });
        told_are_same && same_between(from, mask.len())
    }

    fn add(&mut self, hash: u64, row: Row) -> MaskId {
        let id = MaskId(self.rows.len() as u32);
        self.bytes += row.memory_bytes();
        self.rows.push(row);
        self.hashes.push(hash);
        self.ids.insert_unique(spread(hash), id, |id| spread(self.hashes[id.0 as usize]));
        id
    }
}

/// A hash of which a table may look at some bits only.
fn spread(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(0xFF51_AFD7_ED55_8CCD).rotate_left(31)
}

impl Row {
    /// The memory that it does not share.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.told)
    }

    /// Words and their places.
    fn told(&self) -> impl Iterator<Item = (usize, u32)> {
        self.told.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1]))
    }
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
    let mut told = Vec::with_capacity(2 * count as usize);
    for (first, block, other) in blocks() {
        if block != other {
            let words = (first as u32..).zip(block.iter().zip(other));
            let words = words.filter(|(_, (word, other))| word != other);
            told.extend(words.flat_map(|(at, (&word, _))| [at, word]));
        }
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use palmette_core::TokenId;
    use proptest::prelude::*;

    use super::*;
    use crate::masks::mask_row::MaskRow;

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
        /// However masks come, equal ones have one number, others have others, and each is what its parts say.
        #[test]
        fn gathered_masks_are_the_unions_of_their_parts(
            masks in prop::collection::vec((parts(), any::<bool>()), 0..20),
        ) {
            let row = |factor: u32| (0..NUM_WORDS as u32).map(|at| at % 3 * factor).collect();
            let base_rows = [0, 1, 5].map(|factor| Arc::new(MaskRow::new(row(factor))));
            let (mut rows, mut found) = (Rows::default(), Vec::<(Vec<u32>, MaskId)>::new());
            for ((sets, tokens), as_words) in masks {
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
                let gathered = Gathered::of(NUM_WORDS, sets, tokens);
                let id = if as_words { rows.intern(&expected) } else { rows.intern_gathered(&gathered) };
                let mut copy = vec![u32::MAX; NUM_WORDS];
                rows.copy(rows.row(id), &mut copy);
                prop_assert_eq!(&copy, &expected);
                for (other, known) in &found {
                    prop_assert_eq!(*other == expected, *known == id);
                }
                found.push((expected, id));
            }
        }

        /// Equal masks have one number, others have others, and each is what it was.
        #[test]
        fn masks_stay_what_they_are(
            masks in prop::collection::vec(
                (0..4_u32, prop::collection::vec((0..200_usize, any::<u32>()), 0..20)).prop_map(
                    |(factor, told)| {
                        let mut mask: Vec<u32> = (0..200).map(|at| at * factor).collect();
                        told.into_iter().for_each(|(at, word)| mask[at] = word % 3);
                        mask
                    },
                ),
                0..20,
            ),
        ) {
            let mut rows = Rows::default();
            let ids: Vec<MaskId> = masks.iter().map(|mask| rows.intern(mask)).collect();
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
            prop_assert_eq!(rows.len(), different.len());
        }
    }
}
