//! The bytes of each string after those that it shares with the one before it.

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

/// Strings of a line.
const LINE: usize = 28;
/// A line: one cache line.
type Line = [u64; 8];
/// Offsets in a line of the lengths and of the branch bytes.
const LENGTHS_AT: usize = 8;
const BRANCHES_AT: usize = LENGTHS_AT + LINE;
/// Length of a rest of so many bytes or more; how many more is in the list of long ones.
const LONG: u8 = u8::MAX;
/// Bit of a line's first word: one of its rests is long.
const HAS_LONG: u64 = 1 << 63;

/// Tails of sorted strings: the *branch*, the byte by which a string parts from the one before it,
/// and the *rest* after that.
///
/// 28 strings have a line of 64 bytes: where their rests begin, in eight bytes, the length of each
/// rest, in a byte, and each branch. A rest is found by adding the lengths before its own. 2.3
/// bytes a string beside the rests, and one cache line of them is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tails {
    lines: Array<Line>,
    rests: Array<u8>,
    /// Ranks of rests of 255 bytes and more, ascending, and how many more.
    long_ranks: Array<u32>,
    long: Array<u16>,
    len: usize,
}

/// Sections of [`Tails`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TailsMeta {
    lines: u32,
    rests: u32,
    num_bytes: u64,
    long_ranks: u32,
    long: u32,
    num_long: u64,
}

/// Tails in the making.
#[derive(Debug, Default)]
pub(crate) struct TailsBuilder {
    lines: Vec<Line>,
    /// The first word, lengths and branches of the line that is being filled, and how many of them.
    start: u64,
    lengths: [u8; LINE],
    branches: [u8; LINE],
    in_line: usize,
    rests: Vec<u8>,
    long_ranks: Vec<u32>,
    long: Vec<u16>,
    len: usize,
}

/// The slices of [`Tails`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailsView<'a> {
    lines: &'a [Line],
    rests: &'a [u8],
    long_ranks: &'a [u32],
    long: &'a [u16],
}

impl TailsBuilder {
    pub(crate) fn with_capacity(len: usize, rest_bytes: usize) -> Self {
        let lines = Vec::with_capacity(len.div_ceil(LINE));
        Self { lines, rests: Vec::with_capacity(rest_bytes), ..Self::default() }
    }

    /// Adds the next string's branch and rest; the rest has at most 65,535 bytes.
    pub(crate) fn push(&mut self, branch: u8, rest: &[u8]) {
        if self.in_line == 0 {
            self.start = self.rests.len() as u64;
        }
        if let Some(more) = rest.len().checked_sub(LONG.into()) {
            self.start |= HAS_LONG;
            self.long_ranks.push(self.len as u32);
            self.long.push(u16::try_from(more).expect("strings are no longer"));
        }
        self.lengths[self.in_line] = rest.len().min(LONG.into()) as u8;
        self.branches[self.in_line] = branch;
        self.rests.extend_from_slice(rest);
        self.len += 1;
        self.in_line += 1;
        if self.in_line == LINE {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let mut line = [0; 64];
        line[..LENGTHS_AT].copy_from_slice(&self.start.to_le_bytes());
        line[LENGTHS_AT..BRANCHES_AT].copy_from_slice(&self.lengths);
        line[BRANCHES_AT..].copy_from_slice(&self.branches);
        self.lines.push(bytemuck::cast(line));
        (self.lengths, self.branches, self.in_line) = ([0; LINE], [0; LINE], 0);
    }

    pub(crate) fn finish(mut self) -> Tails {
        if self.in_line > 0 {
            self.end_line();
        }
        self.lines.shrink_to_fit();
        self.rests.shrink_to_fit();
        let Self { lines, rests, long_ranks, long, len, .. } = self;
        Tails {
            lines: lines.into(),
            rests: rests.into(),
            long_ranks: long_ranks.into(),
            long: long.into(),
            len,
        }
    }
}

impl Tails {
    pub(crate) fn bytes(&self) -> usize {
        let long = self.long_ranks.as_bytes().len() + self.long.as_bytes().len();
        self.lines.as_bytes().len() + self.rests.len() + long
    }

    #[inline]
    pub(crate) fn view(&self) -> TailsView<'_> {
        TailsView {
            lines: self.lines.as_slice(),
            rests: self.rests.as_slice(),
            long_ranks: self.long_ranks.as_slice(),
            long: self.long.as_slice(),
        }
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> TailsMeta {
        TailsMeta {
            lines: out.add_array(&self.lines),
            rests: out.add_array(&self.rests),
            num_bytes: self.rests.len() as u64,
            long_ranks: out.add_array(&self.long_ranks),
            long: out.add_array(&self.long),
            num_long: self.long.len() as u64,
        }
    }

    pub(crate) fn load(
        meta: &TailsMeta,
        len: usize,
        sections: &SectionsIn,
    ) -> Result<Self, String> {
        Ok(Self {
            lines: sections.array(meta.lines, len.div_ceil(LINE) as u64)?,
            rests: sections.array(meta.rests, meta.num_bytes)?,
            long_ranks: sections.array(meta.long_ranks, meta.num_long)?,
            long: sections.array(meta.long, meta.num_long)?,
            len,
        })
    }

