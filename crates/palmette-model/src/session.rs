//! One sequence and its beams through a model: the caches and buffers, planned once.

use palmette_core::TokenId;
use palmette_decode::{DecodeError, LogitsSource};

use crate::attention::{self, BeamKeyValues};
use crate::kernels::{MatMut, MatRef, Write, matmul, rms_norm, rms_norm_in_place, swiglu};
use crate::model::Model;
use crate::weights::LayerWeights;

/// How much a session must be able to hold; its memory is planned from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// T: most tokens in a prompt.
    pub max_prompt_tokens: usize,
    /// B: most beams in a decode pass.
    pub max_beams: usize,
    /// Most decode passes after a prompt. A search of L levels takes L − 1.
    pub max_decode_passes: usize,
    /// Rayon workers to use; results do not depend on it.
    pub threads: usize,
}

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
    /// The search failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
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
    rows: Rows,
    logits: Vec<f32>,
    /// Rows of the latest pass; 0 before the first.
    num_rows: usize,
    /// Decode passes since the prompt.
    passes: usize,
}

/// Activations of one pass, R rows: prompt positions or beams.
#[derive(Debug)]
struct Rows {
    /// The residual stream, `[R, D]`
    hidden: Vec<f32>,
    /// `[R, D]`
    normed: Vec<f32>,
    /// `[R, (H + 2 G) C]`
    qkv: Vec<f32>,
    /// `[H, R, C]`
    heads: Vec<f32>,
    /// `[R, H·C]`
    attended: Vec<f32>,
    /// `[R, 2 F]`
    gate_up: Vec<f32>,
    /// `[R, F]`
    gated: Vec<f32>,
    /// Attention scores; see [`attention`]
    scores: Vec<f32>,
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
    /// When prompt and passes together exceed the model's positions.
    pub fn new(model: &'m Model, options: SessionOptions) -> Result<Self, SessionError> {
        let SessionOptions { max_prompt_tokens: prompt, max_decode_passes: passes, .. } = options;
        let max = model.config.max_position_embeddings;
        if prompt + passes > max {
            return Err(SessionError::TooManyPositions { prompt, passes, max });
        }
        let config = &model.config;
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let (q, kv) = (config.query_width(), config.key_value_width());
        let most_rows = prompt.max(options.max_beams);
        let cache = config.num_hidden_layers * prompt * kv;
        let scores = attention::score_places(config.num_attention_heads, &options);
        Ok(Self {
            model,
            options,
            prompt: Vec::with_capacity(prompt),
            prompt_keys: vec![0.0; cache],
            prompt_values: vec![0.0; cache],
            beams: BeamKeyValues::new(config, options.max_beams, passes),
            rows: Rows {
                hidden: vec![0.0; most_rows * d],
                normed: vec![0.0; most_rows * d],
                qkv: vec![0.0; most_rows * (q + 2 * kv)],
                heads: vec![0.0; most_rows * q],
                attended: vec![0.0; most_rows * q],
                gate_up: vec![0.0; most_rows * 2 * f],
                gated: vec![0.0; most_rows * f],
                scores: vec![0.0; scores],
            },
            logits: vec![0.0; options.max_beams.max(1) * config.vocab_size],
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
        let (rows, vocab) = (self.prompt.len(), self.model.config.vocab_size);
        let mut logits = vec![0.0; rows * vocab];
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
                model,
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

impl Rows {
    fn project_qkv(&mut self, layer: &LayerWeights, eps: f32, rows: usize, threads: usize) {
        let d = layer.attention_norm.len();
        rms_norm(
            &mut self.normed[..rows * d],
            &self.hidden[..rows * d],
            &layer.attention_norm,
            eps,
        );
        linear(&mut self.qkv, Write::Replace, &self.normed, &layer.qkv, (rows, d), threads);
    }

    /// Norms each head of queries and keys and turns it to its position.
    fn position_queries_and_keys(
        &mut self,
        model: &Model,
        layer: &LayerWeights,
        rows: usize,
        first_position: usize,
        positions_advance: bool,
    ) {
        let config = &model.config;
        let (c, heads) = (config.head_dim, config.num_attention_heads);
        let width = config.query_width() + 2 * config.key_value_width();
        let turned = heads + config.num_key_value_heads;
        for (row, qkv) in self.qkv.chunks_exact_mut(width).take(rows).enumerate() {
            let position = first_position + if positions_advance { row } else { 0 };
            for (head, values) in qkv.chunks_exact_mut(c).take(turned).enumerate() {
                let weight = if head < heads { &layer.query_norm } else { &layer.key_norm };
                rms_norm_in_place(values, weight, config.rms_norm_eps);
                model.rope.rotate(values, position);
            }
        }
    }

    /// Adds the attention's output to the residual stream.
    fn finish_attention(
        &mut self,
        layer: &LayerWeights,
        shape: &attention::HeadShape,
        rows: usize,
        threads: usize,
    ) {
        shape.gather_heads(&self.heads, rows, &mut self.attended);
        let width = shape.query_width();
        let out = &layer.attention_out;
        linear(&mut self.hidden, Write::Add, &self.attended, out, (rows, width), threads);
    }

    fn feed_forward(&mut self, layer: &LayerWeights, eps: f32, rows: usize, threads: usize) {
        let d = layer.mlp_norm.len();
        let f = layer.down.len() / d;
        let (hidden, normed) = (&self.hidden[..rows * d], &mut self.normed[..rows * d]);
        rms_norm(normed, hidden, &layer.mlp_norm, eps);
        linear(&mut self.gate_up, Write::Replace, &self.normed, &layer.gate_up, (rows, d), threads);
        swiglu(&mut self.gated[..rows * f], &self.gate_up[..rows * 2 * f], f);
        linear(&mut self.hidden, Write::Add, &self.gated, &layer.down, (rows, f), threads);
    }

    /// Logits of some rows of the residual stream into `logits`, `[rows, V]`.
    fn logits(
        &mut self,
        model: &Model,
        rows: std::ops::Range<usize>,
        logits: &mut [f32],
        threads: usize,
    ) {
        let d = model.config.hidden_size;
        let count = rows.len();
        rms_norm(
            &mut self.normed[..count * d],
            &self.hidden[rows.start * d..rows.end * d],
            &model.weights.final_norm,
            model.config.rms_norm_eps,
        );
        linear(logits, Write::Replace, &self.normed, model.weights.head(), (count, d), threads);
    }
}

/// `out ← x · weightᵀ`: `x` is `[rows, width]`, `weight` `[outputs, width]`, `out` `[rows, outputs]`.
fn linear(
    out: &mut [f32],
    write: Write,
    x: &[f32],
    weight: &[f32],
    (rows, width): (usize, usize),
    threads: usize,
) {
    let outputs = weight.len() / width;
    matmul(
        MatMut::row_major(out, rows, outputs),
        write,
        1.0,
        MatRef::row_major(x, rows, width),
        MatRef::row_major(weight, outputs, width).transposed(),
        threads,
    );
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
        self.forward(tokens, Pass::Beams);
        let vocab = self.model.config.vocab_size;
        let logits = &mut self.logits[..beams * vocab];
        self.rows.logits(self.model, 0..beams, logits, self.options.threads);
        Ok(&self.logits[..beams * vocab])
    }
}
