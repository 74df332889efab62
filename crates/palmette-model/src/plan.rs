//! What a session will hold, counted before any of it is taken.

use bytemuck::Zeroable;
use palmette_core::TokenId;

use crate::attention::QUERY_ROWS;
use crate::blocks::MAX_BLOCK_ROWS;
use crate::config::ModelConfig;
use crate::kernels::PANEL;

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

/// What a session is planned for: its options, and the most beams of each pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) options: SessionOptions,
    /// Where they are not the same in every pass: one number a pass, the largest of them the options'.
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

    /// Most beams of each pass.
    pub(crate) fn beams(&self) -> impl Iterator<Item = usize> {
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
/// Letters as in [`ModelConfig`], P [`max_decode_passes`](SessionOptions::max_decode_passes), and S the beams of all
/// passes together, P · B where each has as many.
/// The model's weights are not included, nor the packing space of matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedBytes {
    /// Keys and values of the prompt, once for all beams: 4 · layers · (G·C · T₁₆ + G·C₁₆ · T), where n₁₆ is n
    /// rounded up to a multiple of 16.
    pub prompt_cache: usize,
    /// Keys and values of the beams' own tokens, 8 · layers · S · G·C, and where each beam's
    /// lie, 8 · P · B + 8 · (P + 1).
    pub beam_cache: usize,
    /// The rows of a pass between layers and the prompt's last, and for each of `threads` a block of
    /// R = min(192, max(T, B)) rows within one:
    /// 4 · (max(T, B) + 1) · D + 4 · threads · R · (D + 2 H·C + 2 G·C + F). No more threads count than there are rows.
    pub activations: usize,
    /// Attention scores of one head, for each thread: 4 · threads · min(24, R) · (T + P).
    pub scores: usize,
    /// Logits of one pass: 4 · max(B, 1) · V.
    pub logits: usize,
    /// The prompt's tokens and the rotary angles: 4 · T + 4 · C · (T + P), the latter twice where layers with a sliding
    /// window have positions of their own.
    pub positions: usize,
}

impl PlannedBytes {
    /// `None` when there are more bytes than an address can count.
    pub(crate) fn count(config: &ModelConfig, plan: &Plan<'_>) -> Option<Self> {
        const FLOAT: usize = size_of::<f32>();
        let SessionOptions { max_prompt_tokens: t, max_beams: b, max_decode_passes: p, .. } =
            plan.options;
        let (layers, c, vocab) = (config.num_hidden_layers, config.head_dim, config.vocab_size);
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let kv = product(&[config.num_key_value_heads, c])?;
        let rows = t.max(b);
        let workspaces = workspaces(&plan.options);
        let block = MAX_BLOCK_ROWS.min(rows);
        let widths = [d, product(&[2, config.num_attention_heads, c])?, product(&[2, kv])?, f];
        let whole = product(&[FLOAT, rows.checked_add(1)?, d])?;
        let blocks = product(&[FLOAT, workspaces, block, sum(&widths)?])?;
        let panelled = |n: usize| n.checked_next_multiple_of(PANEL);
        let keys = product(&[kv, panelled(t)?])?;
        let values = product(&[config.num_key_value_heads, panelled(c)?, t])?;
        let own_cache = product(&[2 * FLOAT, plan.slots()?, layers, kv])?;
        let ancestors = product(&[2 * size_of::<u32>(), p, b])?;
        let first_slots = product(&[size_of::<usize>(), p.checked_add(1)?])?;
        let tokens = product(&[size_of::<TokenId>(), t])?;
        let tables = config.architecture.num_rope_tables();
        let angles = product(&[FLOAT, tables, c, t.checked_add(p)?])?;
        let planned = Self {
            prompt_cache: product(&[FLOAT, layers, sum(&[keys, values])?])?,
            beam_cache: sum(&[own_cache, ancestors, first_slots])?,
            activations: sum(&[whole, blocks])?,
            scores: product(&[FLOAT, workspaces, QUERY_ROWS.min(block), t.checked_add(p)?])?,
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

/// Workspaces of a session: one a thread, as far as there are rows for them.
pub(crate) fn workspaces(options: &SessionOptions) -> usize {
    options.threads.clamp(1, options.max_prompt_tokens.max(options.max_beams).max(1))
}

/// The product, multiplied from the left; `None` when that overflows on the way.
pub(crate) fn product(factors: &[usize]) -> Option<usize> {
    factors.iter().try_fold(1_usize, |product, &factor| product.checked_mul(factor))
}

pub(crate) fn sum(parts: &[usize]) -> Option<usize> {
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
