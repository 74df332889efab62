//! Masks, each kept once, and small where few tokens may follow or where it is nearly another.

use std::sync::Arc;

use palmette_core::mask::{self, copy};

use super::bases::{BaseId, Bases};
use super::memo::MaskId;
use crate::masks::chunks::Chunks;
use crate::masks::hash_index::HashIndex;
use crate::masks::pieces::{Gathered, TailId, Tails};

/// A mask as it is kept: the words of a base, or zeros, but for some that are told, each after its place; and the tokens of tails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    base: Option<BaseId>,
    told: Arc<[u32]>,
    tails: Box<[TailId]>,
}

/// A mask is told by places where no more than one word of so many is: filling one is then little more than clearing, or copying
/// the base.
const FEW: usize = 8;

/// Masks by number.
///
/// PERF: a mask that is put together is told by what it is made of: to find out its words, and whether another has the same, took longer
/// than all else about a new one. Some are there more than once therefore.
///
/// A mask of 200 thousand tokens takes 25 KB, mostly of memory that the process has not touched before. Inside strings masks are
/// mostly those of other places but for some tokens that end them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Chunks<Row>,
    /// Those without tails.
    ids: HashIndex,
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
        self.bytes + self.ids.memory_bytes() + self.bases.bytes()
    }

    /// One of them.
    pub(super) fn row(&self, id: MaskId) -> &Row {
        &self.rows[id.0 as usize]
    }

    /// All different masks of so many words, end to end, and by mask the number of its own.
    pub(super) fn different(&self, num_words: usize, tails: &Tails) -> (Vec<u32>, Vec<u32>) {
        let (mut all, mut numbers) = (Vec::new(), Vec::new());
        let mut known = HashIndex::default();
        for row in self.rows.iter() {
            let first = all.len();
            all.resize(first + num_words, 0);
            let (others, mask) = all.split_at_mut(first);
            self.copy(row, tails, mask);
            let hash = hash_of_words(mask);
            let same = |number: u32| others[number as usize * num_words..][..num_words] == *mask;
            let number = match known.find(hash, same) {
                Some(number) => {
                    all.truncate(first);
                    number
                }
                None => {
                    let next = known.len() as u32;
                    known.insert(hash, next);
                    next
                }
            };
            numbers.push(number);
        }
        (all, numbers)
    }

    /// Writes a mask.
    pub(super) fn copy(&self, row: &Row, tails: &Tails, mask: &mut [u32]) {
        match row.base {
            Some(base) => copy(self.bases.words(base), mask),
            None => mask.fill(0),
        }
        row.told().for_each(|(at, word)| mask[at] = word);
        row.insert_tails(tails, mask);
    }

    /// Adds its tokens to a mask.
    pub(super) fn insert(&self, row: &Row, tails: &Tails, mask: &mut [u32]) {
        row.insert_tails(tails, mask);
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
            return Row::new(None, few);
        }
        for &base in self.bases.recent() {
            if let Some(told) = differing(mask, Some(self.bases.words(base))) {
                self.bases.used(base);
                return Row::new(Some(base), told);
            }
        }
        let base = self.bases.add(mask);
        self.bases.used(base);
        Row::new(Some(base), Vec::new())
    }

    /// The number of a mask without tails, equal ones under one.
    pub(super) fn intern(&mut self, mask: &[u32]) -> MaskId {
        let hash = hash_of_words(mask);
        if let Some(known) = self.ids.find(hash, |id| self.is(self.row(MaskId(id)), mask)) {
            return MaskId(known);
        }
        let row = self.row_of(mask);
        let id = self.add(row);
        self.ids.insert(hash, id.0);
        id
    }

    /// [`row_of`](Self::row_of) for a mask as it was found.
    pub(super) fn row_of_gathered(&mut self, gathered: &Gathered) -> Row {
        let base = self.bases.of_union(gathered.rows(), &mut self.words);
        let base_words = base.map(|base| self.bases.words(base));
        let mut told = Vec::new();
        for (at, word) in gathered.words() {
            if word != base_words.map_or(0, |words| words[at]) {
                told.extend([at as u32, word]);
            }
        }
        let row = Row::new(base, told);
        if row.told.len() / 2 * FEW <= gathered.num_words() {
            return row;
        }
        let mut words = std::mem::take(&mut self.words);
        words.resize(gathered.num_words(), 0);
        self.copy(&row, &Tails::default(), &mut words);
        let row = self.row_of(&words);
        self.words = words;
        row
    }

    /// The number of a mask as it is kept, whether there are others for the same or not.
    pub(super) fn add(&mut self, row: Row) -> MaskId {
        let id = MaskId(self.rows.len() as u32);
        self.bytes += row.memory_bytes();
        self.rows.push(row);
        id
    }

    /// Whether so many tokens of tails are few enough to be told.
    pub(super) fn are_few(num_tokens: usize, num_words: usize) -> bool {
        num_tokens * FEW <= num_words
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
}

impl Row {
    fn new(base: Option<BaseId>, told: Vec<u32>) -> Self {
        Self { base, told: told.into(), tails: Box::default() }
    }

    /// Its memory, without the base and the tails.
    pub(super) fn memory_bytes(&self) -> usize {
        // Those with tails share what is told.
        let told = if self.tails.is_empty() { size_of_val(&*self.told) } else { 0 };
        size_of::<Self>() + told + size_of_val(&*self.tails)
    }

    /// The same with the tokens of tails.
    pub(super) fn with_tails(self, tails: &[TailId]) -> Self {
        debug_assert!(self.tails.is_empty(), "it has none");
        Self { tails: tails.into(), ..self }
    }

    fn insert_tails(&self, tails: &Tails, mask: &mut [u32]) {
        for &tail in &self.tails {
            tails.tokens(tail).for_each(|token| mask::insert(mask, token));
        }
    }

    /// Words and their places.
    fn told(&self) -> impl Iterator<Item = (usize, u32)> {
        self.told.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1]))
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
                let gathered = Gathered::of(NUM_WORDS, sets, tokens);
                let row = rows.row_of_gathered(&gathered);
                let mut copy = vec![u32::MAX; NUM_WORDS];
                rows.copy(&row, &Tails::default(), &mut copy);
                prop_assert_eq!(&copy, &expected);
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
                rows.copy(rows.row(id), &Tails::default(), &mut copy);
                prop_assert_eq!(&copy, mask);
                let row = rows.row_of(mask);
                rows.copy(&row, &Tails::default(), &mut copy);
                prop_assert_eq!(&copy, mask);
                let mut union = masks[0].clone();
                rows.insert(rows.row(id), &Tails::default(), &mut union);
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
