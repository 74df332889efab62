//! The whole path against scoring every item with the model, one prompt at a time.

use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_attributes::RankSet;
use palmette_catalog::readers::SourceItems;
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_core::TokenId;
use palmette_decode::{LogitsSource, log_sum_exp};
use palmette_model::{Session, SessionOptions};
use palmette_recommend::{
    Mode, Normaliser, PromptFormat, RecommendError, Recommendations, Recommended, Recommender,
    Request, Stage, Worker, WorkerOptions, recommend_all,
};

use crate::shop::{self, NUM_CODES, format, model};

const NUM_ITEMS: u32 = 60;
/// Scores nearer than this may come in either order: the two paths round differently.
const TOLERANCE: f32 = 1e-4;

fn recommender() -> Recommender {
    Recommender::new(model(), Arc::new(shop::catalog(NUM_ITEMS)), format())
        .expect("they fit together")
}

fn recommend(
    recommender: &Recommender,
    beam_width: usize,
    request: &Request<'_>,
) -> Recommendations {
    let mut worker = recommender.worker(WorkerOptions { beam_width, threads: 1 }).unwrap();
    worker.recommend(request, |_| {}).unwrap()
}

/// Scores every item by prompts that end in each prefix of its ID; no cache, no beams.
fn score_every_item(recommender: &Recommender, history: &[u64]) -> Vec<Recommended> {
    let (catalog, format) = (recommender.catalog(), recommender.format());
    let options =
        SessionOptions { max_prompt_tokens: 20, max_beams: 1, max_decode_passes: 0, threads: 1 };
    let mut session = Session::new(recommender.model(), options).unwrap();
    let mut prompt = vec![TokenId(format.bos_token)];
    let token = |level: usize, code: u32| TokenId(format.levels[level].first_token + code);
    for &rank in history {
        prompt.extend(catalog.codes(rank).iter().enumerate().map(|(l, &c)| token(l, c)));
    }
    let mut scored: Vec<Recommended> = (0..catalog.num_items())
        .map(|rank| {
            let mut score = 0.0;
            let mut extended = prompt.clone();
            for (level, &code) in catalog.codes(rank).iter().enumerate() {
                session.set_prompt(&extended).unwrap();
                let logits = session.prompt_logits().unwrap();
                let first = format.levels[level].first_token as usize;
                let whole = match recommender.normaliser() {
                    Normaliser::Vocabulary => logits,
                    Normaliser::Level => &logits[first..first + NUM_CODES as usize],
                };
                score += logits[token(level, code).index()] - log_sum_exp(whole);
                extended.push(token(level, code));
            }
            Recommended { rank, score }
        })
        .collect();
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.rank.cmp(&b.rank)));
    scored
}

#[track_caller]
fn check_same(got: &[Recommended], want: &[Recommended]) {
    assert_eq!(got.len(), want.len());
    for (place, (got, want_here)) in got.iter().zip(want).enumerate() {
        assert!(
            (got.score - want_here.score).abs() < TOLERANCE,
            "place {place}: {got:?} {want_here:?}"
        );
        let same = want.iter().find(|item| item.rank == got.rank).expect("the same items");
        assert!((same.score - got.score).abs() < TOLERANCE, "place {place}: {got:?} {same:?}");
    }
    let pairs = got.windows(2);
    assert!(pairs.clone().all(|pair| pair[0].score >= pair[1].score), "best first");
    // Items that share a semantic ID share a score exactly and come in catalog order.
    assert!(pairs.filter(|p| p[0].score == p[1].score).all(|p| p[0].rank < p[1].rank));
}

#[test]
fn a_wide_beam_equals_scoring_every_item() {
    let recommender = recommender();
    for history in [&[][..], &[3], &[59, 0, 17], &[5, 6, 7, 8]] {
        let want = score_every_item(&recommender, history);
        let request = Request { history, k: 60, include_seen: true, items: None };
        let got = recommend(&recommender, 60, &request);
        check_same(&got.items, &want);

        let unseen: Vec<Recommended> =
            want.into_iter().filter(|item| !history.contains(&item.rank)).take(10).collect();
        let request = Request { history, k: 10, include_seen: false, items: None };
        let got = recommend(&recommender, 60, &request);
        check_same(&got.items, &unseen);
    }
}

