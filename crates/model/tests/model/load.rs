//! Directories as they come: which load, to which model, and what the others are told.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use half::{bf16, f16};
use palmette_core::TokenId;
use palmette_decode::LogitsSource;
use palmette_model::{Model, Session, SessionOptions};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

const VOCAB: usize = 40;
const LAYERS: usize = 2;

/// Values of a tensor by shape.
#[derive(Clone)]
struct Tensor(Vec<usize>, Vec<f32>);

/// A directory to be written.
#[derive(Clone)]
struct Checkpoint {
    config: Value,
    tensors: BTreeMap<String, Tensor>,
}

fn qwen3() -> Value {
    json!({
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "vocab_size": VOCAB,
        "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": LAYERS,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        "tie_word_embeddings": true, "attention_bias": false, "hidden_act": "silu",
    })
}

impl Checkpoint {
    /// Tied Qwen3.
    fn new() -> Self {
        let mut checkpoint = Self { config: qwen3(), tensors: BTreeMap::new() };
        checkpoint.add("model.embed_tokens.weight", &[VOCAB, 16]);
        checkpoint.add("model.norm.weight", &[16]);
        for layer in 0..LAYERS {
            for (name, shape) in [
                ("input_layernorm", &[16][..]),
                ("post_attention_layernorm", &[16]),
                ("self_attn.q_norm", &[8]),
                ("self_attn.k_norm", &[8]),
                ("self_attn.q_proj", &[32, 16]),
                ("self_attn.k_proj", &[16, 16]),
                ("self_attn.v_proj", &[16, 16]),
                ("self_attn.o_proj", &[16, 32]),
                ("mlp.gate_proj", &[24, 16]),
                ("mlp.up_proj", &[24, 16]),
                ("mlp.down_proj", &[16, 24]),
            ] {
                checkpoint.add(&format!("model.layers.{layer}.{name}.weight"), shape);
            }
        }
        checkpoint
    }

    /// Values of bf16's and f16's precision, so that all three types hold the same.
    fn add(&mut self, name: &str, shape: &[usize]) {
        let seed = name.bytes().fold(7_u32, |seed, b| seed.wrapping_mul(31).wrapping_add(b.into()));
        let value = |i: usize| {
            let hash = (seed ^ i as u32).wrapping_mul(2_654_435_761).rotate_left(13);
            ((hash.wrapping_mul(0x9E37_79B9) >> 25) as f32 - 63.5) / 128.0
        };
        let values = (0..shape.iter().product()).map(value).collect();
        self.tensors.insert(name.to_owned(), Tensor(shape.to_vec(), values));
    }

    fn untied(mut self) -> Self {
        self.config["tie_word_embeddings"] = false.into();
        self.add("lm_head.weight", &[VOCAB, 16]);
        self
    }

    fn write(&self, dir: &Path, dtype: Dtype) {
        fs::write(dir.join("config.json"), self.config.to_string()).unwrap();
        fs::write(dir.join("model.safetensors"), file(self.tensors.iter(), dtype)).unwrap();
    }

    fn load(&self) -> Result<Arc<Model>, String> {
        let dir = tempfile::tempdir().unwrap();
        self.write(dir.path(), Dtype::F32);
        load(dir.path())
    }
}

