//! Every engine against the definition: a plain set of rows.

use std::collections::BTreeSet;

use palmette_bench::Shape;
use palmette_bench::engines::{
    CsrTrie, Engine, HashBitmap, HashTrie, IndexEngine, MixedRadixSet, PpvExact, PpvTop50,
    Unconstrained,
};
use proptest::prelude::*;

/// The codes that continue a prefix.
fn following(rows: &BTreeSet<Vec<u32>>, prefix: &[u32]) -> BTreeSet<u32> {
    let rests = rows.iter().filter_map(|row| row.strip_prefix(prefix));
    rests.filter_map(|rest| rest.first().copied()).collect()
}

/// How an engine may differ from the definition.
#[derive(Clone, Copy, PartialEq)]
enum Promise {
    Exact,
    /// Forbids nothing that is valid.
    AllowsMore,
    /// Allows nothing that is invalid.
    AllowsLess,
}

fn prefixes(rows: &BTreeSet<Vec<u32>>, levels: usize) -> Vec<BTreeSet<Vec<u32>>> {
    (0..=levels).map(|len| rows.iter().map(|row| row[..len].to_vec()).collect()).collect()
}

fn build<E: Engine>(shape: &Shape, rows: &[Vec<u32>]) -> E {
    assert_eq!(E::obstacle(shape), None);
    let mut builder = E::builder(shape);
    rows.iter().for_each(|row| E::push(&mut builder, row));
    E::build(builder).expect("sound rows")
}

fn check<E: Engine>(shape: &Shape, pushed: &[Vec<u32>], strangers: &[Vec<u32>], promise: Promise) {
    let engine: E = build(shape, pushed);
    let name = E::NAME;
    assert_eq!(E::EXACT, promise == Promise::Exact, "{name}");
    let rows: BTreeSet<Vec<u32>> = pushed.iter().cloned().collect();
    let ids_are_exact = promise != Promise::AllowsMore || name == "mixed_radix_set";
    for row in &rows {
        assert!(engine.contains(row), "{name} lost {row:?}");
        let too_short = &row[..row.len() - 1];
        assert!(!engine.contains(too_short), "{name} takes {too_short:?} for whole");
        let too_long = [row.as_slice(), &[0]].concat();
        assert!(!engine.contains(&too_long), "{name} goes past {row:?}");
    }
    for row in strangers.iter().filter(|row| ids_are_exact && !rows.contains(*row)) {
        assert!(!engine.contains(row), "{name} made up {row:?}");
    }

    // One word more than needed: it is to be cleared too.
    let words_per_row = shape.mask_words() + 1;
    for (level, prefixes) in prefixes(&rows, shape.levels)[..shape.levels].iter().enumerate() {
        let state = |prefix: &Vec<u32>| {
            let start = engine.start();
            let end = prefix.iter().try_fold(start, |state, &code| engine.advance(&state, code));
            end.unwrap_or_else(|| panic!("{name} lost {prefix:?}"))
        };
        let states: Vec<E::State> = prefixes.iter().map(state).collect();
        let mut masks = vec![u32::MAX; states.len() * words_per_row];
        engine.fill_masks(&states, words_per_row, &mut masks);
        let mut listed = vec![BTreeSet::new(); states.len()];
        let mut last = None;
        engine.successors(&states, |beam, code, next| {
            assert!(last < Some((beam, code)), "{name}: out of order at level {level}");
            last = Some((beam, code));
            listed[beam as usize].insert(code);
            assert!(level + 1 == shape.levels || engine.advance(&next, shape.vocab).is_none());
        });
        for (beam, prefix) in prefixes.iter().enumerate() {
            let row = &masks[beam * words_per_row..][..words_per_row];
            let bit = |code: &u32| row[*code as usize / 32] >> (code % 32) & 1 == 1;
            let allowed: BTreeSet<u32> = (0..words_per_row as u32 * 32).filter(bit).collect();
            let valid = following(&rows, prefix);
            match promise {
                Promise::Exact => assert_eq!(allowed, valid, "{name} after {prefix:?}"),
                Promise::AllowsMore => assert!(allowed.is_superset(&valid), "{name} {prefix:?}"),
                Promise::AllowsLess => assert!(allowed.is_subset(&valid), "{name} {prefix:?}"),
            }
            assert!(allowed.iter().all(|&code| code < shape.vocab), "{name} past the vocabulary");
            assert_eq!(listed[beam], allowed, "{name}: masks and successors after {prefix:?}");
            for code in (0..shape.vocab).filter(|_| promise == Promise::Exact) {
                let advances = engine.advance(&states[beam], code).is_some();
                assert_eq!(advances, valid.contains(&code), "{name}: {code} after {prefix:?}");
            }
        }
    }
}

