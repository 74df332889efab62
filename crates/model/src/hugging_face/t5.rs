//! Configurations of T5, mT5 and UMT5, which name their sizes otherwise.
//!
//! Versions differ about the head. transformers 4 ties it where `tie_word_embeddings` says so, and
//! then multiplies logits by 1 / √D. transformers 5 writes `tie_word_embeddings` true always, keeps
//! a head of its own where the weights hold one, and multiplies where `scale_decoder_outputs` says
//! so, which it writes beside; in mT5 it never does.

use serde_json::{Value, json};

use super::Fields;
use crate::architecture::{Architecture, Family, root_of_inverse};
use crate::config::ModelConfig;
use crate::encoder_decoder::{Encoder, RelativePositions};
use crate::kernels::Activation;

/// Stands for the longest sequence, which relative positions do not limit; `n_positions` of older
/// files is read by nobody.
const ANY_LENGTH: usize = 1 << 31;

pub(super) fn read(fields: &Fields<'_>, family: Family) -> Result<ModelConfig, String> {
    if !fields.flag("is_encoder_decoder", true)? {
        return Err(
            "`is_encoder_decoder` is false: this is half a model, and either what reads prompts or what writes items would be \
             missing; save the whole one (AutoModelForSeq2SeqLM)"
                .into(),
        );
    }
    let hidden_size = fields.size("d_model")?;
    let (num_layers, num_heads) = (fields.size("num_layers")?, fields.size("num_heads")?);
    let mut architecture = Architecture::of(family, hidden_size);
    (architecture.gated_mlp, architecture.activation) = feed_forward(fields, family)?;
    architecture.relative_positions = Some(RelativePositions {
        num_buckets: fields.size_or("relative_attention_num_buckets", 32)?,
        max_distance: fields.size_or("relative_attention_max_distance", 128)?,
        in_every_layer: family == Family::Umt5,
    });
    architecture.encoder = Some(Encoder { num_layers, start_token: start_token(fields, family)? });
    let (tie_word_embeddings, scaled) = head(fields, family)?;
    architecture.logit_scale = if scaled { root_of_inverse(hidden_size) } else { 1.0 };
    let config = ModelConfig {
        vocab_size: fields.size("vocab_size")?,
        hidden_size,
        intermediate_size: fields.size("d_ff")?,
        num_hidden_layers: fields.size_or("num_decoder_layers", num_layers)?,
        num_attention_heads: num_heads,
        num_key_value_heads: num_heads,
        head_dim: fields.size("d_kv")?,
        max_position_embeddings: ANY_LENGTH,
        rms_norm_eps: fields.number("layer_norm_epsilon", 1e-6)? as f32,
        rope_theta: 10_000.0,
        tie_word_embeddings,
        architecture,
    };
    config.check()?;
    Ok(config)
}

/// The form of the feed-forward part: gated or not, and the function in it.
fn feed_forward(fields: &Fields<'_>, family: Family) -> Result<(bool, Activation), String> {
    let default = if family == Family::T5 { "relu" } else { "gated-gelu" };
    let found = fields.get("feed_forward_proj").map_or(Some(default), Value::as_str);
    let found = found.unwrap_or("no name");
    let (gated, name) = match found.strip_prefix("gated-") {
        // All three families mean the approximation by this.
        Some("gelu") => (true, "gelu_new"),
        Some(name) => (true, name),
        None => (false, found),
    };
    let activation = match name {
        "relu" => Activation::Relu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "silu" | "swish" => Activation::Silu,
        _ => {
            return Err(format!(
                "`feed_forward_proj` is {found}; only relu, gelu_new and silu, plain or gated (gated-gelu), are computed, and \
                 any other function gives other values: take a checkpoint that was trained with one of these"
            ));
        }
    };
    // transformers writes what it made of the field, and where somebody has changed one of them
    // reads these.
    let other_name = fields.get("dense_act_fn").is_some_and(|written| written != name);
    if other_name || fields.flag("is_gated_act", gated)? != gated {
        return Err(format!(
            "`feed_forward_proj` is {found}, which `dense_act_fn` and `is_gated_act` contradict: which function was trained \
             with depends on who reads them; keep `feed_forward_proj` alone"
        ));
    }
    Ok((gated, activation))
}