fn file<'a>(tensors: impl Iterator<Item = (&'a String, &'a Tensor)>, dtype: Dtype) -> Vec<u8> {
    let bytes = |value: &f32| match dtype {
        Dtype::F32 => value.to_le_bytes().to_vec(),
        Dtype::BF16 => bf16::from_f32(*value).to_le_bytes().to_vec(),
        Dtype::F16 => f16::from_f32(*value).to_le_bytes().to_vec(),
        _ => vec![0],
    };
    let data: Vec<(&String, &[usize], Vec<u8>)> = tensors
        .map(|(name, Tensor(shape, values))| {
            (name, &shape[..], values.iter().flat_map(bytes).collect())
        })
        .collect();
    let views = data
        .iter()
        .map(|(name, shape, bytes)| (name, TensorView::new(dtype, shape.to_vec(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

fn load(dir: &Path) -> Result<Arc<Model>, String> {
    Model::load(dir).map(Arc::new).map_err(|error| error.to_string())
}

fn logits(model: &Arc<Model>) -> Vec<f32> {
    let options =
        SessionOptions { max_prompt_tokens: 9, max_beams: 1, max_decode_passes: 0, threads: 1 };
    let mut session = Session::new(model, options).unwrap();
    session.set_prompt(&(0..9).map(|i| TokenId(i * 5 % VOCAB as u32)).collect::<Vec<_>>()).unwrap();
    session.prompt_logits().unwrap().to_vec()
}

#[track_caller]
fn check_refused(result: Result<Arc<Model>, String>, words: &[&str]) {
    let reason = result.expect_err("it is refused");
    for word in words {
        assert!(reason.contains(word), "{word:?} is not in: {reason}");
    }
}

#[test]
fn types_shards_and_names_without_their_beginning_are_the_same_model() {
    for checkpoint in [Checkpoint::new(), Checkpoint::new().untied()] {
        let want = logits(&checkpoint.load().unwrap());
        for dtype in [Dtype::F32, Dtype::BF16, Dtype::F16] {
            let dir = tempfile::tempdir().unwrap();
            checkpoint.write(dir.path(), dtype);
            assert_eq!(logits(&load(dir.path()).unwrap()), want, "{dtype:?}");
        }

        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.json"), checkpoint.config.to_string()).unwrap();
        let mut weight_map = serde_json::Map::new();
        for shard in 0..3 {
            let name = format!("model-{shard}.safetensors");
            let of = |place: usize| place % 3 == shard;
            let tensors = checkpoint.tensors.iter().enumerate().filter(|(place, _)| of(*place));
            let tensors: Vec<_> = tensors.map(|(_, tensor)| tensor).collect();
            weight_map.extend(tensors.iter().map(|(n, _)| ((*n).clone(), name.clone().into())));
            fs::write(dir.path().join(&name), file(tensors.into_iter(), Dtype::F32)).unwrap();
        }
        let index = json!({"metadata": {"total_size": 1}, "weight_map": weight_map});
        fs::write(dir.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
        assert_eq!(logits(&load(dir.path()).unwrap()), want, "in shards");

        let bare = |name: &String| name.strip_prefix("model.").unwrap_or(name).to_owned();
        let tensors = checkpoint.tensors.iter().map(|(n, t)| (bare(n), t.clone())).collect();
        let bare = Checkpoint { tensors, ..checkpoint };
        assert_eq!(logits(&bare.load().unwrap()), want, "without `model.`");
    }
}

#[test]
fn a_model_saved_without_its_head_is_told_so() {
    let mut checkpoint = Checkpoint::new().untied();
    checkpoint.tensors.remove("lm_head.weight");
    check_refused(
        checkpoint.load(),
        &[
            "lacks the tensor lm_head.weight",
            "no logits",
            "AutoModelForCausalLM",
            "`tie_word_embeddings`",
        ],
    );
}

#[test]
fn rows_beyond_the_vocabulary_belong_to_no_token() {
    let padded = |mut checkpoint: Checkpoint| {
        for name in ["model.embed_tokens.weight", "lm_head.weight"] {
            if let Some(Tensor(shape, values)) = checkpoint.tensors.get_mut(name) {
                shape[0] += 8;
                values.extend([9.0; 8 * 16]);
            }
        }
        checkpoint
    };
    for checkpoint in [Checkpoint::new(), Checkpoint::new().untied()] {
        let want = logits(&checkpoint.load().unwrap());
        let model = padded(checkpoint).load().unwrap();
        assert_eq!(model.config().vocab_size, VOCAB);
        assert_eq!(logits(&model), want);
    }
    let mut fewer = Checkpoint::new();
    fewer.config["vocab_size"] = 41.into();
    check_refused(
        fewer.load(),
        &["embed_tokens.weight is [40, 16]", "makes it [41, 16]", "same checkpoint"],
    );
}

#[test]
fn a_tied_head_may_be_stored_if_it_is_the_same() {
    let tied = Checkpoint::new();
    let want = logits(&tied.load().unwrap());
    let mut both = tied.clone();
    let embedding = both.tensors["model.embed_tokens.weight"].clone();
    both.tensors.insert("lm_head.weight".into(), embedding.clone());
    assert_eq!(logits(&both.load().unwrap()), want);

    // Which of the two is then missing does not matter.
    both.tensors.remove("model.embed_tokens.weight");
    assert_eq!(logits(&both.load().unwrap()), want);

    let mut other = tied;
    other.add("lm_head.weight", &[VOCAB, 16]);
    check_refused(
        other.load(),
        &[
            "lm_head.weight beside model.embed_tokens.weight",
            "transformers 5",
            "`tie_word_embeddings` to false",
        ],
    );
    other.config["tie_word_embeddings"] = false.into();
    assert_ne!(logits(&other.load().unwrap()), want);
}

#[test]
fn values_that_are_not_finite_are_named() {
    for (value, name, place, index) in [
        (f32::NAN, "model.layers.0.mlp.up_proj.weight", 0, "NaN at [0, 0]"),
        (f32::INFINITY, "model.embed_tokens.weight", 5 * 16 + 3, "inf at [5, 3]"),
        (f32::NEG_INFINITY, "model.norm.weight", 15, "-inf at [15]"),
    ] {
        let mut checkpoint = Checkpoint::new();
        checkpoint.tensors.get_mut(name).unwrap().1[place] = value;
        check_refused(checkpoint.load(), &[name, index, "NaN", "earlier checkpoint", "bfloat16"]);
    }
}

#[test]
fn missing_and_unknown_tensors_are_named_with_what_would_be_lost() {
    let mut checkpoint = Checkpoint::new();
    checkpoint.tensors.remove("model.layers.1.mlp.up_proj.weight");
    check_refused(
        checkpoint.load(),
        &[
            "lacks the tensor model.layers.1.mlp.up_proj.weight [24, 16]",
            "nothing can stand in",
            "config.json",
        ],
    );
    for (name, words) in [
        ("mtp_head.weight", ["left out of", "remove the tensor"]),
        ("model.layers.0.self_attn.q_proj.bias", ["a bias would be left out", "`attention_bias`"]),
        ("lm_head.bias", ["a bias would be left out", "`model_type`"]),
        ("model.layers.0.self_attn.q_proj.weight_scale_inv", ["scales", "dequantised"]),
        ("model.layers.1.mlp.experts.3.up_proj.weight", ["experts", "dense"]),
        ("model.layers.0.pre_feedforward_layernorm.weight", ["without a norm", "`model_type`"]),
        ("model.layers.0.self_attn.q_proj.lora_A.weight", ["adapter", "merge"]),
        ("visual.patch_embed.proj.weight", ["not be read", "text model"]),
    ] {
        let mut checkpoint = Checkpoint::new();
        checkpoint.add(name, &[4]);
        let result = checkpoint.load();
        check_refused(
            result,
            &[name, "which this architecture lacks", words[0].trim_end_matches(" of"), words[1]],
        );
    }
    // Angles that old checkpoints hold are computed.
    let mut checkpoint = Checkpoint::new();
    checkpoint.add("model.layers.0.self_attn.rotary_emb.inv_freq", &[4]);
    checkpoint.load().unwrap();
}

#[test]
fn other_forms_of_weights_are_refused_by_the_way_out() {
    let with = |name: &str, text: &str| {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.json"), qwen3().to_string()).unwrap();
        fs::write(dir.path().join(name), text).unwrap();
        load(dir.path())
    };
    for name in ["pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5"] {
        check_refused(
            with(name, "PK"),
            &[name, "cannot be read", "save it again (save_pretrained)"],
        );
    }
    check_refused(
        with("consolidated.safetensors", ""),
        &["consolidated.safetensors", "other names"],
    );
    check_refused(with("notes.txt", ""), &["model.safetensors", "cannot be read"]);

    let adapter = r#"{"peft_type": "LORA", "base_model_name_or_path": "Qwen/Qwen3-0.6B"}"#;
    check_refused(
        with("adapter_config.json", adapter),
        &["adapter_config.json", "LoRA", "left out", "merge_and_unload"],
    );
    // Beside a whole model too: transformers would apply it.
    let dir = tempfile::tempdir().unwrap();
    Checkpoint::new().write(dir.path(), Dtype::F32);
    load(dir.path()).unwrap();
    fs::write(dir.path().join("adapter_config.json"), adapter).unwrap();
    check_refused(load(dir.path()), &["adapter_config.json", "left out"]);

    let dir = tempfile::tempdir().unwrap();
    Checkpoint::new().write(dir.path(), Dtype::U8);
    check_refused(load(dir.path()), &["is U8", "with a scale", "dequantised"]);
}
