//! Configurations read, refused and written.

use proptest::prelude::*;

use super::*;

fn tiny(model_type: &str) -> Value {
    json!({
        "model_type": model_type, "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000.0, "tie_word_embeddings": true
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

fn sliding(config: &ModelConfig) -> Vec<usize> {
    (0..config.num_hidden_layers)
        .filter(|&layer| config.architecture.window_of(layer).is_some())
        .collect()
}

#[test]
fn what_is_not_computed_is_refused_with_its_reason_and_the_way_out() {
    for (model_type, changes, words) in [
        ("gpt2", json!({}), ["`model_type` is gpt2", "wrong", "take a checkpoint"]),
        ("qwen3_moe", json!({"num_experts": 8}), ["`num_experts` is 8", "left out", "dense"]),
        ("qwen3", json!({"num_local_experts": 4}), ["`num_local_experts`", "left out", "dense"]),
        (
            "qwen3_vl",
            json!({"vision_config": {}}),
            ["`vision_config`", "not be read", "text model"],
        ),
        (
            "bart",
            json!({"is_encoder_decoder": true}),
            ["bart", "encoder would be left out", "decoder-only"],
        ),
        (
            "llama",
            json!({"is_encoder_decoder": true}),
            ["`is_encoder_decoder`", "left out", "decoder-only"],
        ),
        (
            "qwen3_5_text",
            json!({"layer_types": ["linear_attention", "full_attention"]}),
            ["qwen3_5_text", "linear_attention", "take a checkpoint"],
        ),
        (
            "qwen3",
            json!({"quantization_config": {"quant_method": "fp8"}}),
            ["`quantization_config`", "fp8", "dequantise"],
        ),
        (
            "mistral",
            json!({"quantization_config": {"quant_method": "awq", "bits": 4}}),
            ["awq", "without their scales", "dequantise"],
        ),
        ("qwen2", json!({"hidden_act": "gelu"}), ["`hidden_act` is gelu", "silu", "take"]),
        (
            "gemma3_text",
            json!({"hidden_activation": "relu"}),
            ["`hidden_activation` is relu", "gates", "take"],
        ),
        ("llama", json!({"mlp_bias": true}), ["`mlp_bias` is true", "left out", "take"]),
        (
            "gemma3_text",
            json!({"use_bidirectional_attention": true}),
            ["`use_bidirectional_attention`", "after it", "take"],
        ),
        (
            "gemma3_text",
            json!({"final_logit_softcapping": 30.0}),
            ["`final_logit_softcapping` is 30", "capped", "take"],
        ),
        (
            "llama",
            json!({"partial_rotary_factor": 0.5}),
            ["`partial_rotary_factor` is 0.5", "turn", "take"],
        ),
        (
            "qwen2",
            json!({"rope_scaling": {"type": "dynamic", "factor": 2.0}}),
            ["`rope_scaling` asks for dynamic", "llama3", "remove the field"],
        ),
        (
            "llama",
            json!({"rope_parameters": {"rope_type": "longrope"}}),
            ["`rope_parameters` asks for longrope", "yarn", "take a checkpoint"],
        ),
        (
            "qwen3",
            json!({"rope_scaling": {"mrope_section": [8, 12, 12], "rope_type": "default"}}),
            ["mrope_section", "images", "text model"],
        ),
        (
            "qwen3",
            json!({"rope_scaling": {"rope_type": "yarn"}}),
            ["`rope_scaling.factor`", "missing", "yarn"],
        ),
        (
            "qwen3",
            json!({"rope_scaling": {"factor": 4.0}}),
            ["`rope_scaling`", "no `rope_type`", "write"],
        ),
        (
            "qwen3",
            json!({"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "rope_parameters": {"rope_theta": 5.0}}),
            ["`rope_scaling` and `rope_parameters`", "differ", "keep the one"],
        ),
        (
            "llama",
            json!({"rope_parameters": {"full_attention": {"rope_theta": 5.0}}}),
            ["`rope_parameters.full_attention.`", "llama", "write"],
        ),
        (
            "gemma3_text",
            json!({"rope_parameters": {"rope_theta": 5.0}}),
            ["`rope_parameters`", "one base", "write an object for each"],
        ),
        (
            "qwen3",
            json!({"layer_types": vec!["sliding_attention"; 4]}),
            ["`layer_types`", "`sliding_window`", "give the width"],
        ),
        (
            "gemma3_text",
            json!({"sliding_window": null}),
            ["`sliding_window` is null", "more positions", "give the width"],
        ),
        (
            "mistral",
            json!({"sliding_window": 9, "layer_types": vec!["full_attention"; 4]}),
            ["layer 0", "mistral", "remove the field"],
        ),
        (
            "qwen3",
            json!({"layer_types": vec!["full_attention"; 3]}),
            ["3 layers", "is 4", "name each layer once"],
        ),
    ] {
        let reason = with(model_type, changes.clone()).expect_err(&changes.to_string());
        for word in words {
            assert!(reason.contains(word), "{model_type}, {changes}: {word:?} is not in: {reason}");
        }
    }
}

#[test]
fn values_of_another_kind_are_refused() {
    for (field, bad, word) in [
        ("attention_bias", json!("yes"), "true or false"),
        ("tie_word_embeddings", json!(1), "true or false"),
        ("rope_theta", json!("1e6"), "not a number"),
        ("rope_theta", json!(-1.0), "must be positive"),
        ("rope_scaling", json!("yarn"), "must be an object"),
        (
            "rope_scaling",
            json!({"rope_type": "linear", "factor": 0.0}),
            "`factor` is 0; it must be positive",
        ),
        ("layer_types", json!("full_attention"), "list of names"),
        ("layer_types", json!([1, 2, 3, 4]), "list of names"),
        ("head_dim", json!(7), "even"),
        ("vocab_size", json!(-4), "positive"),
        ("num_key_value_heads", json!(3), "multiple"),
        ("hidden_act", json!(3), "no name"),
    ] {
        let reason = with("qwen3", json!({ field: bad.clone() })).expect_err(field);
        assert!(reason.contains(word), "{field} = {bad}: {reason}");
    }
    let yarn = |changes: Value| {
        let mut scaling = json!({"rope_type": "yarn", "factor": 4.0});
        scaling.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        with("qwen3", json!({"rope_scaling": scaling}))
    };
    assert!(yarn(json!({"beta_fast": 0.5})).unwrap_err().contains("`beta_slow`"));
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0});
    assert!(with("llama", json!({"rope_scaling": llama3})).unwrap_err().contains("must be below"));
    assert!(read(&json!([])).unwrap_err().contains("no JSON object"));
    assert!(read(&json!({})).unwrap_err().contains("`model_type` is absent"));
    assert!(with("qwen3", json!({"vocab_size": "absent"})).unwrap_err().contains("missing"));
}

#[test]
fn the_newer_spelling_of_rotary_positions_wins_over_the_base_outside() {
    let newer = json!({"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}});
    assert_eq!(with("qwen3", newer).unwrap().rope_theta, 500.0);
    let gemma = json!({"rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 700.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
    }});
    let newer = with("gemma3_text", gemma).unwrap();
    let older = json!({
        "rope_theta": 700.0, "rope_local_base_freq": 30.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    });
    assert_eq!(newer, with("gemma3_text", older).unwrap());
    assert_eq!(newer.rope_theta, 700.0);
    let rope = newer.architecture.window.unwrap().rope.unwrap();
    assert_eq!(rope, Rope { theta: 30.0, scaling: RopeScaling::None });
}

#[test]
fn absent_fields_are_what_transformers_takes_for_them() {
    let absent = json!({
        "head_dim": "absent", "num_key_value_heads": "absent", "rope_theta": "absent",
        "tie_word_embeddings": "absent", "rms_norm_eps": "absent",
        "num_attention_heads": 32, "hidden_size": 64,
    });
    for (model_type, head_dim, key_value_heads, theta, tied) in [
        ("qwen2", 2, 32, 1e4, false),
        ("qwen3", 128, 32, 1e4, false),
        ("llama", 2, 32, 1e4, false),
        ("mistral", 2, 8, 1e4, false),
        ("gemma3_text", 256, 4, 1e6, true),
    ] {
        let config = with(model_type, absent.clone()).unwrap();
        let got = (config.head_dim, config.num_key_value_heads, config.rope_theta);
        assert_eq!(got, (head_dim, key_value_heads, theta), "{model_type}");
        assert_eq!(config.tie_word_embeddings, tied, "{model_type}");
        assert_eq!(config.rms_norm_eps, 1e-6);
    }
    let null = json!({"num_key_value_heads": null});
    assert_eq!(with("mistral", null).unwrap().num_key_value_heads, 4);
    // Mistral has a window unless told otherwise.
    let window = |config: ModelConfig| config.architecture.window.map(|w| w.positions);
    assert_eq!(window(with("mistral", json!({})).unwrap()), Some(4096));
    assert_eq!(window(with("mistral", json!({"sliding_window": null})).unwrap()), None);
}

#[test]
fn layers_with_a_window_are_those_that_transformers_makes() {
    let [full, slides] = ["full_attention", "sliding_attention"];
    for (model_type, changes, want) in [
        ("qwen2", json!({"sliding_window": 32, "max_window_layers": 1}), vec![]),
        ("qwen2", json!({"use_sliding_window": true, "max_window_layers": 1}), vec![1, 2, 3]),
        ("qwen3", json!({"use_sliding_window": true, "max_window_layers": 0}), vec![0, 1, 2, 3]),
        ("qwen3", json!({"use_sliding_window": true}), vec![]),
        (
            "qwen3",
            json!({"use_sliding_window": true, "sliding_window": null, "max_window_layers": 0}),
            vec![],
        ),
        (
            "qwen3",
            json!({"use_sliding_window": true, "layer_types": [full, slides, full, slides]}),
            vec![1, 3],
        ),
        ("llama", json!({"sliding_window": 5, "layer_types": vec![full; 4]}), vec![]),
        ("mistral", json!({"sliding_window": 5}), vec![0, 1, 2, 3]),
        ("mistral", json!({"sliding_window": 5, "layer_types": vec![slides; 4]}), vec![0, 1, 2, 3]),
        ("gemma3_text", json!({}), vec![0, 1, 2, 3]),
        ("gemma3_text", json!({"sliding_window_pattern": 2}), vec![0, 2]),
        ("gemma3_text", json!({"layer_types": vec![full; 4]}), vec![]),
    ] {
        let config = with(model_type, changes.clone()).unwrap();
        assert_eq!(sliding(&config), want, "{model_type}, {changes}");
    }
}

#[test]
fn yarn_factors_of_attention() {
    let of = |changes: Value| {
        let mut scaling =
            json!({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32});
        scaling.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        match with("qwen3", json!({"rope_scaling": scaling})).unwrap().architecture.rope_scaling {
            RopeScaling::Yarn { factor, attention_factor, .. } => (factor, attention_factor),
            other => panic!("{other:?}"),
        }
    };
    let usual = 0.1 * 4.0_f64.ln() + 1.0;
    assert_eq!(of(json!({})), (4.0, usual));
    assert_eq!(of(json!({"attention_factor": 1.5})), (4.0, 1.5));
    assert_eq!(of(json!({"factor": 0.5})), (0.5, 1.0));
    assert_eq!(of(json!({"mscale": 1.0, "mscale_all_dim": 1.0})), (4.0, 1.0));
    assert_eq!(of(json!({"mscale": 2.0})), (4.0, usual));
    // The quotient of 128 and 32 positions.
    assert_eq!(of(json!({"factor": null})), (4.0, usual));
}

#[test]
fn what_is_written_reads_back() {
    let [full, slides] = ["full_attention", "sliding_attention"];
    let yarn = json!({"rope_type": "yarn", "factor": 4.0, "beta_fast": 16.0, "truncate": false});
    let llama3 = json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0});
    for (model_type, changes) in [
        ("qwen2", json!({})),
        ("qwen3", json!({"attention_bias": true, "rope_scaling": yarn})),
        (
            "qwen3",
            json!({"use_sliding_window": true, "sliding_window": 9, "layer_types": [full, slides, full, full]}),
        ),
        (
            "llama",
            json!({"rope_scaling": llama3, "attention_bias": true, "hidden_act": "gelu_pytorch_tanh"}),
        ),
        ("mistral", json!({"sliding_window": null})),
        ("mistral", json!({"sliding_window": 7, "layer_types": vec![slides; 4]})),
        (
            "gemma3_text",
            json!({"layer_types": [slides, full, slides, full], "query_pre_attn_scalar": 168}),
        ),
        ("gemma3_text", json!({"layer_types": vec![full; 4]})),
    ] {
        let config = with(model_type, changes).unwrap();
        assert_eq!(read(&write(&config, "float32")).unwrap(), config, "{model_type}");
    }
}

const NAMES: [&str; 7] =
    ["silu", "gelu_pytorch_tanh", "yarn", "linear", "full_attention", "default", ""];
const KINDS: [&str; 3] = ["full_attention", "sliding_attention", "linear_attention"];

/// Values that fields may have, right and wrong.
fn any_value() -> impl Strategy<Value = Value> {
    let rope = (prop::sample::select(&NAMES[..]), 0.0..9.0_f64, -1_i64..40).prop_map(
        |(kind, factor, positions)| {
            json!({
                "rope_type": kind, "factor": factor, "low_freq_factor": 1.0, "high_freq_factor": factor,
                "original_max_position_embeddings": positions,
            })
        },
    );
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..70).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(&NAMES[..]).prop_map(Value::from),
        prop::collection::vec(prop::sample::select(&KINDS[..]), 3..6).prop_map(Value::from),
        rope.clone(),
    ];
    prop_oneof![
        4 => leaf,
        1 => (rope.clone(), rope).prop_map(|(a, b)| json!({"full_attention": a, "sliding_attention": b})),
    ]
}

