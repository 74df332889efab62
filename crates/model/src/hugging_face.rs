//! `config.json` as Hugging Face `transformers` writes it, versions 4 and 5, read into a
//! [`ModelConfig`] and written from it.
//!
//! A field that is absent has the value that `transformers` 5 gives it for the `model_type`; one
//! that would change what is computed in a way that is not computed here is refused. The two
//! versions spell the same thing otherwise:
//!
//! | | version 4 | version 5 |
//! |---|---|---|
//! | rotary positions | `rope_theta`, `rope_scaling` | `rope_parameters` with `rope_theta` and `rope_type` |
//! | those of Gemma's windows | `rope_local_base_freq` | `rope_parameters`, an object each for `full_attention` and `sliding_attention` |
//! | layers with a window | `sliding_window_pattern`, `max_window_layers` | `layer_types` |

mod t5;

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::architecture::{Architecture, Family, SlidingWindow, WindowLayers};
use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::kernels::Activation;
use crate::rotary::{Rope, RopeScaling};

impl ModelConfig {
    /// Reads `config.json` of a model directory.
    ///
    /// # Errors
    /// When the file cannot be read, a field is missing or outside its range, or the file asks for
    /// something that is not computed here (an architecture that is no row of [the
    /// table](Architecture), experts, quantised weights, another activation or kind of rotary
    /// positions): ignoring such a field would give wrong logits. The message names the field, what
    /// would come out wrong, and the way out.
    pub fn read(path: &Path) -> Result<Self, LoadError> {
        let bytes = std::fs::read(path).map_err(|e| LoadError::io(path, e))?;
        Self::parse(path, &bytes)
    }

    /// Reads the bytes of a `config.json`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::parse(Path::new("config.json"), bytes)
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Self, LoadError> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|e| LoadError::config(path, format!("is not JSON: {e}")))?;
        Self::from_json(&value).map_err(|reason| LoadError::config(path, reason))
    }

    pub(crate) fn from_json(value: &Value) -> Result<Self, String> {
        read(value)
    }

    /// The document written as `config.json`, complete enough for Hugging Face `transformers`: in
    /// the older spelling, and in version 5's for what that could not say.
    ///
    /// `dtype` names how the weights beside it are stored: `float32`, `bfloat16` or `float16`.
    pub fn to_hugging_face(&self, dtype: &str) -> Value {
        write(self, dtype)
    }
}

/// Reads a whole configuration.
fn read(value: &Value) -> Result<ModelConfig, String> {
    if !value.is_object() {
        return Err("is no JSON object: a configuration is one, with `model_type` in it".into());
    }
    let fields = Fields { value, path: String::new() };
    let family = family(&fields)?;
    refuse_unsupported(&fields, family)?;
    if family.has_encoder() {
        return t5::read(&fields, family);
    }
    let (num_attention_heads, hidden_size) =
        (fields.size("num_attention_heads")?, fields.size("hidden_size")?);
    let num_key_value_heads = match fields.get("num_key_value_heads") {
        Some(_) => fields.size("num_key_value_heads")?,
        None if value.get("num_key_value_heads").is_some() => num_attention_heads,
        None => match family {
            Family::Llama => num_attention_heads,
            Family::Qwen2 | Family::Qwen3 => 32,
            Family::Mistral => 8,
            Family::Gemma3 => 4,
            Family::T5 | Family::Mt5 | Family::Umt5 => num_attention_heads,
        },
    };
    let head_dim = match family {
        Family::Qwen3 => 128,
        Family::Gemma3 => 256,
        _ => hidden_size / num_attention_heads,
    };
    let num_hidden_layers = fields.size("num_hidden_layers")?;
    let max_position_embeddings = fields.size("max_position_embeddings")?;
    let (rope, window_rope) = ropes(&fields, family, max_position_embeddings)?;
    let mut architecture = Architecture::of(family, hidden_size);
    architecture.rope_scaling = rope.scaling;
    if matches!(family, Family::Qwen3 | Family::Llama | Family::Gemma3)
        && fields.flag("attention_bias", false)?
    {
        architecture.query_key_value_biases = true;
        architecture.attention_out_bias = true;
    }
    architecture.activation = activation(&fields, family)?;
    if architecture.query_scalar.is_some() {
        architecture.query_scalar = Some(fields.number("query_pre_attn_scalar", 256.0)?);
    }
    architecture.window = window(&fields, family, num_hidden_layers, window_rope)?;
    let config = ModelConfig {
        vocab_size: fields.size("vocab_size")?,
        hidden_size,
        intermediate_size: fields.size("intermediate_size")?,
        num_hidden_layers,
        num_attention_heads,
        num_key_value_heads,
        head_dim: fields.size_or("head_dim", head_dim)?,
        max_position_embeddings,
        rms_norm_eps: fields.number("rms_norm_eps", 1e-6)? as f32,
        rope_theta: rope.theta,
        tie_word_embeddings: fields.flag("tie_word_embeddings", family == Family::Gemma3)?,
        architecture,
    };
    config.check()?;
    Ok(config)
}

