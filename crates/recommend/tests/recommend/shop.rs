//! A small model and catalogs of made-up items that it has tokens for.

use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item, TokenTable};
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_recommend::{
    History, LevelFormat, PromptFormat, Recommendations, Recommended, Recommender, Request, Worker,
};

/// Codes of each level.
pub(crate) const NUM_CODES: u32 = 30;

/// A small random model; the same one whose logits are checked against Hugging Face.
pub(crate) fn model() -> Model {
    let fixture = "../model/tests/fixtures/tied_f32";
    Model::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture)).expect("a committed fixture")
}

pub(crate) fn format() -> PromptFormat {
    let level = |l: u32| LevelFormat::run("x", 2 + l * NUM_CODES, NUM_CODES);
    PromptFormat {
        bos_token: Some(1),
        pad_token: Some(0),
        levels: (0..3).map(level).collect(),
        end_tokens: Vec::new(),
        max_history_items: 4,
        history_step: None,
        witnesses: Vec::new(),
    }
}

/// A format as models of text have it: each level's tokens in another order than its codes, and a
/// token that ends an item.
pub(crate) fn text_format() -> PromptFormat {
    let level = |l: u32| {
        let tokens = (0..NUM_CODES).map(|code| Some(2 + l * NUM_CODES + code * 7 % NUM_CODES));
        LevelFormat { prefix: "x".into(), tokens: TokenTable::new(tokens).into() }
    };
    PromptFormat { levels: (0..3).map(level).collect(), end_tokens: vec![1], ..format() }
}

/// Every tenth item shares the semantic ID of the one before it.
pub(crate) fn catalog(num_items: u32) -> Catalog {
    let item = |n: u32| {
        let m = if n % 10 == 9 { n - 1 } else { n };
        let codes = vec![m % 7, m * 13 % NUM_CODES, m * 29 % NUM_CODES];
        Item { id: format!("i{n}"), codes, attributes: Default::default() }
    };
    let items: Vec<Item> = (0..num_items).map(item).collect();
    let codes_per_level = Some(vec![NUM_CODES; 3]);
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    Catalog::build(items.into(), &options).expect("sound items")
}

/// `k` items after a history, from a beam of this width.
pub(crate) fn request(history: &[u64], k: usize, beam_width: usize) -> Request<'_> {
    Request { beam_width, ..Request::new(History::Numbers(history), k) }
}

/// A worker of one thread.
pub(crate) fn worker(recommender: &Arc<Recommender>) -> Worker {
    Worker::new(Arc::clone(recommender), 1)
}

/// The answer of a worker that has answered nothing before.
pub(crate) fn recommend(recommender: &Arc<Recommender>, request: &Request<'_>) -> Recommendations {
    worker(recommender).recommend(request, &mut run_on).expect("a sound request")
}

/// All of an answer but its view.
pub(crate) fn parts(answer: &Recommendations) -> (Vec<Recommended>, usize, Vec<usize>, usize) {
    (answer.items.clone(), answer.history_used, answer.unknown.clone(), answer.beam_width)
}

/// Ids and scores, the latter to the bit.
pub(crate) fn named(answer: &Recommendations) -> Vec<(String, u32)> {
    let items = answer.items.iter();
    items.map(|item| (answer.id(item).to_owned(), item.score.to_bits())).collect()
}
