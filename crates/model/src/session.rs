//! One sequence and its beams through a model: the caches and buffers, planned once.

use std::ops::Range;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::{DecodeError, LogitsSource, append_one_by_one};

use crate::allocation::zeroed;
use crate::beam_key_values::{BeamKeyValues, OwnPart};
use crate::blocks::{MAX_BLOCK_ROWS, block_rows, for_each_block, worthwhile_threads};
use crate::config::ModelConfig;
use crate::draft::DraftHead;
use crate::encoder_decoder::{EncoderRun, RelativeBias, bias_tables};
use crate::head_shape::HeadShape;
use crate::kernels::{RopeTable, rms_norm_rows};
use crate::key_values::{KeyValues, ONLY_PAGE, store_block};
use crate::layers::{Positions, Workspace};
use crate::model::Model;
use crate::plan::{
    Plan, PlannedBytes, SessionOptions, decoder_prompt_tokens, score_places, workspaces,
};
use crate::prompt_store::PromptStore;
use crate::weights::LayerWeights;

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
    /// Logits of no columns, or of some that the model does not have.
    #[error(
        "logits of tokens {start}..{end} were asked for; ask for at least one, of the vocabulary's {vocab_size}"
    )]
    UnknownColumns {
        /// The first column.
        start: usize,
        /// One past the last.
        end: usize,
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
    /// Logits asked for once more that were never computed.
    #[error("the prompt has had no pass whose logits could be asked for again")]
    NoPass,
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
    /// A draft head on an encoder–decoder.
    #[error(
        "a draft head reads hidden states at placeholders after the prompt, which an encoder reads here: search without one, by `--mode beam`"
    )]
    NoDraft,
    /// A token of a draft that is no code of its level.
    #[error(
        "token {token} is no code of its level, whose tokens are {start} to {last}",
        last = end - 1
    )]
    NoCode {
        /// The token.
        token: TokenId,
        /// First token of the level.
        start: usize,
        /// End of its tokens.
        end: usize,
    },
    /// A draft head where the model is not computed on this processor.
    #[error(
        "a draft head reads hidden states that this device keeps to itself: search without one, by `--mode beam`, or compute on this processor, by `--device cpu`"
    )]
    NoDraftHere,
    /// Failure of what computes the model: a device, say.
    #[error("{0}")]
    Engine(String),
    /// No room beside the readings that there are; there is once one of them is gone.
    #[error("{0}")]
    NoRoom(String),
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
/// Keys and values are kept in two parts: the prompt's once, whatever the number of beams, and the
/// beams' own, exactly one slot per beam and pass. A beam that forks copies nothing: each row keeps
/// a list of the slots of its ancestors.
///
/// An encoder, where there is one, reads the prompt once, and what each layer of the decoder
/// attends to of it is kept as a decoder's prompt is. The decoder begins with its start token, and
/// what is said of a prompt's last position is said of that.
///
/// Rows are computed in blocks, and blocks shared among threads where the work is worth it. A row's
/// bits depend neither on the rows beside it nor on the threads. With one thread no request
/// allocates, but for what finds a prompt again where prompts are
/// [kept](Model::with_prompt_memory): then rows of a prompt's beginning are copied from earlier
/// ones, to the same bits.
#[derive(Debug)]
pub struct Session {
    model: Arc<Model>,
    options: SessionOptions,
    /// The reader of prompts where the decoder does not read them.
    encoder: Option<EncoderRun>,
    /// The decoder's: the start token alone where there is an encoder.
    prompt: Vec<TokenId>,
    /// One page for the prompt, whatever the number of beams.
    prompt_cache: KeyValues,
    /// Room for the numbers of the store's pages that prompts are copied from and to.
    store_pages: Vec<u32>,
    /// True where prompts are looked for in the store, and kept there.
    keeps_prompts: bool,
    beams: BeamKeyValues,
    /// Angles of the planned positions, or biases of their distances.
    ropes: Ropes,
    /// The residual stream, `[max(T, B), D]`, T the decoder's
    hidden: Vec<f32>,
    /// Row of the residual stream after the prompt, `[D]`.
    after_prompt: Vec<f32>,
    /// True if it is of this prompt.
    prompt_read: bool,
    /// One for each thread.
    workspaces: Vec<Workspace>,
    /// Threads that passes take at most.
    used_threads: usize,
    logits: Vec<f32>,
    /// Logits of the latest pass.
    num_logits: usize,
    /// Rows of the latest pass; 0 before the first.
    num_rows: usize,
    /// Decode passes since the prompt.
    passes: usize,
}

