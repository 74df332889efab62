//! Several sequences in one pass: keys and values in pages, rows of all sequences side by side.

use std::ops::Range;
use std::sync::Arc;

use crate::allocation::{product, sum, zeroed};
use crate::attention::QUERY_ROWS;
use crate::blocks::{MAX_BLOCK_ROWS, block_rows, for_each_block};
use crate::config::ModelConfig;
use crate::head_shape::HeadShape;
use crate::kernels::PanelRow;
use crate::key_values::{KeyValues, key_rows, value_rows};
use crate::layers::Workspace;
use crate::model::Model;
use crate::sequence_slots::{PassLimits, SequenceSlots, StoredSequence};
use crate::sequence_store::{SequenceId, SequenceStore, SequencesError, SequencesOptions, Stretch};
use crate::session::{Ropes, threads_for};

/// Tokens of a page of keys and values: whole panels.
const PAGE_TOKENS: usize = SequencesOptions::PAGE_TOKENS;

/// The bytes of what [`Sequences::new`] takes, by what they hold. The model's weights are not
/// included.
///
/// Letters as in [`ModelConfig`] and [`SequencesOptions`], P the pages and T their tokens, but no
/// more than the model has positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequencesBytes {
    /// Keys and values: 4 · layers · 64 · P · (G·C + G·C₁₆), where C₁₆ is C rounded up to a
    /// multiple of 16.
    pub key_values: usize,
    /// Lists of pages: 4 · N · T / 64 for the sequences, 8 · P for which are free and who shares
    /// them.
    pub pages: usize,
    /// Rows between layers with their keys and values, the last rows of sequences, and for each of
    /// `threads` a block of min(192, R) rows: 4 · R · (D + 2 G·C) + 4 · N · D + 4 · threads ·
    /// min(192, R) · (D + 2 H·C + 2 G·C + F).
    pub activations: usize,
    /// Attention scores of one head, for each thread: 4 · threads · min(24, R) · T.
    pub scores: usize,
    /// Logits of a row of each sequence: 4 · N · V.
    pub logits: usize,
    /// Rotary angles: 4 · C · T, twice where layers with a sliding window have positions of their
    /// own.
    pub positions: usize,
}

/// Several sequences through a model, each growing by itself, computed in passes over rows of any
/// of them.
///
/// In a pass the rows of all sequences stand side by side, so that each weight is read once for all
/// of them; attention is computed for each sequence apart. A row's bits depend neither on the rows
/// beside it, nor on how a sequence is divided among passes, nor on the threads: logits are those
/// that a [`Session`](crate::Session) gives for the sequence alone, to the bit.
///
/// Keys and values lie in pages, which a sequence takes as it grows and which a [fork](SequenceStore::fork)
/// shares. All memory is taken when the sequences are planned; on one thread a pass allocates
/// nothing. Source of the pages: vLLM, arXiv 2309.06180, §4.1.
#[derive(Debug)]
pub struct Sequences {
    model: Arc<Model>,
    options: SequencesOptions,
    /// Positions that a sequence can have.
    max_positions: usize,
    cache: KeyValues,
    slots: SequenceSlots<PageList>,
    free_pages: Vec<u32>,
    /// Sequences that have each page.
    holders: Vec<u32>,
    ropes: Ropes,
    /// The residual stream, `[R, D]`.
    hidden: Vec<f32>,
    /// Keys and values of a layer before they are stored, `[R, 2, G·C]`.
    key_values: Vec<f32>,
    /// Rows whose logits are wanted, `[N, D]`.
    last: Vec<f32>,
    /// One for each thread.
    workspaces: Vec<Workspace>,
    /// `[N, V]`
    logits: Vec<f32>,
    /// Stretches of the latest pass.
    runs: Vec<Run>,
}

/// A sequence's pages, in the order of their tokens.
#[derive(Debug)]
struct PageList {
    pages: Vec<u32>,
    tokens: usize,
}

impl StoredSequence for PageList {
    fn num_tokens(&self) -> usize {
        self.tokens
    }

    fn num_pages(&self) -> usize {
        self.pages.len()
    }
}

/// Rows of a pass that are one sequence's.
#[derive(Clone, Copy, Debug)]
struct Run {
    slot: u32,
    /// Position of the first row.
    first: usize,
    /// Row of the pass at which it begins.
    start: usize,
    rows: usize,
    /// Row of its logits, where they are wanted.
    logits: Option<usize>,
}

