//! Beams of an item after a text, as sequences that begin as it does.

use palmette_core::TokenId;
use palmette_decode::{Extension, Pass, Step, StepBackend, TopK};
use palmette_model::{SequenceId, SequenceStore, SequencesError, SequencesOptions, Stretch};

use crate::error::TextError;
use crate::model::TextModel;
use crate::sequence::{Events, TextSequence};

/// Beams read at once, where there is room: each is a sequence.
pub(crate) const MAX_FORKS: usize = 16;

/// Pages that one beam may take beside its text's: its own copy of the last, and the next.
pub(crate) const BEAM_PAGES: usize = 2;

/// Backend of an item's search: each beam is a fork of the text that reads the item's tokens so
/// far.
///
/// No beam is kept from step to step, so a search takes pages for a few forks, however wide it is;
/// an item's few tokens are read once for each step.
pub(crate) struct SequenceBeams<'s> {
    sequences: &'s mut dyn SequenceStore,
    text: SequenceId,
    /// Logits after the text.
    after_text: &'s [f32],
    num_tokens: usize,
    /// Logits of the step's rows.
    logits: Vec<f32>,
    top_k: TopK,
    /// Passes that were made, and their rows.
    pub(crate) passes: (u64, u64),
    /// True where the search ended since there were no pages for one fork.
    pub(crate) needs_room: bool,
}

impl<'s> SequenceBeams<'s> {
    /// Beams after a text that has been read, over a vocabulary of `num_tokens`.
    pub(crate) fn new(
        sequences: &'s mut dyn SequenceStore,
        text: SequenceId,
        after_text: &'s [f32],
        num_tokens: usize,
    ) -> Self {
        let (logits, top_k) = (Vec::new(), TopK::default());
        let (passes, needs_room) = ((0, 0), false);
        Self { sequences, text, after_text, num_tokens, logits, top_k, passes, needs_room }
    }

    /// Reads some rows of a step in one pass; how many were read: fewer than asked for where there
    /// is not the room, one at least.
    fn read(&mut self, pass: &Pass<'_>, first: usize, most: usize) -> Result<usize, TextError> {
        let read = self.sequences.num_tokens(self.text)?;
        let mut forks = Vec::with_capacity(most);
        while forks.len() < most {
            match self.sequences.fork(self.text, read) {
                Ok(fork) => forks.push(fork),
                Err(SequencesError::NoRoom { .. } | SequencesError::TooManySequences { .. })
                    if !forks.is_empty() =>
                {
                    break;
                }
                Err(error) => return Err(self.fail(&[], error)),
            }
        }
        loop {
            let stretches: Vec<Stretch<'_>> = forks
                .iter()
                .zip(first..)
                .map(|(&sequence, row)| Stretch {
                    sequence,
                    tokens: pass.sequence(row),
                    wants_logits: true,
                })
                .collect();
            match self.sequences.pass(&stretches) {
                Ok(()) => break,
                Err(SequencesError::NoRoom { .. }) if forks.len() > 1 => {
                    drop(stretches);
                    let last = forks.pop().expect("one of several");
                    self.sequences.remove(last)?;
                }
                Err(error) => {
                    drop(stretches);
                    return Err(self.fail(&forks, error));
                }
            }
        }
        for place in 0..forks.len() {
            let row = self.sequences.logits(place).expect("they were wanted");
            self.logits.extend_from_slice(row);
        }
        self.passes.0 += 1;
        self.passes.1 += (forks.len() * pass.index) as u64;
        let num_read = forks.len();
        self.remove(&forks)?;
        Ok(num_read)
    }

    fn remove(&mut self, forks: &[SequenceId]) -> Result<(), SequencesError> {
        forks.iter().try_for_each(|&fork| self.sequences.remove(fork))
    }

    fn fail(&mut self, forks: &[SequenceId], error: SequencesError) -> TextError {
        self.needs_room = matches!(
            error,
            SequencesError::NoRoom { .. } | SequencesError::TooManySequences { .. }
        );
        match self.remove(forks) {
            Ok(()) => error.into(),
            Err(defect) => defect.into(),
        }
    }
}