#[test]
fn never_fewer_than_k_while_there_are_more() {
    let recommender = recommender();
    // The beam is as wide as k, and what was seen takes no place in it.
    let request = Request { history: &[1, 2], k: 58, include_seen: false, items: None };
    let answer = recommend(&recommender, 1, &request);
    assert_eq!(answer.items.len(), 58);
    let request = Request { history: &[1, 2], k: 1000, include_seen: false, items: None };
    let answer = recommend(&recommender, 1, &request);
    assert_eq!(answer.items.len(), 58, "all that may be recommended");
}

/// At any width: what may not be recommended takes no place in the beam.
#[test]
fn a_set_of_items_equals_a_catalog_of_those_items() {
    let recommender = recommender();
    let catalog = recommender.catalog();
    for keep in [|rank: u64| rank % 3 == 1, |rank| rank == 17, |_| false] {
        let kept: Vec<u64> = (0..catalog.num_items()).filter(|&rank| keep(rank)).collect();
        let items = |rank: &u64| Item {
            id: catalog.id(*rank).to_owned(),
            codes: catalog.codes(*rank),
            attributes: Default::default(),
        };
        let own: Vec<Item> = kept.iter().map(items).collect();
        let own = Catalog::build(own.into(), &BuildOptions::default()).unwrap();
        let own = Recommender::new(model(), Arc::new(own), format()).unwrap();
        let ranks = RankSet::from_ranks(catalog.num_items(), kept.iter().copied());
        let set = Arc::new(catalog.index().item_set(ranks));
        for width in [1, 4, 60] {
            // Nothing of the history is in the smaller catalog, so both read none.
            let request = Request { history: &[], k: 5, include_seen: false, items: Some(&set) };
            let got = recommend(&recommender, width, &request);
            let request = Request { history: &[], k: 5, include_seen: false, items: None };
            let want = recommend(&own, width, &request);
            let named = |of: &Recommender, answer: &Recommendations| -> Vec<(String, f32)> {
                let items = answer.items.iter();
                items.map(|item| (of.catalog().id(item.rank).to_owned(), item.score)).collect()
            };
            assert_eq!(named(&recommender, &got), named(&own, &want), "width {width}");
            assert_eq!(got.items.len(), kept.len().min(5));
        }
    }
}

#[test]
fn a_widened_request_does_not_change_the_next() {
    let recommender = recommender();
    let mut worker = recommender.worker(WorkerOptions { beam_width: 2, threads: 1 }).unwrap();
    let small = Request { history: &[5], k: 2, include_seen: true, items: None };
    let before = worker.recommend(&small, |_| {}).unwrap();
    let large = Request { history: &[5], k: 40, include_seen: true, items: None };
    assert_eq!(worker.recommend(&large, |_| {}).unwrap().beam_width, 40);
    let after = worker.recommend(&small, |_| {}).unwrap();
    assert_eq!((after.beam_width, after), (2, before));
}

#[test]
fn long_histories_are_read_from_the_end_and_said_so() {
    let recommender = recommender();
    let long = Request { history: &[9, 8, 7, 1, 2, 3, 4], k: 5, include_seen: true, items: None };
    let short = Request { history: &[1, 2, 3, 4], k: 5, include_seen: true, items: None };
    let (long, short) = (recommend(&recommender, 8, &long), recommend(&recommender, 8, &short));
    assert_eq!(long, short);
    assert_eq!(long.history_used, 4);
}

#[test]
fn a_reused_worker_gives_what_a_new_one_gives() {
    let recommender = recommender();
    let mut worker = recommender.worker(WorkerOptions { beam_width: 8, threads: 1 }).unwrap();
    for history in [&[1, 2, 3][..], &[], &[40], &[1, 2, 3]] {
        let request = Request { history, k: 5, include_seen: false, items: None };
        let reused = worker.recommend(&request, |_| {}).unwrap();
        assert_eq!(reused, recommend(&recommender, 8, &request));
    }
}