impl Sequences {
    /// Plans and allocates everything that passes will need.
    ///
    /// # Errors
    /// When the plan needs more memory than there is, or the model is an encoder–decoder.
    pub fn new(model: &Arc<Model>, options: SequencesOptions) -> Result<Self, SequencesError> {
        if model.config.architecture.encoder.is_some() {
            return Err(SequencesError::EncoderDecoder);
        }
        let options = options.at_least_one();
        let planned = Self::planned_bytes(&model.config, &options)?;
        Self::allocate(model, options, &planned).ok_or_else(|| plan_too_large(&options))
    }

    /// The memory that [`new`](Self::new) would take for a model of this shape, by part.
    ///
    /// # Errors
    /// When the bytes cannot be counted.
    pub fn planned_bytes(
        config: &ModelConfig,
        options: &SequencesOptions,
    ) -> Result<SequencesBytes, SequencesError> {
        SequencesBytes::count(config, &options.at_least_one())
            .ok_or_else(|| plan_too_large(options))
    }

    /// `None` where there is not the memory for it.
    fn allocate(
        model: &Arc<Model>,
        options: SequencesOptions,
        planned: &SequencesBytes,
    ) -> Option<Self> {
        // As a session does: a system that hands out memory lazily refuses the whole, but not the
        // same in parts.
        let mut whole = Vec::<u8>::new();
        std::hint::black_box(&mut whole).try_reserve_exact(planned.total()).ok()?;
        drop(std::hint::black_box(whole));

        let config = &model.config;
        let SequencesOptions { max_sequences, max_rows, .. } = options;
        let (shape, layers) = (HeadShape::of(config), config.num_hidden_layers);
        let pages = num_pages(&options)?;
        let max_positions = max_positions(config, pages);
        let block = MAX_BLOCK_ROWS.min(max_rows);
        let score_places = QUERY_ROWS.min(block) * max_positions;
        let workspace = |_| Workspace::new(model, block, score_places);
        let list = |_| {
            let mut pages = Vec::new();
            pages.try_reserve_exact(max_positions.div_ceil(PAGE_TOKENS)).ok()?;
            Some(PageList { pages, tokens: 0 })
        };
        let lists = (0..max_sequences).map(list).collect::<Option<Vec<_>>>()?;
        let width = 2 * shape.key_value_width();
        Some(Self {
            model: Arc::clone(model),
            options,
            max_positions,
            cache: KeyValues::new(shape, layers, pages, PAGE_TOKENS)?,
            slots: SequenceSlots::new(lists),
            free_pages: (0..pages as u32).rev().collect(),
            holders: zeroed(pages)?,
            ropes: Ropes::new(model, max_positions)?,
            hidden: zeroed(max_rows * config.hidden_size)?,
            key_values: zeroed(max_rows * width)?,
            last: zeroed(max_sequences * config.hidden_size)?,
            workspaces: (0..workspaces(&options)).map(workspace).collect::<Option<_>>()?,
            logits: zeroed(max_sequences * config.vocab_size)?,
            runs: Vec::with_capacity(max_sequences),
        })
    }

    /// The model.
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// Number of pages that a sequence would take to grow by `more` tokens.
    ///
    /// # Errors
    /// When there is no such sequence.
    pub fn pages_for(&self, sequence: SequenceId, more: usize) -> Result<usize, SequencesError> {
        Ok(self.slots[self.slots.find(sequence)?].more_pages(more))
    }