/// Rotary angles of every kind of layer, or biases of distances.
#[derive(Debug)]
pub(crate) struct Ropes {
    /// `None` where positions are relative.
    plain: Option<RopeTable>,
    /// In layers with a sliding window, where they are others.
    sliding: Option<RopeTable>,
    /// Biases of distances where positions are relative: of each layer, or one for all.
    biases: Vec<RelativeBias>,
}

impl Ropes {
    /// `None` where there is not the memory for them.
    pub(crate) fn new(model: &Model, positions: usize) -> Option<Self> {
        let config = &model.config;
        if let Some(by) = &config.architecture.relative_positions {
            let biases = bias_tables(by, &model.weights.relative_biases, false, positions)?;
            return Some(Self { plain: None, sliding: None, biases });
        }
        let plain = Some(config.rope_table(positions)?);
        let window = config.architecture.window.as_ref();
        let sliding = match window.and_then(|window| window.rope.as_ref()) {
            Some(rope) => Some(rope.table(config.head_dim, positions)?),
            None => None,
        };
        Some(Self { plain, sliding, biases: Vec::new() })
    }

    /// Rows from position `first` on in a layer, the next `advance` further on.
    pub(crate) fn positions(
        &self,
        config: &ModelConfig,
        layer: usize,
        first: usize,
        advance: usize,
    ) -> Positions<'_> {
        let bias = self.biases.get(layer).or(self.biases.first());
        let everything = Positions::relative(bias, first, advance);
        match config.architecture.window_of(layer) {
            None => Positions { rope: self.plain.as_ref(), ..everything },
            Some(window) => {
                let rope = self.sliding.as_ref().or(self.plain.as_ref());
                Positions { rope, window: window.positions, ..everything }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let angles = self.plain.iter().chain(&self.sliding).map(RopeTable::bytes);
        angles.chain(self.biases.iter().map(RelativeBias::bytes)).sum()
    }
}

impl Session {
    /// Plans and allocates everything a request will need.
    ///
    /// # Errors
    /// When prompt and passes together exceed the model's positions, or the plan needs more memory
    /// than there is.
    pub fn new(model: &Arc<Model>, options: SessionOptions) -> Result<Self, SessionError> {
        Self::planned(model, &Plan::even(options))
    }

    /// Plans a session for decode passes of different widths. Pass `p` has at most `beams[p]`
    /// beams, and there are as many passes as numbers. The beams' own keys and values then take a
    /// slot for each of these and no more.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_passes(
        model: &Arc<Model>,
        max_prompt_tokens: usize,
        beams: &[usize],
        threads: usize,
    ) -> Result<Self, SessionError> {
        Self::planned(model, &Plan::of_passes(max_prompt_tokens, beams, threads))
    }

    fn planned(model: &Arc<Model>, plan: &Plan<'_>) -> Result<Self, SessionError> {
        let planned = planned_bytes(&model.config, plan)?;
        Self::allocate(model, plan, &planned)
            .ok_or_else(|| plan_too_large(&plan.options, Some(planned.total())))
    }

    /// The memory that [`new`](Self::new) would take for a model of this shape, by part.
    ///
    /// # Errors
    /// When prompt and passes together exceed the model's positions, or the bytes cannot be
    /// counted.
    pub fn planned_bytes(
        config: &ModelConfig,
        options: &SessionOptions,
    ) -> Result<PlannedBytes, SessionError> {
        planned_bytes(config, &Plan::even(*options))
    }

    /// The memory that [`of_passes`](Self::of_passes) would take.
    ///
    /// # Errors
    /// As [`planned_bytes`](Self::planned_bytes).
    pub fn planned_bytes_of_passes(
        config: &ModelConfig,
        max_prompt_tokens: usize,
        beams: &[usize],
        threads: usize,
    ) -> Result<PlannedBytes, SessionError> {
        planned_bytes(config, &Plan::of_passes(max_prompt_tokens, beams, threads))
    }