impl StepBackend for SequenceBeams<'_> {
    type Error = TextError;

    fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), TextError> {
        self.logits.clear();
        if pass.index == 0 {
            self.logits.extend_from_slice(self.after_text);
            return Ok(());
        }
        let most = (self.sequences.options().max_rows / pass.index).clamp(1, MAX_FORKS);
        let mut first = 0;
        while first < pass.rows() {
            first += self.read(pass, first, most.min(pass.rows() - first))?;
        }
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), TextError> {
        // Probabilities are among all tokens that the model knows.
        let columns = 0..self.logits.len() / step.rows().max(1);
        self.top_k.select(step, &self.logits, columns, |_, _| true, best)?;
        Ok(())
    }

    fn dropped_at_most(&self, _: &Step<'_>, _: &[Extension]) -> Option<f32> {
        self.top_k.largest_dropped()
    }
}

/// The model's part of one text, as a sequence: the text, and forks of it for beams of items.
#[derive(Debug)]
pub(crate) struct SequenceReader {
    sequences: Box<dyn SequenceStore>,
    text: SequenceId,
    /// Tokens of text and prompt that there is room for.
    pub(crate) planned: usize,
    /// True where there is room for beams of items.
    pub(crate) has_items: bool,
    /// Logits after what was read.
    logits: Vec<f32>,
    num_tokens: usize,
}

impl SequenceReader {
    /// A reader for prompt and text of so many tokens, whose items are searched or not.
    ///
    /// # Errors
    /// When there is not the memory.
    pub(crate) fn new(
        model: &TextModel,
        tokens: usize,
        has_items: bool,
    ) -> Result<Self, TextError> {
        // Texts of about the same length need no plan each.
        let planned = tokens.next_power_of_two().min(model.context_length()).max(tokens);
        let forks = if has_items { MAX_FORKS } else { 0 };
        let beams = forks * BEAM_PAGES * SequencesOptions::PAGE_TOKENS;
        let options = SequencesOptions {
            max_sequences: 1 + forks,
            max_tokens: planned.next_multiple_of(SequencesOptions::PAGE_TOKENS) + beams,
            max_rows: model.engine().sequence_rows(),
            threads: model.threads(),
        };
        let mut sequences = model.engine().open_sequences(options)?;
        let text = sequences.add()?;
        let num_tokens = model.vocabulary().vocabulary().num_tokens();
        Ok(Self { sequences, text, planned, has_items, logits: Vec::new(), num_tokens })
    }

    /// Begins another text.
    ///
    /// # Errors
    /// A defect of the model's part.
    pub(crate) fn begin(&mut self) -> Result<(), TextError> {
        self.sequences.remove(self.text)?;
        self.text = self.sequences.add()?;
        Ok(())
    }

    /// Reads more of the text.
    ///
    /// # Errors
    /// When a token is unknown, or the text longer than planned.
    pub(crate) fn read(&mut self, unread: &[TokenId]) -> Result<(), TextError> {
        let max_rows = self.sequences.options().max_rows;
        let mut chunks = unread.chunks(max_rows).peekable();
        while let Some(tokens) = chunks.next() {
            let wants_logits = chunks.peek().is_none();
            self.sequences.pass(&[Stretch { sequence: self.text, tokens, wants_logits }])?;
        }
        self.logits.clear();
        self.logits.extend_from_slice(self.sequences.logits(0).unwrap_or_default());
        Ok(())
    }

    /// Takes a text one token or one item further, after what was read of it.
    ///
    /// # Errors
    /// As [`TextSequence::choose`] and [`TextSequence::search`].
    pub(crate) fn choose(
        &mut self,
        text: &mut TextSequence,
        events: &mut Events<'_>,
    ) -> Result<(), TextError> {
        if !text.is_before_item() {
            return text.choose(&self.logits, events);
        }
        let Self { sequences, text: sequence, logits, num_tokens, .. } = self;
        text.search(
            &mut SequenceBeams::new(&mut **sequences, *sequence, logits, *num_tokens),
            events,
        )
    }
}