    /// Gives each stretch its rows, pages and embeddings.
    fn take_rows(&mut self, stretches: &[Stretch<'_>]) {
        let d = self.model.config.hidden_size;
        self.runs.clear();
        let (mut start, mut logits) = (0, 0..);
        for Stretch { sequence, tokens, wants_logits } in stretches {
            let place = sequence.slot as usize;
            for _ in 0..self.slots[place].more_pages(tokens.len()) {
                self.take_page(place);
            }
            let slot = &mut self.slots[place];
            let (first, rows) = (slot.tokens, tokens.len());
            slot.tokens += rows;
            let logits = wants_logits.then(|| logits.next()).flatten();
            self.runs.push(Run { slot: sequence.slot, first, start, rows, logits });
            let hidden = &mut self.hidden[start * d..(start + rows) * d];
            for (row, &token) in hidden.chunks_exact_mut(d).zip(*tokens) {
                self.model.weights.embed(token, row);
            }
            start += rows;
        }
    }

    fn take_page(&mut self, slot: usize) {
        let page = self.free_pages.pop().expect("pages were counted");
        self.holders[page as usize] = 1;
        self.slots[slot].pages.push(page);
    }

    fn give_page_back(&mut self, page: u32) {
        let holders = &mut self.holders[page as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free_pages.push(page);
        }
    }

    /// Runs all rows through all layers. Each takes two rounds over its blocks, since a row looks
    /// at the keys of rows before it, which may be of another block.
    fn run_layers(&mut self, rows: usize, threads: usize) {
        let (model, config) = (&*self.model, &self.model.config);
        let (d, width) = (config.hidden_size, 2 * config.key_value_width());
        let block = block_rows(rows, threads);
        let workspaces = &mut self.workspaces[..threads];
        let hidden = &mut self.hidden[..rows * d];
        let (slots, runs, ropes) = (&self.slots, &self.runs, &self.ropes);
        for (index, layer) in model.weights.layers.iter().enumerate() {
            let positions = |first| ropes.positions(config, index, first, 1);
            let key_values = self.key_values[..rows * width].chunks_mut(block * width);
            let blocks = hidden.chunks(block * d).zip(key_values).enumerate();
            for_each_block(workspaces, blocks, |workspace, (place, (hidden, key_values))| {
                let runs = runs_in(runs, place * block, hidden.len() / d)
                    .map(|run| (run.rows, positions(run.first)));
                let of = workspace.project_keys_and_values_of(config, layer, runs, hidden);
                key_values.copy_from_slice(of);
            });
            for run in runs {
                let rows = &self.key_values[run.start * width..][..run.rows * width];
                self.cache.store(&slots[run.slot as usize].pages, index, run.first, rows);
            }
            let cache = &self.cache;
            let blocks = hidden.chunks_mut(block * d).enumerate();
            for_each_block(workspaces, blocks, |workspace, (place, hidden)| {
                let runs = runs_in(runs, place * block, hidden.len() / d).map(|run| {
                    let part = cache.layer(&slots[run.slot as usize].pages, index);
                    (run.rows, positions(run.first), part)
                });
                workspace.finish_layer_of(config, layer, runs, hidden);
            });
        }
    }

    /// Gathers the rows whose logits are wanted; their number.
    fn take_last_rows(&mut self) -> usize {
        let d = self.model.config.hidden_size;
        let mut rows = 0;
        for run in self.runs.iter().filter(|run| run.logits.is_some()) {
            let last = (run.start + run.rows - 1) * d;
            self.last[rows * d..][..d].copy_from_slice(&self.hidden[last..][..d]);
            rows += 1;
        }
        rows
    }

    /// Computes the logits of the rows that were gathered.
    fn run_head(&mut self, rows: usize, threads: usize) {
        let model = &*self.model;
        let (d, vocab) = (model.config.hidden_size, model.config.vocab_size);
        if rows == 0 {
            return;
        }
        let block = block_rows(rows, threads);
        let last = self.last[..rows * d].chunks(block * d);
        let blocks = last.zip(self.logits[..rows * vocab].chunks_mut(block * vocab));
        for_each_block(&mut self.workspaces[..threads], blocks, |workspace, (rows, logits)| {
            workspace.logits(model, rows, 0..vocab, logits);
        });
    }
}

impl SequenceStore for Sequences {
    fn options(&self) -> &SequencesOptions {
        &self.options
    }

    fn max_positions(&self) -> usize {
        self.max_positions
    }

    fn free_pages(&self) -> usize {
        self.free_pages.len()
    }

    fn add(&mut self) -> Result<SequenceId, SequencesError> {
        self.slots.add()
    }

    fn fork(&mut self, sequence: SequenceId, tokens: usize) -> Result<SequenceId, SequencesError> {
        let of = self.slots.find(sequence)?;
        let has = self.slots[of].tokens;
        if tokens > has {
            return Err(SequencesError::FewerTokens { tokens, has });
        }
        let (whole, has_open_page) = (tokens / PAGE_TOKENS, !tokens.is_multiple_of(PAGE_TOKENS));
        if has_open_page && self.free_pages.is_empty() {
            return Err(SequencesError::NoRoom { needed: 1, free: 0 });
        }
        let id = self.slots.add()?;
        let fork = id.slot as usize;
        for place in 0..whole {
            let page = self.slots[of].pages[place];
            self.holders[page as usize] += 1;
            self.slots[fork].pages.push(page);
        }
        if has_open_page {
            let from = self.slots[of].pages[whole];
            self.take_page(fork);
            self.cache.copy(from, self.slots[fork].pages[whole]);
        }
        self.slots[fork].tokens = tokens;
        Ok(id)
    }

