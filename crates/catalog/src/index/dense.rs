//! The first levels, where nearly every code may follow: bit masks and a table of ranks.

use std::ops::Range;

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::packed_ints::{PackedInts, PackedIntsMeta, Packer, bits_for, num_words};
use super::position_list::partition_point;
use super::rows::SortedRows;

/// The first `d` levels of an index, by key: a prefix's codes as one mixed-radix number.
///
/// One table holds the rank at which each possible prefix of `d` codes begins, so the range of any
/// shorter prefix is two reads too. For each of the levels a bit mask per prefix says which codes
/// may follow; often one level more has such masks, which take a twentieth of what its table would.
/// No semantic ID has fewer than `d` codes.
///
/// Source: STATIC, arXiv 2602.22647, §4.2, "dense mask". We differ: the table holds ranks, in as
/// few bits as they need, and serves all dense levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dense {
    /// Codebook size of each level with masks.
    sizes: Vec<u32>,
    /// Levels with ranks too.
    num_levels: usize,
    /// Rank at which each key of `num_levels` codes begins, and in the end the number of items.
    starts: PackedInts,
    /// For each level with masks: one row of words a prefix.
    masks: Vec<Array<u32>>,
}

/// Serialised place of the dense levels in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DenseMeta {
    sizes: Vec<u32>,
    num_levels: usize,
    starts: PackedIntsMeta,
    masks: Vec<u32>,
}

/// Keys are 32 bits in a state.
pub(crate) const MAX_KEYS: u64 = u32::MAX as u64;

impl Dense {
    /// Masks for levels of these sizes, and ranks for the first `num_levels` of them.
    pub(crate) fn new(
        sizes: &[u32],
        num_levels: usize,
        sorted: &SortedRows,
        shared: &[u8],
    ) -> Self {
        let mut dense = Self { sizes: sizes.to_vec(), num_levels, ..Self::default() };
        let num_items = sorted.len() as u64;
        let num_keys = dense.num_keys(num_levels);
        let mut masks: Vec<Vec<u32>> =
            (0..sizes.len()).map(|level| vec![0; dense.mask_words(level)]).collect();
        let mut starts = Packer::with_capacity(bits_for(num_items), num_keys + 1);
        let mut keys = vec![0_u64; sizes.len() + 1];
        let mut next_key = 0;
        for (rank, row) in sorted.iter().enumerate() {
            for level in usize::from(shared[rank])..sizes.len() {
                let Some(code) = row.code(level) else { break };
                dense.set(&mut masks[level], level, keys[level], code);
                keys[level + 1] = keys[level] * u64::from(sizes[level]) + u64::from(code);
            }
            while next_key <= keys[num_levels] {
                starts.push(rank as u64);
                next_key += 1;
            }
        }
        while next_key <= num_keys {
            starts.push(num_items);
            next_key += 1;
        }
        dense.starts = starts.finish();
        dense.masks = masks.into_iter().map(Array::from).collect();
        dense
    }

    /// Bytes for levels of these sizes; `None` when there are too many keys.
    pub(crate) fn bytes_for(sizes: &[u32], num_items: u64) -> Option<u64> {
        let (mut keys, mut bytes) = (1_u64, 0_u64);
        for &size in sizes {
            bytes = bytes.checked_add(keys.checked_mul(4 * u64::from(size.div_ceil(32)))?)?;
            keys = keys.checked_mul(u64::from(size)).filter(|&keys| keys < MAX_KEYS)?;
        }
        bytes.checked_add(8 * num_words(bits_for(num_items), keys + 1)?)
    }

    /// Levels with ranks.
    pub(crate) fn num_levels(&self) -> usize {
        self.num_levels
    }

    /// Levels with masks.
    pub(crate) fn num_masked(&self) -> usize {
        self.sizes.len()
    }

    /// Codebook size of each level with masks.
    pub(crate) fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Codebook size of a level with masks.
    pub(crate) fn size(&self, level: usize) -> u32 {
        self.sizes[level]
    }

