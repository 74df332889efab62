//! Recommendations over live catalogs, against frozen catalogs rebuilt from the generation that
//! answered.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_filter::Filter;
use palmette_catalog_live::{
    CatalogSource, CatalogView, LiveCatalog, LiveOptions, MergePolicy, Snapshot, SyncPolicy, Update,
};
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_model::draft::{DraftForm, DraftHead};
use palmette_recommend::{
    Candidates, History, HistoryItem, Mode, RecommendError, Recommendations, Recommender, Request,
    SpelledView, Verification, Worker, WorkerPool,
};
use serde_json::json;

use crate::random::Random;
use crate::shop::{model, named, parts, recommend, text_format, worker};

/// Ids are `i0` to one less than this.
const NUM_IDS: u64 = 60;

/// A recommender with a draft head over this source; all of them share one model.
fn over(source: impl Into<CatalogSource>) -> Arc<Recommender> {
    static SHARED: OnceLock<(Arc<Model>, Arc<DraftHead>)> = OnceLock::new();
    let (model, head) = SHARED.get_or_init(|| {
        let model = model();
        let head = DraftHead::random(
            DraftForm::default(),
            &model,
            text_format().draft_shape().unwrap(),
            9,
        );
        (Arc::new(model), Arc::new(head.expect("a head of the model's shape")))
    });
    let recommender = Recommender::new(Arc::clone(model), source, text_format()).expect("they fit");
    Arc::new(recommender.with_draft_head(Arc::clone(head)).expect("it fits"))
}

impl Random {
    fn id(&mut self) -> String {
        format!("i{}", self.below(NUM_IDS))
    }

    /// An item whose semantic ID is often another's too.
    fn item(&mut self) -> Item {
        let codes = vec![self.below(4) as u32, self.below(6) as u32 * 5, self.below(3) as u32];
        let mut attributes = serde_json::Map::new();
        attributes.insert("colour".into(), json!(format!("c{}", self.below(3))));
        if !self.is(4) {
            attributes.insert("price".into(), json!(self.below(100)));
        }
        Item { id: self.id(), codes, attributes }
    }

    fn items(&mut self, count: u64) -> Vec<Item> {
        let mut items: Vec<Item> = (0..count).map(|_| self.item()).collect();
        items.sort_by(|a, b| a.id.cmp(&b.id));
        items.dedup_by(|a, b| a.id == b.id);
        items
    }

    fn batch(&mut self) -> Vec<Update> {
        let update = |random: &mut Self| match random.is(3) {
            true => Update::Delete(random.id()),
            false => Update::Upsert(random.item()),
        };
        (0..1 + self.below(8)).map(|_| update(self)).collect()
    }
}

/// A request that owns what it asks.
#[derive(Clone, Debug)]
struct Asked {
    history: Vec<String>,
    k: usize,
    beam_width: usize,
    mode: Mode,
    filter: Option<Filter>,
    exclude: Vec<String>,
    include_seen: bool,
}

impl Asked {
    fn drawn(random: &mut Random) -> Self {
        let beam_width = 1 + random.below(40) as usize;
        let probe = NonZeroUsize::new(1 + random.below(6) as usize).expect("positive");
        let modes = [
            Mode::Beam,
            Mode::Probed(probe),
            Mode::Draft(Verification::Masks),
            Mode::Draft(Verification::Keys),
        ];
        let filters = [
            r#"{"must": {"match": {"colour": "c1"}}}"#,
            r#"{"must": {"range": {"price": {"lt": 50}}}}"#,
            r#"{"must_not": {"match": {"colour": "c0"}}}"#,
        ];
        let filter = filters.get(random.below(6) as usize).map(|text| Filter::parse(text));
        let mut ids = |most: u64| (0..random.below(most)).map(|_| random.id()).collect();
        Self {
            history: ids(7),
            exclude: ids(12),
            k: 1 + random.below(12) as usize,
            beam_width,
            mode: modes[random.below(4) as usize],
            filter: filter.transpose().expect("sound filters"),
            include_seen: random.is(2),
        }
    }