/// A JSON object whose fields are asked for by name and kind.
struct Fields<'a> {
    value: &'a Value,
    /// The beginning of a field's name in messages: `rope_scaling.`, say.
    path: String,
}

impl<'a> Fields<'a> {
    /// A field that is there and not null.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    fn size(&self, name: &str) -> Result<usize, String> {
        let path = &self.path;
        match self.value.get(name).map(Value::as_u64) {
            Some(Some(n)) if (1..=1 << 31).contains(&n) => Ok(n as usize),
            Some(_) => {
                let found = &self.value[name];
                Err(format!(
                    "`{path}{name}` is {found}; a positive whole number up to 2^31 is needed"
                ))
            }
            None => Err(format!("`{path}{name}` is missing")),
        }
    }

    fn size_or(&self, name: &str, default: usize) -> Result<usize, String> {
        self.get(name).map_or(Ok(default), |_| self.size(name))
    }

    fn maybe_number(&self, name: &str) -> Result<Option<f64>, String> {
        let path = &self.path;
        let number =
            |v: &Value| v.as_f64().ok_or_else(|| format!("`{path}{name}` is {v}, not a number"));
        self.get(name).map(number).transpose()
    }

    fn number(&self, name: &str, default: f64) -> Result<f64, String> {
        Ok(self.maybe_number(name)?.unwrap_or(default))
    }

    fn needed_number(&self, name: &str, kind: &str) -> Result<f64, String> {
        let path = &self.path;
        self.maybe_number(name)?
            .ok_or_else(|| format!("`{path}{name}` is missing; {kind} positions are made from it"))
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, String> {
        let path = &self.path;
        let flag = |v: &Value| {
            v.as_bool().ok_or_else(|| format!("`{path}{name}` is {v}; it must be true or false"))
        };
        self.get(name).map_or(Ok(default), flag)
    }

    /// An object that is there and not empty.
    fn object(&self, name: &str) -> Result<Option<Fields<'a>>, String> {
        let path = &self.path;
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(map)) if map.is_empty() => Ok(None),
            Some(value @ Value::Object(_)) => {
                Ok(Some(Fields { value, path: format!("{path}{name}.") }))
            }
            Some(other) => Err(format!("`{path}{name}` is {other}; it must be an object")),
        }
    }
}

/// The row of the table that a configuration names.
fn family(fields: &Fields<'_>) -> Result<Family, String> {
    let model_type = fields.get("model_type").and_then(Value::as_str).unwrap_or("absent");
    if let Some(family) = Family::ALL.into_iter().find(|family| family.name() == model_type) {
        return Ok(family);
    }
    let names: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
    let reason = foreign_part(fields, None).unwrap_or_else(|| {
        "its layers may do what these do not, and logits would come out wrong; take a checkpoint of one of these, \
         or where it is one under another name, write that name there"
            .into()
    });
    Err(format!("`model_type` is {model_type}; only {} are computed: {reason}", names.join(", ")))
}

