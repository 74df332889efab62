//! Recall of held-out items against slow and obvious searches, on a small random model.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_core::{TokenId, Unconstrained};
use palmette_decode::{BeamOptions, BeamSearch, HostBackend, run_on};
use palmette_model::{Model, ReadingShape};
use palmette_recommend::{
    History, LevelFormat, Mode, PromptFormat, Recommender, Request, SpelledView, Worker,
};
use palmette_recommend_eval::{
    ColdStart, EvalOptions, Question, RandomGuesses, RankingMetrics, Split, UserHistories,
    cold_start_recall,
};

/// All tokens of the model but the first two: at every level the same ones.
const NUM_CODES: u32 = 95;
const LEVELS: usize = 3;

fn recommender(ids: &[Vec<u32>]) -> (Arc<Recommender>, Arc<SpelledView>) {
    let fixture = "../model/tests/fixtures/tied_f32";
    let model = Model::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture)).unwrap();
    let level = LevelFormat::run("x", 2, NUM_CODES);
    let format = PromptFormat {
        bos_token: Some(1),
        pad_token: Some(0),
        end_tokens: Vec::new(),
        levels: vec![level; LEVELS],
        max_history_items: 10,
        history_step: None,
        witnesses: Vec::new(),
    };
    let item = |(n, codes): (usize, &Vec<u32>)| Item {
        id: n.to_string(),
        codes: codes.clone(),
        attributes: Default::default(),
    };
    let items: Vec<Item> = ids.iter().enumerate().map(item).collect();
    let catalog = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
    let recommender = Arc::new(Recommender::new(model, catalog, format).unwrap());
    let view = recommender.view().unwrap();
    (recommender, view)
}

fn base_ids() -> Vec<Vec<u32>> {
    (0..60).map(|n| vec![n % 7, n * 13 % NUM_CODES, n * 29 % NUM_CODES]).collect()
}

/// What the model writes by itself after items with these codes, best first.
fn generated(recommender: &Recommender, history: &[Vec<u32>], width: usize) -> Vec<Vec<u32>> {
    let mut prompt = Vec::new();
    recommender.format().write_prompt(history, &mut prompt);
    let beams = [width; LEVELS - 1];
    let shape = ReadingShape::new(prompt.len(), &beams, width);
    let mut reading = recommender.engine().open(&shape, 1).unwrap();
    reading.set_prompt(&prompt).unwrap();
    let width = NonZeroUsize::new(width).unwrap();
    let mut search = BeamSearch::new(BeamOptions { width, max_tokens: LEVELS });
    let vocab = recommender.engine().config().vocab_size;
    search.run(&Unconstrained::new(vocab, LEVELS), &mut HostBackend::new(reading)).unwrap();
    // A token below the codes becomes a number above them.
    let code = |&TokenId(token): &TokenId| token.wrapping_sub(2);
    search.results().map(|found| found.tokens.iter().map(code).collect()).collect()
}

fn options(beam_width: usize, k: usize) -> EvalOptions {
    EvalOptions {
        mode: Mode::Beam,
        beam_width,
        k,
        include_seen: false,
        unconstrained: true,
        threads: 2,
    }
}

fn histories(items: Vec<Vec<u64>>) -> UserHistories {
    UserHistories { items, ..UserHistories::default() }
}

#[test]
fn held_out_items_stand_where_a_search_of_everything_has_them_among_their_own() {
    let (recommender, view) = recommender(&base_ids());
    // Users in an order that makes the ranks 3, 10, 17, … the last to appear.
    let mut items: Vec<Vec<u64>> = (0..60).map(|n| vec![n, (n + 7) % 60, (n * 11) % 60]).collect();
    items.retain(|history| history[0] % 7 != 3);
    let cold_targets = (0..8).map(|n| vec![n, 20 + n, 3 + 7 * n]);
    items.retain(|history| history.iter().all(|item| item % 7 != 3));
    items.extend(cold_targets);
    let histories = histories(items);
    let cold = ColdStart::newest(&histories, 60, 0.12).unwrap();
    let questions = cold.questions(&histories, Split::Test);
    assert!(questions.len() >= 6 && questions.iter().all(|asked| asked.target % 7 == 3));

    let (mut everywhere, mut among_own) = (RankingMetrics::new(5), RankingMetrics::new(5));
    let mut guesses = RandomGuesses::default();
    let mut worker = Worker::new(Arc::clone(&recommender), 1);
    for Question { history, target, .. } in &questions {
        let request = Request { beam_width: 60, ..Request::new(History::Numbers(history), 60) };
        let all = worker.recommend(&request, &mut run_on).unwrap().items;
        everywhere.add(all.iter().position(|item| item.number == *target));
        let mut own = all.iter().filter(|item| cold.contains(item.number));
        among_own.add(own.position(|item| item.number == *target));
        guesses.add(all.iter().filter(|item| cold.contains(item.number)).count() as u64);
    }
    assert!(among_own.at(5).hit_rate > everywhere.at(5).hit_rate);

    for threads in [1, 3] {
        let options = EvalOptions { threads, ..options(60, 5) };
        let recall =
            cold_start_recall(&recommender, &view, &cold, &questions, &options, |_| {}).unwrap();
        assert_eq!(recall.catalog, everywhere);
        assert_eq!(recall.constrained, among_own);
        assert_eq!(recall.random, guesses);
        assert_eq!(recall.unconstrained.unwrap().questions(), questions.len());
    }
}