#[test]
fn threads_change_nothing() {
    let recommender = recommender();
    let request = Request { history: &[1, 2, 3], k: 20, include_seen: false, items: None };
    let run = |threads| {
        let mut worker = recommender.worker(WorkerOptions { beam_width: 32, threads }).unwrap();
        worker.recommend(&request, |_| {}).unwrap()
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(4));
}

#[test]
fn a_probe_changes_no_recommendation() {
    let recommender = recommender();
    let set = recommender.catalog().index();
    let odd = Arc::new(set.item_set(RankSet::from_ranks(60, (0..60).filter(|rank| rank % 2 == 1))));
    let mut rows = (0, 0);
    for (width, probe) in [(60, 5), (40, 16), (9, 2), (3, 2), (2, 2), (2, 30)] {
        let options = WorkerOptions { beam_width: width, threads: 1 };
        let mode = Mode::Probed(NonZeroUsize::new(probe).unwrap());
        let mut probed = recommender.worker_in(mode, options).unwrap();
        let mut plain = recommender.worker(options).unwrap();
        for (k, include_seen) in [(1, false), (2, true), (5, false), (50, false)] {
            for history in [&[][..], &[3], &[5, 6, 7, 8]] {
                for items in [None, Some(&odd)] {
                    let request = Request { history, k, include_seen, items };
                    let want = plain.recommend(&request, |_| {}).unwrap();
                    let got = probed.recommend(&request, |_| {}).unwrap();
                    assert_eq!(got, want, "{width} after {probe}, {request:?}");
                    let sum = |worker: &Worker<'_>| worker.rows_of_passes().iter().sum::<usize>();
                    if k > probe || probe >= width {
                        assert_eq!(probed.rows_of_passes(), plain.rows_of_passes());
                    } else if width == 60 && k == 1 {
                        rows = (rows.0 + sum(&plain), rows.1 + sum(&probed));
                    }
                }
            }
        }
    }
    assert!(rows.1 < rows.0, "{rows:?}: the probe is to save rows");
}

#[test]
fn every_stage_is_reported() {
    let recommender = recommender();
    let mut worker = recommender.worker(WorkerOptions { beam_width: 8, threads: 1 }).unwrap();
    let mut stages = Vec::new();
    let request = Request { history: &[1], k: 3, include_seen: true, items: None };
    worker.recommend(&request, |stage| stages.push(stage)).unwrap();
    use Stage::{Decode, Mask, Prefill, TopK};
    assert_eq!(stages, [Mask, Prefill, TopK, Mask, Decode, TopK, Mask, Decode, TopK, Mask]);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let items =
        vec![Item { id: "far".into(), codes: vec![1, 30, 2], attributes: Default::default() }];
    let far = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
    let error = Recommender::new(model(), Arc::new(far), format()).unwrap_err();
    assert!(error.to_string().contains("code 30 at level 1 (item \"far\")"), "{error}");

    let long = PromptFormat { max_history_items: 42, ..format() };
    let error = Recommender::new(model(), Arc::new(shop::catalog(NUM_ITEMS)), long).unwrap_err();
    assert!(
        matches!(error, RecommendError::HistoryTooLong { needed: 130, max: 128, .. }),
        "{error}"
    );

    let small = PromptFormat { bos_token: 97, ..format() };
    let error = Recommender::new(model(), Arc::new(shop::catalog(NUM_ITEMS)), small).unwrap_err();
    assert!(
        matches!(error, RecommendError::SmallVocabulary { needed: 98, vocab_size: 97 }),
        "{error}"
    );

    let items = vec![Item { id: "i".into(), codes: vec![1, 2], attributes: Default::default() }];
    let spelled = SourceItems {
        items,
        lines: vec![1],
        level_prefixes: Some(vec!["x".into(), "other".into()]),
    };
    let spelled = Catalog::build(spelled, &BuildOptions::default()).unwrap();
    let error = Recommender::new(model(), Arc::new(spelled), format()).unwrap_err();
    assert!(error.to_string().contains("level 1 as <other_…>, the model as <x_…>"), "{error}");

    let recommender = recommender();
    let error = recommender.worker(WorkerOptions { beam_width: 0, threads: 1 }).unwrap_err();
    assert_eq!(error.to_string(), "beam width is 0; at least 1 is needed");
    let error = recommender.worker(WorkerOptions { beam_width: 1 << 20, threads: 1 }).unwrap_err();
    assert!(matches!(error, RecommendError::TooLarge { max: 65536, .. }), "{error}");
    let mut worker = recommender.worker(WorkerOptions { beam_width: 2, threads: 1 }).unwrap();
    let nothing = Request { history: &[], k: 0, include_seen: false, items: None };
    assert!(matches!(worker.recommend(&nothing, |_| {}), Err(RecommendError::Zero { what: "k" })));
}