    /// `None` where there is not the memory for it.
    fn allocate(model: &Arc<Model>, plan: &Plan<'_>, planned: &PlannedBytes) -> Option<Self> {
        let options = plan.options;
        // The whole at once, given back at once: a system that hands out memory lazily refuses one
        // request beyond all it has, but not the same in parts. The optimiser would leave out an
        // allocation that nobody looks at.
        let mut whole = Vec::<u8>::new();
        std::hint::black_box(&mut whole).try_reserve_exact(planned.total()).ok()?;
        drop(std::hint::black_box(whole));

        let config = &model.config;
        let prompt_tokens = decoder_prompt_tokens(config, options.max_prompt_tokens);
        let beams = options.max_beams;
        let (shape, layers) = (HeadShape::of(config), config.num_hidden_layers);
        let mut prompt = Vec::new();
        prompt.try_reserve_exact(prompt_tokens).ok()?;
        let mut store_pages = Vec::new();
        store_pages.try_reserve_exact(prompt_tokens / PromptStore::PAGE_TOKENS).ok()?;
        let positions = prompt_tokens + options.max_decode_passes;
        let rows = prompt_tokens.max(beams);
        let block = MAX_BLOCK_ROWS.min(options.max_prompt_tokens.max(beams));
        let score_places = score_places(config, &options)?;
        let workspace = |_| Workspace::new(model, block, score_places);
        Some(Self {
            model: Arc::clone(model),
            options,
            encoder: EncoderRun::new(model, options.max_prompt_tokens)?,
            prompt,
            prompt_cache: KeyValues::new(shape, layers, 1, prompt_tokens)?,
            store_pages,
            keeps_prompts: true,
            beams: BeamKeyValues::new(shape, layers, beams, plan.beams())?,
            ropes: Ropes::new(model, positions)?,
            hidden: zeroed(rows * config.hidden_size)?,
            after_prompt: zeroed(config.hidden_size)?,
            prompt_read: false,
            workspaces: (0..workspaces(&options)).map(workspace).collect::<Option<_>>()?,
            used_threads: options.threads,
            logits: zeroed(beams.max(1) * config.vocab_size)?,
            num_logits: 0,
            num_rows: 0,
            passes: 0,
        })
    }

    /// Limits the threads of the passes that follow, up to those that were planned; bits do not
    /// depend on them.
    pub fn use_threads(&mut self, threads: usize) {
        self.used_threads = threads;
    }

    /// Has the prompts that follow be looked for among [those kept](Model::with_prompt_memory), and
    /// kept themselves, or neither; bits do not depend on it. Until it is called they are.
    pub fn keep_prompts(&mut self, keeps: bool) {
        self.keeps_prompts = keeps;
    }

    /// Bytes of the key/value caches: the prompt's and the beams' part.
    pub fn cache_bytes(&self) -> (usize, usize) {
        let of_encoder = self.encoder.as_ref().map_or(0, EncoderRun::cache_bytes);
        (self.prompt_cache.bytes() + of_encoder, self.beams.bytes())
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
        match (&mut self.encoder, &self.model.config.architecture.encoder) {
            (Some(run), Some(encoder)) => {
                run.set_prompt(tokens);
                self.prompt.push(TokenId(encoder.start_token));
            }
            _ => self.prompt.extend_from_slice(tokens),
        }
        self.prompt_read = false;
        self.num_logits = 0;
        self.num_rows = 0;
        self.passes = 0;
        Ok(())
    }

    /// The logits at every prompt position, for checks against a reference. Shape: `[T, V]`,
    /// allocated anew; `[1, V]` where an encoder reads the prompt.
    ///
    /// # Errors
    /// When no prompt has been set.
    pub fn all_prompt_logits(&mut self) -> Result<Vec<f32>, SessionError> {
        self.prefill(&[], self.prompt.len())?;
        let (model, rows) = (&*self.model, self.prompt.len());
        let (d, vocab) = (model.config.hidden_size, model.config.vocab_size);
        let mut logits = vec![0.0; rows * vocab];
        let blocks = self.hidden[..rows * d].chunks(MAX_BLOCK_ROWS * d);
        for (hidden, logits) in blocks.zip(logits.chunks_mut(MAX_BLOCK_ROWS * vocab)) {
            self.workspaces[0].logits(model, hidden, 0..vocab, logits);
        }
        Ok(logits)
    }

