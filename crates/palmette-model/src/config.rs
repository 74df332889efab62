//! The shape of a model: Hugging Face `config.json` of a Qwen3-family decoder.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::LoadError;

/// The sizes and constants of a Qwen3-family decoder, as in its `config.json`.
///
/// Letters used in this crate's shapes: T prompt tokens, B beams, D `hidden_size`, H
/// `num_attention_heads`, G `num_key_value_heads`, C `head_dim`, F `intermediate_size`, V
/// `vocab_size`.
///
/// [`read`](Self::read) and [`from_bytes`](Self::from_bytes) give a configuration that obeys
/// [`check`](Self::check). The fields are public and the derived `Deserialize` (of this struct's own
/// form, for programs that keep it beside other data) checks nothing: call `check` on a
/// configuration made in either way before using it. [`Model::from_bytes`](crate::Model::from_bytes)
/// does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// V: entries in the vocabulary, and logits per position.
    pub vocab_size: usize,
    /// D: width of the residual stream.
    pub hidden_size: usize,
    /// F: width of the gated feed-forward layer.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// H: query heads.
    pub num_attention_heads: usize,
    /// G: key/value heads; H is a multiple of G.
    pub num_key_value_heads: usize,
    /// C: width of one head; even, since rotary positions turn pairs.
    pub head_dim: usize,
    /// The longest sequence, prompt and generated tokens together.
    pub max_position_embeddings: usize,
    /// Added to the mean square in every RMS norm.
    pub rms_norm_eps: f32,
    /// Base of the rotary wavelengths.
    pub rope_theta: f64,
    /// Whether the output head reuses the embedding matrix.
    pub tie_word_embeddings: bool,
}

impl ModelConfig {
    /// Reads `config.json` of a model directory.
    ///
    /// # Errors
    /// When the file cannot be read, a field is missing or outside its range, or the file asks for
    /// something that is not computed here (another architecture, scaled rotary positions, sliding
    /// windows, attention biases, another activation): ignoring such a field would give wrong logits.
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