fn start_token(fields: &Fields<'_>, family: Family) -> Result<u32, String> {
    match fields.get("decoder_start_token_id") {
        Some(found) => found.as_u64().and_then(|token| u32::try_from(token).ok()).ok_or_else(|| {
            format!("`decoder_start_token_id` is {found}; the number of a token is needed")
        }),
        None if family == Family::T5 => Err(
            "`decoder_start_token_id` is missing: the decoder would begin with another token than in training; write it \
             there (T5's own is its padding token, 0)"
                .into(),
        ),
        None => Ok(0),
    }
}

/// Beginning of the versions of transformers that scale logits of an mT5 whose head is tied.
const TIED_VERSION: &str = "4.";

/// The head: true where it must be the embeddings, and true where logits are scaled by the width.
fn head(fields: &Fields<'_>, family: Family) -> Result<(bool, bool), String> {
    if fields.get("scale_decoder_outputs").is_some() {
        return Ok((false, fields.flag("scale_decoder_outputs", false)?));
    }
    let tied = fields.flag("tie_word_embeddings", family != Family::Mt5)?;
    if family != Family::Mt5 || !tied {
        return Ok((tied, tied));
    }
    match fields.get("transformers_version").and_then(Value::as_str) {
        Some(version) if version.starts_with(TIED_VERSION) => Ok((true, true)),
        Some(_) => Ok((false, false)),
        None => Err(
            "`tie_word_embeddings` is true: transformers 4 then multiplies logits of mt5 by 1 / √d_model, transformers 5 does \
             not, and scores would depend on who reads this; write `scale_decoder_outputs`, true or false, as in training"
                .into(),
        ),
    }
}