    /// The logits of some tokens after the prompt, `[columns]`: those of one level, say. The others
    /// are not computed.
    ///
    /// # Errors
    /// When no prompt has been set, or there are no columns or the vocabulary ends before them.
    pub fn prompt_logits_of(&mut self, columns: Range<usize>) -> Result<&[f32], SessionError> {
        self.check_columns(&columns)?;
        self.prefill(&[], 1)?;
        let d = self.model.config.hidden_size;
        let last = (self.prompt.len() - 1) * d;
        self.after_prompt.copy_from_slice(&self.hidden[last..][..d]);
        self.prompt_read = true;
        self.prompt_logits_again(columns)
    }

    /// The logits of some tokens after the prompt once more, `[columns]`, to the bit those of
    /// [`prompt_logits_of`](Self::prompt_logits_of) and without another pass over it. Decode passes
    /// begin anew.
    ///
    /// # Errors
    /// When the prompt has had no such pass, or there are no columns or the vocabulary ends before
    /// them.
    pub fn prompt_logits_again(&mut self, columns: Range<usize>) -> Result<&[f32], SessionError> {
        self.check_columns(&columns)?;
        if !self.prompt_read {
            return Err(SessionError::NoPass);
        }
        self.passes = 0;
        self.num_rows = 1;
        self.num_logits = columns.len();
        let logits = &mut self.logits[..columns.len()];
        self.workspaces[0].logits(&self.model, &self.after_prompt, columns, logits);
        Ok(logits)
    }

    /// Reads more tokens after a prompt that has been read: to the bit what reading all at once
    /// gives, since a row's bits do not depend on those beside it. Text grows so, one token or a
    /// stretch of forced ones at a time.
    ///
    /// PERF: on the caller's thread alone; stretches are short.
    ///
    /// # Errors
    /// When the prompt has had no pass, a token is unknown, or the plan ends before them; the
    /// prompt is as it was.
    fn extend_prompt(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        if !self.prompt_read {
            return Err(SessionError::NoPass);
        }
        self.check_tokens(tokens)?;
        let (read, max) = (self.prompt.len(), self.options.max_prompt_tokens);
        if read + tokens.len() > max {
            return Err(SessionError::PromptTooLong { tokens: read + tokens.len(), max });
        }
        let (model, config) = (&*self.model, &self.model.config);
        let d = config.hidden_size;
        let workspace = &mut self.workspaces[0];
        for tokens in tokens.chunks(MAX_BLOCK_ROWS) {
            let first = self.prompt.len();
            self.prompt.extend_from_slice(tokens);
            let hidden = &mut self.hidden[..tokens.len() * d];
            for (row, &token) in hidden.chunks_exact_mut(d).zip(tokens) {
                model.weights.embed(token, row);
            }
            for (index, layer) in model.weights.layers.iter().enumerate() {
                let positions = self.ropes.positions(config, index, first, 1);
                let key_values =
                    workspace.project_keys_and_values(config, layer, positions, hidden);
                self.prompt_cache.store(ONLY_PAGE, index, first, key_values);
                let cache = self.prompt_cache.layer(ONLY_PAGE, index);
                workspace.finish_prompt_layer(config, layer, positions, cache, hidden);
            }
            self.after_prompt.copy_from_slice(&hidden[(tokens.len() - 1) * d..]);
        }
        Ok(())
    }

    /// The logits after a prompt, `[V]`, to the bit those of [`set_prompt`](Self::set_prompt) and a
    /// pass over it. What it begins with in common with the tokens read before is not read again,
    /// where the rest is short: conversations that go on, several texts after one prompt, prompts
    /// that begin alike.
    ///
    /// # Errors
    /// As [`set_prompt`](Self::set_prompt).
    pub fn prompt_logits_after(&mut self, tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        let same = self.prompt.iter().zip(tokens).take_while(|(read, token)| read == token);
        // The last token is read in any case: its row is what the logits come of.
        let kept = same.count().min(tokens.len().saturating_sub(1));
        let rest = tokens.len() - kept;
        // What is read anew is read on one thread.
        let is_short = rest.saturating_mul(self.threads_for(tokens.len())) <= tokens.len();
        let fits = tokens.len() <= self.options.max_prompt_tokens;
        if !(self.prompt_read && kept > 0 && is_short && fits) {
            self.set_prompt(tokens)?;
            return self.prompt_logits();
        }
        self.check_tokens(&tokens[kept..])?;
        self.prompt.truncate(kept);
        self.extend_prompt(&tokens[kept..])?;
        self.prompt_logits_again(0..self.model.config.vocab_size)
    }

