//! The whole path with a model whose encoder reads the history, against scoring every item one
//! token at a time.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::{LogitsSource, log_sum_exp};
use palmette_model::draft::{DraftForm, DraftHead};
use palmette_model::{
    Architecture, Encoder, Family, Model, ModelConfig, Session, SessionError, SessionOptions,
};
use palmette_recommend::{Mode, RecommendError, Recommended, Recommender, Request};

use crate::shop::{self, format, recommend, request};

const NUM_ITEMS: u32 = 60;
/// Scores nearer than this may come in either order: the two paths round differently.
const TOLERANCE: f32 = 1e-4;

fn config() -> ModelConfig {
    let encoder = Some(Encoder { num_layers: 2, start_token: 0 });
    ModelConfig {
        vocab_size: 100,
        hidden_size: 32,
        intermediate_size: 48,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 4,
        head_dim: 8,
        max_position_embeddings: 1 << 31,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        // Unscaled, so that scores differ.
        architecture: Architecture {
            encoder,
            logit_scale: 1.0,
            ..Architecture::of(Family::T5, 32)
        },
    }
}

fn recommender() -> Recommender {
    let model = Model::random(config(), 5).expect("a sound shape");
    Recommender::new(model, shop::catalog(NUM_ITEMS), format()).expect("they fit together")
}

fn score_every_item(recommender: &Recommender, history: &[u64]) -> Vec<Recommended> {
    let (view, format) = (recommender.view().unwrap(), recommender.format());
    let tokens = format.code_tokens(recommender.engine().config().vocab_size).unwrap();
    let catalog = view.view();
    let options =
        SessionOptions { max_prompt_tokens: 20, max_beams: 1, max_decode_passes: 3, threads: 1 };
    let mut session = Session::new(&recommender.engine().model().unwrap(), options).unwrap();
    let codes: Vec<Vec<u32>> = history.iter().map(|&number| catalog.codes(number)).collect();
    let mut prompt = Vec::new();
    format.write_prompt(&codes, &mut prompt);
    let mut scored: Vec<Recommended> = catalog
        .numbers()
        .map(|number| {
            session.set_prompt(&prompt).unwrap();
            let mut logits = session.prompt_logits().unwrap().to_vec();
            let mut score = 0.0;
            for (level, &code) in catalog.codes(number).iter().enumerate() {
                let token: TokenId = tokens.token(level, code).expect("every code has one");
                score += logits[token.index()] - log_sum_exp(&logits);
                logits = session.next_logits(&[0], &[token]).unwrap().to_vec();
            }
            Recommended { number, score, boost: 0.0, pinned: false }
        })
        .collect();
    scored.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.number.cmp(&b.number)));
    scored
}

#[test]
fn the_best_items_of_all_are_recommended() {
    let recommender = Arc::new(recommender());
    for history in [&[][..], &[3], &[59, 0, 17], &[5, 6, 7, 8]] {
        let want = score_every_item(&recommender, history);
        assert!(want[0].score - want[9].score > 0.1, "scores tell items apart");
        let all = Request { include_seen: true, ..request(history, 60, 60) };
        let got = recommend(&recommender, &all).items;
        assert_eq!(got.len(), want.len());
        for (got, best) in got.iter().zip(&want) {
            let same = want.iter().find(|item| item.number == got.number).expect("one of them");
            assert!((got.score - same.score).abs() < TOLERANCE, "{got:?} {same:?}");
            assert!((got.score - best.score).abs() < TOLERANCE, "{got:?} {best:?}");
        }
        // The second search answers from what the encoder made for the first.
        let probed =
            Request { mode: Mode::Probed(7.try_into().unwrap()), ..request(history, 5, 40) };
        let plain = recommend(&recommender, &request(history, 5, 40));
        assert_eq!(recommend(&recommender, &probed).items, plain.items);
    }
}

#[test]
fn a_worker_forgets_the_history_before() {
    let recommender = Arc::new(recommender());
    let mut worker = shop::worker(&recommender);
    for history in [&[1, 2][..], &[3], &[1, 2]] {
        let asked = request(history, 10, 20);
        let got = worker.recommend(&asked, &mut palmette_decode::run_on).unwrap();
        assert_eq!(got.items, recommend(&recommender, &asked).items);
    }
}

#[test]
fn draft_heads_are_refused() {
    let decoder = ModelConfig {
        max_position_embeddings: 100,
        architecture: Architecture::default(),
        ..config()
    };
    let (decoder, recommender) = (Model::random(decoder, 1).unwrap(), recommender());
    let shape = recommender.format().draft_shape().unwrap();
    let head = DraftHead::random(DraftForm::default(), &decoder, shape, 1).unwrap();
    let refused = recommender.with_draft_head(head).unwrap_err();
    assert!(matches!(refused, RecommendError::Session(SessionError::NoDraft)), "{refused}");
}
