//! Encoder–decoders against themselves run in other ways, and their files. Against `transformers`
//! they are compared with the other architectures.

use std::path::Path;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::draft::{DraftForm, DraftHead, DraftRun, DraftShape};
use palmette_model::kernels::Activation;
use palmette_model::{
    Architecture, Encoder, Family, Model, ModelConfig, RelativePositions, Session, SessionError,
    SessionOptions, WeightFormat,
};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use crate::reference::check_close;

const VOCAB: usize = 90;

/// Wide enough for several blocks and threads.
fn config(family: Family) -> ModelConfig {
    let encoder = Some(Encoder { num_layers: 3, start_token: 7 });
    ModelConfig {
        vocab_size: VOCAB,
        hidden_size: 48,
        intermediate_size: 80,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 4,
        head_dim: 13,
        max_position_embeddings: 1 << 31,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture { encoder, ..Architecture::of(family, 48) },
    }
}

fn random(config: ModelConfig) -> Arc<Model> {
    Arc::new(Model::random(config, 3).expect("a sound shape"))
}

fn models() -> [Arc<Model>; 3] {
    [Family::T5, Family::Mt5, Family::Umt5].map(|family| random(config(family)))
}

fn session(
    model: &Arc<Model>,
    max_prompt_tokens: usize,
    max_beams: usize,
    threads: usize,
) -> Session {
    let options = SessionOptions { max_prompt_tokens, max_beams, max_decode_passes: 6, threads };
    Session::new(model, options).expect("there is no longest prompt")
}

fn prompt(tokens: usize) -> Vec<TokenId> {
    (0..tokens as u32).map(|i| TokenId(i * i % 89)).collect()
}

/// Forks share the prompt's part and nothing else.
#[test]
fn beams_equal_sequences_that_are_read_alone() {
    for model in models() {
        let (mut beams, mut alone) = (session(&model, 70, 4, 1), session(&model, 70, 1, 1));
        for length in [1, 16, 17, 60] {
            beams.set_prompt(&prompt(length)).unwrap();
            assert_eq!(beams.append(&[TokenId(1)]).unwrap_err(), SessionError::NoPass);
            beams.prompt_logits().unwrap();
            let mut sequences = vec![Vec::new()];
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
                for (sequence, row) in sequences.iter().zip(logits.chunks_exact(VOCAB)) {
                    alone.set_prompt(&prompt(length)).unwrap();
                    alone.prompt_logits().unwrap();
                    let want = alone.append(sequence).unwrap();
                    check_close(row, want, &format!("{length} tokens, pass {pass}"));
                }
            }
        }
    }
}

/// To the bit: threads, blocks and weights of either format; what was asked before; a second search
/// after one prompt.
#[test]
fn nothing_but_the_prompt_changes_a_bit() {
    for model in models() {
        for format in [WeightFormat::F32, WeightFormat::Int8] {
            let model = Arc::new(Model::clone(&model).with_weights(format));
            let (parents, next) = ([0, 0, 0], [3, 4, 5].map(TokenId));
            let ask = |session: &mut Session, tokens: usize| {
                session.set_prompt(&prompt(tokens)).unwrap();
                let first = session.prompt_logits().unwrap().to_vec();
                let after = session.next_logits(&parents, &next).unwrap().to_vec();
                [first, after]
            };
            let want = ask(&mut session(&model, 230, 3, 1), 230);
            let mut threaded = session(&model, 400, 200, 3);
            assert_ne!(ask(&mut threaded, 229), want, "the last token counts");
            assert_eq!(ask(&mut threaded, 230), want);
            assert_eq!(threaded.prompt_logits().unwrap(), want[0], "once more");
            assert_eq!(threaded.next_logits(&parents, &next).unwrap(), want[1], "after it");
            threaded.set_prompt(&prompt(230)).unwrap();
            assert_eq!(threaded.all_prompt_logits().unwrap(), want[0], "the start token's row");
        }
    }
}

/// Rounded weights change logits a little: the encoder's layers and the cross-attention are rounded
/// too.
#[test]
fn rounded_weights_are_near() {
    for model in models() {
        let rounded = Arc::new(Model::clone(&model).with_weights(WeightFormat::Int8));
        assert!(rounded.weight_bytes() * 2 < model.weight_bytes());
        let logits = |model: &Arc<Model>| {
            let mut session = session(model, 40, 1, 1);
            session.set_prompt(&prompt(40)).unwrap();
            session.prompt_logits().unwrap().to_vec()
        };
        let (exact, near) = (logits(&model), logits(&rounded));
        let off = exact.iter().zip(&near).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let largest = exact.iter().fold(0.0_f32, |most, logit| most.max(logit.abs()));
        assert!(off > 0.0 && off < 0.1 * largest, "off by {off} of {largest}");
    }
}

