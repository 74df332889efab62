//! Catalogs against plain sets, and the laws.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use palmette_catalog::index::{
    CatalogState, Index, ItemSet, MAX_CODE, MaskRows, MaskTarget, PartScratch,
};
use palmette_catalog::{
    BuildOptions, Catalog, CatalogConstraint, Check, CodeTokens, FileError, Filter, Item,
    LevelTokens, TokensError,
};
use palmette_catalog_filter::RankSet;
use palmette_core::{Constraint, TokenId, TokenMask};
use palmette_mapped::{Format, SectionsIn, SectionsOut};
use palmette_testkit::{SequenceSet, laws};
use proptest::prelude::*;

const NUM_CODES: u32 = 6;

/// Items with short, colliding, ragged semantic IDs, in any order.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let ragged = prop::collection::vec(0..NUM_CODES, 1..=4);
    let fixed = prop::collection::vec(0..NUM_CODES, 3);
    let ids =
        prop_oneof![prop::collection::vec(fixed, 0..60), prop::collection::vec(ragged, 0..60),];
    ids.prop_map(|ids| {
        let numbered = ids.into_iter().enumerate();
        numbered.map(|(n, codes)| item(&format!("item {n}"), &codes)).collect()
    })
}

/// Items of few prefixes, which then have many items each.
fn clustered_items() -> impl Strategy<Value = Vec<Item>> {
    let ragged = prop::collection::vec(0..2_u32, 1..=4);
    let fixed = prop::collection::vec(0..2_u32, 4);
    let ids =
        prop_oneof![prop::collection::vec(fixed, 40..60), prop::collection::vec(ragged, 40..60)];
    ids.prop_map(|ids| {
        let numbered = ids.into_iter().enumerate();
        numbered.map(|(n, codes)| item(&format!("item {n}"), &codes)).collect()
    })
}

/// Parts of some states: which, the code that each is moved over, and whether the state before has
/// none.
fn picks() -> impl Strategy<Value = Vec<(prop::sample::Index, u32, bool)>> {
    let pick = (any::<prop::sample::Index>(), 0..NUM_CODES + 1, any::<bool>());
    prop::collection::vec(pick, 0..100)
}

/// All states of a level, under a set or none.
fn states_at(index: &Index, level: usize, set: Option<&ItemSet>) -> Vec<CatalogState> {
    (0..level).fold(vec![index.start()], |states, _| {
        let mut next = Vec::new();
        index.successors(&states, set, |_, _, child| next.push(child));
        next
    })
}

fn check_parts(
    catalog: &Catalog,
    level: usize,
    is_filtered: bool,
    picks: &[(prop::sample::Index, u32, bool)],
) {
    let index = catalog.index();
    let some = RankSet::from_ranks(catalog.num_items(), (0..catalog.num_items()).step_by(3));
    let some = index.item_set(some);
    let set = is_filtered.then_some(&some);
    let found = states_at(index, level, set);
    let picks = if found.is_empty() { &[] } else { picks };
    let before: Vec<CatalogState> = picks.iter().map(|(pick, ..)| *pick.get(&found)).collect();
    let codes: Vec<u32> = picks.iter().map(|&(_, code, _)| code).collect();
    let place = |row: &mut u32, skips: bool| {
        *row += 1 + u32::from(skips);
        Some(*row)
    };
    let rows: Vec<u32> = picks.iter().map(|&(_, _, skips)| skips).scan(0, place).collect();
    let num_rows = rows.last().map_or(1, |&row| row as usize + 1);

    let (words, first_bit) = (40, 5);
    let mut masks = vec![1 << 31; num_rows * words];
    let target = MaskTarget { masks: &mut masks, words_per_row: words, first_bit };
    index.add_masks_of_parts(level, &before, &rows, set, target);
    let mut parts = before.clone();
    index.prefetch_parts(level, &parts, &codes);
    index.advance_parts(level, &mut parts, &codes, set, &mut PartScratch::default());
    let mut expected = vec![0; num_rows * words];
    for ((part, &row), (moved, &code)) in before.iter().zip(&rows).zip(parts.iter().zip(&codes)) {
        let mask = &mut expected[row as usize * words..][..words];
        index.fill_masks(&[*part], set, &[first_bit; 8], words, mask);
        let is_in = |child: &CatalogState| set.is_none_or(|set| set.ranks().any_in(child.ranks()));
        let child = index.child(part, code).filter(is_in);
        assert_eq!(*moved, child.unwrap_or(CatalogState::DEAD));
    }
    expected.iter_mut().for_each(|word| *word |= 1 << 31);
    assert_eq!(masks, expected);
}

