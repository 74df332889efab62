//! Whole searches: the items, scores and order of the processor's, ties included.

use std::sync::Arc;

use palmette_catalog_live::{CatalogView, Update};
use palmette_cuda::catalog::{CatalogError, CatalogRequest, DeviceCatalog, DeviceSearch};
use palmette_cuda::{Driver, Stream};

use crate::support::{
    Batch, FoundId, LogitsThere, Random, Tables, drivers, frozen, item, items, live, searched_here,
    some,
};

/// Question of a request, besides its catalog.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    width: usize,
    /// Thousandths of the items that the filter keeps; none: no filter.
    kept: Option<u64>,
    /// Thousandths of the items that are excluded.
    excluded: u64,
    /// Different logits; 0: all differ.
    kinds: usize,
    floor: f32,
}

const PLAIN: Case =
    Case { name: "plain", width: 20, kept: None, excluded: 0, kinds: 0, floor: f32::NEG_INFINITY };

const CASES: [Case; 10] = [
    PLAIN,
    Case { name: "ties", kinds: 3, width: 33, ..PLAIN },
    Case { name: "all equal", kinds: 1, width: 17, ..PLAIN },
    Case { name: "half", kept: Some(500), ..PLAIN },
    Case { name: "5% and ties", kept: Some(50), kinds: 4, ..PLAIN },
    Case { name: "a thousandth", kept: Some(1), width: 60, ..PLAIN },
    Case { name: "excluded", excluded: 20, kinds: 5, ..PLAIN },
    Case { name: "filtered and excluded", kept: Some(100), excluded: 300, ..PLAIN },
    Case { name: "floor", floor: -21.0, width: 50, ..PLAIN },
    Case { name: "nothing", kept: Some(0), ..PLAIN },
];

/// A request, and what the processor finds for it.
struct Pair {
    request: CatalogRequest,
    tables: Tables,
    expected: Vec<FoundId>,
}

fn pair(catalog: &DeviceCatalog, view: &CatalogView, case: &Case, random: &mut Random) -> Pair {
    let snapshot = catalog.snapshot(view).unwrap();
    let codes = catalog.codes();
    // Widths of their own for each level.
    let width = |level: usize| (case.width * (level + 2) / 3).max(1);
    let widths: Vec<usize> = (0..codes.len()).map(width).collect();
    let tables = Tables::new(random, codes, widths.iter().copied().max().unwrap(), case.kinds);
    let set = case.kept.map(|kept| view.choose(some(random, view, kept)));
    let excluded = some(random, view, case.excluded);
    let here = match excluded.is_empty() {
        true => set.clone(),
        false => {
            let all = set.clone().unwrap_or_else(|| view.all_items());
            Some(view.without(&all, excluded.iter().copied()))
        }
    };
    let expected = searched_here(view, here, &tables, &widths, case.floor);
    let request = catalog.request(&snapshot, set.as_ref(), excluded, widths, case.floor).unwrap();
    Pair { request, tables, expected }
}

/// Runs requests together, and compares what each finds.
fn check(driver: &Arc<dyn Driver>, search: &mut DeviceSearch, pairs: &[(&str, &Pair)]) {
    let logits: Vec<LogitsThere> =
        pairs.iter().map(|(_, pair)| LogitsThere::new(&**driver, &pair.tables)).collect();
    let requests = pairs.iter().map(|(_, pair)| pair.request.clone()).collect();
    search.run(requests, &mut Batch(&logits)).unwrap();
    let found = search.finish().unwrap();
    assert_eq!(found.len(), pairs.len());
    for ((name, pair), found) in pairs.iter().zip(found) {
        let found = found.unwrap();
        let got: Vec<FoundId> = found
            .iter()
            .map(|of| (of.codes.clone(), of.score.to_bits(), pair.request.items(of).collect()))
            .collect();
        assert_eq!(got.len(), pair.expected.len(), "{name}");
        for (place, (got, expected)) in got.iter().zip(&pair.expected).enumerate() {
            assert_eq!(got, expected, "{name}, place {place}");
        }
    }
}

