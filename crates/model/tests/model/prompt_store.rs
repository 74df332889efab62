//! Prompts kept for later ones against sessions without a store: the same logits, to the bit.

use std::sync::Arc;
use std::thread;

use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::{
    Architecture, Engine, Family, Model, ModelConfig, PromptStoreError, Rope, RopeScaling, Session,
    SessionOptions, SlidingWindow, WeightFormat, WindowLayers,
};
use proptest::prelude::*;

const VOCAB: usize = 90;
const MOST: usize = 200;
const PAGE: usize = 16;

fn config() -> ModelConfig {
    ModelConfig {
        vocab_size: VOCAB,
        // Long prompts are worth several threads.
        hidden_size: 96,
        intermediate_size: 200,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 20,
        max_position_embeddings: MOST + 2,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    }
}

/// Plain; rounded; rounded, with attention in bfloat16; with sliding windows, plain and rounded.
fn models() -> [Model; 5] {
    let plain = Model::random(config(), 5).unwrap();
    let mut windows = config();
    windows.architecture = Architecture::of(Family::Gemma3, windows.hidden_size);
    windows.architecture.window = Some(SlidingWindow {
        positions: 37,
        layers: WindowLayers::From(1),
        rope: Some(Rope { theta: 10.0, scaling: RopeScaling::None }),
    });
    let windows = Model::random(windows, 6).unwrap();
    [
        plain.clone(),
        plain.clone().with_weights(WeightFormat::Int8),
        plain.with_weights(WeightFormat::Int8Bf16),
        windows.clone(),
        windows.with_weights(WeightFormat::Int8Bf16),
    ]
}

/// Memory of so many pages, by what the error of too little says.
fn memory_of(model: &Model, pages: usize) -> usize {
    match model.clone().with_prompt_memory(1).unwrap_err() {
        PromptStoreError::TooSmall { bytes: 1, page_bytes } => pages * page_bytes,
        other => panic!("{other}"),
    }
}

fn keeping(model: &Model, pages: usize) -> Arc<Model> {
    let bytes = memory_of(model, pages);
    Arc::new(model.clone().with_prompt_memory(bytes).unwrap())
}

