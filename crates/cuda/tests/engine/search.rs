//! Whole searches on a device: what the same engine finds level by level, to the bit.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use palmette_catalog::{BuildOptions, Catalog, Filter, Item};
use palmette_catalog_live::{
    CatalogSource, LiveCatalog, LiveOptions, MergePolicy, SyncPolicy, Update,
};
use palmette_cuda::{Architecture, CudaEngine, DeviceWeights, Driver, RegionPlan};
use palmette_cuda_emulator::Emulator;
use palmette_decode::run_on;
use palmette_model::{Engine, Family, ModelConfig};
use palmette_recommend::{
    Candidates, History, Mode, Normaliser, Recommender, Request, Rules, Worker,
};
use serde_json::json;

use crate::model::{FORMS, LIMITS, config, emulated, emulated_of, upload};
use crate::recommend::format;

/// Whole words of a mask, so that steps are chosen by the kernels either way.
const CODES: u32 = 64;

fn item(n: u32) -> Item {
    let codes = vec![n % 11, n * 13 % CODES, n * 29 % CODES];
    let attributes = json!({"brand": format!("b{}", n % 7), "stock": n % 5});
    Item { id: format!("i{n}"), codes, attributes: attributes.as_object().unwrap().clone() }
}

fn frozen() -> CatalogSource {
    frozen_of((0..300).map(item).collect())
}

fn frozen_of(items: Vec<Item>) -> CatalogSource {
    let codes_per_level = Some(vec![CODES; 3]);
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    Catalog::build(items.into(), &options).expect("sound items").into()
}

/// A catalog of which each change is a segment.
fn live_in(folder: &Path) -> Arc<LiveCatalog> {
    let options = LiveOptions {
        merging: MergePolicy::Never,
        memory_items: 1,
        sync: SyncPolicy::Never,
        ..LiveOptions::default()
    };
    Arc::new(LiveCatalog::create_with(folder, None, None, options).expect("an empty folder"))
}

fn upserts(numbers: Range<u32>) -> Vec<Update> {
    numbers.map(|n| Update::Upsert(item(n))).collect()
}

/// A decoder as small as the kernels compute one.
fn small() -> ModelConfig {
    let mut config = config(Family::Qwen3, 64);
    (config.hidden_size, config.intermediate_size) = (64, 64);
    (config.num_attention_heads, config.num_key_value_heads) = (2, 1);
    config
}

fn worker(engine: &Arc<CudaEngine>, source: CatalogSource) -> Worker {
    let recommender = Recommender::new(Arc::clone(engine), source, format(CODES)).unwrap();
    let recommender = recommender.with_normaliser(Normaliser::Level).unwrap();
    Worker::new(Arc::new(recommender), 1)
}

/// Items with the bits of their scores, and the rows of passes.
type Answer = (Vec<(u64, u32)>, Vec<usize>);

fn answer(worker: &mut Worker, request: &Request<'_>) -> Answer {
    let found = worker.recommend(request, &mut run_on).unwrap();
    let items = found.items.iter().map(|item| (item.number, item.score.to_bits()));
    (items.collect(), worker.rows_of_passes().to_vec())
}

/// Answers a request at once and, since it is traced, level by level: the same.
fn check(engine: &Arc<CudaEngine>, worker: &mut Worker, request: &Request<'_>) -> Answer {
    let before = engine.catalog_counts().searches;
    let at_once = answer(worker, request);
    let searches = engine.catalog_counts().searches - before;
    assert!(searches > 0, "it was not run at once");
    let by_levels = answer(worker, &Request { trace: true, ..*request });
    assert_eq!(engine.catalog_counts().searches - before, searches, "traced");
    assert_eq!(at_once.0, by_levels.0);
    assert!(searches > 1 || at_once.1 == by_levels.1, "{at_once:?}, {by_levels:?}");
    at_once
}

#[test]
fn a_search_at_once_finds_what_one_by_levels_finds() {
    let (bf16, int8) = (DeviceWeights::Bf16, DeviceWeights::Int8);
    for (seed, weights) in [(1, bf16), (1, int8), (2, int8), (3, bf16)] {
        let engine = emulated_of(weights, &small(), Architecture::Hopper, seed);
        let Some(engine) = engine else { return };
        let mut worker = worker(&engine, frozen());
        let stock = Filter::from_value(&json!({"range": {"stock": {"gt": 2}}})).unwrap();
        let none = Filter::from_value(&json!({"match": {"brand": "b9"}})).unwrap();
        let ask =
            |history| Request { beam_width: 20, ..Request::new(History::Numbers(history), 6) };
        let probed = Mode::Probed(8.try_into().unwrap());
        let requests = [
            Request { mode: Mode::Beam, ..ask(&[3, 77, 204]) },
            Request { items: Candidates::Filter(&stock), mode: probed, ..ask(&[9; 5]) },
            Request { items: Candidates::Filter(&stock), ..ask(&[]) },
        ];
        // One under each of the other orders of threads.
        let requests = if seed == 1 { &requests[..] } else { &requests[1..2] };
        for request in requests {
            let (items, _) = check(&engine, &mut worker, request);
            assert_eq!(items.len(), 6);
            // Items of the history are not recommended again.
            let History::Numbers(history) = request.history else { panic!("numbers") };
            assert!(items.iter().all(|item| !history.contains(&item.0)));
        }
        if seed > 1 {
            continue;
        }
        // Of no items there is nothing to search.
        let request = Request { items: Candidates::Filter(&none), ..ask(&[5]) };
        assert!(answer(&mut worker, &request).0.is_empty());
        let widths = [5, 40, 7];
        let request = Request { widths: Some(&widths), exclude: &["i5", "i9"], ..ask(&[1, 2]) };
        check(&engine, &mut worker, &request);
        let counts = engine.catalog_counts();
        assert_eq!((counts.catalogs.len(), counts.refused), (1, 0));
        assert_eq!(counts.catalogs[0].items, 300);
        assert_eq!(counts.catalogs[0].filters, 1);
    }
}