    pub(crate) fn words_per_row(&self, level: usize) -> usize {
        self.sizes[level].div_ceil(32) as usize
    }

    /// Words of all masks of a level.
    pub(crate) fn mask_words(&self, level: usize) -> usize {
        self.num_keys(level) as usize * self.words_per_row(level)
    }

    /// Possible prefixes of `num_codes` codes.
    pub(crate) fn num_keys(&self, num_codes: usize) -> u64 {
        self.sizes[..num_codes].iter().map(|&size| u64::from(size)).product()
    }

    /// The ranks of the items whose first `num_codes` codes are `key`.
    #[inline]
    pub(crate) fn ranks(&self, num_codes: usize, key: u64) -> Range<u64> {
        self.ranks_reader(num_codes)(key)
    }

    /// For several [`ranks`](Self::ranks) in a row: the table is looked up once.
    #[inline(always)]
    pub(crate) fn ranks_reader(&self, num_codes: usize) -> impl Fn(u64) -> Range<u64> {
        let (starts, stride) = (self.starts.reader(), self.stride(num_codes));
        move |key| {
            let start = starts.get(key.wrapping_mul(stride));
            start..starts.get(key.wrapping_add(1).wrapping_mul(stride)).max(start)
        }
    }

    /// Bytes of the table of ranks.
    pub(crate) fn table_bytes(&self) -> usize {
        self.starts.bytes()
    }

    /// Asks for what [`ranks`](Self::ranks) will read.
    #[inline]
    pub(crate) fn prefetch_ranks(&self, num_codes: usize, key: u64) {
        let (starts, stride) = (self.starts.reader(), self.stride(num_codes));
        starts.prefetch(key.wrapping_mul(stride));
        starts.prefetch(key.wrapping_add(1).wrapping_mul(stride));
    }

    /// The codes that may follow the prefix `key` of `level` codes.
    #[inline]
    pub(crate) fn mask(&self, level: usize, key: u32) -> &[u32] {
        mask_row(&self.masks[level], key, self.words_per_row(level))
    }