#[test]
fn an_empty_catalog_recommends_nothing() {
    let empty = Catalog::build(Vec::new().into(), &BuildOptions::default()).unwrap();
    let recommender = Recommender::new(model(), Arc::new(empty), format()).unwrap();
    let request = Request { history: &[], k: 5, include_seen: false, items: None };
    assert!(recommend(&recommender, 4, &request).items.is_empty());
}

#[test]
fn requests_side_by_side_have_the_bits_they_have_alone() {
    let recommender = recommender();
    let histories: Vec<Vec<u64>> =
        (0..9).map(|n| (0..n % 5).map(|i| (n * 7 + i) % 60).collect()).collect();
    let request = |history| Request { history, k: 12, include_seen: false, items: None };
    let requests: Vec<Request<'_>> = histories.iter().map(|history| request(history)).collect();
    let want: Vec<_> = requests.iter().map(|r| recommend(&recommender, 20, r)).collect();
    for (num_workers, threads) in [(1, 1), (3, 1), (2, 2)] {
        let options = WorkerOptions { beam_width: 20, threads };
        let mut workers: Vec<Worker<'_>> =
            (0..num_workers).map(|_| recommender.worker(options).unwrap()).collect();
        let got: Vec<_> =
            recommend_all(&mut workers, &requests).into_iter().map(Result::unwrap).collect();
        assert_eq!(got, want, "{num_workers} workers");
    }
    assert!(recommend_all(&mut [], &[]).is_empty());
}

/// Over a level's codes, as the definition says: the softmax of those logits only.
#[test]
fn scores_may_be_shares_of_a_level() {
    let level = Recommender::new(model(), Arc::new(shop::catalog(NUM_ITEMS)), format())
        .unwrap()
        .with_normaliser(Normaliser::Level);
    assert_eq!(level.normaliser(), Normaliser::Level);
    let request = Request { history: &[3, 14], k: 60, include_seen: true, items: None };
    let got = recommend(&level, 60, &request);
    check_same(&got.items, &score_every_item(&level, &[3, 14]));
    let whole = recommend(&recommender(), 60, &request);
    assert_ne!(got.items, whole.items);
}