#[test]
fn rules_hold_over_searches_at_once_and_boosts_are_searched_by_levels() {
    let Some(engine) = emulated(&small(), Architecture::Ampere, 1) else { return };
    let mut worker = worker(&engine, frozen());
    let rules = |value| Rules::from_value(&value).unwrap();
    let capped =
        rules(json!({"at_most": [{"attribute": "brand", "items": 1}], "must_include": ["i8"]}));
    let boosted = rules(json!({"boosts": [{"filter": {"match": {"brand": "b1"}}, "add": 0.5}]}));
    let request = Request { beam_width: 9, ..Request::new(History::Numbers(&[3, 77]), 5) };
    let (items, _) = check(&engine, &mut worker, &Request { rules: Some(&capped), ..request });
    let view = worker.recommender().view().unwrap();
    let brand = |item: &(u64, u32)| view.view().item(item.0).attributes["brand"].to_string();
    let brands: BTreeSet<String> = items.iter().map(brand).collect();
    assert_eq!((brands.len(), items.len()), (5, 5));
    let before = engine.catalog_counts().searches;
    answer(&mut worker, &Request { rules: Some(&boosted), ..request });
    assert_eq!(engine.catalog_counts().searches, before);
}

/// Segments, tombstones and a generation that comes between two requests.
#[test]
fn a_live_catalog_is_searched_at_once_as_it_is_now() {
    let Some(engine) = emulated(&small(), Architecture::Hopper, 2) else { return };
    let folder = tempfile::tempdir().unwrap();
    let live = live_in(folder.path());
    live.apply(&upserts(0..200)).unwrap();
    live.apply(&upserts(200..240)).unwrap();
    let mut worker = worker(&engine, Arc::clone(&live).into());
    let request = Request { beam_width: 12, ..Request::new(History::Ids(&["i7", "i210"]), 8) };
    let before = check(&engine, &mut worker, &request).0;
    let view = live.view();
    let gone = view.id(before[0].0).to_owned();
    let deletes: Vec<Update> = [&*gone, "i3"].map(|id| Update::Delete(id.to_owned())).into();
    live.apply(&deletes).unwrap();
    live.apply(&upserts(240..260)).unwrap();
    let after = check(&engine, &mut worker, &request).0;
    let now = live.view();
    assert!(after.iter().all(|item| now.id(item.0) != gone));
    let counts = engine.catalog_counts();
    assert_eq!((counts.catalogs.len(), counts.refused), (1, 0), "it is the same catalog");
    assert_eq!(counts.catalogs[0].items, now.num_numbers());
}

/// Beams of several requests, at different levels, in one pass.
#[test]
fn searches_at_once_meet_others_and_find_what_they_find_alone() {
    FORMS.into_iter().for_each(check_searches_together);
}