    fn remove(&mut self, sequence: SequenceId) -> Result<(), SequencesError> {
        let place = self.slots.remove(sequence)?;
        while let Some(page) = self.slots[place].pages.pop() {
            self.give_page_back(page);
        }
        self.slots[place].tokens = 0;
        Ok(())
    }

    fn truncate(
        &mut self,
        sequence: SequenceId,
        tokens: usize,
    ) -> Result<SequenceId, SequencesError> {
        let place = self.slots.find(sequence)?;
        let has = self.slots[place].tokens;
        if tokens > has {
            return Err(SequencesError::FewerTokens { tokens, has });
        }
        let pages = tokens.div_ceil(PAGE_TOKENS);
        let last = self.slots[place].pages[..pages].last();
        // A page that others have is not written to.
        if !tokens.is_multiple_of(PAGE_TOKENS)
            && last.is_some_and(|&page| self.holders[page as usize] > 1)
        {
            let fork = self.fork(sequence, tokens)?;
            self.remove(sequence)?;
            return Ok(fork);
        }
        while self.slots[place].pages.len() > pages {
            let page = self.slots[place].pages.pop();
            page.into_iter().for_each(|page| self.give_page_back(page));
        }
        self.slots[place].tokens = tokens;
        Ok(sequence)
    }

    fn num_tokens(&self, sequence: SequenceId) -> Result<usize, SequencesError> {
        Ok(self.slots[self.slots.find(sequence)?].tokens)
    }

    fn pass(&mut self, stretches: &[Stretch<'_>]) -> Result<(), SequencesError> {
        let limits = PassLimits {
            vocab_size: self.model.config.vocab_size,
            max_rows: self.options.max_rows,
            max_positions: self.max_positions,
            free_pages: self.free_pages.len(),
        };
        self.slots.check(stretches, &limits)?;
        self.take_rows(stretches);
        let rows = self.runs.last().map_or(0, |run| run.start + run.rows);
        if rows > 0 {
            let threads = threads_for(&self.model, rows, self.workspaces.len());
            self.run_layers(rows, threads);
            let wanted = self.take_last_rows();
            self.run_head(wanted, threads);
        }
        Ok(())
    }

    fn logits(&self, place: usize) -> Option<&[f32]> {
        let vocab = self.model.config.vocab_size;
        let row = self.runs.get(place)?.logits?;
        Some(&self.logits[row * vocab..(row + 1) * vocab])
    }

    fn logits_of_rows(
        &mut self,
        place: usize,
        rows: Range<usize>,
    ) -> Result<Option<&[f32]>, SequencesError> {
        let Some(&run) = self.runs.get(place) else { return Ok(None) };
        if rows.end > run.rows || rows.len() > self.options.max_sequences {
            return Ok(None);
        }
        let (d, vocab) = (self.model.config.hidden_size, self.model.config.vocab_size);
        let (first, count) = (run.start + rows.start, rows.len());
        self.last[..count * d].copy_from_slice(&self.hidden[first * d..][..count * d]);
        self.runs.iter_mut().for_each(|run| run.logits = None);
        self.run_head(count, threads_for(&self.model, count, self.workspaces.len()));
        Ok(Some(&self.logits[..count * vocab]))
    }
}

/// The parts of runs that lie in a block of rows.
fn runs_in(runs: &[Run], start: usize, rows: usize) -> impl Iterator<Item = Run> + Clone {
    let end = start + rows;
    let first = runs.partition_point(|run| run.start + run.rows <= start);
    runs[first..].iter().take_while(move |run| run.start < end).map(move |run| {
        let (from, to) = (run.start.max(start), (run.start + run.rows).min(end));
        Run { first: run.first + (from - run.start), start: from, rows: to - from, ..*run }
    })
}

/// `None` where pages have more numbers than there are.
fn num_pages(options: &SequencesOptions) -> Option<usize> {
    let pages = options.max_tokens.div_ceil(PAGE_TOKENS);
    u32::try_from(pages).is_ok().then_some(pages)
}

fn max_positions(config: &ModelConfig, pages: usize) -> usize {
    config.max_position_embeddings.min(pages.saturating_mul(PAGE_TOKENS))
}

/// Workspaces: one a thread, as far as there are rows for them.
fn workspaces(options: &SequencesOptions) -> usize {
    options.threads.min(options.max_rows)
}

fn plan_too_large(options: &SequencesOptions) -> SequencesError {
    let SequencesOptions { max_sequences: sequences, max_tokens: tokens, .. } = *options;
    SequencesError::PlanTooLarge { sequences, tokens }
}

impl SequencesBytes {
    /// `None` when there are more bytes than an address can count.
    fn count(config: &ModelConfig, options: &SequencesOptions) -> Option<Self> {
        const FLOAT: usize = size_of::<f32>();
        let SequencesOptions { max_sequences: n, max_rows: r, .. } = *options;
        let (d, f, c) = (config.hidden_size, config.intermediate_size, config.head_dim);
        let kv = product(&[2, config.num_key_value_heads, c])?;
        let shape = HeadShape::of(config);
        let pages = num_pages(options)?;
        let positions = max_positions(config, pages);
        let page = sum(&[key_rows(&shape, PAGE_TOKENS), value_rows(&shape, PAGE_TOKENS)])?;
        let lists = product(&[n, positions.div_ceil(PAGE_TOKENS)])?;
        let (threads, block) = (workspaces(options), MAX_BLOCK_ROWS.min(r));
        let widths = [d, product(&[2, config.num_attention_heads, c])?, kv, f];
        let tables = config.architecture.num_rope_tables();
        let planned = Self {
            key_values: product(&[size_of::<PanelRow>(), page, config.num_hidden_layers, pages])?,
            pages: product(&[size_of::<u32>(), sum(&[lists, product(&[2, pages])?])?])?,
            activations: sum(&[
                product(&[FLOAT, r, sum(&[d, kv])?])?,
                product(&[FLOAT, n, d])?,
                product(&[FLOAT, threads, block, sum(&widths)?])?,
            ])?,
            scores: product(&[FLOAT, threads, QUERY_ROWS.min(block), positions])?,
            logits: product(&[FLOAT, n, config.vocab_size])?,
            positions: product(&[FLOAT, tables, c, positions])?,
        };
        isize::try_from(sum(&planned.parts())?).is_ok().then_some(planned)
    }

