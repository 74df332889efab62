//! Evaluation against asking one question at a time, on a small random model.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_decode::run_on;
use palmette_model::{Model, WeightFormat};
use palmette_recommend::{
    History, LevelFormat, Mode, PromptFields, PromptFormat, Recommender, Request, SpelledView,
    Worker,
};
use palmette_recommend_eval::{Answered, EvalOptions, Question, RankingMetrics, evaluate, overlap};

const NUM_CODES: u32 = 30;

pub(crate) fn model() -> Model {
    let fixture = "../model/tests/fixtures/tied_f32";
    Model::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture)).unwrap()
}

pub(crate) fn format() -> PromptFormat {
    let level = |l: u32| LevelFormat::run("x", 2 + l * NUM_CODES, NUM_CODES);
    PromptFormat {
        bos_token: Some(1),
        pad_token: Some(0),
        end_tokens: Vec::new(),
        levels: (0..3).map(level).collect(),
        max_history_items: 10,
        history_step: None,
        witnesses: Vec::new(),
    }
}

pub(crate) fn catalog(ids: &[Vec<u32>]) -> Arc<Catalog> {
    let item = |(n, codes): (usize, &Vec<u32>)| Item {
        id: n.to_string(),
        codes: codes.clone(),
        attributes: Default::default(),
    };
    let items: Vec<Item> = ids.iter().enumerate().map(item).collect();
    Arc::new(Catalog::build(items.into(), &BuildOptions::default()).unwrap())
}

fn recommender(ids: &[Vec<u32>]) -> (Arc<Recommender>, Arc<SpelledView>) {
    let recommender = Arc::new(Recommender::new(model(), catalog(ids), format()).unwrap());
    let view = recommender.view().unwrap();
    (recommender, view)
}

/// The numbers of what a worker of its own recommends.
fn recommend(recommender: &Arc<Recommender>, request: &Request<'_>) -> Vec<u64> {
    let mut worker = Worker::new(Arc::clone(recommender), 1);
    let answer = worker.recommend(request, &mut run_on).unwrap();
    answer.items.iter().map(|item| item.number).collect()
}

fn request(history: &[u64], k: usize, beam_width: usize) -> Request<'_> {
    Request { beam_width, ..Request::new(History::Numbers(history), k) }
}

pub(crate) fn uniform_ids() -> Vec<Vec<u32>> {
    (0..60).map(|n| vec![n % 7, n * 13 % NUM_CODES, n * 29 % NUM_CODES]).collect()
}

pub(crate) fn options() -> EvalOptions {
    EvalOptions {
        mode: Mode::Beam,
        beam_width: 6,
        k: 5,
        include_seen: false,
        unconstrained: true,
        threads: 1,
    }
}

/// The best items of an empty history: leaving them out makes a narrow search widen.
fn best(recommender: &Arc<Recommender>, k: usize) -> Vec<u64> {
    recommend(recommender, &request(&[], k, 60))
}

#[test]
fn equals_asking_one_by_one_whatever_the_threads() {
    let (recommender, view) = recommender(&uniform_ids());
    let seen = best(&recommender, 9);
    // The first history makes its search widen; those after it must not profit.
    let mut histories = vec![seen];
    histories.extend((0..30).map(|n| vec![n, n + 1, n + 2]));
    let questions: Vec<Question<'_>> = histories
        .iter()
        .enumerate()
        .map(|(n, history)| Question::new(history, (n as u64 * 7 + 3) % 60))
        .collect();

    let mut metrics = RankingMetrics::new(5);
    for question in &questions {
        let answer = recommend(&recommender, &request(question.history, 5, 6));
        metrics.add(answer.iter().position(|&item| item == question.target));
    }
    assert!(metrics.at(5).hit_rate > 0.0, "a comparison of zeros shows nothing");

    for threads in [1, 2, 5] {
        let options = EvalOptions { threads, ..options() };
        let evaluation = evaluate(&recommender, &view, &questions, &options, |_| {}).unwrap();
        assert_eq!(evaluation.metrics, metrics, "{threads} threads");
        assert_eq!((evaluation.id_metrics, evaluation.shared_targets), (metrics.clone(), 0));
        let constrained = evaluation.constrained;
        assert_eq!((constrained.valid, constrained.generated), (31 * 5, 31 * 5));
        // 60 items among 97³ sequences: a random model spells none of them unaided.
        let free = evaluation.unconstrained.unwrap();
        assert_eq!(free.generated, 31 * 5);
        assert!(free.share() < 0.1);
        assert_eq!(evaluation.unconstrained_beam.unwrap().generated, 31 * 6);
    }
}

/// A question's fields are those of the request: prompts of codes have no place for a query.
#[test]
fn fields_of_a_question_are_asked_with() {
    let (recommender, view) = recommender(&uniform_ids());
    let query = Some("tents".to_owned());
    let fields = PromptFields { query, ..PromptFields::default() };
    let questions = [Question { fields: Some(&fields), ..Question::new(&[1], 2) }];
    for unconstrained in [false, true] {
        let options = EvalOptions { unconstrained, ..options() };
        let error = evaluate(&recommender, &view, &questions, &options, |_| {}).unwrap_err();
        assert!(error.to_string().contains("query"), "{error}");
    }
}