/// What a schedule means: all prefixes of items one code longer, scored by prompts and sorted, and as many kept as the
/// level's width.
fn search_by_sorting(recommender: &Recommender, history: &[u64], widths: &[usize]) -> Vec<u64> {
    let (catalog, format) = (recommender.catalog(), recommender.format());
    let options =
        SessionOptions { max_prompt_tokens: 20, max_beams: 1, max_decode_passes: 0, threads: 1 };
    let mut session = Session::new(recommender.model(), options).unwrap();
    let history: Vec<Vec<u32>> = history.iter().map(|&rank| catalog.codes(rank)).collect();
    let mut prompt = Vec::new();
    format.write_prompt(&history, &mut prompt);
    let mut kept: Vec<(Vec<u32>, f32)> = vec![(Vec::new(), 0.0)];
    for (level, &width) in widths.iter().enumerate() {
        let mut longer = Vec::new();
        for (prefix, score) in &kept {
            let tokens = prefix.iter().zip(&format.levels);
            let tokens = tokens.map(|(code, level)| TokenId(level.first_token + code));
            let prompt: Vec<TokenId> = prompt.iter().copied().chain(tokens).collect();
            session.set_prompt(&prompt).unwrap();
            let logits = session.prompt_logits().unwrap().to_vec();
            for code in 0..NUM_CODES {
                let codes = [&prefix[..], &[code]].concat();
                if (0..catalog.num_items()).any(|rank| catalog.codes(rank).starts_with(&codes)) {
                    let token = (format.levels[level].first_token + code) as usize;
                    longer.push((codes, score + logits[token] - log_sum_exp(&logits)));
                }
            }
        }
        longer.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        longer.truncate(width);
        kept = longer;
    }
    kept.iter().flat_map(|(codes, _)| catalog.find(codes)).collect()
}

#[test]
fn a_schedule_of_widths_equals_its_definition() {
    for widths in [[1, 1, 1], [5, 2, 9], [2, 40, 3], [7, 7, 7], [60, 4, 60]] {
        let scheduled = recommender().with_widths(widths.to_vec()).unwrap();
        // The worker's own width has nothing to say then.
        let mut worker = scheduled.worker(WorkerOptions { beam_width: 3, threads: 1 }).unwrap();
        for history in [&[][..], &[3], &[59, 0, 17]] {
            let request = Request { history, k: 1, include_seen: true, items: None };
            let answer = worker.recommend(&request, |_| {}).unwrap();
            assert_eq!(answer.beam_width, widths[2]);
            let rows = worker.rows_of_passes();
            assert!(rows[1] <= widths[0] && rows[2] <= widths[1], "{rows:?}");
            let generated: Vec<u64> = worker
                .generated()
                .map(|tokens| {
                    let levels = tokens.iter().zip(&scheduled.format().levels);
                    levels.map(|(token, level)| token.0 - level.first_token).collect::<Vec<u32>>()
                })
                .flat_map(|codes| scheduled.catalog().find(&codes))
                .collect();
            assert_eq!(generated, search_by_sorting(&scheduled, history, &widths), "{widths:?}");
        }
        let (prompt, beams) = worker.cache_bytes();
        let max_prompt = scheduled.format().max_prompt_tokens();
        let config = scheduled.model().config();
        let planned =
            Session::planned_bytes_of_passes(config, max_prompt, &widths[..2], 1).unwrap();
        assert_eq!((prompt, beams), (planned.prompt_cache, planned.beam_cache));
    }
}

#[test]
fn a_schedule_finds_k_items_while_there_are_as_many() {
    let scheduled = recommender().with_widths(vec![2, 1, 3]).unwrap();
    let mut worker = scheduled.worker(WorkerOptions { beam_width: 9, threads: 1 }).unwrap();
    for k in [1, 20, 58, 2] {
        let request = Request { history: &[1, 2], k, include_seen: false, items: None };
        let answer = worker.recommend(&request, |_| {}).unwrap();
        assert_eq!(answer.items.len(), k);
        // As wide at each level as `k`, where that is more.
        let widths = [2, 1, 3].map(|width: usize| width.max(k));
        let same = recommender().with_widths(widths.to_vec()).unwrap();
        assert_eq!(answer, recommend(&same, 9, &request));
    }
}

#[test]
fn schedules_that_cannot_be_are_refused() {
    let says =
        |widths: &[usize]| recommender().with_widths(widths.to_vec()).unwrap_err().to_string();
    assert_eq!(
        says(&[4, 4]),
        "2 beam widths were given for 3 levels of semantic IDs: give one width a level"
    );
    assert!(says(&[]).starts_with("0 beam widths"));
    assert_eq!(says(&[4, 0, 4]), "a beam width is 0; at least 1 is needed");
    assert_eq!(says(&[4, 4, 65537]), "a beam width is 65537; at most 65536 is possible");
}