    /// Checks that lines, lengths and the list of long rests are those that rests in a row have.
    pub(crate) fn check(&self) -> Result<(), String> {
        let damaged = |what: &str| Err(format!("{what} that are not those of its strings"));
        let view = self.view();
        let (mut place, mut num_long) = (0_u64, 0);
        for (first, words) in (0..).step_by(LINE).zip(self.lines.iter()) {
            let line = bytes_of(words);
            let in_line = (self.len - first).min(LINE);
            let lengths = &line[LENGTHS_AT..LENGTHS_AT + LINE];
            let branches = &line[BRANCHES_AT..];
            let has_long = lengths.contains(&LONG);
            if words[0] != place | if has_long { HAS_LONG } else { 0 } {
                return damaged("places");
            }
            if lengths[in_line..].iter().chain(&branches[in_line..]).any(|&byte| byte != 0) {
                return damaged("strings after the last");
            }
            for (rank, &length) in (first as u32..).zip(lengths) {
                place += u64::from(length);
                if length == LONG {
                    if view.long_ranks.get(num_long) != Some(&rank) {
                        return damaged("long strings");
                    }
                    place += u64::from(view.long[num_long]);
                    num_long += 1;
                }
            }
        }
        if num_long != view.long.len() || place != view.rests.len() as u64 {
            return damaged("lengths");
        }
        Ok(())
    }
}

impl<'a> TailsView<'a> {
    /// The byte by which string `rank` parts from the one before; 0 where there is no such string.
    #[inline]
    pub(crate) fn branch(&self, rank: usize) -> u8 {
        self.lines.get(rank / LINE).map_or(0, |line| bytes_of(line)[BRANCHES_AT + rank % LINE])
    }

    /// The bytes of string `rank` after its branch; none where there is no such string.
    #[inline]
    pub(crate) fn rest(&self, rank: usize) -> &'a [u8] {
        let (number, in_line) = (rank / LINE, rank % LINE);
        let Some(line) = self.lines.get(number) else { return &[] };
        // Below 2⁶³, so that a damaged place does not overflow.
        let mut start = (line[0] & !HAS_LONG) + sum_of_first(line, in_line);
        let mut len = u64::from(bytes_of(line)[LENGTHS_AT + in_line]);
        if line[0] & HAS_LONG != 0 {
            (start, len) = self.with_long(start, len, rank);
        }
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        self.rests.get(start..start.saturating_add(len as usize)).unwrap_or_default()
    }

    /// Place and length of a rest in a line with long ones, from the sums of their bytes.
    #[cold]
    fn with_long(&self, start: u64, len: u64, rank: usize) -> (u64, u64) {
        let place = |rank: usize| self.long_ranks.partition_point(|&long| (long as usize) < rank);
        let more = |from: usize, to: usize| -> u64 {
            let long = self.long.get(place(from)..place(to)).unwrap_or_default();
            long.iter().copied().map(u64::from).sum()
        };
        (start + more(rank / LINE * LINE, rank), len + more(rank, rank + 1))
    }
}

/// The lengths of the first strings of a line together, where none is long. PERF: the 32 bytes from
/// the lengths on, eight at a time, in lanes of sixteen bits.
#[inline(always)]
fn sum_of_first(line: &Line, count: usize) -> u64 {
    const EVEN_BYTES: u64 = 0x00FF_00FF_00FF_00FF;
    let mut lanes = 0;
    for (first, word) in (0..).step_by(8).zip(&line[1..5]) {
        let bytes = count.saturating_sub(first).min(8);
        let word = if bytes == 8 { *word } else { word & ((1 << (8 * bytes)) - 1) };
        lanes += (word & EVEN_BYTES) + (word >> 8 & EVEN_BYTES);
    }
    lanes.wrapping_mul(0x0001_0001_0001_0001) >> 48
}

/// The bytes of a line.
#[inline(always)]
fn bytes_of(words: &Line) -> &[u8; 64] {
    bytemuck::cast_ref(words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Short rests, and some of about 255 bytes and of the most there can be.
        #[test]
        fn gives_back_what_went_in(
            lens in prop::collection::vec(
                prop_oneof![20 => 0_usize..40, 3 => 250_usize..260, 1 => Just(65_535)], 0..200),
            byte in 0_u8..,
        ) {
            let rest = |rank: usize| vec![byte.wrapping_add(rank as u8); lens[rank]];
            let mut builder = TailsBuilder::default();
            (0..lens.len()).for_each(|rank| builder.push(rank as u8 ^ 3, &rest(rank)));
            let tails = builder.finish();
            prop_assert_eq!(tails.check(), Ok(()));
            let view = tails.view();
            for rank in 0..lens.len() {
                prop_assert_eq!(view.branch(rank), rank as u8 ^ 3);
                prop_assert_eq!(view.rest(rank), rest(rank));
            }
            prop_assert_eq!(view.rest(lens.len() + LINE), b"");
        }
    }

    #[test]
    fn damaged_places_have_no_rests() {
        let mut builder = TailsBuilder::default();
        (0..3).for_each(|_| builder.push(b'a', b"rest"));
        let mut tails = builder.finish();
        for place in [u64::MAX, u64::MAX / 2, 1 << 40] {
            let mut lines = tails.lines.to_vec();
            lines[0][0] = place;
            tails.lines = lines.into();
            assert!((0..4).all(|rank| tails.view().rest(rank).is_empty()));
            assert!(tails.check().is_err());
        }
    }
}