    fn from_json(value: &Value) -> Result<Self, String> {
        refuse_unsupported(value)?;
        let size = |name: &str| -> Result<usize, String> {
            match value.get(name).map(Value::as_u64) {
                Some(Some(n)) if (1..=1 << 31).contains(&n) => Ok(n as usize),
                Some(_) => {
                    let found = &value[name];
                    Err(format!(
                        "`{name}` is {found}; a positive whole number up to 2^31 is needed"
                    ))
                }
                None => Err(format!("`{name}` is missing")),
            }
        };
        let num_attention_heads = size("num_attention_heads")?;
        let hidden_size = size("hidden_size")?;
        let optional = |name: &str, default: usize| match value.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(_) => size(name),
        };
        let config = Self {
            vocab_size: size("vocab_size")?,
            hidden_size,
            intermediate_size: size("intermediate_size")?,
            num_hidden_layers: size("num_hidden_layers")?,
            num_attention_heads,
            num_key_value_heads: optional("num_key_value_heads", num_attention_heads)?,
            head_dim: optional("head_dim", hidden_size / num_attention_heads)?,
            max_position_embeddings: size("max_position_embeddings")?,
            rms_norm_eps: number(value, "rms_norm_eps")?.unwrap_or(1e-6) as f32,
            rope_theta: rope_theta(value)?,
            tie_word_embeddings: value["tie_word_embeddings"].as_bool().unwrap_or(false),
        };
        config.check()?;
        Ok(config)
    }

    /// Checks what the layers rely on: every size is at least 1, heads come in whole groups, a
    /// head's width is even, the two constants are in range, and the bytes of every weight can be
    /// counted.
    ///
    /// # Errors
    /// A sentence naming the fields and the rule they break.
    pub fn check(&self) -> Result<(), String> {
        let vocab = ("vocab_size", self.vocab_size);
        let hidden = ("hidden_size", self.hidden_size);
        let inner = ("intermediate_size", self.intermediate_size);
        let query_heads = ("num_attention_heads", self.num_attention_heads);
        let head_dim = ("head_dim", self.head_dim);
        let more = [
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_key_value_heads", self.num_key_value_heads),
            ("max_position_embeddings", self.max_position_embeddings),
        ];
        let sizes = [vocab, hidden, inner, query_heads, head_dim].into_iter().chain(more);
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(format!("`{name}` is 0; it must be at least 1"));
        }
        for factors in [&[vocab, hidden][..], &[inner, hidden], &[query_heads, head_dim, hidden]] {
            check_weight_size(factors)?;
        }
        let (heads, groups) = (self.num_attention_heads, self.num_key_value_heads);
        if !heads.is_multiple_of(groups) {
            return Err(format!(
                "`num_attention_heads` is {heads}, which is not a multiple of `num_key_value_heads`, {groups}"
            ));
        }
        if !self.head_dim.is_multiple_of(2) {
            return Err(format!(
                "`head_dim` is {}; rotary positions need an even number",
                self.head_dim
            ));
        }
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps >= 0.0) {
            return Err(format!("`rms_norm_eps` is {}; it cannot be negative", self.rms_norm_eps));
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 0.0) {
            return Err(format!("`rope_theta` is {}; it must be positive", self.rope_theta));
        }
        Ok(())
    }

    /// H · C: values of one position's queries. No overflow in a [checked](Self::check) shape.
    pub fn query_width(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// G · C: values of one position's keys, and of its values. No overflow in a
    /// [checked](Self::check) shape.
    pub fn key_value_width(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }

    /// The document written as `config.json`, complete enough for Hugging Face `transformers`.
    ///
    /// `dtype` names how the weights beside it are stored: `float32`, `bfloat16` or `float16`.
    pub fn to_hugging_face(&self, dtype: &str) -> Value {
        serde_json::json!({
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "max_position_embeddings": self.max_position_embeddings,
            // Both through a decimal: f32 → f64 would spell 1e-6 as 9.999999974752427e-7.
            "rms_norm_eps": self.rms_norm_eps.to_string().parse::<f64>().unwrap_or(1e-6),
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": self.tie_word_embeddings,
            "hidden_act": "silu",
            "attention_bias": false,
            "attention_dropout": 0.0,
            "use_sliding_window": false,
            "torch_dtype": dtype,
        })
    }
}

/// Whether the bytes of weights of this many f32 can be counted. Up to three such matrices are kept
/// as one: queries, keys and values.
fn check_weight_size(factors: &[(&str, usize)]) -> Result<(), String> {
    const MATRICES: usize = 3;
    let bytes = factors
        .iter()
        .try_fold(MATRICES * size_of::<f32>(), |bytes, (_, size)| bytes.checked_mul(*size));
    if bytes.is_some_and(|bytes| isize::try_from(bytes).is_ok()) {
        return Ok(());
    }
    let product: Vec<String> =
        factors.iter().map(|(name, size)| format!("`{name}` ({size})")).collect();
    Err(format!("a weight of {} values is more than memory can hold", product.join(" × ")))
}

fn number(value: &Value, name: &str) -> Result<Option<f64>, String> {
    match value.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(v) => v.as_f64().map(Some).ok_or_else(|| format!("`{name}` is {v}, not a number")),
    }
}

/// `rope_theta` stands at the top level in older files and in `rope_parameters` in newer ones.
fn rope_theta(value: &Value) -> Result<f64, String> {
    if let Some(nested) = value.get("rope_parameters").filter(|v| !v.is_null())
        && let Some(theta) = number(nested, "rope_theta")?
    {
        return Ok(theta);
    }
    Ok(number(value, "rope_theta")?.unwrap_or(10_000.0))
}