/// Each difference makes one: a model that ignored it would give the other's logits.
#[test]
fn every_difference_changes_logits() {
    let plain = || config(Family::T5).architecture;
    let relative = |change: fn(&mut RelativePositions)| {
        let mut architecture = plain();
        change(architecture.relative_positions.as_mut().unwrap());
        architecture
    };
    let encoder = |num_layers, start_token| Architecture {
        encoder: Some(Encoder { num_layers, start_token }),
        ..plain()
    };
    let all = [
        plain(),
        relative(|by| by.num_buckets = 12),
        relative(|by| by.max_distance = 30),
        relative(|by| by.in_every_layer = true),
        encoder(2, 7),
        encoder(3, 8),
        Architecture { activation: Activation::GeluTanh, ..plain() },
        Architecture { activation: Activation::Silu, ..plain() },
        Architecture { gated_mlp: true, ..plain() },
        Architecture { gated_mlp: true, activation: Activation::Silu, ..plain() },
        Architecture { logit_scale: 1.0, ..plain() },
        Architecture { query_scalar: None, ..plain() },
    ];
    let logits = all.map(|architecture| {
        let model = random(ModelConfig { architecture, ..config(Family::T5) });
        let mut session = session(&model, 60, 1, 1);
        session.set_prompt(&prompt(60)).unwrap();
        session.prompt_logits().unwrap();
        session.append(&[TokenId(4), TokenId(5), TokenId(6)]).unwrap().to_vec()
    });
    for (place, one) in logits.iter().enumerate() {
        assert!(one.iter().all(|logit| logit.is_finite()), "architecture {place}");
        for (before, other) in logits[..place].iter().enumerate() {
            let off = one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off > 1e-3, "architectures {before} and {place} differ by {off}");
        }
    }
}

#[test]
fn a_draft_head_is_refused_by_name() {
    let form = DraftForm::default();
    let shape = || DraftShape { levels: vec![(2, 10), (12, 10)] };
    let model = random(config(Family::Umt5));
    let refused = DraftHead::random(form, &model, shape(), 1).unwrap_err().to_string();
    assert!(refused.contains("umt5") && refused.contains("--mode beam"), "{refused}");
    let refused = DraftHead::load(Path::new("nowhere"), &model, shape()).unwrap_err().to_string();
    assert!(refused.contains("umt5"), "before the file is looked for: {refused}");
    // A head of another model of this width.
    let decoder = ModelConfig {
        head_dim: 12,
        max_position_embeddings: 100,
        architecture: Architecture::default(),
        ..config(Family::T5)
    };
    let head = Arc::new(DraftHead::random(form, &random(decoder), shape(), 1).unwrap());
    let mut session = session(&model, 60, 1, 1);
    session.set_prompt(&prompt(3)).unwrap();
    let mut run = DraftRun::new(&head, 2, 1);
    assert_eq!(run.begin(&mut session).unwrap_err(), SessionError::NoDraft);
    session.prompt_logits().expect("the session goes on");
}

/// Tensors of a small model by name, with changes.
struct Files {
    config: Value,
    tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl Files {
    fn small() -> Self {
        let (vocab, d, f) = (20, 8, 6);
        let config = json!({
            "model_type": "t5", "vocab_size": vocab, "d_model": d, "d_kv": 3, "d_ff": f, "num_layers": 1,
            "num_heads": 2, "decoder_start_token_id": 0, "relative_attention_num_buckets": 4,
        });
        let mut files = Self { config, tensors: Vec::new() };
        files.add("shared.weight", &[vocab, d]);
        for (stack, parts) in [("encoder", 2), ("decoder", 3)] {
            let at = |part: usize, name: &str| format!("{stack}.block.0.layer.{part}.{name}");
            for part in 0..parts {
                files.add(&at(part, "layer_norm.weight"), &[d]);
            }
            files.add(&at(0, "SelfAttention.relative_attention_bias.weight"), &[4, 2]);
            for (part, attention) in [(0, "SelfAttention"), (1, "EncDecAttention")] {
                for projection in ["q", "k", "v"].iter().filter(|_| part + 1 < parts) {
                    files.add(&at(part, &format!("{attention}.{projection}.weight")), &[6, d]);
                }
                if part + 1 < parts {
                    files.add(&at(part, &format!("{attention}.o.weight")), &[d, 6]);
                }
            }
            files.add(&at(parts - 1, "DenseReluDense.wi.weight"), &[f, d]);
            files.add(&at(parts - 1, "DenseReluDense.wo.weight"), &[d, f]);
            files.add(&format!("{stack}.final_layer_norm.weight"), &[d]);
        }
        files
    }

    /// Adds a tensor whose values its name says.
    fn add(&mut self, name: &str, shape: &[usize]) {
        let seed: usize = name.bytes().map(usize::from).sum();
        let values = (0..shape.iter().product::<usize>())
            .map(|i| ((i * 37 + seed) % 23) as f32 / 11.0 - 1.0)
            .collect();
        self.tensors.push((name.to_owned(), shape.to_vec(), values));
    }

    fn copy(&mut self, name: &str, to: &str) {
        let found = self.tensors.iter().find(|tensor| tensor.0 == name);
        let (_, shape, values) = found.expect("a tensor").clone();
        self.tensors.push((to.to_owned(), shape, values));
    }

    /// The logits after a prompt, and the parameters.
    fn load(&self) -> Result<(Vec<f32>, usize), String> {
        let bytes: Vec<Vec<u8>> = self
            .tensors
            .iter()
            .map(|(_, _, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
            .collect();
        let views = self.tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).expect("whole"))
        });
        let file = safetensors::serialize(views, None).expect("names differ");
        assert!(SafeTensors::deserialize(&file).is_ok());
        let config = ModelConfig::from_bytes(self.config.to_string().as_bytes());
        let model = Model::from_bytes(config.map_err(|e| e.to_string())?, file);
        let model = Arc::new(model.map_err(|e| e.to_string())?);
        let parameters = model.num_parameters();
        let mut session = session(&model, 9, 1, 1);
        session.set_prompt(&[4, 9, 2].map(TokenId)).unwrap();
        Ok((session.prompt_logits().unwrap().to_vec(), parameters))
    }
}