#[test]
fn both_searches_are_at_least_as_wide_as_k() {
    let (recommender, view) = recommender(&uniform_ids());
    let questions = [Question::new(&[1], 2)];
    let options = EvalOptions { beam_width: 2, k: 8, ..options() };
    let evaluation = evaluate(&recommender, &view, &questions, &options, |_| {}).unwrap();
    assert_eq!(evaluation.beam_width, 8);
    assert_eq!(evaluation.unconstrained.unwrap().generated, 8);
}

/// Items three to an ID: by item only the right one counts, by semantic ID the first of the three.
#[test]
fn items_that_share_an_id_are_counted_by_item_and_by_id() {
    let ids: Vec<Vec<u32>> =
        uniform_ids()[..20].iter().flat_map(|id| vec![id.clone(); 3]).collect();
    let (recommender, view) = recommender(&ids);
    let number = |id: u64| view.view().find(&id.to_string()).unwrap();
    let histories: Vec<Vec<u64>> = (0..20).map(|n| vec![number(n * 3), number(59 - n)]).collect();
    let with_targets = histories.iter().zip((0..60).step_by(3));
    let questions: Vec<Question<'_>> = with_targets
        .map(|(history, target)| Question::new(history, number((target + 32) % 60)))
        .collect();
    let (mut by_item, mut by_id) = (RankingMetrics::new(5), RankingMetrics::new(5));
    let mut answers = Vec::new();
    for question in &questions {
        let items = recommend(&recommender, &request(question.history, 5, 6));
        let place = items.iter().position(|&item| item == question.target);
        let codes = |item: u64| view.view().codes(item);
        by_item.add(place);
        by_id.add(items.iter().position(|&item| codes(item) == codes(question.target)));
        answers.push(Answered { items, place });
    }
    for threads in [1, 3] {
        let options = EvalOptions { threads, ..options() };
        let evaluation = evaluate(&recommender, &view, &questions, &options, |_| {}).unwrap();
        assert_eq!((&evaluation.metrics, &evaluation.id_metrics), (&by_item, &by_id));
        assert_eq!(evaluation.answers, answers, "in the order of the questions");
        assert_eq!(evaluation.shared_targets, 20);
    }
    assert!(by_id.at(5).ndcg > by_item.at(5).ndcg, "{by_id:?} {by_item:?}");
}

#[test]
fn an_absurd_k_is_refused_before_anything_is_planned() {
    let (recommender, view) = recommender(&uniform_ids());
    let options = EvalOptions { k: usize::MAX, ..options() };
    let error = evaluate(&recommender, &view, &[], &options, |_| {}).unwrap_err();
    assert!(error.to_string().contains("at most 65536"), "{error}");
}

/// Asked one by one, each of a new worker, and compared place by place.
#[test]
fn an_overlap_is_what_counting_by_hand_gives() {
    let (plain, view) = recommender(&uniform_ids());
    let rounded = model().with_weights(WeightFormat::Int8);
    let rounded = Arc::new(Recommender::new(rounded, catalog(&uniform_ids()), format()).unwrap());
    let histories: Vec<Vec<u64>> = (0..40).map(|n| vec![n, n + 1, n * 7 % 60]).collect();
    let questions: Vec<Question<'_>> = histories
        .iter()
        .zip(0..)
        .map(|(history, n)| Question::new(history, (n * 7 + 3) % 60))
        .collect();

    let answers = |recommender: &Arc<Recommender>| -> Vec<Vec<u64>> {
        let ask =
            |question: &Question<'_>| recommend(recommender, &request(question.history, 5, 6));
        questions.iter().map(ask).collect()
    };
    let (before, after) = (answers(&plain), answers(&rounded));
    let hits = |answers: &[Vec<u64>], k: usize| {
        let is_hit = |(answer, question): &(&Vec<u64>, &Question<'_>)| {
            answer.iter().take(k).any(|&rank| rank == question.target)
        };
        answers.iter().zip(&questions).filter(is_hit).count() as f64 / 40.0
    };

    for threads in [1, 2, 5] {
        let options = EvalOptions { threads, ..options() };
        let overlap = overlap(&plain, &rounded, &view, &questions, &options, |_| {}).unwrap();
        for k in 1..=5 {
            let (mut shared, mut same) = (0.0, 0.0);
            for (before, after) in before.iter().zip(&after) {
                let (before, after) = (&before[..k], &after[..k]);
                for rank in before {
                    if after.contains(rank) {
                        shared += 1.0 / (40 * k) as f64;
                    }
                }
                if before == after {
                    same += 1.0 / 40.0;
                }
            }
            let at = overlap.at(k);
            assert!((at.shared - shared).abs() < 1e-12, "{threads} threads, first {k}: {at:?}");
            assert!((at.same_order - same).abs() < 1e-12, "{threads} threads, first {k}: {at:?}");
            assert_eq!(overlap.reference.at(k).hit_rate, hits(&before, k));
            assert_eq!(overlap.changed.at(k).hit_rate, hits(&after, k));
        }
        let all = overlap.at(5);
        assert!(0.0 < all.same_order && all.same_order < all.shared && all.shared < 1.0, "{all:?}");
        assert_eq!((overlap.beam_width, overlap.changed.questions()), (6, 40));
    }
}

#[test]
fn a_recommender_overlaps_with_itself() {
    let (recommender, view) = recommender(&uniform_ids());
    let questions = [Question::new(&[1], 2), Question::new(&[], 4)];
    let overlap =
        overlap(&recommender, &recommender, &view, &questions, &options(), |_| {}).unwrap();
    let at = overlap.at(5);
    assert_eq!((at.shared, at.same_order), (1.0, 1.0));
    assert_eq!(overlap.reference, overlap.changed);
}
