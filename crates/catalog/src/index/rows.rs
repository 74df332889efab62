//! Semantic IDs as they arrive, packed so that comparing two IDs is comparing two numbers.

use std::ops::Range;

use rayon::prelude::*;

use super::limits::{MAX_CODE, MAX_ITEMS, MAX_LEVELS};
use super::packed_ints::bits_for;

/// Semantic IDs in the order in which they were pushed.
///
/// Every ID is one row of 64-bit words with its codes from the highest bit down, each in as many
/// bits as the largest code of its level needs; all rows are packed anew when a larger code, a
/// longer ID or a first ID of another length arrives. So an ID of 8 codes below 2,048 takes 16
/// bytes, and rows sort as plain numbers.
#[derive(Clone, Debug, Default)]
pub struct CodeRows {
    layout: Layout,
    words: Vec<u64>,
    num_rows: usize,
}

/// Layout of a row: the bits that hold each code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Layout {
    levels: Vec<Range<u32>>,
    /// IDs differ in length: a code is stored as one more, and 0 says that there is none. So an ID
    /// comes before those that continue it.
    ragged: bool,
    words_per_row: usize,
    /// Bits at the end of each row that count rows.
    row_bits: u32,
}

impl CodeRows {
    /// No rows yet. Their memory grows with them.
    pub fn new() -> Self {
        Self::default()
    }

    /// No rows yet, and memory for `num_rows` of them with codes below `sizes`.
    pub fn with_capacity(sizes: &[u32], num_rows: usize) -> Self {
        let bits = sizes.iter().map(|&size| bits_for(u64::from(size.saturating_sub(1))));
        let layout = Layout::new(bits.collect(), false, 0);
        let words = Vec::with_capacity(num_rows.saturating_mul(layout.words_per_row));
        Self { layout, words, num_rows: 0 }
    }

    /// Rows pushed so far.
    pub fn len(&self) -> usize {
        self.num_rows
    }

    /// True if nothing has been pushed.
    pub fn is_empty(&self) -> bool {
        self.num_rows == 0
    }

    /// Bytes of the rows.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Adds a semantic ID.
    ///
    /// # Errors
    /// When it has no code, more than [`MAX_LEVELS`], or one over [`MAX_CODE`], or there are
    /// [`MAX_ITEMS`] already: the rule that was broken, as the end of a sentence about the item.
    pub fn push(&mut self, codes: &[u32]) -> Result<(), String> {
        if codes.is_empty() {
            return Err("has an empty semantic ID; it needs at least one code".into());
        }
        if codes.len() > MAX_LEVELS {
            let len = codes.len();
            return Err(format!("has {len} codes; a semantic ID has at most {MAX_LEVELS}"));
        }
        if let Some(level) = codes.iter().position(|&code| code > MAX_CODE) {
            let (code, size) = (codes[level], MAX_CODE + 1);
            return Err(format!("has code {code} at level {level}; codes there are below {size}"));
        }
        if self.num_rows == MAX_ITEMS {
            return Err(format!("is one more than the {MAX_ITEMS} a catalog holds"));
        }
        if !self.layout.holds(codes) {
            self.widen(codes);
        }
        let start = self.words.len();
        self.words.resize(start + self.layout.words_per_row, 0);
        let row = &mut self.words[start..];
        let plus = u64::from(self.layout.ragged);
        for (bits, &code) in self.layout.levels.iter().zip(codes) {
            put(row, bits, u64::from(code) + plus);
        }
        self.num_rows += 1;
        Ok(())
    }

    /// Makes room for `codes`.
    fn widen(&mut self, codes: &[u32]) {
        let old = &self.layout;
        let differs = self.num_rows > 0 && codes.len() != old.levels.len();
        let ragged = old.ragged || differs;
        let num_levels = match self.num_rows {
            0 => codes.len(),
            _ => codes.len().max(old.levels.len()),
        };
        let largest = |level: usize| {
            let before = old.levels.get(level).map_or(0, |bits| old.largest(bits));
            before.max(codes.get(level).map_or(0, |&code| u64::from(code)))
        };
        let bits = (0..num_levels).map(|level| bits_for(largest(level) + u64::from(ragged)));
        self.repack(Layout::new(bits.collect(), ragged, 0));
    }

