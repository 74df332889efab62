//! The whole path against scoring every item with the model, one prompt at a time.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use palmette_catalog::readers::SourceItems;
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_core::TokenId;
use palmette_decode::{LogitsSource, Stage, log_sum_exp, run_on};
use palmette_model::{Session, SessionOptions};
use palmette_recommend::{
    Candidates, Mode, Normaliser, PromptFormat, RecommendError, Recommended, Recommender, Request,
    Worker, recommend_all,
};

use crate::shop::{self, NUM_CODES, format, model, named, parts, recommend, request, worker};

const NUM_ITEMS: u32 = 60;
/// Scores nearer than this may come in either order: the two paths round differently.
const TOLERANCE: f32 = 1e-4;

fn unshared() -> Recommender {
    Recommender::new(model(), shop::catalog(NUM_ITEMS), format()).expect("they fit together")
}

fn recommender() -> Arc<Recommender> {
    Arc::new(unshared())
}

/// Scores every item by prompts that end in each prefix of its ID; no cache, no beams.
fn score_every_item(recommender: &Recommender, history: &[u64]) -> Vec<Recommended> {
    let (view, format) = (recommender.view().unwrap(), recommender.format());
    let catalog = view.view();
    let options =
        SessionOptions { max_prompt_tokens: 20, max_beams: 1, max_decode_passes: 0, threads: 1 };
    let mut session = Session::new(&recommender.engine().model().unwrap(), options).unwrap();
    let mut prompt = vec![TokenId(format.bos_token.unwrap())];
    let token = |level: usize, code: u32| format.levels[level].tokens.token(code).unwrap();
    for &number in history {
        prompt.extend(catalog.codes(number).iter().enumerate().map(|(l, &c)| token(l, c)));
    }
    let mut scored: Vec<Recommended> = catalog
        .numbers()
        .map(|number| {
            let mut score = 0.0;
            let mut extended = prompt.clone();
            for (level, &code) in catalog.codes(number).iter().enumerate() {
                session.set_prompt(&extended).unwrap();
                let logits = session.prompt_logits().unwrap();
                let first = format.levels[level].tokens.token(0).unwrap().index();
                let whole = match recommender.normaliser() {
                    Normaliser::Vocabulary => logits,
                    Normaliser::Level => &logits[first..first + NUM_CODES as usize],
                };
                score += logits[token(level, code).index()] - log_sum_exp(whole);
                extended.push(token(level, code));
            }
            Recommended { number, score, boost: 0.0, pinned: false }
        })
        .collect();
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.number.cmp(&b.number)));
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
        let same = want.iter().find(|item| item.number == got.number).expect("the same items");
        assert!((same.score - got.score).abs() < TOLERANCE, "place {place}: {got:?} {same:?}");
    }
    let pairs = got.windows(2);
    assert!(pairs.clone().all(|pair| pair[0].score >= pair[1].score), "best first");
    // Items that share a semantic ID share a score exactly and come in catalog order.
    assert!(pairs.filter(|p| p[0].score == p[1].score).all(|p| p[0].number < p[1].number));
}

#[test]
fn a_wide_beam_equals_scoring_every_item() {
    let recommender = recommender();
    for history in [&[][..], &[3], &[59, 0, 17], &[5, 6, 7, 8]] {
        let want = score_every_item(&recommender, history);
        let all = Request { include_seen: true, ..request(history, 60, 60) };
        let got = recommend(&recommender, &all);
        check_same(&got.items, &want);

        let unseen: Vec<Recommended> =
            want.into_iter().filter(|item| !history.contains(&item.number)).take(10).collect();
        let got = recommend(&recommender, &request(history, 10, 60));
        check_same(&got.items, &unseen);
    }
}

#[test]
fn never_fewer_than_k_while_there_are_more() {
    let recommender = recommender();
    // The beam is as wide as k, and what was seen takes no place in it.
    let answer = recommend(&recommender, &request(&[1, 2], 58, 1));
    assert_eq!(answer.items.len(), 58);
    let answer = recommend(&recommender, &request(&[1, 2], 1000, 1));
    assert_eq!(answer.items.len(), 58, "all that may be recommended");
}

