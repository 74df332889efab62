//! Plans of sessions: their contents, counted before any of it is taken.

use palmette_core::TokenId;

use crate::allocation::{product, sum};
use crate::attention::QUERY_ROWS;
use crate::blocks::MAX_BLOCK_ROWS;
use crate::config::ModelConfig;
use crate::encoder_decoder::num_bias_values;
use crate::kernels::PANEL;
use crate::prompt_store::PromptStore;

/// Capacity of a session, from which its memory is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// T: most tokens in a prompt, the encoder's where there is one.
    pub max_prompt_tokens: usize,
    /// B: most beams in a decode pass.
    pub max_beams: usize,
    /// Largest number of decode passes after a prompt. A search of L levels takes L − 1.
    pub max_decode_passes: usize,
    /// Largest number of rayon workers at once, 0 as 1. Results do not depend on it.
    pub threads: usize,
}

/// Plan of a session: its options, and the most beams of each pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) options: SessionOptions,
    /// Largest number of beams of each pass, where passes differ; the largest is the options'.
    beams: Option<&'a [usize]>,
}

impl<'a> Plan<'a> {
    pub(crate) fn even(options: SessionOptions) -> Self {
        Self { options, beams: None }
    }

    pub(crate) fn of_passes(max_prompt_tokens: usize, beams: &'a [usize], threads: usize) -> Self {
        let max_beams = beams.iter().copied().max().unwrap_or(0);
        let options = SessionOptions {
            max_prompt_tokens,
            max_beams,
            max_decode_passes: beams.len(),
            threads,
        };
        Self { options, beams: Some(beams) }
    }

    /// Largest number of beams of each pass.
    pub(crate) fn beams(&self) -> impl ExactSizeIterator<Item = usize> {
        let SessionOptions { max_beams, max_decode_passes, .. } = self.options;
        (0..max_decode_passes).map(move |pass| self.beams.map_or(max_beams, |beams| beams[pass]))
    }

    /// Slots of all passes; `None` when there are more than can be counted.
    fn slots(&self) -> Option<usize> {
        match self.beams {
            Some(beams) => sum(beams),
            None => product(&[self.options.max_decode_passes, self.options.max_beams]),
        }
    }
}

/// The bytes of a session's buffers, by what they hold: what
/// [`Session::new`](crate::Session::new) takes.
///
/// Letters as in [`ModelConfig`], P [`max_decode_passes`](SessionOptions::max_decode_passes), and S
/// the beams of all passes together, P · B where each has as many. The model's weights are not
/// included, nor the packing space of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedBytes {
    /// Keys and values of the prompt, once for all beams: 4 · layers · (G·C · T₁₆ + G·C₁₆ · T),
    /// where n₁₆ is n rounded up to a multiple of 16. Where an encoder reads the prompt, one more
    /// layer's, and the start token's beside.
    pub prompt_cache: usize,
    /// Keys and values of the beams' own tokens, 8 · layers · S · G·C, and where each beam's
    /// lie, 8 · P · B + 8 · (P + 1).
    pub beam_cache: usize,
    /// The rows of a pass between layers and the prompt's last, and for each of `threads` a block
    /// of R = min(192, max(T, B)) rows within one: 4 · (max(T, B) + 1) · D + 4 · threads · R · (D +
    /// 2 H·C + 2 G·C + F). No more threads count than there are rows. With an encoder its rows and
    /// the decoder's are apart: T + max(1, B) + 1 of them.
    pub activations: usize,
    /// Attention scores of one head, for each thread: 4 · threads · min(24, R) · (T + P); with an
    /// encoder max(T, 1 + P).
    pub scores: usize,
    /// Logits of one pass: 4 · max(B, 1) · V.
    pub logits: usize,
    /// The prompt's tokens, the numbers of a store's pages that they are in, and the rotary angles:
    /// 4 · T + 4 · ⌊T / 16⌋ + 4 · C · (T + P), the last twice where layers with a sliding window
    /// have positions of their own. With an encoder the start token,
    /// and instead of angles the biases of distances, for n = T and for n = 1 + P each 4 · H · (2 n
    /// − 1), times the layers where each has its own.
    pub positions: usize,
}