    /// The logits of some tokens after one more token per beam, `[beams, columns]`, as
    /// [`next_logits`](LogitsSource::next_logits) gives all.
    ///
    /// # Errors
    /// When more beams or passes are asked for than were planned, a token or parent is unknown, or
    /// there are no columns or the vocabulary ends before them.
    ///
    /// # Panics
    /// When there is not one parent a token.
    pub fn next_logits_of(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        columns: Range<usize>,
    ) -> Result<&[f32], SessionError> {
        let beams = tokens.len();
        assert_eq!(parents.len(), beams, "one parent a beam");
        self.check_columns(&columns)?;
        let (pass, max) = (self.passes + 1, self.options.max_decode_passes);
        if pass > max {
            return Err(SessionError::TooManyPasses { pass, max });
        }
        let max = self.beams.max_beams_of(self.passes);
        if beams > max {
            return Err(SessionError::TooManyBeams { beams, max });
        }
        self.check_tokens(tokens)?;
        let rows = self.num_rows;
        if let Some(&parent) = parents.iter().find(|&&parent| parent as usize >= rows) {
            return Err(SessionError::UnknownParent { parent, rows });
        }
        self.beams.fork(parents, self.passes);
        self.passes = pass;
        self.num_rows = beams;
        let logits = beams * columns.len();
        self.num_logits = logits;
        if logits > 0 {
            self.decode(tokens, columns);
        }
        Ok(&self.logits[..logits])
    }

    /// The logits of the latest pass: what [`prompt_logits_of`](Self::prompt_logits_of) or
    /// [`next_logits_of`](Self::next_logits_of) gave.
    pub fn logits(&self) -> &[f32] {
        &self.logits[..self.num_logits]
    }