    /// All parts together.
    pub fn total(&self) -> usize {
        self.parts().into_iter().fold(0, usize::saturating_add)
    }

    fn parts(&self) -> [usize; 6] {
        let Self { key_values, pages, activations, scores, logits, positions } = *self;
        [key_values, pages, activations, scores, logits, positions]
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The formulas of [`SequencesBytes`] against what is allocated.
    #[test]
    fn planned_bytes_are_those_taken() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tied_f32");
        let model = Arc::new(Model::load(&dir).unwrap());
        for (max_sequences, max_tokens, max_rows, threads) in
            [(4, 500, 32, 1), (1, 1, 1, 3), (9, 64, 300, 2), (3, 100_000, 8, 0), (0, 0, 0, 1)]
        {
            let options = SequencesOptions { max_sequences, max_tokens, max_rows, threads };
            let planned = Sequences::planned_bytes(&model.config, &options).unwrap();
            let taken = Sequences::new(&model, options).unwrap();
            let lists: usize = taken.slots.iter().map(|slot| slot.pages.capacity()).sum();
            let lists = lists + taken.free_pages.len() + taken.holders.len();
            let rows = [&taken.hidden, &taken.key_values, &taken.last];
            let rows: usize = rows.into_iter().map(|rows| size_of_val(&**rows)).sum();
            let (blocks, scores): (Vec<usize>, Vec<usize>) =
                taken.workspaces.iter().map(Workspace::bytes).unzip();
            let want = SequencesBytes {
                key_values: taken.cache.bytes(),
                pages: 4 * lists,
                activations: rows + blocks.iter().sum::<usize>(),
                scores: scores.iter().sum(),
                logits: size_of_val(&*taken.logits),
                positions: taken.ropes.bytes(),
            };
            assert_eq!(planned, want, "{options:?}");
        }
        let options = SequencesOptions {
            max_sequences: 1,
            max_tokens: usize::MAX / 2,
            max_rows: 1,
            threads: 1,
        };
        let error = Sequences::new(&model, options).unwrap_err();
        assert_eq!(error, plan_too_large(&options));
    }
}