/// The count of what may be recommended is exact, so that anyone can check why there are fewer.
#[test]
fn as_many_items_as_were_asked_for_or_may_be_recommended() {
    let recommender = recommender();
    let view = recommender.view().unwrap();
    let few = view.view().choose([3, 9, 40]);
    let [seven, eight, forty] = [7, 8, 40].map(|number| view.view().id(number));
    for (items, exclude, include_seen, eligible) in [
        (Candidates::All, &[][..], true, 60),
        (Candidates::All, &[seven, eight, "nobody"][..], false, 55),
        (Candidates::Set(&few), &[forty][..], false, 2),
        (Candidates::Set(&few), &[][..], true, 3),
    ] {
        let asked = request(&[1, 2, 40], 10, 4);
        let asked = Request { items, exclude, include_seen, view: Some(&view), ..asked };
        let answer = recommend(&recommender, &asked);
        assert_eq!(answer.eligible, eligible);
        assert_eq!(answer.items.len() as u64, eligible.min(10));
    }
}

/// Beams of each level are prefixes of those after them, and scores only fall.
#[test]
fn the_beams_of_each_level_are_shown_where_asked_for() {
    let recommender = recommender();
    let asked = request(&[5], 10, 8);
    assert!(recommend(&recommender, &asked).levels.is_empty());
    let answer = recommend(&recommender, &Request { trace: true, ..asked });
    assert_eq!(answer.items, recommend(&recommender, &asked).items);
    assert_eq!(answer.levels.len(), 2);
    for (level, beams) in answer.levels.iter().enumerate() {
        // Ten items are wanted of a beam of eight.
        assert_eq!(beams.len(), if level == 0 { 7 } else { 10 });
        assert!(beams.is_sorted_by(|a, b| a.score >= b.score), "best first");
        assert!(beams.iter().all(|beam| beam.codes.len() == level + 1));
    }
    for beam in &answer.levels[1] {
        let parent = answer.levels[0].iter().find(|of| of.codes[..] == beam.codes[..1]);
        assert!(parent.is_some_and(|of| of.score >= beam.score), "{beam:?}");
    }
    for item in &answer.items {
        let codes = answer.view.view().codes(item.number);
        let parent = answer.levels[1].iter().find(|of| of.codes[..] == codes[..2]);
        assert!(parent.is_some_and(|of| of.score >= item.score), "{item:?}");
    }
}

/// Widths of a request, of a recommender, and as one number are the same search; a plan says them
/// before.
#[test]
fn a_request_may_have_widths_of_its_own() {
    let recommender = recommender();
    let all = request(&[5], 3, 4);
    let own = Request { widths: Some(&[2, 8, 4]), ..all };
    let with_widths = unshared().with_widths(vec![2, 8, 4]);
    let with_widths = Arc::new(with_widths.unwrap());
    assert_eq!(parts(&recommend(&recommender, &own)), parts(&recommend(&with_widths, &all)));
    let even = Request { widths: Some(&[4, 4, 4]), ..all };
    assert_eq!(parts(&recommend(&recommender, &even)), parts(&recommend(&recommender, &all)));
    let planned = |request: &Request<'_>| recommender.planned(request, 1).unwrap();
    assert_eq!(planned(&Request { k: 2, ..own }).widths, [2, 8, 4]);
    assert_eq!(planned(&own).widths, [3, 8, 4]);
    assert_eq!(planned(&Request { k: 6, ..own }).widths, [6, 8, 6]);
    assert!(planned(&own).bytes < planned(&request(&[5], 3, 400)).bytes);
    for widths in [&[4, 4][..], &[], &[1, 0, 1], &[1, 1, 70_000]] {
        let asked = Request { widths: Some(widths), ..all };
        assert!(worker(&recommender).recommend(&asked, &mut run_on).is_err(), "{widths:?}");
        assert!(recommender.planned(&asked, 1).is_err(), "{widths:?}");
    }
}