fn item(id: &str, codes: &[u32]) -> Item {
    let mut attributes = serde_json::Map::new();
    attributes.insert("title".into(), format!("Title of {id} „ü“").into());
    Item { id: id.into(), codes: codes.into(), attributes }
}

fn read(bytes: Vec<u8>) -> Result<Catalog, FileError> {
    Catalog::from_bytes("test", bytes, Check::Whole)
}

fn build(items: &[Item]) -> Catalog {
    Catalog::build(items.to_vec().into(), &BuildOptions::default()).expect("sound items")
}

/// Level `l` is spelled by tokens from `3 + 7 · l`.
fn tokens() -> CodeTokens {
    let level = |l: u32| LevelTokens { first_token: 3 + 7 * l, num_codes: NUM_CODES };
    CodeTokens::new((0..4).map(level).collect(), 40).expect("within 40 tokens")
}

fn spelled(codes: &[u32]) -> Vec<u32> {
    let tokens = tokens();
    codes.iter().enumerate().map(|(l, &c)| tokens.token(l, c).expect("in range").0).collect()
}

proptest! {
    #[test]
    fn obeys_the_laws(items in items(), seed: u64) {
        let constraint = CatalogConstraint::new(Arc::new(build(&items)), tokens()).unwrap();
        laws::check(&constraint, seed, 4, 6);
    }

    #[test]
    fn every_mask_equals_the_definition(items in items()) {
        let constraint = CatalogConstraint::new(Arc::new(build(&items)), tokens()).unwrap();
        let set = SequenceSet::new(40, items.iter().map(|item| spelled(&item.codes)));
        let mut open = vec![(constraint.start(), set.start())];
        while let Some((state, prefix)) = open.pop() {
            let (mut got, mut want) = (TokenMask::new(40), TokenMask::new(40));
            let Ok(()) = constraint.fill_mask(&state, &mut (), got.as_words_mut());
            let Ok(()) = set.fill_mask(&prefix, &mut (), want.as_words_mut());
            prop_assert_eq!(&got, &want, "after {:?}", prefix);
            prop_assert_eq!(constraint.is_accepting(&state, &mut ()), set.is_accepting(&prefix, &mut ()));
            let mut next = Vec::new();
            let Ok(()) = constraint.successors(&state, &mut (), |token, state| next.push((token, state)));
            for (token, state) in next {
                let mut prefix = prefix.clone();
                set.commit(&mut prefix, token, &mut ()).unwrap();
                open.push((state, prefix));
            }
        }
    }

    #[test]
    fn ranks_and_items_equal_a_sorted_list(items in items()) {
        let catalog = build(&items);
        let mut sorted: Vec<&Item> = items.iter().collect();
        sorted.sort_by_key(|item| &item.codes); // stable: collisions keep their order
        prop_assert_eq!(catalog.num_items() as usize, items.len());
        let is_shorter = |rank: &u64| sorted[*rank as usize].codes.len() < catalog.num_levels();
        let shorter: Vec<u64> = (0..catalog.num_items()).filter(is_shorter).collect();
        prop_assert_eq!(catalog.index().shorter_items(), shorter);
        for (rank, item) in sorted.iter().enumerate() {
            let rank = rank as u64;
            prop_assert_eq!(catalog.id(rank), &item.id);
            prop_assert_eq!(&catalog.codes(rank), &item.codes);
            prop_assert_eq!(catalog.attributes(rank), item.attributes.clone());
            prop_assert_eq!(catalog.rank_of(&item.id), Some(rank));
        }
        prop_assert_eq!(catalog.rank_of("nothing"), None);
        let mut by_id: BTreeMap<&[u32], Vec<&str>> = BTreeMap::new();
        for item in &items {
            by_id.entry(&item.codes).or_default().push(&item.id);
        }
        for (codes, ids) in &by_id {
            let found: Vec<&str> = catalog.find(codes).map(|rank| catalog.id(rank)).collect();
            prop_assert_eq!(&found, ids);
        }
    }

    #[test]
    fn membership_equals_a_set(items in items(), asked in prop::collection::vec(0..NUM_CODES + 1, 0..5)) {
        let set: BTreeSet<&[u32]> = items.iter().map(|item| item.codes.as_slice()).collect();
        prop_assert_eq!(build(&items).contains(&asked), set.contains(asked.as_slice()));
    }

    #[test]
    fn input_order_does_not_matter_without_collisions(items in items(), seed: u64) {
        let mut unique: Vec<Item> =
            items.iter().map(|i| (&i.codes, i)).collect::<BTreeMap<_, _>>().into_values().cloned().collect();
        let catalog = build(&unique);
        let places = unique.len().max(1);
        unique.rotate_left(seed as usize % places);
        unique.reverse();
        prop_assert_eq!(build(&unique), catalog);
    }

    #[test]
    fn files_give_back_the_catalog(items in items()) {
        let catalog = build(&items);
        let read = read(catalog.to_bytes()).unwrap();
        prop_assert_eq!(read, catalog);
    }

    #[test]
    fn damaged_files_are_errors(items in items(), at: prop::sample::Index, flip in 1_u8.., cut: prop::sample::Index) {
        let bytes = build(&items).to_bytes();
        let mut damaged = bytes.clone();
        let at = at.index(bytes.len());
        damaged[at] ^= flip;
        prop_assert!(read(damaged).is_err(), "byte {}", at);
        let cut = bytes[..cut.index(bytes.len())].to_vec();
        prop_assert!(Catalog::from_bytes("test", cut, Check::Frame).is_err());
    }

    /// Past the checksums: contents that were never written by this crate.
    #[test]
    fn hostile_contents_do_no_harm(
        items in items(),
        dense_levels in prop::option::of(0_usize..3),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let options = BuildOptions { dense_levels, ..Default::default() };
        let Ok(catalog) = Catalog::build(items.into(), &options) else { return Ok(()) };
        let bytes = with_edited_sections(catalog.to_bytes(), &edits);
        // Only the frame was looked at: answers may be wrong, but there are answers.
        if let Ok(catalog) = Catalog::from_bytes("test", bytes.clone(), Check::Frame) {
            walk_all(&catalog);
        }
        if let Ok(catalog) = read(bytes) {
            catalog.stats();
            prop_assert_eq!(read(catalog.to_bytes()).unwrap(), catalog.clone());
            if catalog.num_levels() <= 4 && catalog.codes_per_level().iter().all(|&size| size <= NUM_CODES) {
                let constraint = CatalogConstraint::new(Arc::new(catalog), tokens()).unwrap();
                laws::check(&constraint, 1, 4, 6);
            }
        }
    }

    /// Dense levels change nothing but the cost.
    #[test]
    fn dense_levels_change_nothing(items in items(), dense_levels in 0_usize..4, seed: u64) {
        let options = BuildOptions { dense_levels: Some(dense_levels), ..Default::default() };
        let shortest = items.iter().map(|item| item.codes.len()).min().unwrap_or(0);
        let built = Catalog::build(items.clone().into(), &options);
        prop_assert_eq!(built.is_ok(), dense_levels <= shortest);
        let Ok(catalog) = built else { return Ok(()) };
        prop_assert_eq!(catalog.index().num_dense_levels(), dense_levels);
        prop_assert_eq!(read(catalog.to_bytes()).unwrap(), catalog.clone());
        let plain = build(&items);
        let mut open = vec![(catalog.start(), plain.start())];
        while let Some((state, other)) = open.pop() {
            prop_assert_eq!(state.ranks(), other.ranks());
            prop_assert_eq!(catalog.items_at(&state), plain.items_at(&other));
            let (children, others) = (catalog.children(&state), plain.children(&other));
            prop_assert_eq!(children.len(), others.len());
            for ((code, child), (other_code, other)) in children.into_iter().zip(others) {
                prop_assert_eq!(code, other_code);
                prop_assert_eq!(catalog.child(&state, code), Some(child));
                open.push((child, other));
            }
        }
        let constraint = CatalogConstraint::new(Arc::new(catalog), tokens()).unwrap();
        laws::check(&constraint, seed, 4, 6);
    }

    /// Under a set of items a catalog is the catalog of those items.
    #[test]
    fn a_set_of_items_equals_their_own_catalog(
        items in prop_oneof![items(), clustered_items()],
        dense_levels in prop::option::of(0_usize..3),
        keep in prop_oneof![Just(0.5), Just(0.08)]
            .prop_flat_map(|share| prop::collection::vec(prop::bool::weighted(share), 60)),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        seed: u64,
    ) {
        let options = BuildOptions { dense_levels, ..Default::default() };
        let Ok(catalog) = Catalog::build(items.clone().into(), &options) else { return Ok(()) };
        let catalog = Arc::new(catalog);
        let mut kept: Vec<u64> = (0..catalog.num_items()).filter(|&rank| keep[rank as usize]).collect();
        let mut set = catalog.index().item_set(RankSet::from_ranks(catalog.num_items(), kept.iter().copied()));
        for rank in removed.iter().filter(|_| !items.is_empty()).map(|at| at.index(items.len()) as u64) {
            prop_assert_eq!(set.remove(catalog.index(), rank), kept.contains(&rank));
            kept.retain(|&other| other != rank);
        }
        // Taking out one by one ends where making it at once does.
        let again = catalog.index().item_set(RankSet::from_ranks(catalog.num_items(), kept.iter().copied()));
        prop_assert_eq!(&again, &set);

        let own: Vec<Vec<u32>> = kept.iter().map(|&rank| catalog.codes(rank)).collect();
        let oracle = SequenceSet::new(40, own.iter().map(|codes| spelled(codes)));
        let constraint = CatalogConstraint::new(Arc::clone(&catalog), tokens()).unwrap();
        let constraint = constraint.with_items(Arc::new(set));
        laws::check(&constraint, seed, 4, 6);
        let mut open = vec![(constraint.start(), oracle.start())];
        while let Some((state, prefix)) = open.pop() {
            let (mut got, mut want) = (TokenMask::new(40), TokenMask::new(40));
            let Ok(()) = constraint.fill_mask(&state, &mut (), got.as_words_mut());
            let Ok(()) = oracle.fill_mask(&prefix, &mut (), want.as_words_mut());
            prop_assert_eq!(&got, &want, "after {:?}", prefix);
            prop_assert_eq!(constraint.is_accepting(&state, &mut ()), oracle.is_accepting(&prefix, &mut ()));
            let here: Vec<Vec<u32>> = constraint.items_at(&state).map(|rank| spelled(&catalog.codes(rank))).collect();
            prop_assert!(here.iter().all(|codes| codes.len() == state.level()));
            let mut next = Vec::new();
            let Ok(()) = constraint.successors(&state, &mut (), |token, state| next.push((token, state)));
            for (token, state) in next {
                let mut prefix = prefix.clone();
                oracle.commit(&mut prefix, token, &mut ()).unwrap();
                open.push((state, prefix));
            }
        }
    }

    /// Many states at once, on any level, give what each gives alone.
    #[test]
    fn batches_equal_single_states(items in items(), picks in prop::collection::vec(any::<prop::sample::Index>(), 0..100)) {
        let catalog = Arc::new(build(&items));
        let constraint = CatalogConstraint::new(Arc::clone(&catalog), tokens()).unwrap();
        let mut all = vec![constraint.start()];
        let mut at = 0;
        while at < all.len() {
            let state = all[at];
            let Ok(()) = constraint.successors(&state, &mut (), |_, next| all.push(next));
            at += 1;
        }
        let states: Vec<CatalogState> = picks.iter().map(|pick| *pick.get(&all)).collect();
        let words = palmette_core::mask::num_words(40);
        let mut masks = vec![u32::MAX; states.len() * words];
        let Ok(()) = constraint.fill_masks(&states, &mut (), &mut masks);
        let mut children = Vec::new();
        catalog.index().successors(&states, None, |at, code, child| children.push((at, code, child)));
        let mut expected = Vec::new();
        for (at, state) in states.iter().enumerate() {
            let mut mask = TokenMask::new(40);
            let Ok(()) = constraint.fill_mask(state, &mut (), mask.as_words_mut());
            prop_assert_eq!(mask.as_words(), &masks[at * words..][..words]);
            expected.extend(catalog.children(state).into_iter().map(|(code, child)| (at, code, child)));
        }
        prop_assert_eq!(children, expected);
    }

    /// Parts of states move and give masks as each would alone.
    #[test]
    fn parts_equal_single_states(
        items in prop_oneof![items(), clustered_items()],
        dense_levels in prop::option::of(0_usize..3),
        level in 0_usize..5,
        is_filtered: bool,
        picks in picks(),
    ) {
        let options = BuildOptions { dense_levels, ..Default::default() };
        let Ok(catalog) = Catalog::build(items.into(), &options) else { return Ok(()) };
        check_parts(&catalog, level, is_filtered, &picks);
    }

    /// As above, with masks of 128 KiB that have few codes.
    #[test]
    fn parts_equal_single_states_where_masks_are_large_and_thin(
        mut items in items(),
        level in 0_usize..4,
        is_filtered: bool,
        mut picks in picks(),
    ) {
        const SPREAD: u32 = 150;
        items.iter_mut().flat_map(|item| &mut item.codes).for_each(|code| *code *= SPREAD);
        picks.iter_mut().for_each(|(_, code, _)| *code *= SPREAD);
        let options = BuildOptions {
            dense_levels: Some(1),
            dense_bytes: Some(1 << 20),
            codes_per_level: Some(vec![1024; 4]),
            ..Default::default()
        };
        let Ok(catalog) = Catalog::build(items.into(), &options) else { return Ok(()) };
        check_parts(&catalog, level, is_filtered, &picks);
    }

    /// Rows that clear what they set hold what rows that are cleared whole do, whatever they held
    /// before.
    #[test]
    fn mask_rows_equal_plain_rows(
        items in prop_oneof![items(), clustered_items()],
        dense_levels in prop::option::of(0_usize..3),
        words in prop_oneof![Just(2_usize), Just(40), Just(300)],
        fillings in prop::collection::vec(
            (any::<bool>(), 0_usize..5, prop::collection::vec(any::<prop::sample::Index>(), 0..400)),
            1..6,
        ),
    ) {
        let options = BuildOptions { dense_levels, ..Default::default() };
        let Ok(catalog) = Catalog::build(items.into(), &options) else { return Ok(()) };
        let index = catalog.index();
        let some = RankSet::from_ranks(catalog.num_items(), (0..catalog.num_items()).step_by(3));
        let some = index.item_set(some);
        let first_bits = [3, 300, 610, 900];
        let mut rows = MaskRows::new(words);
        for (is_filtered, level, picks) in fillings {
            let set = is_filtered.then_some(&some);
            let states = states_at(index, level, set);
            let picked = picks.iter().filter(|_| !states.is_empty());
            let states: Vec<CatalogState> = picked.map(|pick| *pick.get(&states)).collect();
            index.fill_mask_rows(&states, set, &first_bits, &mut rows);
            let mut masks = vec![u32::MAX; states.len() * words];
            index.fill_masks(&states, set, &first_bits, words, &mut masks);
            prop_assert_eq!(rows.masks(), &masks);
            prop_assert_eq!(rows.num_rows(), states.len());
            let mut alone = vec![u32::MAX; words];
            for (row, state) in states.iter().enumerate() {
                prop_assert_eq!(rows.row(row), &masks[row * words..(row + 1) * words]);
                index.fill_masks(&[*state], set, &first_bits, words, &mut alone);
                prop_assert_eq!(rows.row(row), &alone);
            }
        }
    }
}

