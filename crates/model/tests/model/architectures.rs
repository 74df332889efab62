//! Every architecture against Hugging Face `transformers`, and against itself read in other ways.
//!
//! `fixtures/architectures/*.json` come from `lab/checks/models/logits.py --fixtures`: a
//! configuration as transformers 5 writes it and as version 4 did, the tensors' names and shapes,
//! and logits. Weights are drawn as the script draws them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::{
    Architecture, Family, Model, ModelConfig, Rope, RopeScaling, Session, SessionOptions,
    SlidingWindow, WeightFormat, WindowLayers,
};
use serde::Deserialize;
use serde_json::Value;

use crate::reference::{IncrementalCase, PromptCase, check_close, check_incremental, tokens};

#[derive(Deserialize)]
struct Fixture {
    config: Value,
    older_config: Value,
    tensors: BTreeMap<String, Vec<usize>>,
    /// Weights are within plus and minus this, but for norms.
    #[serde(default = "weight_scale")]
    weight_scale: f32,
    prompts: Vec<PromptCase>,
    incremental: IncrementalCase,
}

fn weight_scale() -> f32 {
    0.35
}

impl Fixture {
    fn read(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/architectures");
        let bytes = std::fs::read(dir.join(format!("{name}.json"))).expect("a committed fixture");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    fn model(&self, config: &Value) -> Model {
        let config = ModelConfig::from_bytes(config.to_string().as_bytes()).expect("it is read");
        let offset = if config.architecture.family == Family::Gemma3 { 1.0 } else { 0.0 };
        let weights = drawn(&self.tensors, offset, self.weight_scale);
        Model::from_bytes(config, weights).expect("a sound model")
    }
}

/// A safetensors file with the script's weights: value `i` of all tensors, in the order of their
/// names, is number `i`.
fn drawn(tensors: &BTreeMap<String, Vec<usize>>, norm_offset: f32, scale: f32) -> Vec<u8> {
    let mut place = 0_u64;
    let mut uniform = || {
        place += 1;
        let mut z = place.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 40) as f32 / (1_u32 << 24) as f32
    };
    let data: Vec<(&String, &Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, shape)| {
            let values = (0..shape.iter().product::<usize>()).map(|_| match name {
                norm if norm.ends_with("norm.weight") => uniform() + (0.5 - norm_offset),
                _ => (uniform() * 2.0 - 1.0) * scale,
            });
            (name, shape, values.flat_map(f32::to_le_bytes).collect())
        })
        .collect();
    let views = data.iter().map(|(name, shape, bytes)| {
        let view =
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, (*shape).clone(), bytes);
        (name.as_str(), view.expect("bytes of the shape"))
    });
    safetensors::serialize(views, None).expect("names differ")
}

const FIXTURES: [&str; 14] = [
    "qwen3",
    "qwen3_yarn",
    "qwen2",
    "qwen2_window",
    "llama3",
    "llama_linear",
    "mistral",
    "mistral_window",
    "gemma3",
    "t5_tiger",
    "t5",
    "t5_v1_1",
    "mt5",
    "umt5",
];

#[test]
fn logits_are_those_of_transformers() {
    for name in FIXTURES {
        let fixture = Fixture::read(name);
        for config in [&fixture.config, &fixture.older_config] {
            let model = Arc::new(fixture.model(config));
            let vocab = model.config().vocab_size;
            let mut session = session(&model, 64, 4, 3, 1);
            for case in &fixture.prompts {
                session.set_prompt(&tokens(&case.tokens)).unwrap();
                let all = session.all_prompt_logits().unwrap();
                for (&position, want) in case.positions.iter().zip(&case.logits) {
                    let what = format!("{name}, position {position} of {}", case.tokens.len());
                    check_close(&all[position * vocab..][..vocab], want, &what);
                }
            }
            check_incremental(&mut session, &fixture.incremental, name);
        }
    }
}

/// A written configuration means the same model, as far as logits go.
#[test]
fn a_written_configuration_reads_back_as_the_same_model() {
    for name in FIXTURES {
        let fixture = Fixture::read(name);
        for config in [&fixture.config, &fixture.older_config] {
            let model = Arc::new(fixture.model(config));
            let again = Arc::new(fixture.model(&model.config().to_hugging_face("float32")));
            let case = fixture.prompts.last().expect("a long prompt");
            let logits = |model| {
                let mut session = session(model, 64, 1, 0, 1);
                session.set_prompt(&tokens(&case.tokens)).unwrap();
                session.all_prompt_logits().unwrap()
            };
            assert_eq!(logits(&model), logits(&again), "{name}");
        }
    }
}