fn session(model: &Arc<Model>, threads: usize) -> Session {
    let options =
        SessionOptions { max_prompt_tokens: MOST, max_beams: 3, max_decode_passes: 2, threads };
    Session::new(model, options).unwrap()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// Requests that begin alike.
#[derive(Clone, Debug)]
struct Op {
    beginning: u32,
    /// Tokens of it.
    kept: usize,
    tail: Vec<u32>,
    threads: usize,
    keeps: bool,
    /// Logits at every position come first, and change nothing.
    asks_all: bool,
}

impl Op {
    fn prompt(&self) -> Vec<TokenId> {
        let beginning = (0..self.kept as u32).map(|at| at * (self.beginning + 3) + self.beginning);
        let tokens = beginning.chain(self.tail.iter().copied()).take(MOST - 4);
        let mut prompt: Vec<TokenId> = tokens.map(|token| TokenId(token % VOCAB as u32)).collect();
        prompt.push(TokenId(1));
        prompt
    }

    /// Bits that a request gives: of the prompt, of beams after it, of a prompt that grows.
    fn answer(&self, session: &mut Session) -> Vec<Vec<u32>> {
        let prompt = self.prompt();
        session.use_threads(self.threads);
        session.keep_prompts(self.keeps);
        session.set_prompt(&prompt).unwrap();
        let mut rows = Vec::new();
        if self.asks_all {
            rows.push(bits(&session.all_prompt_logits().unwrap()));
        }
        rows.push(bits(session.prompt_logits().unwrap()));
        let beams = [3, 7, 11].map(TokenId);
        rows.push(bits(session.next_logits(&[0, 0, 0], &beams).unwrap()));
        rows.push(bits(session.next_logits(&[2, 0, 1], &beams).unwrap()));
        session.set_prompt(&prompt).unwrap();
        session.prompt_logits().unwrap();
        rows.push(bits(session.append(&beams).unwrap()));
        rows
    }
}

fn op() -> impl Strategy<Value = Op> {
    let tail = prop::collection::vec(0_u32..3, 0..40);
    (0_u32..3, 0..MOST, tail, 1_usize..4, prop::bool::weighted(0.9), prop::bool::weighted(0.1))
        .prop_map(|(beginning, kept, tail, threads, keeps, asks_all)| Op {
            beginning,
            kept,
            tail,
            threads,
            keeps,
            asks_all,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Four threads of sessions over one store, which is most of the time too small.
    #[test]
    fn kept_prompts_change_no_bit(
        requests in prop::collection::vec(prop::collection::vec(op(), 1..8), 4),
        pages in 1_usize..40,
        model in 0_usize..5,
    ) {
        let without = Arc::new(models()[model].clone());
        let with = keeping(&without, pages);
        let page_bytes = memory_of(&without, 1) as u64;
        let differing: Vec<Op> = thread::scope(|scope| {
            let (with, without) = (&with, &without);
            let runs: Vec<_> = requests
                .iter()
                .map(|ops| scope.spawn(move || {
                    let (mut reused, mut fresh) = (session(with, 3), session(without, 3));
                    let differs = |op: &&Op| op.answer(&mut reused) != op.answer(&mut fresh);
                    ops.iter().filter(differs).cloned().collect::<Vec<Op>>()
                }))
                .collect();
            runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
        });
        prop_assert!(differing.is_empty(), "{differing:?}");
        let used = with.prompt_use().unwrap();
        prop_assert!(used.kept_pages <= used.pages);
        prop_assert_eq!((used.pages, used.bytes), (pages as u64, pages as u64 * page_bytes));
        prop_assert!(without.prompt_use().is_none());
        // What is known is what the next session finds.
        let prompt = requests[0][0].prompt();
        let (known, before) = (with.known_prompt_tokens(&prompt), used.found_tokens);
        let mut last = session(&with, 1);
        last.set_prompt(&prompt).unwrap();
        last.prompt_logits().unwrap();
        let used = with.prompt_use().unwrap();
        prop_assert_eq!(used.found_tokens - before, known as u64);
    }
}

fn read(session: &mut Session, prompt: &[TokenId]) {
    session.set_prompt(prompt).unwrap();
    session.prompt_logits().unwrap();
}

#[test]
fn one_more_event_is_all_that_is_computed() {
    let [model, ..] = models();
    let model = keeping(&model, 40);
    let history: Vec<TokenId> = (0..180).map(|at| TokenId(at * 7 % 89)).collect();
    let (mut one, mut other) = (session(&model, 1), session(&model, 2));
    let counts = || {
        let used = model.prompt_use().unwrap();
        (used.found_tokens, used.computed_tokens, used.kept_pages)
    };
    read(&mut one, &history[..160]);
    assert_eq!(counts(), (0, 160, 10));
    // The same again computes its last token, and with it the page of that.
    assert_eq!(model.known_prompt_tokens(&history[..160]), 144);
    read(&mut other, &history[..160]);
    assert_eq!(counts(), (144, 176, 10));
    read(&mut other, &history[..164]);
    assert_eq!(counts(), (144 + 160, 180, 10));
    read(&mut one, &history[..180]);
    assert_eq!(counts(), (144 + 2 * 160, 200, 11));
    // Who is not to be kept neither finds nor leaves anything.
    let stranger: Vec<TokenId> = (0..100).map(|at| TokenId(at * 11 % 89)).collect();
    one.keep_prompts(false);
    read(&mut one, &history[..180]);
    read(&mut one, &stranger);
    assert_eq!(counts(), (144 + 2 * 160, 200 + 180 + 100, 11));
    assert_eq!(model.known_prompt_tokens(&stranger), 0);
    // What a prompt grew by is not its beginning.
    read(&mut other, &history[..150]);
    other.append(&stranger[..20]).unwrap();
    assert_eq!(counts().2, 11);
}

/// A store is full and stays so; those that came last are there.
#[test]
fn the_bound_is_kept_and_the_oldest_give_way() {
    let [model, ..] = models();
    let model = keeping(&model, 8);
    let user = |user: u32| -> Vec<TokenId> {
        (0..4 * PAGE as u32 + 1).map(|at| TokenId((at * user + user) % 89)).collect()
    };
    let mut session = session(&model, 1);
    for number in 1..30 {
        read(&mut session, &user(number));
        let used = model.prompt_use().unwrap();
        assert_eq!(used.kept_pages, 8.min(4 * u64::from(number)));
        assert_eq!(used.evicted_pages, 4 * u64::from(number) - used.kept_pages);
        assert_eq!(model.known_prompt_tokens(&user(number)), 4 * PAGE);
    }
    assert_eq!(model.known_prompt_tokens(&user(28)), 4 * PAGE);
    assert_eq!(model.known_prompt_tokens(&user(27)), 0);
    // Of a prompt longer than the store the beginning is kept.
    let long: Vec<TokenId> = (0..MOST as u32).map(|at| TokenId(at % 88)).collect();
    read(&mut session, &long);
    assert_eq!(model.known_prompt_tokens(&long), 8 * PAGE);
}

#[test]
fn what_keeps_nothing_says_so() {
    let [model, ..] = models();
    assert_eq!(model.clone().with_prompt_memory(0).unwrap().prompt_memory(), 0);
    let error = model.clone().with_prompt_memory(100).unwrap_err().to_string();
    assert!(error.contains("16 tokens") && error.contains("100 bytes"), "{error}");
    assert!(model.clone().with_prompt_memory(usize::MAX).is_err());
    // Of other weights nothing is kept, of an encoder neither.
    let full = keeping(&model, 3);
    assert_eq!(full.prompt_memory(), memory_of(&model, 3));
    let rounded = Model::clone(&full).with_weights(WeightFormat::Int8);
    assert_eq!(rounded.prompt_memory(), 0);
    let architecture = Architecture::of(Family::T5, config().hidden_size);
    let encoder = Model::random(ModelConfig { architecture, ..config() }, 1).unwrap();
    let encoder = encoder.with_prompt_memory(1 << 20).unwrap();
    assert_eq!((encoder.prompt_memory(), encoder.prompt_use()), (0, None));
}
