//! Beams of a whole text, as sequences that grow from step to step.

use palmette_core::TokenId;
use palmette_decode::{Extension, Pass, Step, StepBackend, TopK};
use palmette_model::{SequenceId, SequenceStore, SequencesError, SequencesOptions, Stretch};

use crate::error::TextError;
use crate::model::TextModel;

/// Side of a search that reads its rows: a store of its own, or an engine's passes.
pub(crate) trait BeamRows {
    /// Reads the prompt, and gives the logits after it.
    ///
    /// # Errors
    /// When it cannot be computed.
    fn read_prompt(&mut self, logits: &mut RowLogits) -> Result<(), TextError>;

    /// Reads a token behind each of these rows of the pass before, and gives the logits after each.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn read(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        logits: &mut RowLogits,
    ) -> Result<(), TextError>;
}

/// Logits of a step's rows, as long as the vocabulary. Shape: `[rows, V]`.
#[derive(Debug, Default)]
pub(crate) struct RowLogits {
    values: Vec<f32>,
    num_tokens: usize,
}

impl RowLogits {
    /// Logits over a vocabulary, without rows.
    pub(crate) fn new(num_tokens: usize) -> Self {
        Self { values: Vec::new(), num_tokens }
    }

    pub(crate) fn clear(&mut self) {
        self.values.clear();
    }

    /// Adds a row. One that is longer than the vocabulary is padding at its end; what a shorter one
    /// lacks has no probability.
    pub(crate) fn push(&mut self, row: &[f32]) {
        let end = self.values.len() + self.num_tokens;
        self.values.extend_from_slice(&row[..row.len().min(self.num_tokens)]);
        self.values.resize(end, f32::NEG_INFINITY);
    }
}

/// Backend of a text's beam search, over logits of this processor's memory.
#[derive(Debug)]
pub(crate) struct BeamReader<R> {
    rows: R,
    logits: RowLogits,
    num_tokens: usize,
    top_k: TopK,
}

impl<R: BeamRows> BeamReader<R> {
    /// A reader of so many beams at most, over a vocabulary of `num_tokens`.
    pub(crate) fn new(rows: R, width: usize, num_tokens: usize) -> Self {
        let (logits, top_k) = (RowLogits::new(num_tokens), TopK::with_capacity(width));
        Self { rows, logits, num_tokens, top_k }
    }
}

impl<R: BeamRows> StepBackend for BeamReader<R> {
    type Error = TextError;

    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), TextError> {
        self.logits.clear();
        match pass.index {
            0 => self.rows.read_prompt(&mut self.logits),
            _ => self.rows.read(pass.parents, pass.tokens, &mut self.logits),
        }
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), TextError> {
        let columns = 0..self.num_tokens;
        Ok(self.top_k.select(step, &self.logits.values, columns, |_, _| true, best)?)
    }
}

/// Sequences of a search's beams, in any store.
///
/// A beam that goes on once keeps its sequence, others are forks of it, and one that nothing came
/// of is removed first: there are never more sequences than the width. Whole pages of what beams
/// have in common are theirs together.
#[derive(Debug, Default)]
pub(crate) struct BeamSequences {
    /// A sequence for each row of the latest pass.
    beams: Vec<SequenceId>,
    /// Rows of the next pass, as far as they have sequences, and the rows that they follow.
    next: Vec<Option<SequenceId>>,
    parents: Vec<u32>,
    /// Rows of the latest pass that a row of the next has taken over.
    taken: Vec<bool>,
}

impl BeamSequences {
    /// Tokens that so many beams keep after a prompt, in whole pages.
    pub(crate) fn planned_tokens(prompt: usize, width: usize, max_tokens: usize) -> usize {
        let shared = prompt / SequencesOptions::PAGE_TOKENS;
        let whole = prompt.saturating_add(max_tokens).div_ceil(SequencesOptions::PAGE_TOKENS);
        let own = width.saturating_mul(whole - shared);
        own.saturating_add(shared).saturating_mul(SequencesOptions::PAGE_TOKENS)
    }

    /// A sequence for each row.
    pub(crate) fn beams(&self) -> &[SequenceId] {
        &self.beams
    }

    /// Begins with one beam, without tokens.
    ///
    /// # Errors
    /// When there is no place.
    pub(crate) fn begin(&mut self, store: &mut dyn SequenceStore) -> Result<(), SequencesError> {
        self.remove(store)?;
        self.beams.push(store.add()?);
        Ok(())
    }

