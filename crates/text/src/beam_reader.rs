//! Beams of a whole text, as sequences that grow from step to step.

use palmette_core::TokenId;
use palmette_decode::{Extension, Pass, Step, StepBackend, TopK};
use palmette_model::{SequenceId, SequenceStore, SequencesOptions, Stretch};

use crate::error::TextError;
use crate::model::TextModel;

/// Backend of a text's beam search, over sequences in memory of its own.
///
/// Each beam is a sequence: one that goes on once keeps it, others are forks, and a beam that
/// nothing came of is removed first, so there are never more than the width. The prompt is read
/// once, and its whole pages are shared.
#[derive(Debug)]
pub(crate) struct BeamReader {
    sequences: Box<dyn SequenceStore>,
    prompt: Vec<TokenId>,
    /// A sequence for each row of the latest pass, and for each of the next.
    beams: Vec<SequenceId>,
    next: Vec<Option<SequenceId>>,
    /// Rows of the latest pass that a row of the next has taken over.
    taken: Vec<bool>,
    /// Logits of the step's rows, as long as the vocabulary. Shape: `[rows, V]`.
    logits: Vec<f32>,
    num_tokens: usize,
    top_k: TopK,
    /// Passes that were made, and their rows.
    pub(crate) passes: (u64, u64),
}

impl BeamReader {
    /// Tokens that so many beams keep after a prompt, in whole pages.
    pub(crate) fn planned_tokens(prompt: usize, width: usize, max_tokens: usize) -> usize {
        let shared = prompt / SequencesOptions::PAGE_TOKENS;
        let whole = prompt.saturating_add(max_tokens).div_ceil(SequencesOptions::PAGE_TOKENS);
        let own = width.saturating_mul(whole - shared);
        own.saturating_add(shared).saturating_mul(SequencesOptions::PAGE_TOKENS)
    }

    /// A reader for texts of so many tokens after a prompt, of which `width` are read at once.
    ///
    /// # Errors
    /// When there is not the memory.
    pub(crate) fn new(
        model: &TextModel,
        prompt: &[TokenId],
        width: usize,
        max_tokens: usize,
    ) -> Result<Self, TextError> {
        let options = SequencesOptions {
            max_sequences: width,
            max_tokens: Self::planned_tokens(prompt.len(), width, max_tokens),
            max_rows: width.max(model.engine().sequence_rows()),
            threads: model.threads(),
        };
        let sequences = model.engine().open_sequences(options)?;
        let num_tokens = model.vocabulary().vocabulary().num_tokens();
        Ok(Self {
            sequences,
            prompt: prompt.to_vec(),
            beams: Vec::with_capacity(width),
            next: Vec::with_capacity(width),
            taken: Vec::with_capacity(width),
            logits: Vec::new(),
            num_tokens,
            top_k: TopK::with_capacity(width),
            passes: (0, 0),
        })
    }

    /// Reads the prompt, for the one beam that there is at first.
    fn read_prompt(&mut self) -> Result<(), TextError> {
        for beam in self.beams.drain(..) {
            self.sequences.remove(beam)?;
        }
        let sequence = self.sequences.add()?;
        self.beams.push(sequence);
        let max_rows = self.sequences.options().max_rows;
        let mut chunks = self.prompt.chunks(max_rows).peekable();
        while let Some(tokens) = chunks.next() {
            let wants_logits = chunks.peek().is_none();
            self.sequences.pass(&[Stretch { sequence, tokens, wants_logits }])?;
            self.passes.0 += 1;
            self.passes.1 += tokens.len() as u64;
        }
        Ok(())
    }

    /// Gives each row of a pass the sequence of its parent, or a fork of it.
    fn follow(&mut self, parents: &[u32]) -> Result<(), TextError> {
        self.taken.clear();
        self.taken.resize(self.beams.len(), false);
        self.next.clear();
        for &parent in parents {
            let is_first = !std::mem::replace(&mut self.taken[parent as usize], true);
            self.next.push(is_first.then_some(self.beams[parent as usize]));
        }
        for (&beam, _) in self.beams.iter().zip(&self.taken).filter(|(_, taken)| !**taken) {
            self.sequences.remove(beam)?;
        }
        for (next, &parent) in self.next.iter_mut().zip(parents) {
            if next.is_none() {
                let beam = self.beams[parent as usize];
                let read = self.sequences.num_tokens(beam)?;
                *next = Some(self.sequences.fork(beam, read)?);
            }
        }
        self.beams.clear();
        self.beams.extend(self.next.iter().flatten());
        Ok(())
    }

    /// Takes the logits of the latest pass. A row that is longer than the vocabulary is padding at
    /// its end; what a shorter one lacks has no probability.
    fn take_logits(&mut self) {
        self.logits.clear();
        for place in 0..self.beams.len() {
            let row = self.sequences.logits(place).unwrap_or_default();
            self.logits.extend_from_slice(&row[..row.len().min(self.num_tokens)]);
            self.logits.resize((place + 1) * self.num_tokens, f32::NEG_INFINITY);
        }
    }
}

impl StepBackend for BeamReader {
    type Error = TextError;

    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), TextError> {
        if pass.index == 0 {
            self.read_prompt()?;
        } else {
            self.follow(pass.parents)?;
            let tokens = pass.tokens.chunks(1);
            let stretches: Vec<Stretch<'_>> = self
                .beams
                .iter()
                .zip(tokens)
                .map(|(&sequence, tokens)| Stretch { sequence, tokens, wants_logits: true })
                .collect();
            self.sequences.pass(&stretches)?;
            self.passes.0 += 1;
            self.passes.1 += stretches.len() as u64;
        }
        self.take_logits();
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), TextError> {
        Ok(self.top_k.select(step, &self.logits, 0..self.num_tokens, |_, _| true, best)?)
    }
}