/// A part that no row of the table has, or not the one of this family, in words: what would be left
/// out, and the way out.
fn foreign_part(fields: &Fields<'_>, family: Option<Family>) -> Option<String> {
    for name in ["num_experts", "num_local_experts", "n_routed_experts"] {
        let experts = fields.get(name).filter(|experts| experts.as_u64() != Some(0));
        if let Some(experts) = experts {
            return Some(format!(
                "`{name}` is {experts}, and the choice among experts would be left out; take a dense checkpoint"
            ));
        }
    }
    for name in ["vision_config", "audio_config"] {
        if fields.get(name).is_some() {
            return Some(format!(
                "`{name}` asks for input other than text, which would not be read; save the text model alone, with its \
                 own configuration (`text_config`) as config.json"
            ));
        }
    }
    let has_encoder = fields.get("is_encoder_decoder") == Some(&Value::Bool(true));
    if has_encoder && !family.is_some_and(Family::has_encoder) {
        return Some(
            "`is_encoder_decoder` is true, and attention to an encoder would be left out; take a decoder-only checkpoint, or an \
             encoder–decoder in the form of T5"
                .into(),
        );
    }
    let layers = fields.get("layer_types").and_then(Value::as_array).into_iter().flatten();
    let known = ["full_attention", "sliding_attention"];
    let kind = layers.filter_map(Value::as_str).find(|kind| !known.contains(kind))?;
    Some(format!(
        "`layer_types` holds {kind}; only full_attention and sliding_attention are computed, and such a layer's output \
         would be another; take a checkpoint whose layers are all of these"
    ))
}

/// Fields that may stand in any configuration and ask for what is not computed.
fn refuse_unsupported(fields: &Fields<'_>, family: Family) -> Result<(), String> {
    if let Some(reason) = foreign_part(fields, Some(family)) {
        return Err(reason);
    }
    for name in ["quantization_config", "compression_config"] {
        if let Some(quantised) = fields.get(name) {
            let method = quantised["quant_method"].as_str().unwrap_or("quantised");
            return Err(format!(
                "`{name}` says that weights are stored as {method}: read as they lie, without their scales, they would be \
                 other numbers; dequantise them (load with transformers, `model.dequantize()`, save in bfloat16) or \
                 take the checkpoint it was made from"
            ));
        }
    }
    for (name, lost) in [
        ("mlp_bias", "the biases of the feed-forward parts would be left out"),
        ("use_bidirectional_attention", "a position would not see those after it"),
    ] {
        if fields.flag(name, false)? {
            return Err(format!(
                "`{name}` is true, which is not computed: {lost}; take a checkpoint without it"
            ));
        }
    }
    for name in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(cap) = fields.get(name) {
            return Err(format!(
                "`{name}` is {cap}, which is not computed: scores beyond it would not be capped; take a checkpoint \
                 where it is null"
            ));
        }
    }
    let partial = fields.number("partial_rotary_factor", 1.0)?;
    refuse_partial(partial, "partial_rotary_factor")
}

fn refuse_partial(factor: f64, name: &str) -> Result<(), String> {
    if factor == 1.0 {
        return Ok(());
    }
    Err(format!(
        "`{name}` is {factor}, but whole heads are turned: values that must stay would turn; take a checkpoint where it is 1"
    ))
}

fn activation(fields: &Fields<'_>, family: Family) -> Result<Activation, String> {
    let (name, default) = match family {
        Family::Gemma3 => ("hidden_activation", "gelu_pytorch_tanh"),
        _ => ("hidden_act", "silu"),
    };
    let found = fields.get(name).map_or(Some(default), Value::as_str).unwrap_or("no name");
    match found {
        "silu" | "swish" => Ok(Activation::Silu),
        "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        other => Err(format!(
            "`{name}` is {other}; only silu and gelu_pytorch_tanh are computed, and any other function gives other \
             gates: take a checkpoint that was trained with one of these"
        )),
    }
}

