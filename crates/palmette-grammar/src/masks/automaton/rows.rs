//! Masks, each kept once, and small where few tokens may follow.

use hashbrown::HashTable;

use super::memo::MaskId;

/// A mask as it is kept.
#[derive(Debug, PartialEq, Eq)]
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
}

/// A mask is kept by places where no more than one word of so many is not 0: filling one is then little more than clearing.
const FEW: usize = 32;

impl Row {
    /// That of a mask.
    pub(super) fn of(mask: &[u32]) -> Self {
        match few(mask) {
            Some(few) => Self { form: Form::Few, words: few.into() },
            None => Self { form: Form::Whole, words: mask.into() },
        }
    }

    /// Writes the mask.
    pub(super) fn copy_to(&self, mask: &mut [u32]) {
        match self.form {
            Form::Whole => mask.copy_from_slice(&self.words),
            Form::Few => {
                mask.fill(0);
                self.insert_into(mask);
            }
        }
    }

    /// Adds its tokens to a mask.
    pub(super) fn insert_into(&self, mask: &mut [u32]) {
        match self.form {
            Form::Whole => mask.iter_mut().zip(&self.words).for_each(|(word, own)| *word |= own),
            Form::Few => {
                let few = self.words.chunks_exact(2);
                few.for_each(|pair| mask[pair[0] as usize] |= pair[1]);
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }
}

/// The words that are not 0, each after its place; `None` where they are many.
fn few(mask: &[u32]) -> Option<Vec<u32>> {
    /// Most blocks are empty, which is found out without a branch a word.
    const BLOCK: usize = 32;
    let mut few = Vec::new();
    for (block, first) in mask.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        if block.iter().fold(0, |all, word| all | word) == 0 {
            continue;
        }
        let others = (first..).zip(block).filter(|(_, word)| **word != 0);
        few.extend(others.flat_map(|(at, &word)| [at, word]));
        if few.len() / 2 * FEW > mask.len() {
            return None;
        }
    }
    Some(few)
}

/// Masks by number, equal ones under one.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    hashes: Vec<u64>,
    ids: HashTable<MaskId>,
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
        self.rows.iter().zip(masks).for_each(|(row, mask)| row.copy_to(mask));
        all
    }

    /// The number of a mask, and how much memory it takes that was not taken before.
    pub(super) fn intern(&mut self, mask: &[u32]) -> (MaskId, usize) {
        let few = few(mask);
        let (form, words) = match &few {
            Some(few) => (Form::Few, few.as_slice()),
            None => (Form::Whole, mask),
        };
        let hash = hash(words);
        let same = |id: &MaskId| {
            let row = self.row(*id);
            self.hashes[id.0 as usize] == hash && row.form == form && *row.words == *words
        };
        if let Some(&known) = self.ids.find(hash, same) {
            return (known, 0);
        }
        let id = MaskId(self.rows.len() as u32);
        let row = Row { form, words: words.into() };
        let bytes = row.memory_bytes();
        self.rows.push(row);
        self.hashes.push(hash);
        self.ids.insert_unique(hash, id, |id| self.hashes[id.0 as usize]);
        (id, bytes)
    }
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
                prop::collection::vec((0..200_usize, any::<u32>()), 0..20)
                    .prop_map(|set| {
                        let mut mask = vec![0; 200];
                        set.into_iter().for_each(|(at, word)| mask[at] = word % 3);
                        mask
                    }),
                0..20,
            ),
        ) {
            let mut rows = Rows::default();
            let ids: Vec<MaskId> = masks.iter().map(|mask| rows.intern(mask).0).collect();
            for (mask, &id) in masks.iter().zip(&ids) {
                let first = masks.iter().position(|other| other == mask).unwrap();
                prop_assert_eq!(id, ids[first]);
                let mut copy = vec![u32::MAX; mask.len()];
                rows.row(id).copy_to(&mut copy);
                prop_assert_eq!(&copy, mask);
                Row::of(mask).copy_to(&mut copy);
                prop_assert_eq!(&copy, mask);
                let mut union = masks[0].clone();
                rows.row(id).insert_into(&mut union);
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