/// The document of a configuration; `dtype` says how the weights beside it are stored.
pub(super) fn write(config: &ModelConfig, dtype: &str) -> Value {
    let architecture = &config.architecture;
    let (encoder, positions) = (&architecture.encoder, &architecture.relative_positions);
    // A width of one scales by 1, where either word means the same model.
    let scaled = architecture.logit_scale == root_of_inverse(config.hidden_size);
    let function = match (architecture.activation, architecture.gated_mlp) {
        (Activation::Relu, false) => "relu",
        (Activation::Relu, true) => "gated-relu",
        (Activation::GeluTanh, false) => "gelu_new",
        (Activation::GeluTanh, true) => "gated-gelu",
        (Activation::Silu, false) => "silu",
        (Activation::Silu, true) => "gated-silu",
    };
    let mut document = json!({
        "architectures": [architecture.family.class()],
        "model_type": architecture.family.name(),
        "is_encoder_decoder": true,
        "vocab_size": config.vocab_size,
        "d_model": config.hidden_size,
        "d_kv": config.head_dim,
        "d_ff": config.intermediate_size,
        "num_layers": encoder.as_ref().map(|encoder| encoder.num_layers),
        "num_decoder_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "relative_attention_num_buckets": positions.as_ref().map(|by| by.num_buckets),
        "relative_attention_max_distance": positions.as_ref().map(|by| by.max_distance),
        "feed_forward_proj": function,
        "layer_norm_epsilon": super::decimal(config.rms_norm_eps),
        "dropout_rate": 0.0,
        "decoder_start_token_id": encoder.as_ref().map(|encoder| encoder.start_token),
        "tie_word_embeddings": config.tie_word_embeddings || scaled,
        "torch_dtype": dtype,
    });
    match architecture.family {
        Family::Mt5 if config.tie_word_embeddings && scaled => {
            document["transformers_version"] = format!("{TIED_VERSION}0.0").into();
        }
        _ if config.tie_word_embeddings && scaled => {}
        _ => document["scale_decoder_outputs"] = scaled.into(),
    }
    document
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::hugging_face::{read, write};

    use super::*;

    fn tiny(model_type: &str) -> Value {
        json!({
            "model_type": model_type, "vocab_size": 97, "d_model": 32, "d_kv": 16, "d_ff": 48,
            "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 3, "is_encoder_decoder": true,
        })
    }

    fn with(model_type: &str, changes: Value) -> Result<ModelConfig, String> {
        let mut value = tiny(model_type);
        for (field, changed) in changes.as_object().expect("an object") {
            match changed.as_str() {
                Some("absent") => drop(value.as_object_mut().and_then(|map| map.remove(field))),
                _ => value[field] = changed.clone(),
            }
        }
        read(&value)
    }

    #[test]
    fn what_is_not_computed_is_refused_with_its_reason_and_the_way_out() {
        for (model_type, changes, words) in [
            (
                "t5",
                json!({"is_encoder_decoder": false}),
                ["`is_encoder_decoder` is false", "missing", "save the whole"],
            ),
            (
                "t5",
                json!({"feed_forward_proj": "gelu"}),
                ["`feed_forward_proj` is gelu;", "other values", "take a checkpoint"],
            ),
            (
                "mt5",
                json!({"feed_forward_proj": "relu", "dense_act_fn": "gelu_new"}),
                ["`feed_forward_proj` is relu", "`dense_act_fn`", "keep"],
            ),
            (
                "t5",
                json!({"is_gated_act": true}),
                ["`feed_forward_proj` is relu", "`is_gated_act`", "keep"],
            ),
            (
                "t5",
                json!({"decoder_start_token_id": "absent"}),
                ["`decoder_start_token_id` is missing", "another token", "write"],
            ),
            (
                "umt5",
                json!({"decoder_start_token_id": 97}),
                ["`decoder_start_token_id` is 97", "vocabulary of 97", "not have"],
            ),
            (
                "t5",
                json!({"decoder_start_token_id": -1}),
                ["`decoder_start_token_id` is -1", "number", "token"],
            ),
            (
                "mt5",
                json!({"tie_word_embeddings": true}),
                ["`tie_word_embeddings` is true", "mt5", "write `scale_decoder_outputs`"],
            ),
            (
                "t5",
                json!({"relative_attention_num_buckets": 3}),
                ["`relative_attention_num_buckets` is 3", "2 at least", "4"],
            ),
            (
                "t5",
                json!({"relative_attention_max_distance": 16}),
                ["`relative_attention_max_distance` is 16", "more than half", "32"],
            ),
            (
                "t5",
                json!({"quantization_config": {"quant_method": "bitsandbytes"}}),
                ["bitsandbytes", "without their scales", "dequantise"],
            ),
            ("t5", json!({"d_kv": "absent"}), ["`d_kv`", "is", "missing"]),
            ("umt5", json!({"num_experts": 4}), ["`num_experts` is 4", "left out", "dense"]),
        ] {
            let reason = with(model_type, changes.clone()).expect_err(&changes.to_string());
            for word in words {
                assert!(reason.contains(word), "{changes}: {word:?} is not in: {reason}");
            }
        }
    }

    /// The head, tied strictly or not, and the factor of logits.
    #[test]
    fn heads_are_those_of_the_version_that_wrote_the_file() {
        let scaled = root_of_inverse(32);
        for (model_type, changes, tied, scale) in [
            ("t5", json!({}), true, scaled),
            ("t5", json!({"tie_word_embeddings": true}), true, scaled),
            ("t5", json!({"tie_word_embeddings": false}), false, 1.0),
            (
                "t5",
                json!({"tie_word_embeddings": true, "scale_decoder_outputs": false}),
                false,
                1.0,
            ),
            (
                "umt5",
                json!({"tie_word_embeddings": true, "scale_decoder_outputs": true}),
                false,
                scaled,
            ),
            ("umt5", json!({"tie_word_embeddings": false}), false, 1.0),
            ("mt5", json!({}), false, 1.0),
            (
                "mt5",
                json!({"tie_word_embeddings": true, "transformers_version": "4.57.1"}),
                true,
                scaled,
            ),
            (
                "mt5",
                json!({"tie_word_embeddings": true, "transformers_version": "5.24.0"}),
                false,
                1.0,
            ),
        ] {
            let config = with(model_type, changes.clone()).unwrap();
            let got = (config.tie_word_embeddings, config.architecture.logit_scale);
            assert_eq!(got, (tied, scale), "{model_type}, {changes}");
        }
    }

    #[test]
    fn absent_fields_are_what_transformers_takes_for_them() {
        let absent = json!({"is_encoder_decoder": "absent", "decoder_start_token_id": "absent"});
        for (model_type, gated, activation) in [
            ("t5", false, Activation::Relu),
            ("mt5", true, Activation::GeluTanh),
            ("umt5", true, Activation::GeluTanh),
        ] {
            let config = match model_type {
                "t5" => with("t5", json!({})),
                other => with(other, absent.clone()),
            };
            let config = config.unwrap();
            let has = &config.architecture;
            assert_eq!((has.gated_mlp, has.activation), (gated, activation), "{model_type}");
            let by = has.relative_positions.as_ref().unwrap();
            let own = model_type == "umt5";
            assert_eq!((by.num_buckets, by.max_distance, by.in_every_layer), (32, 128, own));
            let start = if model_type == "t5" { 3 } else { 0 };
            let encoder = Encoder { num_layers: 2, start_token: start };
            assert_eq!(has.encoder, Some(encoder), "{model_type}");
            assert_eq!((config.num_hidden_layers, config.rms_norm_eps), (2, 1e-6));
            assert_eq!(config.max_position_embeddings, ANY_LENGTH, "n_positions limits nothing");
        }
        let deeper = with("t5", json!({"num_decoder_layers": 5})).unwrap();
        let encoder_layers = deeper.architecture.encoder.map(|encoder| encoder.num_layers);
        assert_eq!((deeper.num_hidden_layers, encoder_layers), (5, Some(2)));
    }

    #[test]
    fn a_tied_head_of_one_column_reads_back() {
        for model_type in ["t5", "mt5", "umt5"] {
            for tied in [false, true] {
                let narrow = json!({
                    "d_model": 1, "tie_word_embeddings": tied, "transformers_version": "4.0.0",
                });
                let config = with(model_type, narrow).unwrap();
                assert_eq!(
                    (config.tie_word_embeddings, config.architecture.logit_scale),
                    (tied, 1.0)
                );
                assert_eq!(read(&write(&config, "float32")), Ok(config), "{model_type}, {tied}");
            }
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        const WORDS: [&str; 8] =
            ["relu", "gated-gelu", "gated-silu", "gelu_new", "gelu", "4.1.0", "5.0.0", ""];
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2_i64..70).prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            prop::sample::select(&WORDS[..]).prop_map(Value::from),
        ]
    }

    const FIELDS: [&str; 18] = [
        "d_ff",
        "d_kv",
        "d_model",
        "decoder_start_token_id",
        "dense_act_fn",
        "feed_forward_proj",
        "is_encoder_decoder",
        "is_gated_act",
        "layer_norm_epsilon",
        "num_decoder_layers",
        "num_heads",
        "num_layers",
        "relative_attention_max_distance",
        "relative_attention_num_buckets",
        "scale_decoder_outputs",
        "tie_word_embeddings",
        "transformers_version",
        "vocab_size",
    ];

    proptest! {
        /// Reading gives an error, or a sound configuration that can be written, whatever fields
        /// hold.
        #[test]
        fn any_configuration_is_refused_or_means_one_model(
            model_type in prop::sample::select(&["t5", "mt5", "umt5"][..]),
            changes in prop::collection::vec((prop::sample::select(&FIELDS[..]), any_value()), 0..4),
        ) {
            let mut value = tiny(model_type);
            for (field, changed) in changes {
                value[field] = changed;
            }
            if let Ok(config) = read(&value) {
                prop_assert_eq!(config.check(), Ok(()));
                let again = read(&write(&config, "float32")).map_err(TestCaseError::fail)?;
                prop_assert_eq!(again, config);
            }
        }
    }
}