/// Rotary positions of layers that see everything, and of those with a window where they differ.
fn ropes(
    fields: &Fields<'_>,
    family: Family,
    max_positions: usize,
) -> Result<(Rope, Option<Rope>), String> {
    let (scaling, parameters) = (fields.object("rope_scaling")?, fields.object("rope_parameters")?);
    if let (Some(older), Some(newer)) = (&scaling, &parameters)
        && older.value != newer.value
    {
        return Err(
            "`rope_scaling` and `rope_parameters` both stand there and differ, so that positions would depend on who \
             reads them; keep the one that the model was trained with"
                .into(),
        );
    }
    let nested = |name: &str| parameters.as_ref().map_or(Ok(None), |p| p.object(name));
    let (full, local) = (nested("full_attention")?, nested("sliding_attention")?);
    if family == Family::Gemma3 {
        if full.is_none() && local.is_none() && parameters.is_some() && scaling.is_none() {
            return Err(
                "`rope_parameters` holds neither full_attention nor sliding_attention, so that one base would be taken \
                 for both kinds of layers; write an object for each"
                    .into(),
            );
        }
        let theta = fields.number("rope_theta", 1_000_000.0)?;
        let full = rope(fields, full.or(scaling).as_ref(), theta, max_positions)?;
        let theta = fields.number("rope_local_base_freq", 10_000.0)?;
        return Ok((full, Some(rope(fields, local.as_ref(), theta, max_positions)?)));
    }
    if let Some(nested) = full.or(local) {
        let (path, name) = (nested.path, family.name());
        return Err(format!(
            "`{path}` gives kinds of layers rotary positions of their own, which {name} has not: one would be taken for \
             all; write the fields into `rope_parameters` itself"
        ));
    }
    let theta = fields.number("rope_theta", 10_000.0)?;
    Ok((rope(fields, scaling.or(parameters).as_ref(), theta, max_positions)?, None))
}

/// Rotary positions as one object says, or plain ones where there is none; `theta` is for objects
/// without a base.
fn rope(
    fields: &Fields<'_>,
    object: Option<&Fields<'_>>,
    theta: f64,
    max_positions: usize,
) -> Result<Rope, String> {
    let Some(object) = object else { return Ok(Rope { theta, scaling: RopeScaling::None }) };
    let field = object.path.trim_end_matches('.');
    let theta = object.number("rope_theta", theta)?;
    let partial = object.number("partial_rotary_factor", 1.0)?;
    refuse_partial(partial, &format!("{}partial_rotary_factor", object.path))?;
    if object.get("mrope_section").is_some() {
        return Err(format!(
            "`{field}` has an mrope_section: positions of images, which are not computed; take a text model"
        ));
    }
    let kind = match object.get("rope_type").or_else(|| object.get("type")) {
        Some(kind) => kind.as_str().unwrap_or("no name"),
        None if object.get("factor").is_some() => {
            return Err(format!(
                "`{field}` has a `factor` but no `rope_type`: wavelengths would stay as they are; write the kind there"
            ));
        }
        None => "default",
    };
    // A model may keep the number outside; transformers then prefers that.
    let original_positions = || match fields.get("original_max_position_embeddings") {
        Some(_) => fields.size("original_max_position_embeddings"),
        None => object.size_or("original_max_position_embeddings", max_positions),
    };
    let scaling = match kind {
        "default" => RopeScaling::None,
        "linear" => RopeScaling::Linear { factor: object.needed_number("factor", kind)? },
        "llama3" => RopeScaling::Llama3 {
            factor: object.needed_number("factor", kind)?,
            low_frequency_factor: object.needed_number("low_freq_factor", kind)?,
            high_frequency_factor: object.needed_number("high_freq_factor", kind)?,
            original_positions: original_positions()?,
        },
        "yarn" => {
            let original_positions = original_positions()?;
            // transformers 5 takes the factor as it stands; some of version 4 took the quotient
            // even where it does.
            let factor = match object.value.get("factor") {
                Some(Value::Null) => max_positions as f64 / original_positions as f64,
                _ => object.needed_number("factor", kind)?,
            };
            RopeScaling::Yarn {
                factor,
                attention_factor: yarn_attention_factor(object, factor)?,
                beta_fast: object.number("beta_fast", 32.0)?,
                beta_slow: object.number("beta_slow", 1.0)?,
                original_positions,
                truncate: object.flag("truncate", true)?,
            }
        }
        other => {
            // Only these are plain ones as long as sequences are no longer than in training.
            let or_plain = match other {
                "dynamic" => ", or for sequences within `max_position_embeddings` remove the field",
                _ => "",
            };
            return Err(format!(
                "`{field}` asks for {other} positions; only default, linear, llama3 and yarn are computed, and others \
                 turn queries and keys otherwise: take a checkpoint with one of these{or_plain}"
            ));
        }
    };
    Ok(Rope { theta, scaling })
}