    /// Hands the request, for a moment or for now, to `ask`.
    fn with<T>(&self, view: Option<&Arc<SpelledView>>, ask: impl FnOnce(&Request<'_>) -> T) -> T {
        let history: Vec<&str> = self.history.iter().map(String::as_str).collect();
        let exclude: Vec<&str> = self.exclude.iter().map(String::as_str).collect();
        ask(&Request {
            beam_width: self.beam_width,
            mode: self.mode,
            items: self.filter.as_ref().map_or(Candidates::All, Candidates::Filter),
            exclude: &exclude,
            include_seen: self.include_seen,
            view,
            ..Request::new(History::Ids(&history), self.k)
        })
    }

    fn of(&self, worker: &mut Worker) -> Recommendations {
        self.with(None, |request| worker.recommend(request, &mut run_on)).expect("a sound request")
    }
}

fn snapshot(answer: &Recommendations) -> &Arc<Snapshot> {
    match answer.view.view() {
        CatalogView::Snapshot(snapshot) => snapshot,
        CatalogView::Frozen(_) => panic!("answered by a frozen catalog"),
    }
}

/// An answer is what a frozen catalog of its generation's items gives: ids, order, scores to the
/// bit.
#[track_caller]
fn check_against_rebuild(answer: &Recommendations, asked: &Asked) {
    let of = snapshot(answer);
    let rebuilt = over(of.to_catalog(|| {}).expect("room"));
    // What was deleted is read by its codes, of which the rebuilt catalog knows nothing.
    let (mut history, mut unknown) = (Vec::new(), Vec::new());
    let now = rebuilt.view().expect("they fit");
    for (place, id) in asked.history.iter().enumerate() {
        match (now.view().find(id), of.departed(id)) {
            (Some(number), _) => history.push(HistoryItem::Number(number)),
            (None, Some(codes)) => history.push(HistoryItem::Departed { id: id.clone(), codes }),
            (None, None) => unknown.push(place),
        }
    }
    let want = asked.with(Some(&now), |request| {
        recommend(&rebuilt, &Request { history: History::Items(&history), ..*request })
    });
    assert_eq!(named(answer), named(&want), "generation {:?}", answer.view.view().generation());
    assert_eq!(
        (answer.history_used, &answer.unknown, answer.beam_width),
        (want.history_used, &unknown, want.beam_width)
    );
    let denied = asked.exclude.iter().chain(asked.history.iter().filter(|_| !asked.include_seen));
    let denied: Vec<&String> = denied.collect();
    assert!(named(answer).iter().all(|(id, _)| !denied.contains(&id)), "{asked:?}");
}

fn options(merging: MergePolicy) -> LiveOptions {
    LiveOptions {
        sync: SyncPolicy::Never,
        merging,
        memory_items: 8,
        checkpoint_bytes: 4000,
        map_items: 40,
        ..LiveOptions::default()
    }
}

/// A live catalog that begins with some items.
fn live(dir: &Path, random: &mut Random, merging: MergePolicy) -> Arc<LiveCatalog> {
    let items = random.items(30);
    let first = Catalog::build(items.into(), &BuildOptions::default()).expect("sound items");
    let live = LiveCatalog::create_with(&dir.join("live"), Some(first), None, options(merging));
    Arc::new(live.expect("a new folder"))
}

/// A program's own struct: nothing in it borrows.
struct Server {
    pool: WorkerPool,
    live: Arc<LiveCatalog>,
    answers: AtomicU64,
    is_done: AtomicBool,
}

impl Server {
    /// Answers until the writer is done, and checks each answer; returns how many were of several
    /// segments.
    fn answer_until_done(&self, seed: u64) -> u64 {
        let (mut random, mut of_several) = (Random(seed), 0);
        let mut last = 0;
        loop {
            let is_done = self.is_done.load(Ordering::Acquire);
            let asked = Asked::drawn(&mut random);
            let answer = asked.with(None, |request| self.pool.recommend(request, &mut run_on));
            let answer = answer.expect("a sound request");
            let generation = answer.view.view().generation().expect("a live one");
            assert!(generation >= last, "generation {generation} after {last}");
            last = generation;
            check_against_rebuild(&answer, &asked);
            of_several += u64::from(snapshot(&answer).segments().len() > 1);
            self.answers.fetch_add(1, Ordering::Release);
            if is_done {
                assert_eq!(generation, NUM_BATCHES, "asked after the last batch");
                return of_several;
            }
        }
    }
}

const NUM_BATCHES: u64 = 60;

#[test]
fn a_pool_answers_from_threads_while_the_catalog_changes() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut random = Random(7);
    let live = live(dir.path(), &mut random, MergePolicy::Tiered);
    let server = Arc::new(Server {
        pool: WorkerPool::new(over(Arc::clone(&live)), 1, 2),
        live,
        answers: AtomicU64::new(0),
        is_done: AtomicBool::new(false),
    });
    let readers: Vec<JoinHandle<u64>> = (0..3)
        .map(|seed| {
            let server = Arc::clone(&server);
            thread::spawn(move || server.answer_until_done(seed))
        })
        .collect();
    for n in 1..=NUM_BATCHES {
        // Batches and answers take turns, in whatever order the threads do; none goes on alone.
        while server.answers.load(Ordering::Acquire) < n
            && !readers.iter().all(JoinHandle::is_finished)
        {
            thread::yield_now();
        }
        assert_eq!(server.live.apply(&random.batch()).expect("sound").generation, n);
    }
    server.is_done.store(true, Ordering::Release);
    let of_several: u64 = readers.into_iter().map(|reader| reader.join().expect("sound")).sum();
    assert!(of_several > 0, "no answer was of several segments");
    server.live.wait_for_merges();
    let status = server.live.status();
    assert!(status.merges_done > 0, "{status:?}");
    assert_eq!(status.background_error, None);
}

