//! Sets of ranks are held to plain lists of booleans.

use std::ops::Range;

use palmette_mapped::RankSet;
use proptest::prelude::*;

/// Sizes around the ends of words and chunks, and more than one chunk.
fn sizes() -> impl Strategy<Value = usize> {
    let edge = prop::sample::select(vec![0, 1, 63, 64, 65, 32_767, 32_768, 32_769, 65_536]);
    prop_oneof![edge, 0..200_usize, 0..200_000_usize]
}

/// Members at random in stretches that are empty, full, sparse or dense.
fn members(num_ranks: usize) -> impl Strategy<Value = Vec<bool>> {
    let stretch = (0..70_000_usize, 0..4_u8, any::<u64>());
    prop::collection::vec(stretch, 0..8).prop_map(move |stretches| {
        let mut members = Vec::with_capacity(num_ranks);
        for (len, kind, seed) in stretches {
            let mut random = seed | 1;
            for _ in 0..len.min(num_ranks - members.len()) {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                members.push(match kind {
                    0 => false,
                    1 => true,
                    2 => random >> 54 == 0,
                    _ => random >> 63 == 0,
                });
            }
        }
        members.resize(num_ranks, false);
        members
    })
}

fn set(members: &[bool]) -> RankSet {
    let ranks = (0..members.len()).rev().filter(|&rank| members[rank]).map(|rank| rank as u64);
    RankSet::from_ranks(members.len() as u64, ranks)
}

/// Ranges that begin and end anywhere, a little past the end too, near each other or not.
fn ranges() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let near = (0..200_100_u64, 0..200_u64).prop_map(|(start, len)| (start, start + len));
    prop::collection::vec(prop_oneof![(0..200_100_u64, 0..200_100_u64), near], 1..40)
}

#[track_caller]
fn check(found: &RankSet, expected: &[bool]) {
    let ranks: Vec<u64> =
        (0..expected.len()).filter(|&rank| expected[rank]).map(|rank| rank as u64).collect();
    assert_eq!(found.num_ranks(), expected.len() as u64);
    assert_eq!(found.len(), ranks.len() as u64);
    assert_eq!(found.is_empty(), ranks.is_empty());
    assert_eq!(found.is_full(), ranks.len() == expected.len());
    assert!(found.iter().eq(ranks.iter().copied()));
    // However it came about: summaries, counts and all.
    assert!(*found == set(expected));
    for index in 0..expected.len().div_ceil(64) + 2 {
        let bit = |bit: usize| u64::from(expected.get(index * 64 + bit) == Some(&true)) << bit;
        assert_eq!(found.word(index as u64), (0..64).map(bit).sum::<u64>());
    }
    for chunk in 0..found.num_chunks() {
        let words = (chunk as u64 * 512..).map(|index| found.word(index));
        assert!(found.chunk_words(chunk).iter().copied().eq(words.take(512)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ranges_equal_a_list(
        members in sizes().prop_flat_map(members),
        ranges in ranges(),
    ) {
        let set = set(&members);
        check(&set, &members);
        for (start, end) in ranges {
            let clip = |rank: u64| (rank as usize).min(members.len());
            let Range { start: from, end: to } = clip(start)..clip(end).max(clip(start));
            let expected: Vec<u64> =
                (from..to).filter(|&rank| members[rank]).map(|rank| rank as u64).collect();
            prop_assert_eq!(set.any_in(start..end), !expected.is_empty());
            let first = expected.iter().map(|rank| rank - start).take_while(|&bit| bit < 64);
            prop_assert_eq!(set.bits_in(start..end), first.fold(0, |bits, bit| bits | 1 << bit));
            let is_member = |rank: u64| members.get(rank as usize) == Some(&true);
            prop_assert_eq!(set.all_in(start..end), (start..end).all(is_member));
            prop_assert_eq!(set.next_in(start..end), expected.first().copied());
            prop_assert_eq!(set.last_in(start..end), expected.last().copied());
            prop_assert_eq!(set.count_in(start..end), expected.len() as u64);
            prop_assert!(set.iter_in(start..end).eq(expected.clone()));
            let mut visited = Vec::new();
            set.for_each_in(start..end, |rank| visited.push(rank));
            prop_assert_eq!(visited, expected);
            prop_assert_eq!(set.contains(start), members.get(start as usize) == Some(&true));
        }
    }

    #[test]
    fn algebra_equals_a_list(
        (a, b) in sizes().prop_flat_map(|n| (members(n), members(n))),
    ) {
        let each = |op: fn(bool, bool) -> bool| -> Vec<bool> {
            a.iter().zip(&b).map(|(&a, &b)| op(a, b)).collect()
        };
        let (set_a, set_b) = (set(&a), set(&b));
        check(&set_a.and(&set_b), &each(|a, b| a && b));
        check(&set_a.or(&set_b), &each(|a, b| a || b));
        check(&set_a.and_not(&set_b), &each(|a, b| a && !b));
        check(&set_a.not(), &each(|a, _| !a));
        check(&RankSet::full(a.len() as u64), &vec![true; a.len()]);
        check(&RankSet::empty(a.len() as u64), &vec![false; a.len()]);
    }

    #[test]
    fn words_make_the_set_again(members in sizes().prop_flat_map(members), past: u64) {
        let (set, num_ranks) = (set(&members), members.len() as u64);
        let mut words: Vec<u64> = (0..num_ranks.div_ceil(64)).map(|at| set.word(at)).collect();
        prop_assert!(RankSet::from_words(num_ranks, &words).as_ref() == Some(&set));
        if num_ranks % 64 != 0 {
            *words.last_mut().expect("a word") |= 1 << (num_ranks % 64 + past % (64 - num_ranks % 64));
            prop_assert!(RankSet::from_words(num_ranks, &words).is_none());
        }
        words.push(0);
        prop_assert!(RankSet::from_words(num_ranks, &words).is_none());
    }

    #[test]
    fn changes_equal_a_list_and_leave_clones_alone(
        before in (1..100_000_usize).prop_flat_map(members),
        changes in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..100),
    ) {
        let original = set(&before);
        let (mut changed, mut after) = (original.clone(), before.clone());
        for (is_insert, rank) in changes {
            let rank = rank.index(after.len());
            let is_change = after[rank] != is_insert;
            after[rank] = is_insert;
            let rank = rank as u64;
            let answer = if is_insert { changed.insert(rank) } else { changed.remove(rank) };
            prop_assert_eq!(answer, is_change);
        }
        check(&changed, &after);
        check(&original, &before);
    }
}

#[test]
fn a_billion_ranks_cost_little_when_few_are_members() {
    const NUM_RANKS: u64 = 1_000_000_000;
    let mut set = RankSet::from_ranks(NUM_RANKS, [NUM_RANKS - 1, 5]);
    assert!(set.bytes() < 300_000, "{} bytes", set.bytes());
    assert_eq!(set.next_in(6..NUM_RANKS), Some(NUM_RANKS - 1));
    assert_eq!(set.next_in(6..NUM_RANKS - 1), None);
    assert_eq!(set.not().len(), NUM_RANKS - 2);
    // Filling a chunk gives it back.
    (0..RankSet::CHUNK_RANKS).for_each(|rank| _ = set.insert(rank));
    assert_eq!(set.bytes(), RankSet::from_ranks(NUM_RANKS, [NUM_RANKS - 1]).bytes());
    assert!(RankSet::full(NUM_RANKS).bytes() < 300_000);
}
