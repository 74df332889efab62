//! One sequence and its beams through a model: the caches and buffers, planned once.

use palmette_core::TokenId;
use palmette_decode::{DecodeError, LogitsSource};

use crate::attention::{self, BeamKeyValues};
use crate::config::ModelConfig;
use crate::kernels::RopeTable;
use crate::layers::Rows;
use crate::model::Model;
use crate::plan::{PlannedBytes, SessionOptions, zeroed};

/// A request or pass that a session cannot take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A prompt without tokens gives no logits.
    #[error("the prompt is empty; it needs at least one token")]
    EmptyPrompt,
    /// The prompt is longer than planned for.
    #[error("the prompt has {tokens} tokens, this session was planned for {max}")]
    PromptTooLong {
        /// Tokens in the prompt.
        tokens: usize,
        /// The limit.
        max: usize,
    },
    /// A token outside the vocabulary.
    #[error("token {token} is not in the model's vocabulary of {vocab_size}")]
    UnknownToken {
        /// The token.
        token: TokenId,
        /// V.
        vocab_size: usize,
    },
    /// More beams than planned for.
    #[error("a decode pass of {beams} beams, this session was planned for {max}")]
    TooManyBeams {
        /// Beams asked for.
        beams: usize,
        /// The limit.
        max: usize,
    },
    /// More passes than planned for.
    #[error("decode pass {pass} after the prompt, this session was planned for {max}")]
    TooManyPasses {
        /// Number of the pass, from 1.
        pass: usize,
        /// The limit.
        max: usize,
    },
    /// A beam that continues a row which the pass before did not have.
    #[error("a beam continues row {parent}, the pass before had {rows} rows")]
    UnknownParent {
        /// The row named.
        parent: u32,
        /// Rows there were.
        rows: usize,
    },
    /// Logits asked for before a prompt was set.
    #[error("no prompt has been set")]
    NoPrompt,
    /// The plan is longer than the model's positions.
    #[error(
        "{prompt} prompt tokens and {passes} decode passes need more than the model's {max} positions"
    )]
    TooManyPositions {
        /// Prompt tokens planned.
        prompt: usize,
        /// Decode passes planned.
        passes: usize,
        /// The model's `max_position_embeddings`.
        max: usize,
    },
    /// The plan needs more memory than there is.
    #[error(
        "{beams} beams after a prompt of up to {prompt} tokens need {needed}, more than can be allocated: take a smaller beam width or a shorter prompt",
        needed = described(*bytes)
    )]
    PlanTooLarge {
        /// Prompt tokens planned.
        prompt: usize,
        /// Beams planned.
        beams: usize,
        /// [`PlannedBytes::total`]; `None` when there are more than an address can count.
        bytes: Option<usize>,
    },
    /// The search failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

fn described(bytes: Option<usize>) -> String {
    match bytes {
        Some(bytes) => format!("{bytes} bytes"),
        None => format!("over {} bytes", isize::MAX),
    }
}

/// The caches and buffers of one request at a time; reuse it for the next.
///
/// Keys and values are kept in two parts: the prompt's once, `[layers, T, G·C]`, whatever the
/// number of beams, and the beams' own, `[layers, passes, B, G·C]`, one slot per beam and pass. A
/// beam that forks copies nothing: each row keeps a list of the slots of its ancestors.
/// Source: xGR, arXiv 2512.11529, §5.1, which moves the slots instead.
#[derive(Debug)]
pub struct Session<'m> {
    model: &'m Model,
    options: SessionOptions,
    prompt: Vec<TokenId>,
    /// `[layers, T, G·C]` each
    prompt_keys: Vec<f32>,
    prompt_values: Vec<f32>,
    beams: BeamKeyValues,
    /// Angles of the planned positions.
    rope: RopeTable,
    rows: Rows,
    logits: Vec<f32>,
    /// Rows of the latest pass; 0 before the first.
    num_rows: usize,
    /// Decode passes since the prompt.
    passes: usize,
}

/// What a pass's rows are.
enum Pass {
    Prompt,
    Beams,
}

impl<'m> Session<'m> {
    /// Plans and allocates everything a request will need.
    ///
    /// # Errors
    /// When prompt and passes together exceed the model's positions, or the plan needs more memory
    /// than there is.
    pub fn new(model: &'m Model, options: SessionOptions) -> Result<Self, SessionError> {
        let planned = Self::planned_bytes(&model.config, &options)?;
        Self::allocate(model, options, &planned)
            .ok_or_else(|| plan_too_large(&options, Some(planned.total())))
    }

