//! Recommendations over a catalog that changes: every answer equals that of a catalog rebuilt at its generation.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use palmette_attributes::Filter;
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_decode::{Stage, run_on};
use palmette_live::{CatalogView, LiveCatalog, LiveOptions, MergePolicy, SyncPolicy, Update};
use palmette_model::draft::{DraftForm, DraftHead};
use palmette_recommend::{
    Candidates, History, Mode, RecommendError, Recommendations, Recommender, Request, Verification,
    WorkerPool,
};

use crate::shop::{NUM_CODES, format, model, named, worker};

/// A pseudo-random number below `bound`.
fn random(seed: &mut u64, bound: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % bound
}

fn item(seed: &mut u64, id: u64) -> Item {
    let mut code = |bound| random(seed, bound) as u32;
    let codes = vec![code(5), code(8), code(u64::from(NUM_CODES))];
    let colour = ["red", "green", "blue"][random(seed, 3) as usize];
    let attributes = [("colour".to_owned(), colour.into())].into_iter().collect();
    Item { id: format!("i{id}"), codes, attributes }
}

/// A batch of insertions, replacements and deletions.
fn batch(seed: &mut u64) -> Vec<Update> {
    let update = |_| match random(seed, 4) {
        0 => Update::Delete(format!("i{}", random(seed, 120))),
        _ => {
            let id = random(seed, 120);
            Update::Upsert(item(seed, id))
        }
    };
    let mut updates: BTreeMap<String, Update> = BTreeMap::new();
    for update in (0..6).map(update) {
        let id = match &update {
            Update::Delete(id) => id.clone(),
            Update::Upsert(item) => item.id.clone(),
        };
        updates.insert(id, update);
    }
    updates.into_values().collect()
}

fn live(dir: &std::path::Path, merging: MergePolicy) -> Arc<LiveCatalog> {
    let options = LiveOptions {
        sync: SyncPolicy::Never,
        merging,
        memory_items: 16,
        ..LiveOptions::default()
    };
    let mut seed = 1;
    let first: Vec<Item> = (0..60).map(|id| item(&mut seed, id)).collect();
    let codes_per_level = Some(vec![NUM_CODES; 3]);
    let options_of_first = BuildOptions { codes_per_level, ..BuildOptions::default() };
    let first = Catalog::build(first.into(), &options_of_first).unwrap();
    Arc::new(LiveCatalog::create(dir, Some(first), None, options).unwrap())
}

fn recommender(source: impl Into<palmette_live::CatalogSource>) -> Recommender {
    let model = Arc::new(model());
    let head = DraftHead::random(DraftForm::default(), &model, format().draft_shape(), 9).unwrap();
    Recommender::new(model, source, format()).unwrap().with_draft_head(head).unwrap()
}

/// The kinds of search that a request may ask for.
fn modes() -> [Mode; 4] {
    let two = NonZeroUsize::new(2).unwrap();
    let draft = Mode::Draft;
    [Mode::Beam, Mode::Probed(two), draft(Verification::Masks), draft(Verification::Keys)]
}

/// A request as owned parts.
#[derive(Clone, Debug)]
struct Asked {
    history: Vec<String>,
    exclude: Vec<String>,
    filter: Option<Filter>,
    mode: Mode,
    k: usize,
    beam_width: usize,
}