    /// For several [`mask`](Self::mask)s of one level: their memory is looked up once.
    #[inline(always)]
    pub(crate) fn mask_reader<'a>(&'a self, level: usize) -> impl Fn(u32) -> &'a [u32] {
        let (masks, words) = (self.masks(level), self.words_per_row(level));
        move |key| mask_row(masks, key, words)
    }

    /// All rows of a level.
    pub(crate) fn masks(&self, level: usize) -> &[u32] {
        &self.masks[level]
    }

    /// The largest code that any mask of a level has.
    pub(crate) fn largest_code(&self, level: usize) -> Option<u32> {
        let mut largest = None;
        self.for_each_mask_code(level, |code| largest = largest.max(Some(code)));
        largest
    }

    /// Visits the codes that any mask of a level has.
    pub(crate) fn for_each_mask_code(&self, level: usize, mut visit: impl FnMut(u32)) {
        let mut any = vec![0_u32; self.words_per_row(level)];
        for row in self.masks[level].chunks(any.len().max(1)) {
            any.iter_mut().zip(row).for_each(|(any, bits)| *any |= bits);
        }
        for (word, &bits) in (0_u32..).zip(&any) {
            (0..32).filter(|bit| bits >> bit & 1 == 1).for_each(|bit| visit(word * 32 + bit));
        }
    }

    /// Sets a bit in rows of a level.
    #[inline]
    pub(crate) fn set(&self, masks: &mut [u32], level: usize, key: u64, code: u32) {
        let row = key as usize * self.words_per_row(level);
        masks[row + code as usize / 32] |= 1 << (code % 32);
    }

    /// The key of the first `num_codes` codes of the item with this rank.
    pub(crate) fn key_of(&self, rank: u64, num_codes: usize) -> u64 {
        let (starts, stride) = (self.starts.reader(), self.stride(num_codes));
        let num_keys = self.num_keys(num_codes);
        // The last key that begins at or before the rank; keys without items begin where the next
        // does.
        let key = partition_point(0..num_keys, |key| starts.get((key + 1) * stride) <= rank);
        key.min(num_keys.saturating_sub(1))
    }

    /// Visits the keys that items have, ascending, with their ranks.
    pub(crate) fn for_each_used_key(&self, mut visit: impl FnMut(u64, Range<u64>)) {
        let starts = self.starts.reader();
        let mut start = starts.get(0);
        for key in 0..self.starts.len().saturating_sub(1) {
            let end = starts.get(key + 1);
            if start < end {
                visit(key, start..end);
            }
            start = end.max(start);
        }
    }

    /// Bytes of one level's masks; the table counts with the last dense level.
    pub(crate) fn bytes_of(&self, level: usize) -> usize {
        let table = if level + 1 == self.num_levels { self.starts.bytes() } else { 0 };
        self.masks.get(level).map_or(0, |masks| masks.as_bytes().len()) + table
    }

    pub(crate) fn bytes(&self) -> usize {
        self.starts.bytes() + self.masks.iter().map(|mask| mask.as_bytes().len()).sum::<usize>()
    }

    fn stride(&self, num_codes: usize) -> u64 {
        self.sizes[num_codes..self.num_levels].iter().map(|&size| u64::from(size)).product()
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> DenseMeta {
        DenseMeta {
            sizes: self.sizes.clone(),
            num_levels: self.num_levels,
            starts: self.starts.save(out),
            masks: self.masks.iter().map(|mask| out.add_array(mask)).collect(),
        }
    }

    pub(crate) fn load(
        meta: DenseMeta,
        num_items: u64,
        sections: &SectionsIn,
    ) -> Result<Self, String> {
        let DenseMeta { sizes, num_levels, starts, masks } = meta;
        let one_more = sizes.len() == num_levels || sizes.len() == num_levels.saturating_add(1);
        let countable = one_more && Self::bytes_for(&sizes[..num_levels], num_items).is_some();
        if !countable || sizes.contains(&0) || masks.len() != sizes.len() {
            return Err(format!("its dense levels have sizes {sizes:?}"));
        }
        let starts = PackedInts::load(starts, sections)?;
        let mut dense = Self { sizes, num_levels, starts, masks: vec![] };
        let len = dense.num_keys(num_levels) + 1;
        if dense.starts.len() != len || dense.starts.bits() != bits_for(num_items) {
            return Err("the table of its dense levels has another size".into());
        }
        for (level, section) in masks.into_iter().enumerate() {
            let words = dense.num_keys(level) * dense.words_per_row(level) as u64;
            dense.masks.push(sections.array(section, words)?);
        }
        Ok(dense)
    }

    /// Fails unless ranks ascend to the number of items and masks agree with them.
    pub(crate) fn check(&self, num_items: u64) -> Result<(), String> {
        let starts = self.starts.reader();
        let last = self.starts.len() - 1;
        if !self.starts.iter().is_sorted() || starts.get(0) != 0 || starts.get(last) != num_items {
            return Err("the ranks of its dense levels are out of order".into());
        }
        for level in 0..self.num_levels {
            let size = u64::from(self.sizes[level]);
            let mut masks = vec![0; self.mask_words(level)];
            for key in 0..self.num_keys(level + 1) {
                if !self.ranks(level + 1, key).is_empty() {
                    self.set(&mut masks, level, key / size, (key % size) as u32);
                }
            }
            if masks != self.masks(level) {
                return Err(format!("the masks of level {level} are wrong"));
            }
        }
        Ok(())
    }
}

/// Row `key` of masks with `words` words a row; empty where there is none.
#[inline]
pub(crate) fn mask_row(masks: &[u32], key: u32, words: usize) -> &[u32] {
    let start = (key as usize).saturating_mul(words);
    masks.get(start..start.saturating_add(words)).unwrap_or_default()
}
