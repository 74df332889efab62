//! The shape of a model: sizes, constants and the row of the table of architectures.

use serde::{Deserialize, Serialize};

use crate::architecture::Architecture;

/// The sizes and constants of a model, as in its `config.json`, and its architecture. An encoder
/// has the decoder's widths.
///
/// Letters used in this crate's shapes: T prompt tokens, B beams, D `hidden_size`, H
/// `num_attention_heads`, G `num_key_value_heads`, C `head_dim`, F `intermediate_size`, V
/// `vocab_size`.
///
/// [`read`](Self::read) and [`from_bytes`](Self::from_bytes) give a configuration that obeys
/// [`check`](Self::check). The fields are public and the derived `Deserialize` (of this struct's
/// own form, for programs that keep it beside other data) checks nothing: call `check` on a
/// configuration made in either way before using it.
/// [`Model::from_bytes`](crate::Model::from_bytes) does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// V: entries in the vocabulary, and logits per position.
    pub vocab_size: usize,
    /// D: width of the residual stream.
    pub hidden_size: usize,
    /// F: width of the feed-forward part.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// H: query heads.
    pub num_attention_heads: usize,
    /// G: key/value heads; H is a multiple of G.
    pub num_key_value_heads: usize,
    /// C: width of one head; even where rotary positions turn pairs.
    pub head_dim: usize,
    /// The longest sequence, prompt and generated tokens together; with relative positions there is
    /// none, and this is 2^31.
    pub max_position_embeddings: usize,
    /// Added to the mean square in every RMS norm.
    pub rms_norm_eps: f32,
    /// Base of the rotary wavelengths; layers with a sliding window may have their own. Unused with
    /// relative positions.
    pub rope_theta: f64,
    /// True where the output head reuses the embedding matrix. In an encoder–decoder it does as
    /// well where this is false and there is no head of its own.
    pub tie_word_embeddings: bool,
    /// The differences from plain Qwen3.
    #[serde(default, skip_serializing_if = "is_plain")]
    pub architecture: Architecture,
}

/// True where a form that was written before there were other architectures says all.
fn is_plain(architecture: &Architecture) -> bool {
    *architecture == Architecture::default()
}

impl ModelConfig {
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
        if self.architecture.relative_positions.is_none() && !self.head_dim.is_multiple_of(2) {
            return Err(format!(
                "`head_dim` is {}; rotary positions need an even number",
                self.head_dim
            ));
        }
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps >= 0.0) {
            return Err(format!("`rms_norm_eps` is {}; it cannot be negative", self.rms_norm_eps));
        }
        self.architecture.check(self.rope_theta, self.num_hidden_layers)?;
        if let Some(by) = &self.architecture.relative_positions {
            check_weight_size(&[("relative_attention_num_buckets", by.num_buckets), query_heads])?;
        }
        match &self.architecture.encoder {
            Some(encoder) if encoder.start_token as usize >= self.vocab_size => Err(format!(
                "`decoder_start_token_id` is {}, which the vocabulary of {} does not have",
                encoder.start_token, self.vocab_size
            )),
            _ => Ok(()),
        }
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
}

/// Fails unless the bytes of weights of this many f32 can be counted. Up to three such matrices are
/// kept as one: queries, keys and values.
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

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
