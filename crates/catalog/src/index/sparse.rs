//! A level as the prefixes that exist.

use std::ops::Range;

use palmette_catalog_filter::RankSet;
use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::members::Members;
use super::packed_ints::{PackedInts, PackedIntsMeta, PackedReader, Packer, bits_for, num_words};
use super::position_list::partition_point;
use super::rank_bits::RankBits;
use super::rows::SortedRows;
use super::starts::{Starts, StartsMeta};

/// Ranks whose bits are read one after another. Looking for the next member of a set reads a
/// summary too, which lies in another cache line.
const NARROW: u64 = 512;

/// Ranks whose codes are all looked at, whether or not they are in.
const SHORT: u64 = 64;

/// The codes of one level, in order of the prefixes that end in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SparseLevel {
    codes: PackedInts,
    /// Start of each code's prefix; `None` where there is a code for each rank. A prefix then
    /// begins where its parent does or the code changes.
    ///
    /// Deep levels of a large catalog have a prefix of its own for nearly every item, and repeating
    /// the code for the others takes less than saying where prefixes begin; above all, a beam's
    /// codes are then found without looking anything up.
    starts: Option<Starts>,
    num_prefixes: u64,
}

/// Serialised place of a level in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct SparseMeta {
    codes: PackedIntsMeta,
    starts: Option<StartsMeta>,
    num_prefixes: u64,
}

impl SparseLevel {
    /// `shared` says how many codes each row has in common with the one before; codes are below
    /// `bound`.
    pub(crate) fn new(level: usize, bound: u32, sorted: &SortedRows, shared: &[u8]) -> Self {
        let num_items = sorted.len() as u64;
        let bits = bits_for(u64::from(bound.saturating_sub(1)));
        let begins = |&(rank, _): &(usize, _)| usize::from(shared[rank]) <= level;
        let rows = || sorted.iter().enumerate();
        let coded = || {
            let first = rows().filter(begins);
            first.filter_map(|(rank, row)| Some((rank as u64, u64::from(row.code(level)?))))
        };
        let num_prefixes = coded().count() as u64;

        if !sorted.is_ragged() && Self::is_by_rank(bits, num_items, num_prefixes) {
            let mut codes = Packer::with_capacity(bits, num_items);
            sorted.iter().for_each(|row| codes.push(u64::from(row.code(level).unwrap_or(0))));
            return Self { codes: codes.finish(), starts: None, num_prefixes };
        }
        let mut codes = Packer::with_capacity(bits, num_prefixes);
        let starts = coded().map(|(rank, code)| {
            codes.push(code);
            rank
        });
        let starts = Starts::new(RankBits::new(num_items, starts));
        Self { codes: codes.finish(), starts: Some(starts), num_prefixes }
    }

    /// True if codes by rank take no more than codes by prefix with their starts.
    pub(crate) fn is_by_rank(bits: u32, num_items: u64, num_prefixes: u64) -> bool {
        let bytes = |len| 8 * num_words(bits, len).unwrap_or(u64::MAX / 16);
        let starts = Starts::bytes_for(num_items, num_prefixes);
        bytes(num_items) <= bytes(num_prefixes) + starts
    }

    /// Distinct prefixes that end at this level.
    pub(crate) fn num_prefixes(&self) -> u64 {
        self.num_prefixes
    }

    /// Visits all codes of the level, as often as they are stored.
    pub(crate) fn for_each_stored_code(&self, visit: impl FnMut(u64)) {
        self.codes.reader().for_each(0..self.codes.len(), visit);
    }

    pub(crate) fn num_stored_codes(&self) -> u64 {
        self.codes.len()
    }

    pub(crate) fn largest_code(&self) -> Option<u32> {
        self.codes.iter().max().map(|code| code as u32)
    }

    pub(crate) fn code_bits(&self) -> u32 {
        self.codes.bits()
    }

    pub(crate) fn form(&self) -> &'static str {
        match &self.starts {
            None => "by_rank",
            Some(Starts::Listed(_)) => "listed",
            Some(Starts::Bits(_)) => "bits",
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.codes.bytes() + self.starts.as_ref().map_or(0, Starts::bytes)
    }