/// Changes bytes of sections and makes the checksums right again.
fn with_edited_sections(
    bytes: Vec<u8>,
    edits: &[(prop::sample::Index, prop::sample::Index, u8)],
) -> Vec<u8> {
    let format = Format { magic: *b"PALMCAT\0", version: 2 };
    let sections = SectionsIn::from_bytes(bytes.into(), format, Check::Whole).unwrap();
    let mut sections: Vec<Vec<u8>> =
        (0..).map_while(|number| sections.section(number).ok()).map(|s| s.to_vec()).collect();
    for (section, at, value) in edits {
        let section = section.index(sections.len());
        let section = &mut sections[section];
        if !section.is_empty() {
            let at = at.index(section.len());
            // Within the description a digit is more likely to be read at all.
            let digit = section[at].is_ascii_digit();
            section[at] = if digit { b'0' + value % 10 } else { *value };
        }
    }
    let mut out = SectionsOut::default();
    sections.into_iter().for_each(|section| _ = out.add(section.into()));
    out.to_bytes(format)
}

/// Asks everything there is to ask, up to a number of states.
fn walk_all(catalog: &Catalog) {
    let mut open = vec![catalog.start()];
    let mut masks = vec![0; 10];
    let all = catalog.all_items();
    let some = RankSet::from_ranks(catalog.num_items(), (0..catalog.num_items()).step_by(2));
    let some = catalog.index().item_set(some);
    let mut rows = MaskRows::new(10);
    let mut left = 500;
    while let Some(state) = open.pop() {
        for items in [None, Some(&all), Some(&some)] {
            catalog.index().fill_masks(&[state], items, &[3, 10], 10, &mut masks);
            catalog.index().fill_mask_rows(&[state], items, &[3, 10], &mut rows);
            assert_eq!(rows.masks(), masks);
            catalog.index().advance(&mut [state; 8], items, |at, _| at as u32 * at as u32);
            catalog.index().successors(&[state], items, |_, code, child| {
                _ = catalog.child(&state, code);
                if left > 0 {
                    open.push(child);
                    left -= 1;
                }
            });
        }
        catalog.items_at(&state).take(10).for_each(|rank| _ = catalog.id(rank));
    }
    for rank in 0..catalog.num_items().min(100) {
        catalog.codes(rank);
        catalog.attributes(rank);
        catalog.rank_of(catalog.id(rank));
        catalog.all_items().remove(catalog.index(), rank);
    }
    let filter =
        Filter::parse(r#"{"must": {"exists": "title"}, "must_not": {"match": {"title": "x"}}}"#);
    _ = catalog.select(&filter.expect("a filter"));
}

#[test]
fn the_empty_catalog_denies_all() {
    let catalog = Arc::new(build(&[]));
    assert_eq!(catalog.stats().num_ids, 0);
    let constraint = CatalogConstraint::new(catalog, tokens()).unwrap();
    laws::check(&constraint, 1, 1, 3);
    let mut start = constraint.start();
    assert_eq!(constraint.is_accepting(&start, &mut ()), Ok(false));
    assert!(constraint.commit(&mut start, TokenId(3), &mut ()).is_err());
}

#[test]
fn stats_count_collisions_lengths_and_branching() {
    let items = [[0, 1].as_slice(), &[0, 1], &[0, 1], &[0, 4], &[2], &[2, 5]];
    let items: Vec<Item> =
        items.iter().enumerate().map(|(n, codes)| item(&n.to_string(), codes)).collect();
    let stats = build(&items).stats();
    assert_eq!((stats.num_items, stats.num_ids), (6, 4));
    assert_eq!((stats.items_in_collisions, stats.largest_collision), (3, 3));
    assert_eq!(stats.lengths, [0, 1, 5]);
    let per_level: Vec<_> =
        stats.levels.iter().map(|l| (l.codes_used, l.num_prefixes, l.max_branching)).collect();
    assert_eq!(per_level, [(2, 2, 2), (3, 3, 2)]);
}

#[track_caller]
fn check_refused(items: &[Item], options: &BuildOptions, message: &str) {
    let error = Catalog::build(items.to_vec().into(), options).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn bad_items_are_named() {
    let any = BuildOptions::default();
    let sized = BuildOptions { codes_per_level: Some(vec![4, 4]), ..any.clone() };
    let uniform = BuildOptions { num_levels: Some(2), ..any.clone() };
    let (good, short) = (item("good", &[1, 3]), item("short", &[1]));
    check_refused(
        &[good.clone(), item("x", &[])],
        &any,
        r#"line 2: item "x" has an empty semantic ID; it needs at least one code"#,
    );
    check_refused(
        &[good.clone(), item("x", &[1, 4])],
        &sized,
        r#"line 2: item "x" has code 4 at level 1; codes there are below 4"#,
    );
    check_refused(
        &[item("x", &[1, 1, 1])],
        &sized,
        r#"line 1: item "x" has 3 codes, but codebook sizes are given for 2 levels"#,
    );
    check_refused(
        &[good.clone(), short],
        &uniform,
        r#"line 2: item "short" has 1 codes where every item must have 2"#,
    );
    check_refused(
        &[good.clone(), item("x", &[2]), item("good", &[2, 2])],
        &any,
        r#"line 3: item "good" stands twice, first in line 1; ids must be unique"#,
    );
    check_refused(
        &[item("x", &[u32::MAX])],
        &any,
        r#"line 1: item "x" has code 4294967295 at level 0; codes there are below 2147483648"#,
    );
}

/// Before any item is looked at: what is refused here would make a file that cannot be opened.
#[test]
fn bad_codebook_sizes_are_named() {
    let sizes =
        |sizes: Vec<u32>| BuildOptions { codes_per_level: Some(sizes), ..Default::default() };
    let bad_items = [item("x", &[])];
    check_refused(
        &bad_items,
        &sizes(vec![4; 65]),
        "65 codebook sizes are given; a semantic ID has at most 64 codes",
    );
    for size in [0, (1 << 31) + 1, u32::MAX] {
        check_refused(
            &bad_items,
            &sizes(vec![4, size]),
            &format!("the codebook of level 1 has size {size}; sizes go from 1 to 2147483648"),
        );
    }
    let error = Catalog::build(bad_items.to_vec().into(), &sizes(vec![0])).unwrap_err();
    assert_eq!((error.line(), error.id()), (None, None));

    let largest = sizes(vec![1 << 31; 64]);
    let catalog = Catalog::build(vec![item("x", &[MAX_CODE; 64])].into(), &largest).unwrap();
    assert_eq!(read(catalog.to_bytes()).unwrap(), catalog);
    check_refused(
        &[item("x", &[3_000_000_000])],
        &largest,
        r#"line 1: item "x" has code 3000000000 at level 0; codes there are below 2147483648"#,
    );
    let error = Catalog::build(vec![item("x", &[])].into(), &largest).unwrap_err();
    assert_eq!((error.line(), error.id()), (Some(1), Some("x")));
}

#[test]
fn a_missing_file_says_how_to_make_one() {
    let error = Catalog::open(Path::new("no-such-folder/shop.palm")).unwrap_err().to_string();
    assert!(error.starts_with("no-such-folder/shop.palm: "), "{error}");
    assert!(error.ends_with("make a catalog with `palmette catalog build`"), "{error}");
}

#[cfg(unix)]
#[test]
fn files_have_the_mode_of_new_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    std::fs::write(folder.path().join("plain"), "").unwrap();
    build(&[item("a", &[1])]).save(folder.path().join("catalog")).unwrap();
    assert_eq!(mode("catalog"), mode("plain"));
}

#[cfg(unix)]
#[test]
fn links_stay_and_lead_to_the_new_file() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("sub")).unwrap();
    symlink("sub/near", path("far")).unwrap();
    symlink("catalog", path("sub/near")).unwrap();
    // First through a link to nothing, then over the file that is there.
    for codes in [1, 2] {
        let catalog = build(&[item("a", &[codes])]);
        catalog.save(path("far")).unwrap();
        assert!(path("far").is_symlink() && path("sub/near").is_symlink());
        assert!(!path("sub/catalog").is_symlink());
        assert_eq!(Catalog::open(path("sub/catalog")).unwrap(), catalog);
    }
    symlink("round", path("round")).unwrap();
    let error = build(&[]).save(path("round")).unwrap_err().to_string();
    assert!(error.ends_with("too many symbolic links"), "{error}");
}

#[test]
fn tokens_must_cover_the_catalog() {
    let catalog = Arc::new(build(&[item("a", &[0, 5]), item("b", &[1, 2])]));
    let level = |num_codes| LevelTokens { first_token: 0, num_codes };
    let join = |levels: Vec<LevelTokens>| {
        CatalogConstraint::new(Arc::clone(&catalog), CodeTokens::new(levels, 10).unwrap())
    };
    assert!(join(vec![level(2), level(6)]).is_ok());
    let longer = TokensError::TooManyLevels { catalog: 2, model: 1 };
    assert_eq!(join(vec![level(2)]).unwrap_err(), longer);
    let missing =
        TokensError::CodeWithoutToken { level: 1, code: 5, num_codes: 5, item: "a".into() };
    assert_eq!(join(vec![level(2), level(5)]).unwrap_err(), missing);
    assert!(CodeTokens::new(vec![level(11)], 10).is_err());
}