fn asked(seed: &mut u64) -> Asked {
    let mut ids = |most| -> Vec<String> {
        (0..random(seed, most)).map(|_| format!("i{}", random(seed, 130))).collect()
    };
    let (history, exclude) = (ids(6), ids(4));
    let red = || Filter::parse(r#"{"must": {"match": {"colour": "red"}}}"#).unwrap();
    Asked {
        history,
        exclude,
        filter: (random(seed, 2) == 0).then(red),
        mode: modes()[random(seed, 4) as usize],
        k: 1 + random(seed, 2) as usize,
        beam_width: 3 + random(seed, 9) as usize,
    }
}

/// Asks by ids.
fn with_request<R>(asked: &Asked, ask: impl FnOnce(Request<'_>) -> R) -> R {
    let history: Vec<&str> = asked.history.iter().map(String::as_str).collect();
    let exclude: Vec<&str> = asked.exclude.iter().map(String::as_str).collect();
    ask(Request {
        beam_width: asked.beam_width,
        mode: asked.mode,
        items: asked.filter.as_ref().map_or(Candidates::All, Candidates::Filter),
        exclude: &exclude,
        ..Request::new(History::Ids(&history), asked.k)
    })
}

/// What a catalog built anew from the answer's generation answers.
fn check_rebuilt(asked: &Asked, answer: &Recommendations) {
    let CatalogView::Snapshot(snapshot) = answer.view.view() else { panic!("a live catalog") };
    let rebuilt = snapshot.to_catalog(|| {}).unwrap();
    let known = |id: &String| rebuilt.rank_of(id).is_some();
    let unknown: Vec<usize> =
        (0..asked.history.len()).filter(|&place| !known(&asked.history[place])).collect();
    let frozen = Arc::new(recommender(rebuilt));
    let want = with_request(asked, |request| worker(&frozen).recommend(&request, &mut run_on));
    let want = want.unwrap();
    let generation = snapshot.generation();
    assert_eq!(named(answer), named(&want), "{asked:?} at generation {generation}");
    assert_eq!(answer.unknown, unknown, "{asked:?} at generation {generation}");
    assert_eq!(answer.history_used, want.history_used);
}

struct Server {
    pool: WorkerPool,
    live: Arc<LiveCatalog>,
}

static SERVER: OnceLock<Server> = OnceLock::new();

#[test]
fn a_pool_answers_from_threads_while_the_catalog_changes() {
    let dir = tempfile::tempdir().unwrap();
    let server = SERVER.get_or_init(|| {
        let live = live(dir.path(), MergePolicy::Tiered);
        let recommender = Arc::new(recommender(Arc::clone(&live)));
        Server { pool: WorkerPool::new(recommender, 1, 2), live }
    });
    let answers = Mutex::new(Vec::new());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (answers, is_done) = (&answers, &is_done);
            scope.spawn(move || {
                let mut seed = 100 + thread;
                // At least some, however fast the updates are.
                for number in 0.. {
                    if number >= 20 && is_done.load(Ordering::Relaxed) {
                        return;
                    }
                    let asked = asked(&mut seed);
                    let answer = with_request(&asked, |request| {
                        server.pool.recommend(&request, &mut run_on)
                    });
                    // Most are let go of: comparing takes longer than answering.
                    if number % 8 == 0 {
                        answers.lock().unwrap().push((asked, answer.unwrap()));
                    }
                }
            });
        }
        let mut seed = 7;
        for _ in 0..150 {
            server.live.apply(&batch(&mut seed)).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let answers = answers.into_inner().unwrap();
    assert!(answers.len() >= 9);
    // Spread over the whole time.
    let every = answers.len().div_ceil(60);
    for (asked, answer) in answers.iter().step_by(every) {
        check_rebuilt(asked, answer);
    }
    let (asked, last) = (asked(&mut 5), |request: Request<'_>| {
        server.pool.recommend(&request, &mut run_on).unwrap()
    });
    let answer = with_request(&asked, last);
    assert_eq!(answer.view.view().generation(), Some(150));
    check_rebuilt(&asked, &answer);
}

#[test]
fn a_view_of_several_segments_equals_a_rebuild_in_every_mode() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(dir.path(), MergePolicy::Never);
    let recommender = Arc::new(recommender(Arc::clone(&live)));
    // One worker for all: what a request leaves in it changes no later answer.
    let mut worker = worker(&recommender);
    let (mut seed, mut most_segments) = (11, 0);
    for round in 0..24 {
        live.apply(&batch(&mut seed)).unwrap();
        most_segments = most_segments.max(live.snapshot().segments().len());
        for mode in modes() {
            let asked = Asked { mode, ..asked(&mut seed) };
            let answer = with_request(&asked, |request| worker.recommend(&request, &mut run_on));
            let answer = answer.unwrap();
            assert_eq!(answer.view.view().generation(), Some(round + 1));
            check_rebuilt(&asked, &answer);
        }
    }
    assert!(most_segments >= 4, "{most_segments} segments");
}

#[test]
fn a_request_that_holds_a_view_is_answered_by_its_generation() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(dir.path(), MergePolicy::Never);
    let recommender = Arc::new(recommender(Arc::clone(&live)));
    let held = recommender.view().unwrap();
    let ask = |view| {
        let request = Request { view, ..Request::new(History::Ids(&["i3", "gone"]), 20) };
        worker(&recommender).recommend(&request, &mut run_on).unwrap()
    };
    let before = ask(None);
    assert_eq!(before.unknown, [1]);
    let best = before.id(&before.items[0]).to_owned();
    live.apply(&[Update::Delete(best.clone()), Update::Delete("i3".into())]).unwrap();
    let after = ask(None);
    assert!(named(&after).iter().all(|(id, _)| *id != best));
    assert_eq!(after.unknown, [0, 1]);
    let again = ask(Some(&held));
    assert_eq!((named(&again), again.unknown), (named(&before), before.unknown));
}

#[test]
fn a_request_is_cancelled_after_any_stage_and_the_worker_answers_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(dir.path(), MergePolicy::Never);
    let recommender = Arc::new(recommender(live));
    let mut worker = worker(&recommender);
    for mode in modes() {
        let asked = Asked { mode, k: 2, ..asked(&mut 3) };
        let mut run = |control: &mut dyn FnMut(Stage) -> ControlFlow<()>| {
            with_request(&asked, |request| worker.recommend(&request, control))
        };
        let mut stages = 0;
        let want = run(&mut |_| {
            stages += 1;
            ControlFlow::Continue(())
        });
        let want = named(&want.unwrap());
        assert!(stages > 6);
        for last in 0..stages {
            let mut heard = 0;
            let ended = run(&mut |_| {
                heard += 1;
                if heard > last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let error = ended.expect_err("it was cancelled");
            assert!(matches!(error, RecommendError::Cancelled), "{error}");
            assert_eq!(named(&run(&mut run_on).unwrap()), want, "after {last} stages in {mode:?}");
        }
    }
}
