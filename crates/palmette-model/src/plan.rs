//! What a session will hold, counted before any of it is taken.

use bytemuck::Zeroable;
use palmette_core::TokenId;

use crate::attention;
use crate::config::ModelConfig;

/// How much a session must be able to hold; its memory is planned from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// T: most tokens in a prompt.
    pub max_prompt_tokens: usize,
    /// B: most beams in a decode pass.
    pub max_beams: usize,
    /// Most decode passes after a prompt. A search of L levels takes L − 1.
    pub max_decode_passes: usize,
    /// Most rayon workers to use at once, 0 as 1; results do not depend on it.
    pub threads: usize,
}

/// The bytes of a session's buffers, by what they hold: what
/// [`Session::new`](crate::Session::new) takes.
///
/// Letters as in [`ModelConfig`], and P [`max_decode_passes`](SessionOptions::max_decode_passes).
/// The model's weights are not included, nor the packing space of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedBytes {
    /// Keys and values of the prompt, once for all beams: 8 · layers · T · G·C.
    pub prompt_cache: usize,
    /// Keys and values of the beams' own tokens, 8 · layers · P · B · G·C, and where each beam's
    /// lie, 8 · P · B.
    pub beam_cache: usize,
    /// The rows of a pass between and within layers: 4 · max(T, B) · (2 D + 3 H·C + 2 G·C + 3 F).
    pub activations: usize,
    /// Attention scores of all heads: 4 · H · max(min(64, T) · T, B · (T + P)).
    pub scores: usize,
    /// Logits of one pass: 4 · max(B, 1) · V.
    pub logits: usize,
    /// The prompt's tokens and the rotary angles: 4 · T + 4 · C · (T + P).
    pub positions: usize,
}

impl PlannedBytes {
    /// `None` when there are more bytes than an address can count.
    pub(crate) fn count(config: &ModelConfig, options: &SessionOptions) -> Option<Self> {
        const FLOAT: usize = size_of::<f32>();
        let SessionOptions { max_prompt_tokens: t, max_beams: b, max_decode_passes: p, .. } =
            *options;
        let (layers, c, vocab) = (config.num_hidden_layers, config.head_dim, config.vocab_size);
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let kv = product(&[config.num_key_value_heads, c])?;
        let row = [
            product(&[2, d])?,
            product(&[3, config.num_attention_heads, c])?,
            product(&[2, kv])?,
            product(&[3, f])?,
        ];
        let slots = product(&[p, b])?;
        let own_cache = product(&[2 * FLOAT, slots, layers, kv])?;
        let ancestors = product(&[2 * size_of::<u32>(), slots])?;
        let tokens = product(&[size_of::<TokenId>(), t])?;
        let angles = product(&[FLOAT, c, t.checked_add(p)?])?;
        let planned = Self {
            prompt_cache: product(&[2 * FLOAT, layers, t, kv])?,
            beam_cache: sum(&[own_cache, ancestors])?,
            activations: product(&[FLOAT, sum(&row)?, t.max(b)])?,
            scores: product(&[
                FLOAT,
                attention::score_places(config.num_attention_heads, options)?,
            ])?,
            logits: product(&[FLOAT, b.max(1), vocab])?,
            positions: sum(&[tokens, angles])?,
        };
        isize::try_from(sum(&planned.parts())?).is_ok().then_some(planned)
    }

    /// All parts together.
    pub fn total(&self) -> usize {
        self.parts().into_iter().fold(0, usize::saturating_add)
    }

    fn parts(&self) -> [usize; 6] {
        let Self { prompt_cache, beam_cache, activations, scores, logits, positions } = *self;
        [prompt_cache, beam_cache, activations, scores, logits, positions]
    }
}

/// The product, multiplied from the left; `None` when that overflows on the way.
pub(crate) fn product(factors: &[usize]) -> Option<usize> {
    factors.iter().try_fold(1_usize, |product, &factor| product.checked_mul(factor))
}

fn sum(parts: &[usize]) -> Option<usize> {
    parts.iter().try_fold(0_usize, |sum, &part| sum.checked_add(part))
}

/// `len` zeros; `None` where there is not the memory for them.
///
/// PERF: pages come from the system zeroed and are not written here, so that what a plan has beyond
/// a request's use costs nothing. Reserving and filling a `Vec` instead: a plan of 8192 beams of
/// which 2048 were used took 176 ms from `Session::new` to the second pass, not 121.
pub(crate) fn zeroed<T: Zeroable>(len: usize) -> Option<Vec<T>> {
    bytemuck::try_zeroed_vec(len).ok()
}