fn check_all(driver: &Arc<dyn Driver>, codes: &[u32], view: &CatalogView, seed: u64) {
    let mut random = Random(seed);
    let catalog = DeviceCatalog::new(Arc::clone(driver), codes.to_vec(), 1 << 20);
    let mut search = DeviceSearch::new(Arc::clone(driver), Stream::Selection);
    let pairs: Vec<Pair> =
        CASES.iter().map(|case| pair(&catalog, view, case, &mut random)).collect();
    let named: Vec<(&str, &Pair)> = CASES.iter().map(|case| case.name).zip(&pairs).collect();
    // Side by side, then one alone in the memory that the others had.
    check(driver, &mut search, &named);
    check(driver, &mut search, &named[4..5]);
}

#[test]
fn searches_of_a_frozen_catalog_are_the_processors() {
    for (seed, driver) in (1..).zip(drivers()) {
        let mut random = Random(seed * 77);
        for (len, codes, used) in [
            // Masked, masked or by rank, by rank.
            (3000, &[32, 32, 32][..], &[30, 30, 30][..]),
            // Many on one semantic ID; codes that are no whole words of a mask.
            (700, &[9, 5, 11, 3], &[9, 5, 11, 3]),
            // Prefixes with many items each are listed.
            (2500, &[3000, 3000], &[12, 40]),
            (5, &[64, 64, 64], &[64, 64, 64]),
            // Codes of 32 bits.
            (900, &[40, 70_000], &[40, 70_000]),
        ] {
            let view = frozen(items(&mut random, len, used), codes);
            check_all(&driver, codes, &view, seed + len as u64);
        }
    }
}

/// Items of a live catalog in three segments, some of which are gone from each.
pub(crate) fn batches(random: &mut Random, codes: &[u32]) -> Vec<Vec<Update>> {
    let mut batches: Vec<Vec<Update>> = Vec::new();
    for (segment, len) in [1500, 300, 40].into_iter().enumerate() {
        let mut of = items(random, len, codes);
        of.iter_mut().for_each(|item| item.id = format!("{segment}-{}", item.id));
        batches.push(of.into_iter().map(Update::Upsert).collect());
    }
    let gone = |segment: usize, number: usize| Update::Delete(format!("{segment}-i{number}"));
    let all = [1500, 300, 40].into_iter().enumerate();
    let deletes = all.flat_map(|(segment, len)| {
        (0..len).step_by(segment * 2 + 3).map(move |number| gone(segment, number))
    });
    batches.push(deletes.collect());
    batches
}

#[test]
fn searches_of_a_live_catalog_are_the_processors() {
    for (seed, driver) in (1..).zip(drivers()) {
        for codes in [&[24, 24, 24][..], &[70, 9]] {
            let (catalog, _folder) = live(&batches(&mut Random(seed * 5), codes));
            let view = catalog.view();
            assert_eq!(view.parts().filter(|(catalog, _)| catalog.num_items() > 0).count(), 3);
            check_all(&driver, codes, &view, seed);
        }
    }
}

/// Extensions of a level, each that its masks allow.
#[test]
fn masks_are_the_constraints_level_by_level() {
    let Some(driver) = drivers().pop() else { return };
    let codes = [20, 25, 30];
    let (live, _folder) = live(&batches(&mut Random(9), &codes));
    for view in [live.view(), frozen(items(&mut Random(4), 900, &codes), &codes)] {
        let catalog = DeviceCatalog::new(Arc::clone(&driver), codes.to_vec(), 1 << 20);
        let mut search = DeviceSearch::new(Arc::clone(&driver), Stream::Compute);
        for kept in [None, Some(300), Some(8)] {
            let case = Case { width: 2000, kept, excluded: 10, kinds: 1, ..PLAIN };
            let pair = pair(&catalog, &view, &case, &mut Random(3));
            check(&driver, &mut search, &[("all", &pair)]);
            // Every item that may be returned, once.
            let mut all: Vec<u64> = pair.expected.iter().flat_map(|of| of.2.clone()).collect();
            all.sort_unstable();
            assert!(all.windows(2).all(|two| two[0] < two[1]));
            assert!(kept == Some(8) || all.len() > 200, "{}", all.len());
        }
    }
}