fn session(
    model: &Arc<Model>,
    max_prompt_tokens: usize,
    max_beams: usize,
    max_decode_passes: usize,
    threads: usize,
) -> Session {
    let options = SessionOptions { max_prompt_tokens, max_beams, max_decode_passes, threads };
    Session::new(model, options).expect("within the model's positions")
}

/// One of each architecture, wide enough for several blocks and threads, its windows and original
/// positions short.
fn random_models() -> Vec<(&'static str, Arc<Model>)> {
    let base = ModelConfig {
        vocab_size: 90,
        hidden_size: 64,
        intermediate_size: 80,
        num_hidden_layers: 3,
        num_attention_heads: 6,
        num_key_value_heads: 2,
        head_dim: 24,
        max_position_embeddings: 400,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: false,
        architecture: Architecture::default(),
    };
    let of = |family| Architecture::of(family, base.hidden_size);
    let window = |positions, layers| Some(SlidingWindow { positions, layers, rope: None });
    let llama3 = RopeScaling::Llama3 {
        factor: 8.0,
        low_frequency_factor: 1.0,
        high_frequency_factor: 4.0,
        original_positions: 64,
    };
    let local = Rope { theta: 100.0, scaling: RopeScaling::None };
    let architectures = [
        (
            "qwen3 with biases",
            Architecture {
                query_key_value_biases: true,
                attention_out_bias: true,
                ..of(Family::Qwen3)
            },
        ),
        (
            "qwen2 with a window",
            Architecture { window: window(20, WindowLayers::From(1)), ..of(Family::Qwen2) },
        ),
        ("llama3", Architecture { rope_scaling: llama3, ..of(Family::Llama) }),
        (
            "mistral",
            Architecture { window: window(3, WindowLayers::From(0)), ..of(Family::Mistral) },
        ),
        (
            "gemma3",
            Architecture {
                window: Some(SlidingWindow {
                    positions: 5,
                    layers: WindowLayers::AllButEvery(2),
                    rope: Some(local),
                }),
                attention_out_bias: true,
                query_key_value_biases: true,
                ..of(Family::Gemma3)
            },
        ),
    ];
    let model = |(name, architecture)| {
        let config = ModelConfig { architecture, ..base.clone() };
        (name, Arc::new(Model::random(config, 9).expect("a sound shape")))
    };
    architectures.map(model).into()
}

fn prompt(tokens: usize) -> Vec<TokenId> {
    (0..tokens as u32).map(|i| TokenId(i * i % 89)).collect()
}

/// A beam's logits are those of a prompt that holds its tokens too, where the window ends in the
/// prompt, at its end, or among own tokens.
#[test]
fn beams_equal_prompts_of_their_own() {
    for (name, model) in random_models() {
        let vocab = model.config().vocab_size;
        let mut beams = session(&model, 70, 4, 6, 1);
        let mut alone = session(&model, 70, 1, 0, 1);
        for length in [1, 16, 17, 60] {
            let prompt = prompt(length);
            beams.set_prompt(&prompt).unwrap();
            beams.prompt_logits().unwrap();
            let mut sequences = vec![prompt.clone()];
            for pass in 0..6_u32 {
                let rows = sequences.len() as u32;
                let parents: Vec<u32> = (0..4).map(|beam| (beam * 3 + pass) % rows).collect();
                let next: Vec<TokenId> =
                    (0..4).map(|b| TokenId((b * 17 + pass * 5) % 90)).collect();
                sequences = parents
                    .iter()
                    .zip(&next)
                    .map(|(&parent, &token)| [&sequences[parent as usize][..], &[token]].concat())
                    .collect();
                let logits = beams.next_logits(&parents, &next).unwrap();
                for (sequence, row) in sequences.iter().zip(logits.chunks_exact(vocab)) {
                    alone.set_prompt(sequence).unwrap();
                    let want = alone.prompt_logits().unwrap();
                    check_close(row, want, &format!("{name}, {length} tokens, pass {pass}"));
                }
            }
        }
    }
}