#[test]
fn generated_sequences_take_a_place_each_and_shared_ones_several() {
    let base = base_ids();
    let history = [base[0].clone(), base[1].clone()];
    let wild = generated(&recommender(&base).0, &history, 6);
    let is_spelled = |codes: &[u32]| codes.iter().all(|&code| code < NUM_CODES);
    assert!(wild.iter().all(|codes| is_spelled(codes) && !base.contains(codes)), "{wild:?}");
    // In the catalog: the second, twice, and the fifth. The others spell no item.
    let mut ids = base.clone();
    ids.extend([wild[1].clone(), wild[1].clone(), wild[4].clone()]);
    let (recommender, view) = recommender(&ids);
    let catalog = view.view();
    let rank = |id: usize| catalog.find(&id.to_string()).unwrap();
    let users = [60, 61, 62, 2].map(|target| vec![rank(0), rank(1), rank(target)]);
    let histories = histories(users.to_vec());
    let cold = ColdStart::newest(&histories, catalog.num_numbers(), 0.7).unwrap();
    for (target, place) in [(60, Some(1)), (61, Some(2)), (62, Some(5)), (2, None)] {
        let history = [rank(0), rank(1)];
        let questions = [Question::new(&history, rank(target))];
        let recall =
            cold_start_recall(&recommender, &view, &cold, &questions, &options(6, 6), |_| {})
                .unwrap();
        let mut expected = RankingMetrics::new(6);
        expected.add(place);
        assert_eq!(recall.unconstrained, Some(expected), "item {target}");
    }
}

#[test]
fn guesses_by_hand() {
    let mut guesses = RandomGuesses::default();
    assert_eq!(guesses.recall(1), 0.0);
    for choices in [4, 2, 0, 10] {
        guesses.add(choices);
    }
    assert!((guesses.recall(1) - (0.25 + 0.5 + 0.0 + 0.1) / 4.0).abs() < 1e-12);
    assert!((guesses.recall(3) - (0.75 + 1.0 + 0.0 + 0.3) / 4.0).abs() < 1e-12);
}

#[test]
fn seen_items_are_neither_guessed_nor_right() {
    let (recommender, view) = recommender(&base_ids());
    let histories = histories(vec![vec![0, 1, 2, 3, 4], vec![3, 4, 3]]);
    let cold = ColdStart::newest(&histories, 60, 0.6).unwrap();
    assert_eq!(cold.items().collect::<Vec<_>>(), [2, 3, 4]);
    let questions = cold.questions(&histories, Split::Test);
    assert_eq!(questions.len(), 2);
    let recall = |include_seen: bool| {
        let options = EvalOptions { include_seen, unconstrained: false, ..options(6, 5) };
        cold_start_recall(&recommender, &view, &cold, &questions, &options, |_| {}).unwrap()
    };
    // The first user has seen 2 and 3, so 4 is the only guess; the second has seen the right one.
    let excluded = recall(false);
    assert_eq!(excluded.unconstrained, None);
    assert_eq!(excluded.random.recall(1), 0.5);
    assert_eq!(excluded.constrained.at(1).hit_rate, 0.5);
    assert_eq!(excluded.constrained.at(5).hit_rate, 0.5);
    let included = recall(true);
    assert!((included.random.recall(1) - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(included.constrained.at(3).hit_rate, 1.0, "all three are recommended");
}