/// YaRN's factor of cosines and sines, where it is not given. Source: arXiv 2309.00071, equation 22.
fn yarn_attention_factor(object: &Fields<'_>, factor: f64) -> Result<f64, String> {
    if let Some(given) = object.maybe_number("attention_factor")? {
        return Ok(given);
    }
    let of = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
    let (scale, all) = (object.number("mscale", 0.0)?, object.number("mscale_all_dim", 0.0)?);
    Ok(if scale != 0.0 && all != 0.0 { of(scale) / of(all) } else { of(1.0) })
}

fn window(
    fields: &Fields<'_>,
    family: Family,
    num_layers: usize,
    rope: Option<Rope>,
) -> Result<Option<SlidingWindow>, String> {
    let positions = match fields.value.get("sliding_window") {
        None => Some(4096),
        Some(Value::Null) => None,
        Some(_) => Some(fields.size("sliding_window")?),
    };
    let of_family = match family {
        Family::Llama | Family::T5 | Family::Mt5 | Family::Umt5 => None,
        Family::Qwen2 | Family::Qwen3 => {
            let used = fields.flag("use_sliding_window", false)? && positions.is_some();
            // A layer number, so that 0 is one.
            let first = match fields.get("max_window_layers") {
                None => 28,
                Some(Value::Number(n)) if n.as_u64() == Some(0) => 0,
                Some(_) => fields.size("max_window_layers")?,
            };
            used.then_some(WindowLayers::From(first))
        }
        Family::Mistral => positions.map(|_| WindowLayers::From(0)),
        Family::Gemma3 => {
            let pattern = fields.size_or("sliding_window_pattern", 6)?;
            Some(WindowLayers::AllButEvery(pattern))
        }
    };
    let listed = listed_layers(fields, num_layers)?;
    if let (Some(listed), Family::Llama | Family::Mistral) = (&listed, family) {
        let same = |layer| of_family.as_ref().is_some_and(|of| of.contains(layer));
        if let Some(layer) = (0..num_layers).find(|&layer| listed[layer] != same(layer)) {
            let (kind, name) = (fields.value["layer_types"][layer].clone(), family.name());
            return Err(format!(
                "`layer_types` makes layer {layer} {kind}, but all layers of {name} are alike: it would see other \
                 positions than it was trained with; write what `sliding_window` says, or remove the field"
            ));
        }
    }
    let layers = match listed {
        Some(listed) => Some(WindowLayers::Listed(listed)),
        None => of_family,
    };
    let first = |layers: &WindowLayers| match layers {
        WindowLayers::From(first) => Some(*first),
        WindowLayers::AllButEvery(pattern) => (*pattern > 1).then_some(0),
        WindowLayers::Listed(listed) => listed.iter().position(|&sliding| sliding),
    };
    let Some(layers) = layers.filter(|of| first(of).is_some_and(|layer| layer < num_layers)) else {
        return Ok(None);
    };
    let used = match family {
        Family::Qwen2 | Family::Qwen3 => fields.flag("use_sliding_window", false)?,
        _ => true,
    };
    match positions.filter(|_| used) {
        Some(positions) => Ok(Some(SlidingWindow { positions, layers, rope })),
        None => Err(
            "layers of sliding_attention stand in `layer_types`, but `sliding_window` is null or not used: they would see \
             more positions than they were trained with; give the width, and `use_sliding_window` where the model has it"
                .into(),
        ),
    }
}