fn refuse_unsupported(value: &Value) -> Result<(), String> {
    let model_type = value["model_type"].as_str().unwrap_or("absent");
    if model_type != "qwen3" {
        return Err(format!("`model_type` is {model_type}; only qwen3 can be read"));
    }
    if let Some(act) = value["hidden_act"].as_str().filter(|a| *a != "silu") {
        return Err(format!("`hidden_act` is {act}; only silu is computed"));
    }
    for name in ["attention_bias", "use_sliding_window"] {
        if value[name].as_bool() == Some(true) {
            return Err(format!("`{name}` is true, which is not computed"));
        }
    }
    let sliding = value["layer_types"].as_array().into_iter().flatten();
    if let Some(kind) = sliding.filter_map(Value::as_str).find(|k| *k != "full_attention") {
        return Err(format!("`layer_types` holds {kind}; only full_attention is computed"));
    }
    for name in ["rope_scaling", "rope_parameters"] {
        let scaling = &value[name];
        let kind = scaling["rope_type"].as_str().or_else(|| scaling["type"].as_str());
        if let Some(kind) = kind.filter(|k| *k != "default") {
            return Err(format!("`{name}` asks for {kind} positions; only default is computed"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny() -> Value {
        serde_json::json!({
            "model_type": "qwen3", "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 16, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
            "rope_theta": 1_000_000.0, "tie_word_embeddings": true
        })
    }

    #[test]
    fn written_config_reads_back() {
        let config = ModelConfig::from_json(&tiny()).unwrap();
        let again = ModelConfig::from_json(&config.to_hugging_face("float32")).unwrap();
        assert_eq!(config, again);
    }

    #[test]
    fn nested_rope_theta_wins() {
        let mut value = tiny();
        value["rope_parameters"] = serde_json::json!({"rope_type": "default", "rope_theta": 500.0});
        assert_eq!(ModelConfig::from_json(&value).unwrap().rope_theta, 500.0);
    }

    #[test]
    fn what_is_not_computed_is_refused_by_name() {
        for (field, bad, word) in [
            ("model_type", serde_json::json!("llama"), "qwen3"),
            ("hidden_act", serde_json::json!("gelu"), "silu"),
            ("attention_bias", serde_json::json!(true), "attention_bias"),
            ("rope_scaling", serde_json::json!({"rope_type": "yarn"}), "yarn"),
            ("layer_types", serde_json::json!(["sliding_attention"]), "full_attention"),
            ("num_key_value_heads", serde_json::json!(3), "multiple"),
            ("head_dim", serde_json::json!(7), "even"),
            ("vocab_size", serde_json::json!(-4), "positive"),
        ] {
            let mut value = tiny();
            value[field] = bad;
            let reason = ModelConfig::from_json(&value).unwrap_err();
            assert!(reason.contains(word), "{field}: {reason}");
        }
    }

    #[test]
    fn no_size_may_be_zero() {
        let sizes = tiny();
        let sizes = sizes.as_object().unwrap().iter().filter(|(_, value)| value.is_u64());
        let mut count = 0;
        for (field, _) in sizes {
            // Past `from_json`, as a program that fills in the public fields.
            let config = ModelConfig::from_json(&tiny()).unwrap();
            let mut value = serde_json::to_value(config).unwrap();
            value[field] = 0.into();
            let config: ModelConfig = serde_json::from_value(value).unwrap();
            let reason = config.check().unwrap_err();
            assert!(reason.contains(&format!("`{field}` is 0")), "{field}: {reason}");
            count += 1;
        }
        assert_eq!(count, 8, "every size");
    }

    #[test]
    fn sizes_whose_product_overflows_are_named() {
        let huge = 1_u64 << 31;
        for fields in [
            &["vocab_size", "hidden_size"][..],
            &["intermediate_size", "hidden_size"],
            &["num_attention_heads", "head_dim", "hidden_size"],
        ] {
            let mut value = tiny();
            for field in fields {
                value[field] = huge.into();
            }
            let reason = ModelConfig::from_json(&value).unwrap_err();
            assert!(reason.contains("more than memory can hold"), "{reason}");
            assert!(fields.iter().all(|field| reason.contains(field)), "{fields:?}: {reason}");
        }
    }
}