    /// Gives rows the sequences of these rows of the latest pass, and lets go of those that nothing
    /// follows; [`fork`](Self::fork) is next.
    ///
    /// # Errors
    /// A defect of the store.
    pub(crate) fn follow(
        &mut self,
        store: &mut dyn SequenceStore,
        parents: &[u32],
    ) -> Result<(), SequencesError> {
        self.parents.clear();
        self.parents.extend_from_slice(parents);
        self.taken.clear();
        self.taken.resize(self.beams.len(), false);
        self.next.clear();
        for &parent in parents {
            let is_first = !std::mem::replace(&mut self.taken[parent as usize], true);
            self.next.push(is_first.then_some(self.beams[parent as usize]));
        }
        let mut gone = self.beams.iter().zip(&self.taken).filter(|(_, taken)| !**taken);
        gone.try_for_each(|(&beam, _)| store.remove(beam))
    }

    /// Forks sequences for the rows that have none yet.
    ///
    /// # Errors
    /// When no page is free: again once one is.
    pub(crate) fn fork(&mut self, store: &mut dyn SequenceStore) -> Result<(), SequencesError> {
        for (next, &parent) in self.next.iter_mut().zip(&self.parents) {
            if next.is_none() {
                let beam = self.beams[parent as usize];
                *next = Some(store.fork(beam, store.num_tokens(beam)?)?);
            }
        }
        if !self.next.is_empty() {
            self.beams.clear();
            self.beams.extend(self.next.drain(..).flatten());
        }
        Ok(())
    }

    /// Lets go of all of them.
    ///
    /// # Errors
    /// A defect of the store.
    pub(crate) fn remove(&mut self, store: &mut dyn SequenceStore) -> Result<(), SequencesError> {
        // Of a step that was not forked to its end, what rows have so far.
        let left = match self.next.is_empty() {
            true => std::mem::take(&mut self.beams),
            false => self.next.drain(..).flatten().collect(),
        };
        self.beams.clear();
        left.into_iter().try_for_each(|beam| store.remove(beam))
    }
}

/// Rows of a search in a store of its own.
#[derive(Debug)]
pub(crate) struct OwnRows<'p> {
    store: Box<dyn SequenceStore>,
    beams: BeamSequences,
    prompt: &'p [TokenId],
}

impl<'p> OwnRows<'p> {
    /// A store for texts of so many tokens after a prompt, of which `width` are read at once.
    ///
    /// # Errors
    /// When there is not the memory.
    pub(crate) fn new(
        model: &TextModel,
        prompt: &'p [TokenId],
        (width, max_tokens): (usize, usize),
    ) -> Result<Self, TextError> {
        let options = SequencesOptions {
            max_sequences: width,
            max_tokens: BeamSequences::planned_tokens(prompt.len(), width, max_tokens),
            max_rows: width.max(model.engine().sequence_rows()),
            threads: model.threads(),
        };
        let store = model.engine().open_sequences(options)?;
        Ok(Self { store, beams: BeamSequences::default(), prompt })
    }
}

impl BeamRows for OwnRows<'_> {
    fn read_prompt(&mut self, logits: &mut RowLogits) -> Result<(), TextError> {
        self.beams.begin(&mut *self.store)?;
        let sequence = self.beams.beams()[0];
        let mut chunks = self.prompt.chunks(self.store.options().max_rows).peekable();
        while let Some(tokens) = chunks.next() {
            let wants_logits = chunks.peek().is_none();
            self.store.pass(&[Stretch { sequence, tokens, wants_logits }])?;
        }
        logits.push(self.store.logits(0).unwrap_or_default());
        Ok(())
    }

    fn read(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        logits: &mut RowLogits,
    ) -> Result<(), TextError> {
        self.beams.follow(&mut *self.store, parents)?;
        self.beams.fork(&mut *self.store)?;
        let rows = self.beams.beams().iter().zip(tokens.chunks(1));
        let stretch = |(&sequence, tokens)| Stretch { sequence, tokens, wants_logits: true };
        let stretches: Vec<Stretch<'_>> = rows.map(stretch).collect();
        self.store.pass(&stretches)?;
        for place in 0..tokens.len() {
            logits.push(self.store.logits(place).unwrap_or_default());
        }
        Ok(())
    }
}