/// To the bit: a row depends neither on how the prompt is read nor on threads.
#[test]
fn blocks_appends_and_threads_change_no_bit() {
    for (name, model) in random_models() {
        for format in [WeightFormat::F32, WeightFormat::Int8] {
            let model = Arc::new(Model::clone(&model).with_weights(format));
            let vocab = model.config().vocab_size;
            let text = prompt(230);
            let mut whole = session(&model, 230, 2, 1, 1);
            whole.set_prompt(&text).unwrap();
            let all = whole.all_prompt_logits().unwrap();
            let mut grown = session(&model, 230, 2, 1, 3);
            grown.set_prompt(&text[..7]).unwrap();
            grown.prompt_logits().unwrap();
            let mut read = 7;
            for stretch in [1, 12, 200, 3, 7] {
                read += stretch;
                let logits = grown.append(&text[read - stretch..read]).unwrap();
                assert_eq!(logits, &all[(read - 1) * vocab..read * vocab], "{name}, {read} tokens");
            }
            let mut threaded = session(&model, 230, 2, 1, 3);
            threaded.set_prompt(&text).unwrap();
            assert_eq!(threaded.all_prompt_logits().unwrap(), all, "{name}");
            let (parents, next) = ([0, 0], [TokenId(3), TokenId(4)]);
            whole.prompt_logits().unwrap();
            let want = whole.next_logits(&parents, &next).unwrap();
            assert_eq!(grown.next_logits(&parents, &next).unwrap(), want, "{name}");
        }
    }
}

/// Each difference makes one: an architecture that ignored it would give the other's logits.
#[test]
fn every_difference_changes_logits() {
    let logits = |architecture: Architecture| {
        let config = ModelConfig {
            vocab_size: 40,
            hidden_size: 32,
            intermediate_size: 48,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 16,
            max_position_embeddings: 64,
            rms_norm_eps: 1e-6,
            rope_theta: 1e4,
            tie_word_embeddings: true,
            architecture,
        };
        let model = Arc::new(Model::random(config, 4).unwrap());
        let mut session = session(&model, 30, 1, 0, 1);
        session.set_prompt(&(0..30).map(TokenId).collect::<Vec<_>>()).unwrap();
        session.prompt_logits().unwrap().to_vec()
    };
    let plain = Architecture::default;
    let window = SlidingWindow { positions: 9, layers: WindowLayers::From(1), rope: None };
    let turned = Rope { theta: 50.0, scaling: RopeScaling::None };
    let yarn = RopeScaling::Yarn {
        factor: 4.0,
        attention_factor: 1.2,
        beta_fast: 32.0,
        beta_slow: 1.0,
        original_positions: 16,
        truncate: true,
    };
    let all = [
        plain(),
        Architecture { query_key_norms: false, ..plain() },
        Architecture { query_key_value_biases: true, ..plain() },
        Architecture { attention_out_bias: true, ..plain() },
        Architecture { norms_after: true, ..plain() },
        Architecture { embedding_scale: 3.0, ..plain() },
        Architecture { activation: palmette_model::kernels::Activation::GeluTanh, ..plain() },
        Architecture { query_scalar: Some(99.0), ..plain() },
        Architecture { rope_scaling: RopeScaling::Linear { factor: 2.0 }, ..plain() },
        Architecture { rope_scaling: yarn, ..plain() },
        Architecture { window: Some(window.clone()), ..plain() },
        Architecture { window: Some(SlidingWindow { rope: Some(turned), ..window }), ..plain() },
    ]
    .map(logits);
    for (place, one) in all.iter().enumerate() {
        assert!(one.iter().all(|logit| logit.is_finite()), "architecture {place}");
        for (before, other) in all[..place].iter().enumerate() {
            let off = one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off > 1e-3, "architectures {before} and {place} differ by {off}");
        }
    }
    // A norm's offset is what its stored weights lack.
    let offset = logits(Architecture { norm_offset: 1.0, ..plain() });
    assert_eq!(offset, all[0]);
}

/// A window no shorter than the positions in use is none.
#[test]
fn a_window_that_is_never_full_changes_nothing() {
    let (_, model) = random_models().swap_remove(3);
    let of = |positions: Option<usize>| {
        let layers = WindowLayers::From(0);
        let window = positions.map(|positions| SlidingWindow { positions, layers, rope: None });
        let architecture = Architecture { window, ..model.config().architecture.clone() };
        let config = ModelConfig { architecture, ..model.config().clone() };
        let model = Arc::new(Model::random(config, 9).unwrap());
        let mut session = session(&model, 100, 2, 2, 1);
        session.set_prompt(&prompt(100)).unwrap();
        let mut all = session.all_prompt_logits().unwrap();
        session.prompt_logits().unwrap();
        for parents in [[0, 0], [1, 0]] {
            all.extend(session.next_logits(&parents, &[TokenId(1), TokenId(2)]).unwrap());
        }
        all
    };
    assert_eq!(of(Some(102)), of(None));
    assert_ne!(of(Some(101)), of(None));
}
