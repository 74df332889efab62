//! The runner's part of a search for whole texts: its beams' rows in the passes of all texts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use palmette_core::TokenId;
use palmette_model::{SequenceStore, SequencesError, Stretch};

use crate::beam_reader::{BeamSequences, RowLogits};

/// Message of a search to the runner, which makes one search at a time. A buffer of logits goes to
/// and fro.
pub(super) enum BeamAsk {
    /// The search begins: the logits after a prompt are wanted, and those of each step go the same
    /// way.
    Begin {
        prompt: Vec<TokenId>,
        width: usize,
        is_dropped: Arc<AtomicBool>,
        logits: RowLogits,
        reply: Sender<BeamReply>,
    },
    /// Logits after a token behind each of these rows are wanted.
    Step { parents: Vec<u32>, tokens: Vec<TokenId>, logits: RowLogits },
    /// The search is over.
    End,
}

/// The logits of a step, or what ended the search.
pub(super) type BeamReply = Result<RowLogits, SequencesError>;

/// A search that is being made.
pub(super) struct Searching {
    /// Places that its beams take among the texts'.
    pub(super) width: usize,
    /// True when nobody wants it any more.
    is_dropped: Arc<AtomicBool>,
    logits: RowLogits,
    reply: Sender<BeamReply>,
    sequences: BeamSequences,
    /// Tokens of the one beam that are to be read, or the next of each.
    tokens: Vec<TokenId>,
    read: usize,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Wait for places that are not free yet.
    Waits,
    /// The prompt is read.
    Prompt,
    /// A step is read.
    Step,
    /// The search looks at logits.
    Away,
}

impl Searching {
    pub(super) fn new(
        prompt: Vec<TokenId>,
        width: usize,
        is_dropped: Arc<AtomicBool>,
        (logits, reply): (RowLogits, Sender<BeamReply>),
    ) -> Self {
        let sequences = BeamSequences::default();
        let (tokens, read, stage) = (prompt, 0, Stage::Waits);
        Self { width, is_dropped, logits, reply, sequences, tokens, read, stage }
    }

    /// True where it waits for an answer that nobody wants any more.
    pub(super) fn is_unwanted(&self) -> bool {
        self.stage != Stage::Away && self.is_dropped.load(Ordering::Relaxed)
    }

    /// True once it has places.
    pub(super) fn has_begun(&self) -> bool {
        self.stage != Stage::Waits
    }

    /// True where a pass is to have rows of it.
    pub(super) fn can_go(&self) -> bool {
        matches!(self.stage, Stage::Prompt | Stage::Step)
    }

    /// Takes its places.
    ///
    /// # Errors
    /// A defect: they are free.
    pub(super) fn begin(&mut self, store: &mut dyn SequenceStore) -> Result<(), SequencesError> {
        self.sequences.begin(store)?;
        self.stage = Stage::Prompt;
        Ok(())
    }

    /// Takes a step that is to be read.
    ///
    /// # Errors
    /// A defect of the store.
    pub(super) fn follow(
        &mut self,
        store: &mut dyn SequenceStore,
        parents: &[u32],
        (tokens, logits): (Vec<TokenId>, RowLogits),
    ) -> Result<(), SequencesError> {
        (self.tokens, self.logits) = (tokens, logits);
        (self.read, self.stage) = (0, Stage::Step);
        self.sequences.follow(store, parents)
    }

    /// Rows of the next pass, of a prompt at most so many.
    ///
    /// # Errors
    /// When no page is free: again once one is.
    pub(super) fn rows(
        &mut self,
        store: &mut dyn SequenceStore,
        prompt_rows: usize,
    ) -> Result<usize, SequencesError> {
        match self.stage {
            Stage::Waits | Stage::Away => Ok(0),
            Stage::Prompt => Ok(prompt_rows.min(self.tokens.len() - self.read)),
            Stage::Step => {
                self.sequences.fork(store)?;
                Ok(self.tokens.len())
            }
        }
    }

    /// The stretches of so many rows.
    pub(super) fn stretches(&self, rows: usize) -> Vec<Stretch<'_>> {
        let beams = self.sequences.beams();
        match self.stage {
            Stage::Waits | Stage::Away => Vec::new(),
            Stage::Prompt => {
                let end = self.read + rows;
                let (tokens, wants_logits) =
                    (&self.tokens[self.read..end], end == self.tokens.len());
                vec![Stretch { sequence: beams[0], tokens, wants_logits }]
            }
            Stage::Step => {
                let rows = beams.iter().zip(self.tokens.chunks(1));
                rows.map(|(&sequence, tokens)| Stretch { sequence, tokens, wants_logits: true })
                    .collect()
            }
        }
    }

    /// Hands over the logits of a pass that had so many rows of it, the stretches from `first` on.
    pub(super) fn take_logits(&mut self, store: &dyn SequenceStore, first: usize, rows: usize) {
        let stretches = if self.stage == Stage::Prompt { 1 } else { rows };
        self.read += rows;
        if !self.can_go() || self.read < self.tokens.len() {
            return;
        }
        for place in first..first + stretches {
            self.logits.push(store.logits(place).unwrap_or_default());
        }
        self.stage = Stage::Away;
        // Where nobody waits for them the end comes next.
        let _ = self.reply.send(Ok(std::mem::take(&mut self.logits)));
    }

    /// Tells what ended it.
    pub(super) fn fail(&mut self, error: SequencesError) {
        self.stage = Stage::Away;
        let _ = self.reply.send(Err(error));
    }

    /// Lets go of its places.
    ///
    /// # Errors
    /// A defect of the store.
    pub(super) fn end(mut self, store: &mut dyn SequenceStore) -> Result<(), SequencesError> {
        self.sequences.remove(store)
    }
}