    /// Place of the first code of the prefix whose range begins at `start`.
    #[inline]
    pub(crate) fn first(&self, start: u64) -> u64 {
        self.starts.as_ref().map_or(start, |starts| starts.count_before(start))
    }

    /// Places of the codes of the prefix with this range.
    #[inline(always)]
    pub(crate) fn places(&self, within: &Range<u64>) -> Range<u64> {
        match &self.starts {
            None => within.clone(),
            Some(starts) => starts.count_before(within.start)..starts.count_before(within.end),
        }
    }

    /// True if [`places`](Self::places) are looked up, and are not the ranks themselves.
    pub(crate) fn knows_starts(&self) -> bool {
        self.starts.is_some()
    }

    /// Asks for what [`places`](Self::places) will read first.
    #[inline]
    pub(crate) fn prefetch_starts(&self, within: &Range<u64>) {
        if let Some(starts) = &self.starts {
            starts.prefetch(within.start);
            starts.prefetch(within.end);
        }
    }

    /// Asks for what [`places`](Self::places) will read next; waits for what was asked for first.
    #[inline]
    pub(crate) fn prefetch_listed_starts(&self, within: &Range<u64>) {
        if let Some(Starts::Listed(list)) = &self.starts {
            list.prefetch_positions(within.start);
            list.prefetch_positions(within.end);
        }
    }

    /// Asks for the first and last of the codes at `places`.
    #[inline]
    pub(crate) fn prefetch_codes(&self, places: &Range<u64>) {
        let codes = self.codes.reader();
        codes.prefetch(places.start);
        codes.prefetch(places.end.saturating_sub(1));
    }

    /// Asks for what says where the codes of the prefix with this range are, or for the first of
    /// them.
    #[inline]
    pub(crate) fn prefetch_codes_or_starts(&self, within: &Range<u64>) {
        match &self.starts {
            None => self.codes.reader().prefetch(within.start),
            Some(starts) => starts.prefetch(within.start),
        }
    }

    /// Asks for all the codes at `places`, up to some lines.
    #[inline]
    pub(crate) fn prefetch_all_codes(&self, places: &Range<u64>) {
        const MAX_LINES: u64 = 8;
        let codes = self.codes.reader();
        let step = (512 / u64::from(self.codes.bits().max(1))).max(1);
        let lines = (places.end.saturating_sub(places.start) / step).min(MAX_LINES);
        (1..=lines).for_each(|line| codes.prefetch(places.start + line * step));
    }

