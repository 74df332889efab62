//! Policy of merges: the segments to merge next.

use std::ops::Range;

use crate::options::MergePolicy;
use crate::segment::MAX_SEGMENTS;

/// A segment as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) num_live: u64,
    pub(crate) num_tombstones: u64,
    /// True if it is being merged already.
    pub(crate) is_busy: bool,
}

/// A tier has segments up to so many times as large as the one before: a step pays for each
/// segment, so that there are few; a tier of ratio r rewrites an item r / 2 times.
const RATIO: u64 = 8;
/// The first two tiers have more, since what they rewrite is little.
const SMALL_RATIO: u64 = 32;
/// Immutable segments from which on the cheapest neighbours are merged, whatever their tiers.
const CROWDED: usize = MAX_SEGMENTS - 2;

/// Merges of so many items and more leave it to those of fewer to go on beside them: each lane is a
/// thread.
const LANE_ITEMS: [u64; 2] = [1 << 17, 1 << 22];
/// Number of merges that can run side by side.
pub(crate) const NUM_LANES: usize = LANE_ITEMS.len() + 1;

/// The segments, the oldest first, that should be merged next in this lane. `memory_items` is the
/// size of the smallest tier.
pub(crate) fn pick(
    policy: MergePolicy,
    segments: &[Candidate],
    memory_items: u64,
    lane: usize,
) -> Option<Range<usize>> {
    let items = |range: &Range<usize>| segments[range.clone()].iter().map(|s| s.num_live).sum();
    let mine = |range: &Range<usize>| {
        segments[range.clone()].iter().all(|segment| !segment.is_busy)
            && lane_of(items(range)) == lane
    };
    match policy {
        MergePolicy::Never => None,
        MergePolicy::Always => {
            let dirty = segments.iter().any(|segment| segment.num_tombstones > 0);
            let all = 0..segments.len();
            (segments.len() > 1 || dirty).then_some(all).filter(mine)
        }
        MergePolicy::Tiered => {
            // One that has departed items alone has no tombstones, and waits for a neighbour.
            let empty = |&at: &usize| segments[at].num_live == 0 && segments[at].num_tombstones > 0;
            let is_worn = |&at: &usize| {
                let Candidate { num_live, num_tombstones, .. } = segments[at];
                num_tombstones > memory_items / 4 && num_tombstones * 3 > num_live
            };
            let alone = |at: usize| at..at + 1;
            let all = || 0..segments.len();
            let neighbours = || (1..segments.len()).rev();
            all()
                .filter(empty)
                .map(alone)
                .find(mine)
                .or_else(|| {
                    neighbours().filter_map(|at| cascade(segments, at, memory_items)).find(mine)
                })
                .or_else(|| all().filter(is_worn).map(alone).find(mine))
                .or_else(|| {
                    let cheapest = neighbours().map(|at| at - 1..at + 1).filter(mine);
                    cheapest.min_by_key(items).filter(|_| segments.len() >= CROWDED)
                })
        }
    }
}

/// The segments up to `last` that merge since each is of no higher tier than all that are newer put
/// together.
fn cascade(segments: &[Candidate], last: usize, memory_items: u64) -> Option<Range<usize>> {
    let (mut first, mut sum) = (last, segments[last].num_live);
    while first > 0
        && !segments[first - 1].is_busy
        && tier(segments[first - 1].num_live, memory_items) <= tier(sum, memory_items)
    {
        first -= 1;
        sum += segments[first].num_live;
    }
    (first < last).then_some(first..last + 1)
}

fn tier(num_items: u64, memory_items: u64) -> u32 {
    let memories = (num_items / memory_items.max(1)).max(1);
    match memories.ilog(SMALL_RATIO) {
        small @ 0..2 => small,
        _ => 2 + (memories / SMALL_RATIO.pow(2)).ilog(RATIO),
    }
}

fn lane_of(num_items: u64) -> usize {
    LANE_ITEMS.iter().take_while(|&&most| num_items >= most).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(sizes: &[u64]) -> Vec<Candidate> {
        let idle = |&num_live| Candidate { num_live, num_tombstones: 0, is_busy: false };
        sizes.iter().map(idle).collect()
    }

    #[track_caller]
    fn check(sizes: &[u64], lane: usize, expected: Option<Range<usize>>) {
        assert_eq!(pick(MergePolicy::Tiered, &segments(sizes), 1000, lane), expected);
    }

    #[test]
    fn tiers_are_merged_where_two_meet() {
        check(&[1000], 0, None);
        check(&[33_000, 1000], 0, None);
        check(&[33_000, 1000, 1000], 0, Some(1..3));
        check(&[60_000, 31_500, 1000], 0, Some(0..3));
        check(&[20_000_000, 900_000, 1000, 1000], 0, Some(2..4));
        // From a million on tiers are eight wide.
        check(&[9_000_000, 5_000_000, 1000], 2, None);
        check(&[8_000_000, 5_000_000, 1000], 2, Some(0..2));
        check(&[8_000_000, 5_000_000, 1000], 0, None);
    }

    #[test]
    fn busy_segments_are_left_alone() {
        let mut busy = segments(&[5000, 1000, 1000]);
        busy[2].is_busy = true;
        assert_eq!(pick(MergePolicy::Tiered, &busy, 1000, 0), Some(0..2));
        busy[1].is_busy = true;
        assert_eq!(pick(MergePolicy::Tiered, &busy, 1000, 0), None);
        assert_eq!(pick(MergePolicy::Always, &busy, 1000, 0), None);
    }

    #[test]
    fn worn_and_empty_segments_are_rewritten() {
        let mut worn = segments(&[50_000, 1000]);
        worn[0].num_tombstones = 20_000;
        assert_eq!(pick(MergePolicy::Tiered, &worn, 1000, 0), Some(0..1));
        worn[0].num_tombstones = 10_000;
        assert_eq!(pick(MergePolicy::Tiered, &worn, 1000, 0), None);
        let mut empty = segments(&[50_000, 0]);
        assert_eq!(pick(MergePolicy::Tiered, &empty, 1000, 0), None, "departed items alone");
        empty[1].num_tombstones = 1;
        assert_eq!(pick(MergePolicy::Tiered, &empty, 1000, 0), Some(1..2));
    }

    #[test]
    fn a_crowd_is_thinned_out_where_that_is_cheapest() {
        let sizes = [500_000_000_u64, 60_000_000, 5_000_000, 600_000, 20_000, 9000];
        let mut crowd = segments(&sizes);
        crowd[5].is_busy = true;
        assert_eq!(pick(MergePolicy::Tiered, &crowd, 1000, 0), None);
        assert_eq!(pick(MergePolicy::Tiered, &crowd, 1000, 1), Some(3..5));
        assert_eq!(pick(MergePolicy::Tiered, &crowd[1..], 1000, 1), None);
    }
}