/// At any width: what may not be recommended takes no place in the beam.
#[test]
fn a_set_of_items_equals_a_catalog_of_those_items() {
    let recommender = recommender();
    let view = recommender.view().unwrap();
    let catalog = view.view();
    for keep in [|number: u64| number % 3 == 1, |number| number == 17, |_| false] {
        let kept: Vec<u64> = catalog.numbers().filter(|&number| keep(number)).collect();
        let own: Vec<Item> = kept.iter().map(|&number| catalog.item(number)).collect();
        let own = Catalog::build(own.into(), &BuildOptions::default()).unwrap();
        let own = Arc::new(Recommender::new(model(), own, format()).unwrap());
        let set = catalog.choose(kept.iter().copied());
        for width in [1, 4, 60] {
            // Nothing of the history is in the smaller catalog, so both read none.
            let of_all = request(&[], 5, width);
            let of_set = Request { items: Candidates::Set(&set), view: Some(&view), ..of_all };
            let got = recommend(&recommender, &of_set);
            let want = recommend(&own, &of_all);
            assert_eq!(named(&got), named(&want), "width {width}");
            assert_eq!(got.items.len(), kept.len().min(5));
        }
    }
}

#[test]
fn a_widened_request_does_not_change_the_next() {
    let recommender = recommender();
    let mut worker = worker(&recommender);
    let small = Request { include_seen: true, ..request(&[5], 2, 2) };
    let before = worker.recommend(&small, &mut run_on).unwrap();
    let large = Request { include_seen: true, ..request(&[5], 40, 2) };
    assert_eq!(worker.recommend(&large, &mut run_on).unwrap().beam_width, 40);
    let after = worker.recommend(&small, &mut run_on).unwrap();
    assert_eq!((after.beam_width, parts(&after)), (2, parts(&before)));
}

#[test]
fn long_histories_are_read_from_the_end_and_said_so() {
    let recommender = recommender();
    let long = Request { include_seen: true, ..request(&[9, 8, 7, 1, 2, 3, 4], 5, 8) };
    let short = Request { include_seen: true, ..request(&[1, 2, 3, 4], 5, 8) };
    let (long, short) = (recommend(&recommender, &long), recommend(&recommender, &short));
    assert_eq!(parts(&long), parts(&short));
    assert_eq!(long.history_used, 4);
}

#[test]
fn a_reused_worker_gives_what_a_new_one_gives() {
    let recommender = recommender();
    let mut worker = worker(&recommender);
    for history in [&[1, 2, 3][..], &[], &[40], &[1, 2, 3]] {
        let asked = request(history, 5, 8);
        let reused = worker.recommend(&asked, &mut run_on).unwrap();
        assert_eq!(parts(&reused), parts(&recommend(&recommender, &asked)));
    }
}

#[test]
fn threads_change_nothing() {
    let recommender = recommender();
    let run = |threads| {
        let mut worker = Worker::new(Arc::clone(&recommender), threads);
        parts(&worker.recommend(&request(&[1, 2, 3], 20, 32), &mut run_on).unwrap())
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(4));
}