#[test]
fn any_live_catalog_answers_as_its_rebuild() {
    let (mut of_several, mut with_unknown, mut recommended) = (0, 0, 0);
    for seed in 0..12 {
        let policies = [MergePolicy::Never, MergePolicy::Tiered, MergePolicy::Always];
        let (dir, mut random) = (tempfile::tempdir().expect("a folder"), Random(seed));
        let live = live(dir.path(), &mut random, policies[seed as usize % 3]);
        // One worker for all generations and shapes.
        let mut worker = worker(&over(Arc::clone(&live)));
        for _ in 0..8 {
            for _ in 0..random.below(4) {
                live.apply(&random.batch()).expect("sound");
            }
            for _ in 0..4 {
                let asked = Asked::drawn(&mut random);
                let answer = asked.of(&mut worker);
                check_against_rebuild(&answer, &asked);
                of_several += u32::from(snapshot(&answer).segments().len() > 1);
                with_unknown += u32::from(!answer.unknown.is_empty());
                recommended += answer.items.len();

                // The same by number, from a set of the view.
                let view = &answer.view;
                let known = asked.history.iter();
                let known = known.filter_map(|id| view.find_item(&id.as_str().into()).ok());
                let known: Vec<HistoryItem> = known.collect();
                let set = match &asked.filter {
                    Some(filter) => view.view().filter(filter).expect("known attributes"),
                    None => view.view().choose(view.view().numbers()),
                };
                let by_number = asked.with(Some(view), |request| {
                    let (history, items) = (History::Items(&known), Candidates::Set(&set));
                    worker.recommend(&Request { history, items, ..*request }, &mut run_on)
                });
                assert_eq!(by_number.expect("sound").items, answer.items);
            }
        }
    }
    assert!(of_several > 100 && with_unknown > 50 && recommended > 1000);
}