    /// True once the prompt has been read, so that its logits can be had
    /// [again](Self::prompt_logits_again).
    pub fn has_read_prompt(&self) -> bool {
        self.prompt_read
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    fn check_columns(&self, columns: &Range<usize>) -> Result<(), SessionError> {
        let (start, end, vocab_size) = (columns.start, columns.end, self.model.config.vocab_size);
        if start < end && end <= vocab_size {
            return Ok(());
        }
        Err(SessionError::UnknownColumns { start, end, vocab_size })
    }

    fn check_tokens(&self, tokens: &[TokenId]) -> Result<(), SessionError> {
        let vocab_size = self.model.config.vocab_size;
        match tokens.iter().find(|token| token.index() >= vocab_size) {
            Some(&token) => Err(SessionError::UnknownToken { token, vocab_size }),
            None => Ok(()),
        }
    }

    /// Writes the hidden states that a draft head reads, normed: after the prompt, and at each of
    /// the head's placeholders, `[1 + placeholders, D]`. One pass over the prompt and the
    /// placeholders after it, which count as prompt tokens of the plan. No decode pass can follow.
    ///
    /// # Errors
    /// When no prompt has been set, the placeholders do not fit after it, or an encoder reads it.
    ///
    /// # Panics
    /// When `states` is of another shape, for one that the head was made for a model of another
    /// width.
    pub fn draft_states(
        &mut self,
        head: &DraftHead,
        states: &mut [f32],
    ) -> Result<(), SessionError> {
        if self.encoder.is_some() {
            return Err(SessionError::NoDraft);
        }
        let (d, max) = (self.model.config.hidden_size, self.options.max_prompt_tokens);
        let (tokens, wanted) =
            (self.prompt.len() + head.num_placeholders(), 1 + head.num_placeholders());
        assert_eq!(states.len(), wanted * d, "a state for the prompt and each placeholder");
        if tokens > max {
            return Err(SessionError::PromptTooLong { tokens, max });
        }
        self.prefill(head.placeholders(), wanted)?;
        self.num_rows = 0;
        let hidden = &self.hidden[(tokens - wanted) * d..tokens * d];
        let norm = &self.model.weights.final_norm;
        rms_norm_rows(states, hidden, norm, self.model.config.rms_norm_eps);
        Ok(())
    }

    /// Runs the prompt through all layers. Each takes two rounds over its blocks, since a row looks
    /// at the keys of all rows before it. Rows of `placeholders`, `[_, D]`, come after the
    /// prompt's. Leaves the residual stream in `hidden`, that of the last `wanted` rows: nothing
    /// but keys and values is needed of the others in the last layer, and those of its first rows
    /// may be known from earlier prompts.
    fn prefill(&mut self, placeholders: &[f32], wanted: usize) -> Result<(), SessionError> {
        if self.prompt.is_empty() {
            return Err(SessionError::NoPrompt);
        }
        self.encode();
        let (model, config) = (&*self.model, &self.model.config);
        let d = config.hidden_size;
        let all = self.prompt.len() + placeholders.len() / d;
        let store = model.prompt_store.as_deref();
        let kept = store.filter(|_| self.keeps_prompts);
        let known = kept.map_or(0, |store| {
            let prompt = &self.prompt[..all - wanted];
            store.read(prompt, &mut self.prompt_cache, &mut self.store_pages)
        });
        if let Some(store) = store {
            store.count_computed(self.prompt.len() - known);
        }
        let rows = all - known;
        let threads = threads_for(model, rows, self.used_threads.clamp(1, self.workspaces.len()));
        let block = block_rows(rows, threads);
        let workspaces = &mut self.workspaces[..threads];
        let hidden = &mut self.hidden[known * d..all * d];
        let (of_prompt, after) = hidden.split_at_mut((self.prompt.len() - known) * d);
        for (row, &token) in of_prompt.chunks_exact_mut(d).zip(&self.prompt[known..]) {
            model.weights.embed(token, row);
        }
        after.copy_from_slice(placeholders);
        let shape = HeadShape::of(config);
        let (ropes, encoder) = (&self.ropes, self.encoder.as_ref());
        for (index, layer) in model.weights.layers.iter().enumerate() {
            let encoded = encoder.map(|run| run.layer(index));
            let at = |first| Positions { encoded, ..ropes.positions(config, index, first, 1) };
            let cache = self.prompt_cache.blocks_mut(ONLY_PAGE[0], index, known, block);
            let blocks = hidden.chunks(block * d).zip(cache).enumerate();
            for_each_block(workspaces, blocks, |workspace, (place, (hidden, cache))| {
                let positions = at(known + place * block);
                let key_values =
                    workspace.project_keys_and_values(config, layer, positions, hidden);
                store_block(&shape, key_values, 0, cache);
            });
            let cache = self.prompt_cache.layer(ONLY_PAGE, index);
            // Few enough for one block, or all.
            if wanted < rows.min(block) && index + 1 == config.num_hidden_layers {
                let (first, last) = (rows - wanted, &mut hidden[(rows - wanted) * d..]);
                let positions = at(known + first);
                workspaces[0].finish_prompt_layer(config, layer, positions, cache, last);
                break;
            }
            let blocks = hidden.chunks_mut(block * d).enumerate();
            for_each_block(workspaces, blocks, |workspace, (place, hidden)| {
                let positions = at(known + place * block);
                workspace.finish_prompt_layer(config, layer, positions, cache, hidden);
            });
        }
        if let Some(store) = kept {
            store.keep(&self.prompt, &self.prompt_cache, &mut self.store_pages);
        }
        Ok(())
    }

    /// Has the encoder read its prompt, where there is one.
    fn encode(&mut self) {
        let Some(run) = &mut self.encoder else { return };
        let layers = self.model.weights.encoder.iter().flat_map(|encoder| &encoder.layers);
        let values: usize = layers.map(LayerWeights::num_matrix_values).sum();
        let operations = run.num_tokens().saturating_mul(2 * values);
        let most = self.used_threads.clamp(1, self.workspaces.len());
        let threads = worthwhile_threads(operations, most);
        run.run(&self.model, &mut self.workspaces[..threads]);
    }

    /// Runs one token of every beam through all layers. Beams do not look at each other's newest
    /// tokens, so that a block goes from its embeddings to its logits without waiting for others.
    fn decode(&mut self, tokens: &[TokenId], columns: Range<usize>) {
        let (model, config) = (&*self.model, &self.model.config);
        let (rows, d) = (tokens.len(), config.hidden_size);
        let threads = self.threads_for(rows);
        let block = block_rows(rows, threads);
        let prompt_tokens = self.prompt.len();
        let first = prompt_tokens + self.passes - 1;
        let (shape, slot_width) = (HeadShape::of(config), self.beams.slot_width());
        let width = shape.key_value_width();
        let (earlier, current) = self.beams.split_at_pass(self.passes - 1, rows);
        let hidden = self.hidden[..rows * d].chunks_mut(block * d);
        let logits = self.logits[..rows * columns.len()].chunks_mut(block * columns.len());
        let blocks = hidden
            .zip(tokens.chunks(block))
            .zip(current.chunks_mut(block * slot_width))
            .zip(logits)
            .enumerate();
        let (prompt_cache, ropes) = (&self.prompt_cache, &self.ropes);
        let encoder = self.encoder.as_ref();
        let workspaces = &mut self.workspaces[..threads];
        for_each_block(
            workspaces,
            blocks,
            |workspace, (place, (((hidden, tokens), slots), logits))| {
                for (row, &token) in hidden.chunks_exact_mut(d).zip(tokens) {
                    model.weights.embed(token, row);
                }
                for (index, layer) in model.weights.layers.iter().enumerate() {
                    let encoded = encoder.map(|run| run.layer(index));
                    let positions =
                        Positions { encoded, ..ropes.positions(config, index, first, 0) };
                    let key_values =
                        workspace.project_keys_and_values(config, layer, positions, hidden);
                    let places = slots.chunks_exact_mut(slot_width);
                    for (slot, row) in places.zip(key_values.chunks_exact(2 * width)) {
                        slot[index * 2 * width..][..2 * width].copy_from_slice(row);
                    }
                    let first_beam = place * block;
                    let own = OwnPart { earlier, current: slots, first_beam, layer: index, width };
                    let prompt = (prompt_cache.layer(ONLY_PAGE, index), prompt_tokens);
                    workspace.finish_beam_layer(config, layer, positions, prompt, own, hidden);
                }
                workspace.logits(model, hidden, columns.clone(), logits);
            },
        );
    }

    /// Number of threads that a pass of `rows` rows is worth.
    fn threads_for(&self, rows: usize) -> usize {
        threads_for(&self.model, rows, self.used_threads.clamp(1, self.workspaces.len()))
    }
}

/// Number of threads that a pass of `rows` rows is worth, at most `threads`.
pub(crate) fn threads_for(model: &Model, rows: usize, threads: usize) -> usize {
    let layer = model.weights.layers.first().map_or(0, LayerWeights::num_matrix_values);
    let operations = rows.saturating_mul(2 * layer * model.weights.layers.len());
    worthwhile_threads(operations, threads)
}

fn planned_bytes(config: &ModelConfig, plan: &Plan<'_>) -> Result<PlannedBytes, SessionError> {
    let (prompt, passes) = (plan.options.max_prompt_tokens, plan.options.max_decode_passes);
    let max = config.max_position_embeddings;
    if prompt.saturating_add(passes) > max {
        return Err(SessionError::TooManyPositions { prompt, passes, max });
    }
    PlannedBytes::count(config, plan).ok_or_else(|| plan_too_large(&plan.options, None))
}

fn plan_too_large(options: &SessionOptions, bytes: Option<usize>) -> SessionError {
    let (prompt, beams) = (options.max_prompt_tokens, options.max_beams);
    SessionError::PlanTooLarge { prompt, beams, bytes }
}

impl LogitsSource for Session {
    type Error = SessionError;

    fn num_tokens(&self) -> usize {
        self.model.config.vocab_size
    }

    fn prompt_logits(&mut self) -> Result<&[f32], SessionError> {
        let all = 0..self.model.config.vocab_size;
        match self.prompt_read {
            true => self.prompt_logits_again(all),
            false => self.prompt_logits_of(all),
        }
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        self.next_logits_of(parents, tokens, 0..self.model.config.vocab_size)
    }

    fn logits(&mut self) -> Result<&[f32], SessionError> {
        Ok(&self.logits[..self.num_logits])
    }

    /// One pass, whatever the number of tokens, as long as there was no decode pass since the
    /// prompt; the tokens then count as the prompt's. Where an encoder reads that, a decode pass
    /// each.
    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        if self.passes == 0 && self.encoder.is_none() {
            self.extend_prompt(tokens)?;
            return self.prompt_logits_again(0..self.model.config.vocab_size);
        }
        if !self.prompt_read {
            return Err(SessionError::NoPass);
        }
        append_one_by_one(self, tokens)
    }
}

#[cfg(test)]
mod tests;