#[test]
fn a_probe_changes_no_recommendation() {
    let recommender = recommender();
    let odd = recommender.view().unwrap().view().choose((0..60).filter(|number| number % 2 == 1));
    let mut rows = (0, 0);
    for (width, probe) in [(60, 5), (40, 16), (9, 2), (3, 2), (2, 2), (2, 30)] {
        let mode = Mode::Probed(NonZeroUsize::new(probe).unwrap());
        let (mut probed, mut plain) = (worker(&recommender), worker(&recommender));
        for (k, include_seen) in [(1, false), (2, true), (5, false), (50, false)] {
            for history in [&[][..], &[3], &[5, 6, 7, 8]] {
                for items in [Candidates::All, Candidates::Set(&odd)] {
                    let asked = Request { include_seen, items, ..request(history, k, width) };
                    let want = plain.recommend(&asked, &mut run_on).unwrap();
                    let asked = Request { mode, ..asked };
                    let got = probed.recommend(&asked, &mut run_on).unwrap();
                    assert_eq!(parts(&got), parts(&want), "{width} after {probe}, {asked:?}");
                    let sum = |worker: &Worker| worker.rows_of_passes().iter().sum::<usize>();
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
    let mut stages = Vec::new();
    let mut push = |stage| {
        stages.push(stage);
        ControlFlow::Continue(())
    };
    worker(&recommender).recommend(&request(&[1], 3, 8), &mut push).unwrap();
    use Stage::{Decode, Mask, Prefill, TopK};
    let level = |pass| [pass, Mask, TopK, Mask];
    let passes = [Prefill, Decode, Decode].map(level);
    assert_eq!(stages, [&[Mask][..], passes.as_flattened()].concat());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let items =
        vec![Item { id: "far".into(), codes: vec![1, 30, 2], attributes: Default::default() }];
    let far = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
    let error = Recommender::new(model(), far, format()).unwrap_err();
    assert!(error.to_string().contains("code 30 at level 1 (item \"far\")"), "{error}");

    let long = PromptFormat { max_history_items: 42, ..format() };
    let error = Recommender::new(model(), shop::catalog(NUM_ITEMS), long).unwrap_err();
    assert!(
        matches!(error, RecommendError::HistoryTooLong { needed: 130, max: 128, .. }),
        "{error}"
    );

    let small = PromptFormat { bos_token: Some(97), ..format() };
    let error = Recommender::new(model(), shop::catalog(NUM_ITEMS), small).unwrap_err();
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
    let error = Recommender::new(model(), spelled, format()).unwrap_err();
    assert!(error.to_string().contains("level 1 as <other_…>, the model as <x_…>"), "{error}");

    // A request that is refused leaves the worker fit for the next.
    let recommender = recommender();
    let mut worker = worker(&recommender);
    let mut error = |k, width| worker.recommend(&request(&[], k, width), &mut run_on).unwrap_err();
    assert_eq!(error(1, 0).to_string(), "beam width is 0; at least 1 is needed");
    assert!(matches!(error(1, 1 << 20), RecommendError::TooLarge { max: 65536, .. }));
    assert!(matches!(error(1 << 20, 1), RecommendError::TooLarge { what: "k", .. }));
    assert!(matches!(error(0, 2), RecommendError::Zero { what: "k" }));
    let after = worker.recommend(&request(&[], 3, 2), &mut run_on).unwrap();
    assert_eq!(parts(&after), parts(&recommend(&recommender, &request(&[], 3, 2))));
}

#[test]
fn an_empty_catalog_recommends_nothing() {
    let empty = Catalog::build(Vec::new().into(), &BuildOptions::default()).unwrap();
    let recommender = Arc::new(Recommender::new(model(), empty, format()).unwrap());
    assert!(recommend(&recommender, &request(&[], 5, 4)).items.is_empty());
}

#[test]
fn requests_side_by_side_have_the_bits_they_have_alone() {
    let recommender = recommender();
    let histories: Vec<Vec<u64>> =
        (0..9).map(|n| (0..n % 5).map(|i| (n * 7 + i) % 60).collect()).collect();
    let requests: Vec<Request<'_>> =
        histories.iter().map(|history| request(history, 12, 20)).collect();
    let want: Vec<_> = requests.iter().map(|r| parts(&recommend(&recommender, r))).collect();
    for (num_workers, threads) in [(1, 1), (3, 1), (2, 2)] {
        let mut workers: Vec<Worker> =
            (0..num_workers).map(|_| Worker::new(Arc::clone(&recommender), threads)).collect();
        let got = recommend_all(&mut workers, &requests).into_iter();
        let got: Vec<_> = got.map(|answer| parts(&answer.unwrap())).collect();
        assert_eq!(got, want, "{num_workers} workers");
    }
    assert!(recommend_all(&mut [], &[]).is_empty());
}

/// Over a level's codes, as the definition says: the softmax of those logits only.
#[test]
fn scores_may_be_shares_of_a_level() {
    let level = Arc::new(unshared().with_normaliser(Normaliser::Level).unwrap());
    assert_eq!(level.normaliser(), Normaliser::Level);
    let asked = Request { include_seen: true, ..request(&[3, 14], 60, 60) };
    let got = recommend(&level, &asked);
    check_same(&got.items, &score_every_item(&level, &[3, 14]));
    let whole = recommend(&recommender(), &asked);
    assert_ne!(got.items, whole.items);
}

/// What a schedule means: all prefixes of items one code longer, scored by prompts and sorted, and
/// as many kept as the level's width.
fn search_by_sorting(recommender: &Recommender, history: &[u64], widths: &[usize]) -> Vec<u64> {
    let (view, format) = (recommender.view().unwrap(), recommender.format());
    let catalog = view.view();
    let options =
        SessionOptions { max_prompt_tokens: 20, max_beams: 1, max_decode_passes: 0, threads: 1 };
    let mut session = Session::new(&recommender.engine().model().unwrap(), options).unwrap();
    let history: Vec<Vec<u32>> = history.iter().map(|&number| catalog.codes(number)).collect();
    let mut prompt = Vec::new();
    format.write_prompt(&history, &mut prompt);
    let mut kept: Vec<(Vec<u32>, f32)> = vec![(Vec::new(), 0.0)];
    for (level, &width) in widths.iter().enumerate() {
        let mut longer = Vec::new();
        for (prefix, score) in &kept {
            let tokens = prefix.iter().zip(&format.levels);
            let tokens = tokens.map(|(code, level)| level.tokens.token(*code).unwrap());
            let prompt: Vec<TokenId> = prompt.iter().copied().chain(tokens).collect();
            session.set_prompt(&prompt).unwrap();
            let logits = session.prompt_logits().unwrap().to_vec();
            for code in 0..NUM_CODES {
                let codes = [&prefix[..], &[code]].concat();
                if catalog.numbers().any(|number| catalog.codes(number).starts_with(&codes)) {
                    let token = format.levels[level].tokens.token(code).unwrap().index();
                    longer.push((codes, score + logits[token] - log_sum_exp(&logits)));
                }
            }
        }
        longer.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        longer.truncate(width);
        kept = longer;
    }
    kept.iter().flat_map(|(codes, _)| catalog.find_codes(codes)).collect()
}

#[test]
fn a_schedule_of_widths_equals_its_definition() {
    for widths in [[1, 1, 1], [5, 2, 9], [2, 40, 3], [7, 7, 7], [60, 4, 60]] {
        let scheduled = Arc::new(unshared().with_widths(widths.to_vec()).unwrap());
        let mut worker = worker(&scheduled);
        for history in [&[][..], &[3], &[59, 0, 17]] {
            // The request's own width has nothing to say then.
            let asked = Request { include_seen: true, ..request(history, 1, 3) };
            let answer = worker.recommend(&asked, &mut run_on).unwrap();
            assert_eq!(answer.beam_width, widths[2]);
            let rows = worker.rows_of_passes();
            assert!(rows[1] <= widths[0] && rows[2] <= widths[1], "{rows:?}");
            let generated: Vec<u64> = worker
                .generated()
                .map(|tokens| {
                    let levels = tokens.iter().zip(&scheduled.format().levels);
                    levels
                        .map(|(token, level)| level.tokens.code(*token).unwrap())
                        .collect::<Vec<u32>>()
                })
                .flat_map(|codes| answer.view.view().find_codes(&codes))
                .collect();
            assert_eq!(generated, search_by_sorting(&scheduled, history, &widths), "{widths:?}");
        }
        let (prompt, beams) = worker.cache_bytes();
        let max_prompt = scheduled.format().max_prompt_tokens();
        let config = scheduled.engine().config();
        let planned =
            Session::planned_bytes_of_passes(config, max_prompt, &widths[..2], 1).unwrap();
        assert_eq!((prompt, beams), (planned.prompt_cache, planned.beam_cache));
    }
}

#[test]
fn a_schedule_finds_k_items_while_there_are_as_many() {
    let scheduled = Arc::new(unshared().with_widths(vec![2, 1, 3]).unwrap());
    let mut worker = worker(&scheduled);
    for k in [1, 20, 58, 2] {
        let asked = request(&[1, 2], k, 9);
        let answer = worker.recommend(&asked, &mut run_on).unwrap();
        assert_eq!(answer.items.len(), k);
        // As wide at each level as `k`, where that is more.
        let widths = [2, 1, 3].map(|width: usize| width.max(k));
        let same = Arc::new(unshared().with_widths(widths.to_vec()).unwrap());
        assert_eq!(parts(&answer), parts(&recommend(&same, &asked)));
    }
}

#[test]
fn schedules_that_cannot_be_are_refused() {
    let says = |widths: &[usize]| unshared().with_widths(widths.to_vec()).unwrap_err().to_string();
    assert_eq!(
        says(&[4, 4]),
        "2 beam widths were given for 3 levels of semantic IDs: give one width a level"
    );
    assert!(says(&[]).starts_with("0 beam widths"));
    assert_eq!(says(&[4, 0, 4]), "a beam width is 0; at least 1 is needed");
    assert_eq!(says(&[4, 4, 65537]), "a beam width is 65537; at most 65536 is possible");
}