    /// The memory that [`new`](Self::new) would take for a model of this shape, by part.
    ///
    /// # Errors
    /// When prompt and passes together exceed the model's positions, or the bytes cannot be counted.
    pub fn planned_bytes(
        config: &ModelConfig,
        options: &SessionOptions,
    ) -> Result<PlannedBytes, SessionError> {
        let (prompt, passes) = (options.max_prompt_tokens, options.max_decode_passes);
        let max = config.max_position_embeddings;
        if prompt.saturating_add(passes) > max {
            return Err(SessionError::TooManyPositions { prompt, passes, max });
        }
        PlannedBytes::count(config, options).ok_or_else(|| plan_too_large(options, None))
    }

    /// `None` where there is not the memory for it.
    fn allocate(model: &'m Model, options: SessionOptions, planned: &PlannedBytes) -> Option<Self> {
        // The whole at once, given back at once: a system that hands out memory lazily refuses one
        // request beyond all it has, but not the same in parts. The optimiser would leave out an
        // allocation that nobody looks at.
        let mut whole = Vec::<u8>::new();
        std::hint::black_box(&mut whole).try_reserve_exact(planned.total()).ok()?;
        drop(std::hint::black_box(whole));

        let config = &model.config;
        let (prompt_tokens, beams) = (options.max_prompt_tokens, options.max_beams);
        let mut prompt = Vec::new();
        prompt.try_reserve_exact(prompt_tokens).ok()?;
        let cache = config.num_hidden_layers * prompt_tokens * config.key_value_width();
        let angles = (prompt_tokens + options.max_decode_passes) * (config.head_dim / 2);
        let score_places = planned.scores / size_of::<f32>();
        Some(Self {
            model,
            options,
            prompt,
            prompt_keys: zeroed(cache)?,
            prompt_values: zeroed(cache)?,
            beams: BeamKeyValues::new(config, &options)?,
            rope: RopeTable::fill(
                zeroed(angles)?,
                zeroed(angles)?,
                config.head_dim,
                config.rope_theta,
            ),
            rows: Rows::new(config, prompt_tokens.max(beams), score_places)?,
            logits: zeroed(beams.max(1) * config.vocab_size)?,
            num_rows: 0,
            passes: 0,
        })
    }

    /// Bytes of the key/value caches: the prompt's and the beams' part.
    pub fn cache_bytes(&self) -> (usize, usize) {
        let prompt = self.prompt_keys.len() + self.prompt_values.len();
        (prompt * size_of::<f32>(), self.beams.bytes())
    }

    /// Begins a request; what was cached before is forgotten.
    ///
    /// # Errors
    /// When the prompt is empty, longer than planned, or holds an unknown token.
    pub fn set_prompt(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        let max = self.options.max_prompt_tokens;
        if tokens.is_empty() {
            return Err(SessionError::EmptyPrompt);
        }
        if tokens.len() > max {
            return Err(SessionError::PromptTooLong { tokens: tokens.len(), max });
        }
        self.check_tokens(tokens)?;
        self.prompt.clear();
        self.prompt.extend_from_slice(tokens);
        self.num_rows = 0;
        self.passes = 0;
        Ok(())
    }

    /// The logits at every prompt position, for checks against a reference. Shape: `[T, V]`,
    /// allocated anew.
    ///
    /// # Errors
    /// When no prompt has been set.
    pub fn all_prompt_logits(&mut self) -> Result<Vec<f32>, SessionError> {
        self.prefill()?;
        let rows = self.prompt.len();
        let mut logits = vec![0.0; rows * self.model.config.vocab_size];
        self.rows.logits(self.model, 0..rows, &mut logits, self.options.threads);
        Ok(logits)
    }

    fn check_tokens(&self, tokens: &[TokenId]) -> Result<(), SessionError> {
        let vocab_size = self.model.config.vocab_size;
        match tokens.iter().find(|token| token.index() >= vocab_size) {
            Some(&token) => Err(SessionError::UnknownToken { token, vocab_size }),
            None => Ok(()),
        }
    }

    fn prefill(&mut self) -> Result<(), SessionError> {
        if self.prompt.is_empty() {
            return Err(SessionError::NoPrompt);
        }
        let prompt = std::mem::take(&mut self.prompt);
        self.forward(&prompt, Pass::Prompt);
        self.prompt = prompt;
        Ok(())
    }