fn check_searches_together(weights: DeviceWeights) {
    let Some(engine) = emulated_of(weights, &small(), Architecture::Hopper, 3) else { return };
    let source = frozen();
    let histories: Vec<Vec<u64>> = (0..6).map(|n| vec![n * 31, n * 7 % 300, 40 + n]).collect();
    let asked = |history: &[u64], beam_width, trace| {
        let mut worker = worker(&engine, source.clone());
        let request = Request { beam_width, trace, ..Request::new(History::Numbers(history), 5) };
        answer(&mut worker, &request).0
    };
    let width = |n: usize| 6 + n * 3;
    let alone: Vec<_> =
        histories.iter().enumerate().map(|(n, history)| asked(history, width(n), true)).collect();
    let asked = &asked;
    let together: Vec<_> = std::thread::scope(|scope| {
        let ask = |(n, history): (usize, &Vec<u64>)| {
            let history = history.clone();
            // Some of them level by level.
            scope.spawn(move || asked(&history, width(n), n % 3 == 2))
        };
        let threads: Vec<_> = histories.iter().enumerate().map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(together, alone);
}

/// A catalog for which the model leaves no memory is found level by level; that is said once.
#[test]
fn a_catalog_without_room_is_searched_by_levels_and_told_once() {
    let memory = LIMITS.memory.unwrap();
    let Some(driver) = Emulator::with_bytes(Architecture::Hopper, 1, memory) else { return };
    let engine = Arc::new(upload(Arc::new(driver), &small(), &LIMITS).unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&told);
    engine.on_warning(Box::new(move |warning| to.lock().unwrap().push(warning.to_owned())));
    let request = Request { beam_width: 8, ..Request::new(History::Numbers(&[3]), 5) };
    let (few, _) = check(&engine, &mut worker(&engine, frozen()), &request);
    assert_eq!(few.len(), 5);

    let item = |n: u32| {
        let codes = vec![n / 4096, n / 64 % CODES, n % CODES];
        Item { id: format!("i{n}"), codes, attributes: Default::default() }
    };
    let mut worker = worker(&engine, frozen_of((0..100_000).map(item).collect()));
    let by_levels = answer(&mut worker, &Request { trace: true, ..request });
    for _ in 0..2 {
        let before = engine.catalog_counts().searches;
        assert_eq!(answer(&mut worker, &request), by_levels);
        assert_eq!(engine.catalog_counts().searches, before);
    }
    let told = told.lock().unwrap();
    let [warning] = &told[..] else { panic!("{told:?}") };
    assert!(
        warning.starts_with("a catalog of 100000 items is searched level by level"),
        "{warning}"
    );
    assert!(warning.contains("bytes of device memory, of which the model"), "{warning}");
    let used = engine.device_use().unwrap();
    assert_eq!((used.catalogs, used.refused_catalogs), (1, 1));
}

/// What left no room for its tables is gone: the next generation is searched at once.
#[test]
fn a_live_catalog_is_taken_when_there_is_room_at_its_next_generation() {
    let memory = 2 * LIMITS.memory.unwrap();
    let Some(driver) = Emulator::with_bytes(Architecture::Hopper, 1, memory) else { return };
    let driver = Arc::new(driver);
    let engine = Arc::new(upload(Arc::clone(&driver), &small(), &LIMITS).unwrap());
    let told = Arc::new(AtomicUsize::new(0));
    let to = Arc::clone(&told);
    engine.on_warning(Box::new(move |_| _ = to.fetch_add(1, Ordering::Relaxed)));
    let folder = tempfile::tempdir().unwrap();
    let live = live_in(folder.path());
    let upsert = |numbers| _ = live.apply(&upserts(numbers)).unwrap();
    let mut worker = worker(&engine, Arc::clone(&live).into());
    let request = Request { beam_width: 8, ..Request::new(History::Ids(&["i3"]), 5) };
    // What a request takes is left, and promised to those that the engine is planned for.
    let bytes = (driver.free_bytes().unwrap() - (2 << 20)) as usize;
    let others = driver.regions(&[RegionPlan { name: "of others", bytes }]).unwrap();
    for numbers in [0..200, 200..210] {
        upsert(numbers);
        answer(&mut worker, &request);
        let counts = engine.catalog_counts();
        assert_eq!((counts.catalogs.len(), counts.refused, counts.searches), (0, 1, 0));
    }
    drop(others);
    answer(&mut worker, &request);
    assert_eq!(engine.catalog_counts().refused, 1, "the generation is the same");
    upsert(210..220);
    check(&engine, &mut worker, &request);
    let counts = engine.catalog_counts();
    assert_eq!((counts.catalogs.len(), counts.refused), (1, 0));
    assert_eq!(told.load(Ordering::Relaxed), 1);
}

/// As many searches as the plan is for, as wide as they are there, have the memory that it says.
#[test]
fn searches_at_once_have_the_memory_of_the_plan() {
    let memory = LIMITS.memory.unwrap();
    let Some(driver) = Emulator::with_bytes(Architecture::Hopper, 1, memory) else { return };
    let engine = Arc::new(upload(Arc::new(driver), &small(), &LIMITS).unwrap());
    engine.on_warning(Box::new(|warning| panic!("{warning}")));
    let mut workers: Vec<_> = (0..LIMITS.requests).map(|_| worker(&engine, frozen())).collect();
    let request =
        Request { beam_width: 300, mode: Mode::Beam, ..Request::new(History::Numbers(&[3]), 5) };
    for (at, worker) in workers.iter_mut().enumerate() {
        answer(worker, &request);
        assert_eq!(engine.catalog_counts().searches, at as u64 + 1);
    }
}

/// A device that fails, before its catalog is there and after, is said to have failed.
#[test]
fn a_failure_of_a_search_at_once_is_the_devices() {
    for is_uploaded in [false, true] {
        let Some(driver) = Emulator::new(Architecture::Hopper, 1) else { return };
        let driver = Arc::new(driver);
        let engine = Arc::new(upload(Arc::clone(&driver), &small(), &LIMITS).unwrap());
        let mut worker = worker(&engine, frozen());
        let request = Request { beam_width: 4, ..Request::new(History::Numbers(&[3]), 2) };
        if is_uploaded {
            worker.recommend(&request, &mut run_on).unwrap();
        }
        driver.fail("kernel 7 went out of its memory");
        let error = worker.recommend(&request, &mut run_on).unwrap_err().to_string();
        assert!(error.contains("kernel 7"), "{error}");
        assert!(engine.failure().is_some_and(|failure| failure.contains("kernel 7")));
    }
}