proptest! {
    /// Reading gives an error, or a sound configuration that can be written, whatever fields hold.
    #[test]
    fn any_configuration_is_refused_or_means_one_model(
        family in prop::sample::select(&Family::ALL[..]),
        changes in prop::collection::vec((prop::sample::select(&FIELDS[..]), any_value()), 0..4),
    ) {
        let mut value = tiny(family.name());
        for (field, changed) in changes {
            value[field] = changed;
        }
        if let Ok(mut config) = read(&value) {
            prop_assert_eq!(config.check(), Ok(()));
            let again = read(&write(&config, "float32")).map_err(TestCaseError::fail)?;
            if let Some(window) = &mut config.architecture.window {
                let listed = (0..config.num_hidden_layers).map(|layer| window.layers.contains(layer));
                window.layers = WindowLayers::Listed(listed.collect());
            }
            prop_assert_eq!(again, config);
        }
    }
}

const FIELDS: [&str; 24] = [
    "attention_bias",
    "head_dim",
    "hidden_act",
    "hidden_activation",
    "hidden_size",
    "intermediate_size",
    "layer_types",
    "max_position_embeddings",
    "max_window_layers",
    "num_attention_heads",
    "num_experts",
    "num_hidden_layers",
    "num_key_value_heads",
    "partial_rotary_factor",
    "query_pre_attn_scalar",
    "rms_norm_eps",
    "rope_local_base_freq",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "sliding_window_pattern",
    "tie_word_embeddings",
    "use_sliding_window",
];