fn check_all(shape: &Shape, rows: &[Vec<u32>], strangers: &[Vec<u32>]) {
    check::<IndexEngine>(shape, rows, strangers, Promise::Exact);
    check::<CsrTrie>(shape, rows, strangers, Promise::Exact);
    check::<HashTrie>(shape, rows, strangers, Promise::Exact);
    check::<PpvExact>(shape, rows, strangers, Promise::Exact);
    check::<PpvTop50>(shape, rows, strangers, Promise::AllowsLess);
    check::<HashBitmap>(shape, rows, strangers, Promise::AllowsMore);
    check::<MixedRadixSet>(shape, rows, strangers, Promise::AllowsMore);
    check::<Unconstrained>(shape, rows, strangers, Promise::AllowsMore);
}

/// Rows of one length, often alike and sometimes equal, and other rows of that length.
fn row_sets() -> impl Strategy<Value = (Shape, Vec<Vec<u32>>, Vec<Vec<u32>>)> {
    (1_usize..=5, prop_oneof![1_u32..=5, 60_u32..=70, Just(200)]).prop_flat_map(
        |(levels, vocab)| {
            let code = prop_oneof![3 => 0..vocab.min(3), 1 => 0..vocab, 1 => Just(vocab - 1)];
            let row = prop::collection::vec(code, levels);
            (prop::collection::vec(row.clone(), 1..60), prop::collection::vec(row, 0..20)).prop_map(
                move |(rows, strangers)| {
                    (Shape { items: rows.len(), levels, vocab }, rows, strangers)
                },
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn engines_keep_their_promise((shape, rows, strangers) in row_sets()) {
        check_all(&shape, &rows, &strangers);
    }
}

#[test]
fn the_ends_of_the_code_range_are_codes_too() {
    let shape = Shape { items: 3, levels: 3, vocab: 8192 };
    let rows = [vec![0, 0, 0], vec![8191, 8191, 8191], vec![8191, 0, 8191]];
    check_all(&shape, &rows, &[vec![8191, 8191, 0]]);
}

/// A large codebook leaves the sparse rows' first level, rather than the second, behind one dense
/// level.
#[test]
fn a_codebook_too_large_for_two_dense_levels_is_held() {
    let shape = Shape { items: 3, levels: 3, vocab: 30_000 };
    let rows = [vec![29_999, 1, 2], vec![29_999, 29_999, 0], vec![5, 5, 5]];
    check::<CsrTrie>(&shape, &rows, &[vec![5, 5, 6]], Promise::Exact);
}

#[test]
fn approximate_engines_do_err() {
    // Otherwise the promises above would be kept by exact engines under another name.
    let shape = Shape { items: 256, levels: 1, vocab: 256 };
    let rows: Vec<Vec<u32>> = (0..256).map(|code| vec![code]).collect();
    let top: PpvTop50 = build(&shape, &rows);
    let mut masks = vec![0; 8];
    top.fill_masks(&[top.start()], 8, &mut masks);
    assert_eq!(masks.iter().map(|word| word.count_ones()).sum::<u32>(), 50);

    let shape = Shape { items: 4, levels: 2, vocab: 3000 };
    let rows: Vec<Vec<u32>> = (0..4).map(|code| vec![code, 0]).collect();
    let bitmap: HashBitmap = build(&shape, &rows);
    let mut masks = vec![0; shape.mask_words()];
    bitmap.fill_masks(&[bitmap.start()], shape.mask_words(), &mut masks);
    assert!(masks.iter().map(|word| word.count_ones()).sum::<u32>() > 4);
    let radix: MixedRadixSet = build(&shape, &rows);
    assert!(radix.advance(&radix.start(), 2999).is_some());
}

#[test]
fn shapes_without_keys_are_obstacles() {
    let shape = Shape { items: 10, levels: 32, vocab: 256 };
    for obstacle in [CsrTrie::obstacle(&shape), PpvExact::obstacle(&shape)] {
        assert!(obstacle.expect("256 bits").contains("256 bits"));
    }
    assert!(MixedRadixSet::obstacle(&shape).expect("256 ^ 32").contains("128 bits"));
    assert_eq!(HashBitmap::obstacle(&shape), None);
}