impl PlannedBytes {
    /// `None` when there are more bytes than an address can count.
    pub(crate) fn count(config: &ModelConfig, plan: &Plan<'_>) -> Option<Self> {
        const FLOAT: usize = size_of::<f32>();
        let SessionOptions { max_prompt_tokens: t, max_beams: b, max_decode_passes: p, .. } =
            plan.options;
        let (layers, c, vocab) = (config.num_hidden_layers, config.head_dim, config.vocab_size);
        let (d, f, heads) =
            (config.hidden_size, config.intermediate_size, config.num_attention_heads);
        let kv = product(&[config.num_key_value_heads, c])?;
        let workspaces = workspaces(&plan.options);
        let block = MAX_BLOCK_ROWS.min(t.max(b));
        let widths = [d, product(&[2, heads, c])?, product(&[2, kv])?, f];
        let blocks = product(&[FLOAT, workspaces, block, sum(&widths)?])?;
        let panelled = |n: usize| n.checked_next_multiple_of(PANEL);
        let cache = |layers: usize, tokens: usize| {
            let keys = product(&[kv, panelled(tokens)?])?;
            let values = product(&[config.num_key_value_heads, panelled(c)?, tokens])?;
            product(&[FLOAT, layers, sum(&[keys, values])?])
        };
        // Of the decoder alone: what an encoder has comes after.
        let own_tokens = decoder_prompt_tokens(config, t);
        let own_positions = own_tokens.checked_add(p)?;
        let own_cache = product(&[2 * FLOAT, plan.slots()?, layers, kv])?;
        let ancestors = product(&[2 * size_of::<u32>(), p, b])?;
        let first_slots = product(&[size_of::<usize>(), p.checked_add(1)?])?;
        let tables = config.architecture.num_rope_tables();
        let mut planned = Self {
            prompt_cache: cache(layers, own_tokens)?,
            beam_cache: sum(&[own_cache, ancestors, first_slots])?,
            activations: sum(&[product(&[FLOAT, own_tokens.max(b).checked_add(1)?, d])?, blocks])?,
            scores: product(&[FLOAT, workspaces, score_places(config, &plan.options)?])?,
            logits: product(&[FLOAT, b.max(1), vocab])?,
            positions: sum(&[
                product(&[size_of::<TokenId>(), own_tokens])?,
                product(&[size_of::<u32>(), own_tokens / PromptStore::PAGE_TOKENS])?,
                product(&[FLOAT, tables, c, own_positions])?,
            ])?,
        };
        if let Some(by) = &config.architecture.relative_positions {
            let biases = num_bias_values(by, layers, heads, own_positions)?;
            planned.positions = sum(&[planned.positions, product(&[FLOAT, biases])?])?;
        }
        if let Some(encoder) = &config.architecture.encoder {
            let read = cache(layers.checked_add(1)?, t)?;
            planned.prompt_cache = sum(&[planned.prompt_cache, read])?;
            planned.activations = sum(&[planned.activations, product(&[FLOAT, t, d])?])?;
            let tokens = product(&[size_of::<TokenId>(), t])?;
            planned.positions = sum(&[planned.positions, tokens])?;
            if let Some(by) = &config.architecture.relative_positions {
                let biases = num_bias_values(by, encoder.num_layers, heads, t)?;
                planned.positions = sum(&[planned.positions, product(&[FLOAT, biases])?])?;
            }
        }
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

/// Workspaces of a session: one a thread, as far as there are rows for them.
pub(crate) fn workspaces(options: &SessionOptions) -> usize {
    options.threads.clamp(1, options.max_prompt_tokens.max(options.max_beams).max(1))
}

/// Tokens that the decoder reads before beams go on: the prompt, or the start token where an
/// encoder reads that.
pub(crate) fn decoder_prompt_tokens(config: &ModelConfig, prompt_tokens: usize) -> usize {
    if config.architecture.encoder.is_some() { 1 } else { prompt_tokens }
}

/// Places for the scores of one head in a workspace; `None` when there are more than can be
/// counted.
pub(crate) fn score_places(config: &ModelConfig, options: &SessionOptions) -> Option<usize> {
    let SessionOptions { max_prompt_tokens: t, max_beams: b, max_decode_passes: p, .. } = *options;
    let own = decoder_prompt_tokens(config, t).checked_add(p)?;
    product(&[QUERY_ROWS.min(t.max(b)), own.max(t)])
}