    /// The codes, by place.
    #[inline(always)]
    pub(crate) fn codes(&self) -> PackedReader<'_> {
        self.codes.reader()
    }

    /// Visits the codes at `places`, those of the prefix with range `within`, that lead to one of
    /// `members` where these are asked; some may be visited twice, and others with `false`.
    ///
    /// PERF: how many codes there are, how many of them are in, and whether there is one and
    /// nothing is asked, is not predictable at a level that keeps a code for each rank: as many as
    /// a read holds are visited. Where nothing is asked, no line is waited for. Of many ranks, few
    /// of which may be in, only those are looked at.
    #[inline(always)]
    pub(crate) fn for_each_code_or_more(
        &self,
        members: Option<Members<'_>>,
        is_asked: bool,
        within: Range<u64>,
        places: Range<u64>,
        mut visit: impl FnMut(u64, bool),
    ) {
        match members {
            Some(Members { ranks, .. })
                if self.starts.is_none()
                    && self.codes.bits() > 0
                    && within.end.saturating_sub(within.start) <= SHORT =>
            {
                let (asked, unasked) = if is_asked { (u64::MAX, 0) } else { (0, u64::MAX) };
                let bits_in = |part: Range<u64>| {
                    let len = part.end - part.start;
                    let start = part.start & asked;
                    ranks.bits_in(start..start + len) | (unasked & ((1 << len) - 1))
                };
                self.codes.reader().for_each_in_or_more(within, bits_in, visit);
            }
            Some(members) if is_asked => {
                self.for_each_code_of(members, within, places, |code| visit(code, true));
            }
            _ => self.codes.reader().for_each_or_more(places, visit),
        }
    }

    /// Visits the codes at `places`, those of the prefix with range `within`, that lead to one of
    /// `members`; some may be visited twice.
    #[inline]
    pub(crate) fn for_each_code_of(
        &self,
        members: Members<'_>,
        within: Range<u64>,
        places: Range<u64>,
        mut visit: impl FnMut(u64),
    ) {
        let codes = self.codes.reader();
        let Members { ranks, prefixes } = members;
        let Some(starts) = &self.starts else {
            return ranks.for_each_in(within, |rank| visit(codes.get(rank)));
        };
        if let Some(prefixes) = prefixes {
            return prefixes.for_each_in(places, |place| visit(codes.get(place)));
        }
        // Where all items are in, as they mostly are in a set that few were taken out of, there is
        // no need to find where each child begins.
        if ranks.all_in(within.clone()) {
            return codes.for_each(places, visit);
        }
        if ranks.len() < ranks.num_ranks() / 8 {
            return self.for_each_code_of_few(starts, ranks, within, places.start, visit);
        }
        self.for_each_child(within, places.start, |code, child| {
            if ranks.any_in(child) {
                visit(code);
            }
        });
    }

    /// Looks up the child of each rank that is in, rather than whether a rank is in of each child.
    fn for_each_code_of_few(
        &self,
        starts: &Starts,
        ranks: &RankSet,
        within: Range<u64>,
        first: u64,
        mut visit: impl FnMut(u64),
    ) {
        let codes = self.codes.reader();
        // Before the first child lie the items whose ID ends with the prefix.
        let mut last_place = first;
        // Where to go on from: children with two members and more are left at the second.
        let mut visit_child_with = |rank: u64| {
            let place = starts.count_before(rank + 1);
            if place == last_place {
                return starts.next(rank + 1, within.end, place).max(rank + 1);
            }
            last_place = place;
            visit(codes.get(place.wrapping_sub(1)));
            rank + 1
        };
        if within.end - within.start <= NARROW {
            let mut past = within.start;
            return ranks.for_each_in(within.clone(), |rank| {
                if rank >= past {
                    past = visit_child_with(rank);
                }
            });
        }
        let mut next = ranks.next_in(within.clone());
        while let Some(rank) = next {
            next = ranks.next_in(visit_child_with(rank)..within.end);
        }
    }

    /// Visits the children of the prefix with range `within`, whose first code is at `first`: code
    /// and range of each.
    #[inline]
    pub(crate) fn for_each_child(
        &self,
        within: Range<u64>,
        first: u64,
        mut visit: impl FnMut(u64, Range<u64>),
    ) {
        let Some(starts) = &self.starts else { return self.for_each_run(within, visit) };
        let codes = self.codes.reader();
        let mut prefix = first;
        let mut start = starts.next(within.start, within.end, prefix);
        while start < within.end {
            let end = starts.next(start + 1, within.end, prefix + 1);
            visit(codes.get(prefix), start..end);
            (start, prefix) = (end, prefix + 1);
        }
    }

    /// [`for_each_child`](Self::for_each_child) where a code is kept for each rank.
    #[inline]
    pub(crate) fn for_each_run(&self, within: Range<u64>, mut visit: impl FnMut(u64, Range<u64>)) {
        if within.is_empty() {
            return;
        }
        let codes = self.codes.reader();
        let (mut start, mut code) = (within.start, codes.get(within.start));
        for at in within.start + 1..within.end {
            let next = codes.get(at);
            if next != code {
                visit(code, start..at);
                (start, code) = (at, next);
            }
        }
        visit(code, start..within.end);
    }

    /// The range of the child over `code`, if there is one.
    ///
    /// Cost: a binary search over the codes, and finding where the child begins and ends.
    pub(crate) fn child(&self, parent: &Range<u64>, code: u32) -> Option<Range<u64>> {
        self.child_at(parent, self.places(parent), code).map(|(_, child)| child)
    }

    /// The child over `code` of the prefix with range `parent`, whose codes are at `places`: its
    /// number, or where the level does not number prefixes its first rank, and its range.
    #[inline(always)]
    pub(crate) fn child_at(
        &self,
        parent: &Range<u64>,
        places: Range<u64>,
        code: u32,
    ) -> Option<(u64, Range<u64>)> {
        let code = u64::from(code);
        let place = self.codes.reader().find_sorted(places, code)?;
        Some(match &self.starts {
            None => (place, place..self.run_end(place..parent.end, code)),
            Some(starts) => (place, range_of(starts, place, parent)),
        })
    }

    /// The range of the child that comes after as many others, at a level that knows where prefixes
    /// begin.
    #[inline(always)]
    pub(crate) fn child_after(&self, parent: &Range<u64>, others: u64) -> Range<u64> {
        match &self.starts {
            None => 0..0,
            Some(starts) => starts.nth_after(parent, others),
        }
    }

    /// The child that holds `rank`, and its code; `None` when the ID of that item ends before.
    pub(crate) fn child_with(&self, parent: &Range<u64>, rank: u64) -> Option<(u32, Range<u64>)> {
        let codes = self.codes.reader();
        let Some(starts) = &self.starts else {
            let code = codes.get(rank);
            let start = partition_point(parent.start..rank, |rank| codes.get(rank) < code);
            return Some((code as u32, start..self.run_end(rank..parent.end, code)));
        };
        // Before the first start of the range lie the items whose ID ends with the parent.
        let first = starts.count_before(parent.start);
        let place = starts.count_before(rank + 1).checked_sub(1).filter(|&place| place >= first)?;
        Some((codes.get(place) as u32, range_of(starts, place, parent)))
    }

    /// The rank of the first item in the range that has a code here; the range's end if none has.
    pub(crate) fn first_child(&self, within: &Range<u64>) -> u64 {
        match &self.starts {
            None => within.start,
            Some(starts) => {
                starts.next(within.start, within.end, starts.count_before(within.start))
            }
        }
    }

    /// True if a prefix begins at `rank`, by itself or because its parent does.
    pub(crate) fn begins_at(&self, rank: u64, parent_begins: bool) -> bool {
        match &self.starts {
            Some(starts) => starts.contains(rank),
            None => parent_begins || rank == 0 || self.codes.get(rank) != self.codes.get(rank - 1),
        }
    }

    /// The code of the prefix that begins at `rank` and is number `prefix`.
    pub(crate) fn code_at(&self, rank: u64, prefix: u64) -> u32 {
        self.codes.get(if self.starts.is_some() { prefix } else { rank }) as u32
    }

    /// End of the codes that equal `code`, in a range of codes that are not smaller.
    ///
    /// Looks nearby first: runs are short.
    fn run_end(&self, range: Range<u64>, code: u64) -> u64 {
        let codes = self.codes.reader();
        let (mut start, mut step) = (range.start, 1);
        while start + step < range.end && codes.get(start + step) <= code {
            start += step;
            step *= 2;
        }
        partition_point(start..(start + step).min(range.end), |rank| codes.get(rank) <= code)
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> SparseMeta {
        SparseMeta {
            codes: self.codes.save(out),
            starts: self.starts.as_ref().map(|starts| starts.save(out)),
            num_prefixes: self.num_prefixes,
        }
    }

    pub(crate) fn load(
        meta: SparseMeta,
        num_items: u64,
        sections: &SectionsIn,
    ) -> Result<Self, String> {
        let SparseMeta { codes, starts, num_prefixes } = meta;
        let codes = PackedInts::load(codes, sections)?;
        let starts = starts.map(|meta| Starts::load(meta, num_items, sections)).transpose()?;
        let sound = match &starts {
            Some(starts) => starts.len() == num_prefixes && codes.len() == num_prefixes,
            None => codes.len() == num_items,
        };
        match sound && num_prefixes <= num_items {
            true => Ok(Self { codes, starts, num_prefixes }),
            false => Err("a level has more or fewer codes than prefixes".to_owned()),
        }
    }

    /// Fails unless starts are in order and codes below `bound`.
    pub(crate) fn check(&self, num_items: u64, bound: u32) -> Result<(), String> {
        if let Some(starts) = &self.starts {
            starts.check(num_items)?;
        }
        match self.codes.iter().find(|&code| code >= u64::from(bound)) {
            Some(code) => Err(format!("code {code} is over its codebook's size {bound}")),
            None => Ok(()),
        }
    }
}

#[inline(always)]
fn range_of(starts: &Starts, place: u64, parent: &Range<u64>) -> Range<u64> {
    let start = starts.nth(place, parent);
    start..starts.next(start + 1, parent.end, place + 1).max(start)
}