    /// Moves all rows to `layout`, which holds them.
    fn repack(&mut self, layout: Layout) {
        let (old, width) = (&self.layout, layout.words_per_row);
        let mut words = vec![0; self.num_rows * width];
        let moved =
            words.par_chunks_mut(width.max(1)).zip(self.words.par_chunks(old.words_per_row.max(1)));
        moved.for_each(|(row, old_row)| {
            for (level, bits) in layout.levels.iter().enumerate() {
                match old.code(old_row, level) {
                    Some(code) => put(row, bits, u64::from(code) + u64::from(layout.ragged)),
                    None => put(row, bits, 0),
                }
            }
        });
        (self.layout, self.words) = (layout, words);
    }

    /// Sorts the rows; those with the same ID keep their order. With `keep_order`, each remembers
    /// where it was.
    ///
    /// Cost: one parallel sort, in place; where the bits that number the rows do not fit into the
    /// rows' last words, a copy with one word more.
    pub(crate) fn sorted(mut self, keep_order: bool) -> SortedRows {
        if keep_order {
            self.number();
        }
        match self.layout.words_per_row {
            0 => {}
            1 => self.words.par_sort_unstable(),
            2 => sort_rows::<2, u128>(&mut self.words, |&[high, low]| {
                u128::from(high) << 64 | u128::from(low)
            }),
            3 => sort_rows::<3, _>(&mut self.words, |&row| row),
            4 => sort_rows::<4, _>(&mut self.words, |&row| row),
            5..=8 => self.sort_wide::<8>(),
            9..=16 => self.sort_wide::<16>(),
            _ => self.sort_wide::<{ MAX_WORDS }>(),
        }
        SortedRows { rows: self }
    }

    /// Writes each row's number into its last bits.
    fn number(&mut self) {
        let row_bits = bits_for(self.num_rows as u64);
        let code_bits = self.layout.code_bits();
        let mut layout = self.layout.clone();
        layout.row_bits = row_bits;
        if code_bits + row_bits > 64 * layout.words_per_row as u32 {
            layout.words_per_row += 1;
            self.repack(layout);
        } else {
            self.layout = layout;
        }
        let width = self.layout.words_per_row.max(1);
        let number = |(number, row): (usize, &mut [u64])| row[width - 1] |= number as u64;
        self.words.par_chunks_exact_mut(width).enumerate().for_each(number);
    }

    /// Sorts rows of a width that has no sort of its own, as wider ones.
    fn sort_wide<const WIDTH: usize>(&mut self) {
        let width = self.layout.words_per_row;
        let mut wide: Vec<[u64; WIDTH]> = vec![[0; WIDTH]; self.num_rows];
        for (wide, row) in wide.iter_mut().zip(self.words.chunks_exact(width)) {
            wide[..width].copy_from_slice(row);
        }
        wide.par_sort_unstable();
        for (wide, row) in wide.iter().zip(self.words.chunks_exact_mut(width)) {
            row.copy_from_slice(&wide[..width]);
        }
    }
}

/// Words of the widest row: all levels with the largest codes and lengths, and a row number.
const MAX_WORDS: usize = (MAX_LEVELS * 32 + 32).div_ceil(64);

fn sort_rows<const WIDTH: usize, K: Ord>(
    words: &mut [u64],
    key: impl Fn(&[u64; WIDTH]) -> K + Sync,
) {
    let (rows, []) = words.as_chunks_mut::<WIDTH>() else {
        unreachable!("rows have {WIDTH} words")
    };
    rows.par_sort_unstable_by_key(key);
}

