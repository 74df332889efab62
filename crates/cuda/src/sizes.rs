//! Sizes of a model as the kernels compute it, and what they do not compute.

use palmette_model::kernels::{Activation, Int8Matrix};
use palmette_model::{Family, ModelConfig};

use crate::error::CudaError;

/// Widths of a decoder whose layers the kernels compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// L: decoder layers.
    pub(crate) layers: usize,
    /// D: width of the residual stream.
    pub(crate) hidden: usize,
    /// F: width of the feed-forward part.
    pub(crate) inner: usize,
    /// H: query heads.
    pub(crate) heads: usize,
    /// G: key heads.
    pub(crate) key_heads: usize,
    /// C: width of a head.
    pub(crate) head_width: usize,
    /// V: tokens.
    pub(crate) vocab: usize,
}

impl Sizes {
    /// Sizes of a configuration.
    ///
    /// # Errors
    /// When the kernels do not compute it: the message says what of it.
    pub(crate) fn of(config: &ModelConfig) -> Result<Self, CudaError> {
        let of = &config.architecture;
        let refuse = |what: &str| {
            Err(CudaError::Unsupported { family: family_name(of.family), what: what.to_owned() })
        };
        if of.encoder.is_some() {
            return refuse("an encoder");
        }
        if of.norms_after || of.norm_offset != 0.0 {
            return refuse("norms after attention, or whose weights have an offset");
        }
        if of.window.is_some() {
            return refuse("a sliding window");
        }
        if of.attention_out_bias {
            return refuse("a bias of what attention gives");
        }
        if !of.gated_mlp || of.activation != Activation::Silu {
            return refuse("a feed-forward part other than gated SiLU");
        }
        if of.logit_scale != 1.0 {
            return refuse("a factor of logits");
        }
        let sizes = Self {
            layers: config.num_hidden_layers,
            hidden: config.hidden_size,
            inner: config.intermediate_size,
            heads: config.num_attention_heads,
            key_heads: config.num_key_value_heads,
            head_width: config.head_dim,
            vocab: config.vocab_size,
        };
        if ![64, 128].contains(&sizes.head_width) {
            return refuse(&format!("heads of width {}, which is not 64 or 128", sizes.head_width));
        }
        let widths = [("hidden_size", sizes.hidden), ("intermediate_size", sizes.inner)];
        if let Some((name, width)) = widths.into_iter().find(|(_, width)| width % 64 != 0) {
            return refuse(&format!("`{name}` {width}, which is no multiple of 64"));
        }
        Ok(sizes)
    }

    /// Checks that products in 8 bits compute it as the processor does.
    ///
    /// # Errors
    /// When a sum of integers might exceed 32 bits.
    pub(crate) fn check_int8(&self, family: Family) -> Result<(), CudaError> {
        let (most, widths) = (Int8Matrix::MAX_DEPTH, [self.hidden, self.query_width(), self.inner]);
        match widths.into_iter().find(|&width| width > most) {
            None => Ok(()),
            Some(width) => {
                let what = format!("weights in 8 bits of width {width}, which is over {most},");
                Err(CudaError::Unsupported { family: family_name(family), what })
            }
        }
    }

    /// H · C.
    pub(crate) fn query_width(&self) -> usize {
        self.heads * self.head_width
    }

    /// (H + 2 G) · C: queries, keys and values of a row.
    pub(crate) fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.key_heads) * self.head_width
    }

    /// Values of a token's keys, and of its values, in one layer.
    pub(crate) fn key_width(&self) -> usize {
        self.key_heads * self.head_width
    }
}

/// Parts into which the sums of a product are cut, `[n, k]` its weights: so many that a few rows
/// keep a device busy. They depend on the matrix alone, so that a row's bits do not depend on its
/// batch.
pub(crate) fn runs(n: usize, k: usize) -> usize {
    let mut runs = 1;
    while 2 * n.div_ceil(128) * runs < 128
        && k.is_multiple_of(2 * runs * 64)
        && k / (2 * runs) >= 256
    {
        runs *= 2;
    }
    runs
}

pub(crate) fn family_name(family: Family) -> String {
    serde_json::to_value(family)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_else(|| format!("{family:?}"))
}

#[cfg(test)]
mod tests {
    use palmette_model::Family;

    use super::{Sizes, runs};

    #[test]
    fn sums_of_integers_beyond_32_bits_are_refused_by_their_width() {
        let [layers, hidden, heads, key_heads, vocab] = [1, 1024, 8, 8, 9];
        let of = |inner| Sizes { layers, hidden, inner, heads, key_heads, head_width: 128, vocab };
        assert!(of(66_240).check_int8(Family::Qwen3).is_ok());
        let error = of(66_368).check_int8(Family::Qwen3).unwrap_err().to_string();
        assert!(error.contains("width 66368, which is over 66311"), "{error}");
    }

    /// Qwen3-1.7B and 0.6B: qkv, o, down.
    #[test]
    fn runs_depend_on_the_matrix_alone() {
        assert_eq!([(4096, 2048), (2048, 2048), (2048, 6144)].map(|(n, k)| runs(n, k)), [2, 4, 4]);
        assert_eq!([(4096, 1024), (1024, 2048), (1024, 3072)].map(|(n, k)| runs(n, k)), [2, 8, 8]);
        assert_eq!([runs(64, 64), runs(64, 192), runs(100, 512)], [1, 1, 2]);
    }
}