/// Every mode over both kinds of catalog.
fn of_every_kind(dir: &Path) -> Vec<(Arc<Recommender>, Asked)> {
    let mut random = Random(3);
    let live = live(dir, &mut random, MergePolicy::Never);
    for _ in 0..5 {
        live.apply(&random.batch()).expect("sound");
    }
    let frozen = live.snapshot().to_catalog(|| {}).expect("room");
    let (live, frozen) = (over(live), over(frozen));
    let modes = [
        Mode::Beam,
        Mode::Probed(NonZeroUsize::new(4).expect("positive")),
        Mode::Draft(Verification::Masks),
        Mode::Draft(Verification::Keys),
        Mode::Draft(Verification::None),
    ];
    let asked = modes.map(|mode| Asked {
        history: ["i1", "i2", "i3"].map(str::to_owned).to_vec(),
        k: 3,
        beam_width: 12,
        mode,
        filter: None,
        exclude: vec!["i4".to_owned()],
        include_seen: false,
    });
    let both = asked.into_iter().flat_map(|asked| [(&live, asked.clone()), (&frozen, asked)]);
    both.map(|(recommender, asked)| (Arc::clone(recommender), asked)).collect()
}

#[test]
fn a_request_cancelled_at_any_stage_leaves_the_worker_fit() {
    let dir = tempfile::tempdir().expect("a folder");
    for (recommender, asked) in of_every_kind(dir.path()) {
        let want = asked.of(&mut worker(&recommender));
        let mut stages = 0;
        let mut count = |_| {
            stages += 1;
            ControlFlow::Continue(())
        };
        let mut worker = worker(&recommender);
        asked.with(None, |request| worker.recommend(request, &mut count)).expect("sound");
        assert!(stages >= 10, "{stages} stages of three levels");
        for last in 1..=stages {
            let mut heard = 0;
            let mut stop = |_| {
                heard += 1;
                if heard == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let error = asked.with(None, |request| worker.recommend(request, &mut stop));
            let error = error.expect_err("it was cancelled");
            assert!(matches!(error, RecommendError::Cancelled), "{error}");
            assert_eq!(heard, last, "nothing runs on after a break");
            let got = asked.of(&mut worker);
            assert_eq!(parts(&got), parts(&want), "{asked:?} after stage {last} of {stages}");
        }
    }
}

#[test]
fn ids_that_are_not_there_are_reported_and_exclude_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let item = |id: &str, codes: [u32; 3]| Item {
        id: id.into(),
        codes: codes.into(),
        attributes: Default::default(),
    };
    let items = vec![item("a", [1, 2, 3]), item("b", [1, 2, 4]), item("c", [2, 2, 2])];
    let first = Catalog::build(items.into(), &BuildOptions::default()).expect("sound items");
    let path = dir.path().join("live");
    let live = LiveCatalog::create_with(&path, Some(first), None, options(MergePolicy::Never));
    let live = Arc::new(live.expect("new"));
    let recommender = over(Arc::clone(&live));
    let ask = |history: &[&str], exclude: &[&str], view: Option<&Arc<SpelledView>>| {
        let request = Request { exclude, view, ..Request::new(History::Ids(history), 10) };
        recommend(&recommender, &request)
    };
    let ids = |answer: &Recommendations| {
        let mut ids: Vec<String> = named(answer).into_iter().map(|(id, _)| id).collect();
        ids.sort();
        ids.join(" ")
    };

    let before = ask(&["a", "z", "b", ""], &["nothing"], None);
    assert_eq!((ids(&before).as_str(), &before.unknown[..]), ("c", &[1, 3][..]));
    assert_eq!((before.history_used, before.view.view().generation()), (2, Some(0)));
    assert_eq!(ids(&ask(&[], &["c", "a"], None)), "b");

    let updates = [Update::Delete("b".into()), Update::Upsert(item("d", [1, 2, 4]))];
    live.apply(&updates).expect("sound");
    let after = ask(&["a", "z", "b", ""], &[], None);
    assert_eq!((ids(&after).as_str(), &after.unknown[..]), ("c d", &[1, 3][..]));
    // What was deleted is read by the codes that it had.
    assert_eq!((after.history_used, after.view.view().generation()), (2, Some(1)));
    assert_eq!(ids(&ask(&[], &["b"], None)), "a c d", "what is gone excludes nothing");

    // A request that holds a view is answered by its generation.
    let pinned = ask(&["a", "z", "b", ""], &["nothing"], Some(&before.view));
    assert_eq!((parts(&pinned), named(&pinned)), (parts(&before), named(&before)));
    assert_eq!(pinned.view.view().generation(), Some(0));
    assert_eq!(ids(&ask(&[], &["d"], Some(&before.view))), "a b c", "d is not there yet");

    // A source of one snapshot stays there.
    let kept = over(live.snapshot());
    live.apply(&[Update::Delete("a".into())]).expect("sound");
    assert_eq!(kept.view().expect("as before").view().generation(), Some(1));
    assert_eq!(recommender.view().expect("they fit").view().generation(), Some(2));
}