/// The caller reads the extensions of a level before it computes the logits of the next.
#[test]
fn a_level_a_call_gives_prefixes() {
    let Some(driver) = drivers().pop() else { return };
    let codes = [16, 16, 16];
    let view = frozen(items(&mut Random(21), 800, &codes), &codes);
    let catalog = DeviceCatalog::new(Arc::clone(&driver), codes.to_vec(), 1 << 20);
    let pair = pair(&catalog, &view, &Case { kept: Some(400), ..PLAIN }, &mut Random(5));
    let logits = [LogitsThere::new(&*driver, &pair.tables)];
    let mut search = DeviceSearch::new(Arc::clone(&driver), Stream::Compute);
    search.begin(vec![pair.request.clone()], &Batch(&logits)).unwrap();
    assert_eq!((search.rows(0).most, search.rows(0).count), (1, None));
    assert!(search.finish().unwrap().is_empty(), "no level is searched");
    for level in 1..=codes.len() {
        search.step().unwrap();
        let found = search.finish().unwrap().pop().unwrap().unwrap();
        assert!(found.iter().all(|of| of.codes.len() == level));
        assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        if level < codes.len() {
            assert_eq!(search.rows(0).most, pair.request.widths()[level - 1]);
        }
    }
    let found = search.finish().unwrap().pop().unwrap().unwrap();
    let codes: Vec<_> = found.iter().map(|of| &of.codes).collect();
    assert_eq!(codes, pair.expected.iter().map(|of| &of.0).collect::<Vec<_>>());
}

#[test]
fn a_row_without_a_distribution_is_its_requests_alone() {
    let Some(driver) = drivers().pop() else { return };
    let codes = [16, 16];
    let view = frozen(items(&mut Random(2), 100, &codes), &codes);
    let catalog = DeviceCatalog::new(Arc::clone(&driver), codes.to_vec(), 1 << 20);
    let mut random = Random(6);
    let mut pairs = [PLAIN, PLAIN].map(|case| pair(&catalog, &view, &case, &mut random));
    pairs[0].tables.normalisers[1][0] = f32::NAN;
    let logits: Vec<_> =
        pairs.iter().map(|pair| LogitsThere::new(&*driver, &pair.tables)).collect();
    let mut search = DeviceSearch::new(Arc::clone(&driver), Stream::Compute);
    let requests = pairs.iter().map(|pair| pair.request.clone()).collect();
    search.run(requests, &mut Batch(&logits)).unwrap();
    let found = search.finish().unwrap();
    assert!(matches!(found[0], Err(CatalogError::BadLogits { level: 1 })), "{:?}", found[0]);
    assert_eq!(found[1].as_ref().unwrap().len(), pairs[1].expected.len());
}

#[test]
fn what_kernels_do_not_search_is_refused_by_name() {
    let Some(driver) = drivers().pop() else { return };
    let view = frozen(vec![item(0, &[3, 4]), item(1, &[3, 5])], &[8, 8]);
    let catalog = DeviceCatalog::new(Arc::clone(&driver), vec![8, 8], 1 << 20);
    let snapshot = catalog.snapshot(&view).unwrap();
    let mut search = DeviceSearch::new(Arc::clone(&driver), Stream::Compute);
    let tables = Tables::new(&mut Random(3), &[8, 8], 4, 0);
    let logits = [LogitsThere::new(&*driver, &tables)];
    let mut refused = |widths: Vec<usize>, floor: f32| {
        let request = catalog.request(&snapshot, None, [], widths, floor).unwrap();
        search.begin(vec![request], &Batch(&logits)).unwrap_err().to_string()
    };
    let lowest = f32::NEG_INFINITY;
    assert!(refused(vec![4, 5000], lowest).starts_with("beam width: 5000; the kernels search 1"));
    assert!(refused(vec![0, 4], lowest).starts_with("beam width: 0"));
    assert!(refused(vec![4], lowest).starts_with("widths of a request: 1"));
    assert!(refused(vec![4, 4], f32::NAN).starts_with("floors that are no number"));
    assert!(search.begin(Vec::new(), &Batch(&logits)).is_err());
}