/// A value a layer of `layer_types`: true with a window.
fn listed_layers(fields: &Fields<'_>, num_layers: usize) -> Result<Option<Vec<bool>>, String> {
    let Some(list) = fields.get("layer_types") else { return Ok(None) };
    let kinds = list.as_array().map(|list| list.iter().map(Value::as_str).collect::<Vec<_>>());
    let Some(kinds) = kinds.filter(|kinds| kinds.iter().all(Option::is_some)) else {
        return Err(format!("`layer_types` is {list}; it must be a list of names"));
    };
    if kinds.len() != num_layers {
        return Err(format!(
            "`layer_types` names {} layers, `num_hidden_layers` is {num_layers}; name each layer once",
            kinds.len()
        ));
    }
    Ok(Some(kinds.into_iter().map(|kind| kind == Some("sliding_attention")).collect()))
}

/// The document of a configuration; `dtype` says how the weights beside it are stored.
fn write(config: &ModelConfig, dtype: &str) -> Value {
    let Architecture { family, activation, window, .. } = &config.architecture;
    if family.has_encoder() {
        return t5::write(config, dtype);
    }
    let mut document = json!({
        "architectures": [family.class()],
        "model_type": family.name(),
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": decimal(config.rms_norm_eps),
        "rope_theta": config.rope_theta,
        "tie_word_embeddings": config.tie_word_embeddings,
    });
    let act = match family {
        Family::Gemma3 => "hidden_activation",
        _ => "hidden_act",
    };
    document[act] = match activation {
        Activation::Silu => "silu".into(),
        Activation::GeluTanh => "gelu_pytorch_tanh".into(),
        Activation::Relu => "relu".into(),
    };
    document["attention_bias"] = config.architecture.attention_out_bias.into();
    document["attention_dropout"] = 0.0.into();
    if *family != Family::Gemma3 {
        document["use_sliding_window"] = window.is_some().into();
    }
    document["torch_dtype"] = dtype.into();
    let rope = |theta: f64, scaling: &RopeScaling| {
        let mut fields = scaling_fields(scaling);
        fields.insert("rope_theta".into(), theta.into());
        Value::Object(fields)
    };
    let full = rope(config.rope_theta, &config.architecture.rope_scaling);
    match family {
        Family::Gemma3 => {
            document["query_pre_attn_scalar"] = config.architecture.query_scalar.into();
            let local = window.as_ref().and_then(|window| window.rope.as_ref());
            let local = local
                .map_or(json!({"rope_type": "default", "rope_theta": 10_000.0}), |r| {
                    rope(r.theta, &r.scaling)
                });
            document["rope_parameters"] =
                json!({"full_attention": full, "sliding_attention": local});
        }
        _ if config.architecture.rope_scaling != RopeScaling::None => {
            document["rope_parameters"] = full;
        }
        _ => {}
    }
    match (window, family) {
        (Some(window), _) => {
            let kinds =
                (0..config.num_hidden_layers).map(|layer| match window.layers.contains(layer) {
                    true => "sliding_attention",
                    false => "full_attention",
                });
            document["layer_types"] = kinds.collect();
            document["sliding_window"] = window.positions.into();
        }
        // Absent, these two have a window.
        (None, Family::Mistral) => document["sliding_window"] = Value::Null,
        (None, Family::Gemma3) => document["sliding_window_pattern"] = 1.into(),
        (None, _) => {}
    }
    document
}

/// The number that a decimal of it means: as an f64, 1e-6 would be spelled 9.999999974752427e-7.
fn decimal(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(1e-6)
}

fn scaling_fields(scaling: &RopeScaling) -> Map<String, Value> {
    let fields = match scaling {
        RopeScaling::None => json!({"rope_type": "default"}),
        RopeScaling::Linear { factor } => json!({"rope_type": "linear", "factor": factor}),
        RopeScaling::Llama3 {
            factor,
            low_frequency_factor,
            high_frequency_factor,
            original_positions,
        } => json!({
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": low_frequency_factor,
            "high_freq_factor": high_frequency_factor,
            "original_max_position_embeddings": original_positions,
        }),
        RopeScaling::Yarn {
            factor,
            attention_factor,
            beta_fast,
            beta_slow,
            original_positions,
            truncate,
        } => json!({
            "rope_type": "yarn",
            "factor": factor,
            "attention_factor": attention_factor,
            "beta_fast": beta_fast,
            "beta_slow": beta_slow,
            "original_max_position_embeddings": original_positions,
            "truncate": truncate,
        }),
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests;