impl Layout {
    fn new(bits: Vec<u32>, ragged: bool, row_bits: u32) -> Self {
        let mut end = 0;
        let mut place = |bits| {
            let start = end;
            end += bits;
            start..end
        };
        let levels: Vec<Range<u32>> = bits.into_iter().map(&mut place).collect();
        let words_per_row = (end + row_bits).div_ceil(64).max(1) as usize;
        Self { levels, ragged, words_per_row, row_bits }
    }

    fn code_bits(&self) -> u32 {
        self.levels.last().map_or(0, |bits| bits.end)
    }

    /// The largest code that `bits` hold.
    fn largest(&self, bits: &Range<u32>) -> u64 {
        (1 << (bits.end - bits.start)) - 1 - u64::from(self.ragged)
    }

    fn holds(&self, codes: &[u32]) -> bool {
        let lengths =
            codes.len() == self.levels.len() || self.ragged && codes.len() < self.levels.len();
        let fits = |(bits, &code): (&Range<u32>, &u32)| u64::from(code) <= self.largest(bits);
        lengths && self.words_per_row > 0 && self.levels.iter().zip(codes).all(fits)
    }

    #[inline]
    fn code(&self, row: &[u64], level: usize) -> Option<u32> {
        let value = get(row, self.levels.get(level)?);
        match self.ragged {
            false => Some(value as u32),
            true => value.checked_sub(1).map(|code| code as u32),
        }
    }
}

/// Bits of a row, the highest of word 0 first. At most 32 of them.
#[inline]
fn get(row: &[u64], bits: &Range<u32>) -> u64 {
    let (word, shift) = ((bits.start / 64) as usize, bits.start % 64);
    let len = bits.end - bits.start;
    if len == 0 {
        return 0;
    }
    let high = row[word] << shift;
    let low = if shift + len > 64 { row[word + 1] >> (64 - shift) } else { 0 };
    (high | low) >> (64 - len)
}

/// Sets bits of a row that are 0.
#[inline]
fn put(row: &mut [u64], bits: &Range<u32>, value: u64) {
    let (word, shift) = ((bits.start / 64) as usize, bits.start % 64);
    let len = bits.end - bits.start;
    if len == 0 {
        return;
    }
    let placed = value << (64 - len);
    row[word] |= placed >> shift;
    if shift + len > 64 {
        row[word + 1] |= placed << (64 - shift);
    }
}

/// Rows in order of their IDs.
#[derive(Debug)]
pub(crate) struct SortedRows {
    rows: CodeRows,
}

impl SortedRows {
    pub(crate) fn len(&self) -> usize {
        self.rows.num_rows
    }

    /// Codes of the longest ID.
    pub(crate) fn num_levels(&self) -> usize {
        self.rows.layout.levels.len()
    }

    /// True if IDs differ in length.
    pub(crate) fn is_ragged(&self) -> bool {
        self.rows.layout.ragged
    }

    /// The largest code at a level.
    pub(crate) fn max_code(&self, level: usize) -> Option<u32> {
        let layout = &self.rows.layout;
        let rows = self.rows.words.par_chunks_exact(layout.words_per_row.max(1));
        rows.filter_map(|row| layout.code(row, level)).max()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = SortedRow<'_>> + Clone {
        let layout = &self.rows.layout;
        let rows = self.rows.words.chunks_exact(layout.words_per_row.max(1));
        rows.map(move |words| SortedRow { words, layout })
    }

    /// For each row, how many codes it has in common with the row before.
    pub(crate) fn shared(&self) -> Vec<u8> {
        let layout = &self.rows.layout;
        let width = layout.words_per_row.max(1);
        let words = &self.rows.words;
        let shared_at = |at: usize| match at {
            0 => 0,
            _ => layout.shared(&words[(at - 1) * width..at * width], &words[at * width..][..width]),
        };
        (0..self.len()).into_par_iter().map(shared_at).collect()
    }

    /// Place of each row before sorting. The rows were numbered.
    pub(crate) fn order(&self) -> Vec<u32> {
        let layout = &self.rows.layout;
        let width = layout.words_per_row.max(1);
        let keep = (1_u64 << layout.row_bits) - 1;
        self.rows.words.par_chunks_exact(width).map(|row| (row[width - 1] & keep) as u32).collect()
    }
}