#[test]
fn an_item_without_tokens_is_an_error_until_it_is_gone() {
    let (dir, mut random) = (tempfile::tempdir().expect("a folder"), Random(1));
    let items = random.items(9);
    let first = Catalog::build(items.into(), &BuildOptions::default()).expect("sound items");
    let schema = palmette_catalog_live::Schema {
        codes_per_level: None,
        ..palmette_catalog_live::Schema::of_catalog(&first)
    };
    let options = options(MergePolicy::Never);
    let path = dir.path().join("live");
    let live = LiveCatalog::create_with(&path, Some(first), Some(schema), options).expect("new");
    let live = Arc::new(live);
    let recommender = over(Arc::clone(&live));
    let asked = Asked { history: Vec::new(), filter: None, ..Asked::drawn(&mut random) };
    let mut worker = worker(&recommender);
    let before = asked.of(&mut worker);
    let far = Item { id: "far".into(), codes: vec![1, 30, 2], attributes: Default::default() };
    live.apply(&[Update::Upsert(far)]).expect("the schema allows it");
    let ask =
        |worker: &mut Worker| asked.with(None, |request| worker.recommend(request, &mut run_on));
    let error = ask(&mut worker).expect_err("code 30 has no token");
    assert!(error.to_string().contains("code 30 at level 1 (item \"far\")"), "{error}");
    live.apply(&[Update::Delete("far".into())]).expect("sound");
    assert_eq!(named(&ask(&mut worker).expect("it is gone")), named(&before));
}

#[test]
fn requests_of_any_shape_in_any_order_have_the_bits_they_have_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let live = of_every_kind(dir.path())[0].0.clone();
    let view = live.view().expect("they fit");
    let mut random = Random(11);
    let asked: Vec<Asked> = (0..12).map(|_| Asked::drawn(&mut random)).collect();
    let want: Vec<_> = asked.iter().map(|asked| asked.of(&mut worker(&live))).collect();
    let (mut one, pool) = (worker(&live), WorkerPool::new(Arc::clone(&live), 1, 2));
    for _ in 0..60 {
        let at = random.below(asked.len() as u64) as usize;
        // One that cannot be answered may come before.
        if random.is(4) {
            let nothing = Request { k: 0, ..Request::new(History::Numbers(&[]), 1) };
            assert!(one.recommend(&nothing, &mut run_on).is_err());
            assert!(pool.recommend(&nothing, &mut run_on).is_err());
        }
        let got = asked[at].of(&mut one);
        assert_eq!(parts(&got), parts(&want[at]), "{:?}", asked[at]);
        let got = asked[at].with(Some(&view), |request| pool.recommend(request, &mut run_on));
        assert_eq!(parts(&got.expect("sound")), parts(&want[at]), "{:?}", asked[at]);
    }
}