#[test]
fn what_files_hold_twice_or_for_nothing_is_left_out() {
    let plain = Files::small();
    let want = plain.load().unwrap();
    let mut more = Files::small();
    more.copy("shared.weight", "encoder.embed_tokens.weight");
    more.copy("shared.weight", "decoder.embed_tokens.weight");
    more.copy("shared.weight", "lm_head.weight");
    more.add("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", &[4, 2]);
    assert_eq!(more.load().unwrap(), want);
    // Rows beyond the vocabulary, and the embeddings under another name.
    let mut renamed = Files::small();
    renamed.tensors[0].0 = "decoder.embed_tokens.weight".into();
    renamed.tensors[0].1[0] += 1;
    renamed.tensors[0].2.extend([5.0; 8]);
    assert_eq!(renamed.load().unwrap(), want);
}

#[test]
fn a_head_of_its_own_is_taken_where_the_configuration_lets_it() {
    let mut own = Files::small();
    own.add("lm_head.weight", &[20, 8]);
    let refused = own.load().unwrap_err();
    assert!(refused.contains("lm_head.weight beside shared.weight"), "{refused}");
    let tied = Files::small().load().unwrap();
    for (field, value) in [("tie_word_embeddings", false), ("scale_decoder_outputs", false)] {
        own.config[field] = value.into();
        let (logits, parameters) = own.load().unwrap();
        assert_ne!(logits, tied.0);
        assert_eq!(parameters, tied.1 + 20 * 8);
        own.config.as_object_mut().unwrap().remove(field);
    }
    // Without one in the file the embeddings are the head, as transformers 5 saves it.
    let mut unscaled = Files::small();
    unscaled.config["scale_decoder_outputs"] = false.into();
    let (logits, parameters) = unscaled.load().unwrap();
    assert_eq!(parameters, tied.1);
    let root = 8.0_f32.sqrt();
    let want: Vec<f32> = tied.0.iter().map(|logit| logit * root).collect();
    check_close(&logits, &want, "logits that are not scaled");
}

#[test]
fn tensors_that_contradict_are_refused() {
    let mut other = Files::small();
    other.add("encoder.embed_tokens.weight", &[20, 8]);
    let refused = other.load().unwrap_err();
    assert!(
        refused.contains("one matrix of embeddings") && refused.contains("remove"),
        "{refused}"
    );
    let mut missing = Files::small();
    missing.tensors.retain(|tensor| !tensor.0.contains("EncDecAttention.k"));
    let refused = missing.load().unwrap_err();
    assert!(refused.contains("decoder.block.0.layer.1.EncDecAttention.k.weight"), "{refused}");
    let mut gated = Files::small();
    gated.config["feed_forward_proj"] = "gated-gelu".into();
    let refused = gated.load().unwrap_err();
    assert!(refused.contains("DenseReluDense.wi_"), "{refused}");
    let mut shallow = Files::small();
    shallow.config["num_decoder_layers"] = 2.into();
    let refused = shallow.load().unwrap_err();
    assert!(refused.contains("lacks the tensor decoder.block.1"), "{refused}");
}