impl Layout {
    fn shared(&self, a: &[u64], b: &[u64]) -> u8 {
        let differs = a.iter().zip(b).position(|(a, b)| a != b);
        let Some(word) = differs else { return self.levels.len() as u8 };
        let bit = word as u32 * 64 + (a[word] ^ b[word]).leading_zeros();
        // Past the last code it is the rows' numbers that differ.
        self.levels.partition_point(|bits| bits.end <= bit) as u8
    }
}

#[derive(Clone, Copy)]
pub(crate) struct SortedRow<'a> {
    words: &'a [u64],
    layout: &'a Layout,
}

impl SortedRow<'_> {
    /// The code at a level; `None` past the end of a shorter ID.
    #[inline]
    pub(crate) fn code(&self, level: usize) -> Option<u32> {
        self.layout.code(self.words, level)
    }

    /// Number of codes.
    pub(crate) fn len(&self) -> usize {
        let levels = self.layout.levels.len();
        match self.layout.ragged {
            false => levels,
            true => (0..levels).take_while(|&level| self.code(level).is_some()).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ids() -> impl Strategy<Value = Vec<Vec<u32>>> {
        let code = || prop_oneof![0_u32..3, 0..300_u32, 0..=MAX_CODE];
        let uniform = (1_usize..20).prop_flat_map(move |levels| {
            prop::collection::vec(prop::collection::vec(code(), levels), 0..60)
        });
        let ragged = prop::collection::vec(prop::collection::vec(code(), 1..6), 0..60);
        let long = prop::collection::vec(prop::collection::vec(code(), MAX_LEVELS), 0..10);
        prop_oneof![uniform, ragged, long]
    }

    proptest! {
        #[test]
        fn sorts_like_a_stable_sort(ids in ids(), keep_order: bool) {
            let mut rows = CodeRows::new();
            for id in &ids {
                rows.push(id).map_err(TestCaseError::fail)?;
            }
            let mut order: Vec<u32> = (0..ids.len() as u32).collect();
            order.sort_by_key(|&row| &ids[row as usize]);
            let sorted = rows.sorted(keep_order);
            prop_assert_eq!(sorted.len(), ids.len());
            let shared = sorted.shared();
            for (rank, row) in sorted.iter().enumerate() {
                let id = &ids[order[rank] as usize];
                let codes: Vec<u32> = (0..row.len()).filter_map(|level| row.code(level)).collect();
                prop_assert_eq!(&codes, id);
                let before = rank.checked_sub(1).map_or(&[][..], |at| &ids[order[at] as usize]);
                let expected = before.iter().zip(id).take_while(|(a, b)| a == b).count();
                // A repeated ID has everything in common, ended levels with it.
                let expected = if before == id { sorted.num_levels() } else { expected };
                prop_assert_eq!(usize::from(shared[rank]), expected);
            }
            if keep_order {
                prop_assert_eq!(sorted.order(), order);
            }
        }
    }

    #[test]
    fn a_broken_rule_is_named() {
        let mut rows = CodeRows::new();
        let rule = |codes: &[u32]| rows.push(codes).unwrap_err();
        let [empty, long, large] = [vec![], vec![0; 65], vec![1, MAX_CODE + 1]].map(|id| id);
        let mut rule = rule;
        assert_eq!(rule(&empty), "has an empty semantic ID; it needs at least one code");
        assert_eq!(rule(&long), "has 65 codes; a semantic ID has at most 64");
        let expected = "has code 2147483648 at level 1; codes there are below 2147483648";
        assert_eq!(rule(&large), expected);
    }

    #[test]
    fn capacity_is_a_hint() {
        let mut rows = CodeRows::with_capacity(&[4, 4], 2);
        for id in [&[3, 1][..], &[9, 1], &[2]] {
            rows.push(id).expect("within limits");
        }
        let sorted = rows.sorted(true);
        assert_eq!(sorted.order(), [2, 0, 1]);
    }
}
