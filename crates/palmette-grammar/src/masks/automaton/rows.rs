//! Masks, each kept once, and small where few tokens may follow or where it is nearly another.

use hashbrown::HashTable;
use palmette_core::mask::copy;

use super::memo::MaskId;

/// A mask as it is kept.
#[derive(Debug)]
pub(super) struct Row {
    form: Form,
    words: Box<[u32]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// All words.
    Whole,
    /// The words that are not 0, each after its place.
    Few,
    /// The words that are not those of a whole mask, each after its place.
    Near(MaskId),
}

/// A mask is kept by places where no more than one word of so many is told: filling one is then little more than clearing, or
/// copying another.
const FEW: usize = 32;

/// So many whole masks, those made last, are looked at for one that a new mask is nearly.
const MAX_NEAR: usize = 8;

/// Masks by number, equal ones under one.
///
/// PERF: a mask of 200 thousand tokens takes 25 KB, mostly of memory that the process has not touched before. Inside strings masks are
/// mostly those of other places but for some tokens that end them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    hashes: Vec<u64>,
    ids: HashTable<MaskId>,
    /// Of the whole ones, the one that was last of use first.
    whole: Vec<MaskId>,
}

impl Rows {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
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
        match row.form {
            Form::Whole => copy(&row.words, mask),
            Form::Few => mask.fill(0),
            Form::Near(other) => copy(&self.row(other).words, mask),
        }
        if row.form != Form::Whole {
            row.told().for_each(|(at, word)| mask[at] = word);
        }
    }

    /// Adds its tokens to a mask.
    pub(super) fn insert(&self, row: &Row, mask: &mut [u32]) {
        let unite = |mask: &mut [u32], own: &[u32]| {
            mask.iter_mut().zip(own).for_each(|(word, own)| *word |= own);
        };
        match row.form {
            Form::Whole => unite(mask, &row.words),
            Form::Few => row.told().for_each(|(at, word)| mask[at] |= word),
            Form::Near(other) => {
                let other = &self.row(other).words;
                let mut from = 0;
                for (at, word) in row.told() {
                    unite(&mut mask[from..at], &other[from..at]);
                    mask[at] |= word;
                    from = at + 1;
                }
                unite(&mut mask[from..], &other[from..]);
            }
        }
    }

    /// A mask as it is kept, without a number.
    pub(super) fn row_of(&mut self, mask: &[u32]) -> Row {
        match differing(mask, None) {
            Some(few) => Row { form: Form::Few, words: few.into() },
            None => self.row_of_many(mask),
        }
    }

    /// [`row_of`](Self::row_of) where many words are not 0.
    fn row_of_many(&mut self, mask: &[u32]) -> Row {
        for at in 0..self.whole.len() {
            let id = self.whole[at];
            if let Some(words) = differing(mask, Some(&self.row(id).words)) {
                self.whole[..=at].rotate_right(1);
                return Row { form: Form::Near(id), words: words.into() };
            }
        }
        Row { form: Form::Whole, words: mask.into() }
    }

    /// The number of a mask, and how much memory it takes that was not taken before.
    pub(super) fn intern(&mut self, mask: &[u32]) -> (MaskId, usize) {
        let few = differing(mask, None);
        let hash = hash(few.as_deref().unwrap_or(mask));
        let same = |id: &MaskId| {
            let row = self.row(*id);
            self.hashes[id.0 as usize] == hash
                && match (row.form, &few) {
                    (Form::Few, Some(few)) => *row.words == **few,
                    (Form::Whole, None) => *row.words == *mask,
                    (Form::Near(other), None) => {
                        let differing = differing(mask, Some(&self.row(other).words));
                        differing.is_some_and(|words| *words == *row.words)
                    }
                    _ => false,
                }
        };
        if let Some(&known) = self.ids.find(hash, same) {
            return (known, 0);
        }
        let id = MaskId(self.rows.len() as u32);
        let row = match few {
            Some(few) => Row { form: Form::Few, words: few.into() },
            None => self.row_of_many(mask),
        };
        if row.form == Form::Whole {
            self.whole.insert(0, id);
            self.whole.truncate(MAX_NEAR);
        }
        let bytes = row.memory_bytes();
        self.rows.push(row);
        self.hashes.push(hash);
        self.ids.insert_unique(hash, id, |id| self.hashes[id.0 as usize]);
        (id, bytes)
    }
}

impl Row {
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }

    /// Words and their places.
    fn told(&self) -> impl Iterator<Item = (usize, u32)> {
        self.words.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1]))
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

/// A hash of words that is the same everywhere. Equal hashes are looked into, so it may be a weak one, which takes several
/// words at once.
fn hash(words: &[u32]) -> u64 {
    const LANES: usize = 32;
    let mut lanes = [0_u32; LANES];
    let mix = |(lane, word): (&mut u32, &u32)| *lane = lane.rotate_left(7).wrapping_add(*word);
    let chunks = words.chunks_exact(LANES);
    let rest = chunks.remainder();
    chunks.for_each(|chunk| lanes.iter_mut().zip(chunk).for_each(mix));
    lanes.iter_mut().zip(rest).for_each(mix);
    lanes.into_iter().fold(words.len() as u64, |hash, lane| {
        (hash ^ u64::from(lane)).wrapping_mul(0xFF51_AFD7_ED55_8CCD).rotate_left(31)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
            let ids: Vec<MaskId> = masks.iter().map(|mask| rows.intern(mask).0).collect();
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