    /// Runs all layers over rows of tokens; leaves the residual stream in `rows.hidden`.
    fn forward(&mut self, tokens: &[TokenId], pass: Pass) {
        let model = self.model;
        let config = &model.config;
        let (num_rows, d) = (tokens.len(), config.hidden_size);
        for (row, token) in self.rows.hidden.chunks_exact_mut(d).zip(tokens) {
            row.copy_from_slice(&model.weights.embedding[token.index() * d..][..d]);
        }
        let (kv, prompt_places) = (config.key_value_width(), self.options.max_prompt_tokens);
        for (index, layer) in model.weights.layers.iter().enumerate() {
            self.rows.project_qkv(layer, config.rms_norm_eps, num_rows, self.options.threads);
            let first_position = match pass {
                Pass::Prompt => 0,
                Pass::Beams => self.prompt.len() + self.passes - 1,
            };
            let positions_advance = matches!(pass, Pass::Prompt);
            self.rows.position_queries_and_keys(
                config,
                &self.rope,
                layer,
                num_rows,
                first_position,
                positions_advance,
            );
            let cache = index * prompt_places * kv..(index + 1) * prompt_places * kv;
            let (keys, values) =
                (&mut self.prompt_keys[cache.clone()], &mut self.prompt_values[cache]);
            let shape = attention::HeadShape::of(config);
            let rows = &mut self.rows;
            match pass {
                Pass::Prompt => {
                    shape.copy_keys_and_values(
                        &rows.qkv[..num_rows * shape.qkv_width()],
                        keys,
                        values,
                    );
                    attention::causal(
                        &shape,
                        &rows.qkv,
                        (keys, values),
                        num_rows,
                        &mut rows.scores,
                        &mut rows.heads,
                        self.options.threads,
                    );
                }
                Pass::Beams => {
                    let pass = self.passes - 1;
                    let (own_keys, own_values) = self.beams.slots_mut(index, pass, num_rows);
                    shape.copy_keys_and_values(
                        &rows.qkv[..num_rows * shape.qkv_width()],
                        own_keys,
                        own_values,
                    );
                    attention::beams(
                        &shape,
                        &rows.qkv,
                        (keys, values, self.prompt.len()),
                        self.beams.layer(index, pass + 1),
                        num_rows,
                        &mut rows.scores,
                        &mut rows.heads,
                        self.options.threads,
                    );
                }
            }
            self.rows.finish_attention(layer, &shape, num_rows, self.options.threads);
            self.rows.feed_forward(layer, config.rms_norm_eps, num_rows, self.options.threads);
        }
    }
}

fn plan_too_large(options: &SessionOptions, bytes: Option<usize>) -> SessionError {
    let (prompt, beams) = (options.max_prompt_tokens, options.max_beams);
    SessionError::PlanTooLarge { prompt, beams, bytes }
}

impl LogitsSource for Session<'_> {
    type Error = SessionError;

    fn num_tokens(&self) -> usize {
        self.model.config.vocab_size
    }

    fn prompt_logits(&mut self) -> Result<&[f32], SessionError> {
        self.prefill()?;
        self.passes = 0;
        self.num_rows = 1;
        let (rows, vocab) = (self.prompt.len(), self.model.config.vocab_size);
        let logits = &mut self.logits[..vocab];
        self.rows.logits(self.model, rows - 1..rows, logits, self.options.threads);
        Ok(&self.logits[..vocab])
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        let (beams, max) = (tokens.len(), self.options.max_beams);
        assert_eq!(parents.len(), beams, "one parent a beam");
        if beams > max {
            return Err(SessionError::TooManyBeams { beams, max });
        }
        let (pass, max) = (self.passes + 1, self.options.max_decode_passes);
        if pass > max {
            return Err(SessionError::TooManyPasses { pass, max });
        }
        self.check_tokens(tokens)?;
        let rows = self.num_rows;
        if let Some(&parent) = parents.iter().find(|&&parent| parent as usize >= rows) {
            return Err(SessionError::UnknownParent { parent, rows });
        }
        self.beams.fork(parents, self.passes);
        self.passes = pass;
        self.num_rows = beams;
        if beams == 0 {
            // Nothing to compute, and `attention` divides its buffers among rows.
            return Ok(&[]);
        }
        self.forward(tokens, Pass::Beams);
        let vocab = self.model.config.vocab_size;
        let logits = &mut self.logits[..beams * vocab];
        self.rows.logits(self.model, 0..beams, logits, self.options.threads);
        Ok(&self.logits[..beams * vocab])
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The formulas of [`PlannedBytes`] against what is allocated.
    #[test]
    fn planned_bytes_are_those_taken() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tied_f32");
        let model = Model::load(&dir).unwrap();
        for (prompt, beams, passes) in [(64, 8, 4), (3, 40, 1), (1, 1, 0), (100, 0, 0), (0, 5, 2)] {
            let options = SessionOptions {
                max_prompt_tokens: prompt,
                max_beams: beams,
                max_decode_passes: passes,
                threads: 1,
            };
            let planned = Session::planned_bytes(&model.config, &options).unwrap();
            let session = Session::new(&model, options).unwrap();
            let prompt_tokens = session.prompt.capacity() * size_of::<TokenId>();
            let taken = PlannedBytes {
                prompt_cache: session.cache_bytes().0,
                beam_cache: session.cache_bytes().1,
                activations: session.rows.activation_bytes(),
                scores: size_of_val(&*session.rows.scores),
                logits: size_of_val(&*session.logits),
                positions: prompt_tokens + session.rope.bytes(),
            };
            assert_eq!(planned, taken, "{options:?}");
        }
    }
}
