//! Updates of texts, refusals and counts: what an engine tells whoever asked it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use palmette_decode::LogProbabilities;
use palmette_model::SequencesError;

use super::spent::Spent;
use crate::error::{RequestError, TextCause, TextError};
use crate::sequence::{TextEnd, TextEvent, TextPiece};

/// A request that an engine does not take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SubmitError {
    /// The request breaks a rule.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Prompt and text would not fit, even alone.
    #[error(
        "prompt and text together have up to {tokens} tokens, and the engine keeps {max}: ask for fewer, or give the engine more memory"
    )]
    TooLong {
        /// Tokens of prompt and text.
        tokens: usize,
        /// Limit on the tokens of one text with its prompt.
        max: usize,
    },
    /// A search has more beams than there are places.
    #[error(
        "a search of {beams} beams takes as many places, and the engine writes {max} texts at once: ask for fewer beams (best_of, n), or \
         give the engine more places"
    )]
    TooManyBeams {
        /// Beams of the search.
        beams: usize,
        /// Places that there are.
        max: usize,
    },
    /// The beams of a search would not fit, even alone.
    #[error(
        "a search of {beams} beams keeps up to {tokens} tokens of prompt and texts, and the engine keeps {max}: ask for fewer tokens \
         (max_tokens) or beams (best_of, n), or give the engine more memory"
    )]
    BeamsTooLong {
        /// Beams of the search.
        beams: usize,
        /// Tokens that they keep at most, in whole pages.
        tokens: usize,
        /// Limit on these.
        max: usize,
    },
    /// Too many wait.
    #[error("{waiting} requests wait, as many as may; try again later")]
    Full {
        /// Requests that wait.
        waiting: usize,
    },
    /// The engine takes no more requests.
    #[error("the engine takes no more requests")]
    Closed,
}

/// Event in the life of a text.
#[derive(Debug)]
pub enum Update {
    /// Log-probabilities of the prompt's tokens from the second on, where they were asked for;
    /// before the text.
    Prompt(Vec<LogProbabilities>),
    /// More of it.
    Text(TextPiece),
    /// The end, and the time that the text took.
    End(TextEnd, Spent),
    /// Absence of the text: a search found fewer than were wanted.
    Missing,
    /// The text broke off.
    Failed(EngineError),
}

/// A text that broke off.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A limit of its constraint was exceeded, or nothing could be drawn.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A defect of the model's part, or a failure of the device that computes it.
    #[error(transparent)]
    Sequences(#[from] SequencesError),
    /// A defect: something panicked.
    #[error("a part of the work on this text panicked")]
    Panicked,
    /// The engine ended before the text.
    #[error("the engine ended before the text did")]
    Closed,
}

impl EngineError {
    /// The side that the error is of.
    pub fn cause(&self) -> TextCause {
        match self {
            Self::Text(of_text) => of_text.cause(),
            Self::Sequences(SequencesError::Engine(_)) => TextCause::Device,
            Self::Sequences(_) | Self::Panicked | Self::Closed => TextCause::Engine,
        }
    }
}

/// Hears of a text, on the engine's threads: it must not take long.
pub type Sink = Box<dyn FnMut(Update) + Send>;

/// Work that an engine has done, and what it has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EngineStatistics {
    /// Requests that wait for a place.
    pub waiting: usize,
    /// Texts that are being written, or their prompts read.
    pub writing: usize,
    /// Texts of them that gave up their pages and wait for others.
    pub parked: usize,
    /// Pages that hold no keys and values.
    pub free_pages: usize,
    /// Requests that were not taken because too many waited.
    pub refused: u64,
    /// Texts that came to an end.
    pub ended: u64,
    /// Texts that nobody wanted any more.
    pub cancelled: u64,
    /// Texts that broke off.
    pub failed: u64,
    /// Times that a text gave its pages up.
    pub preempted: u64,
    /// Tokens of prompts that were read.
    pub prompt_tokens: u64,
    /// Tokens of prompts that others had read before.
    pub shared_tokens: u64,
    /// Tokens of texts that came to an end.
    pub text_tokens: u64,
    /// Tokens of those texts that were the only allowed ones.
    pub forced_tokens: u64,
    /// Tokens that were guessed and read with what came before them.
    pub drafted_tokens: u64,
    /// Tokens of these that were drawn then.
    pub draft_hits: u64,
    /// Passes of the draft model.
    pub draft_passes: u64,
    /// Time of these, in seconds, with the choice of what is guessed.
    pub draft_seconds: f64,
    /// Passes of the model.
    pub passes: u64,
    /// Their rows.
    pub rows: u64,
    /// Time of the passes, in seconds.
    pub pass_seconds: f64,
    /// Time of the threads that make masks, in seconds.
    pub mask_seconds: f64,
    /// Time of drawing tokens, in seconds.
    pub choose_seconds: f64,
    /// Time for which the model stood still since masks were not there, in seconds.
    pub stall_seconds: f64,
}

/// Tells an event of a text to its sink, as long as somebody wants it; at its end what was spent on
/// it.
pub(super) fn tell(
    sink: &mut Sink,
    is_dropped: &AtomicBool,
    event: TextEvent,
    spent: impl FnOnce() -> Spent,
) -> ControlFlow<()> {
    if is_dropped.load(Ordering::Relaxed) {
        return ControlFlow::Break(());
    }
    match event {
        TextEvent::Text(piece) => sink(Update::Text(piece)),
        TextEvent::End(ended) => sink(Update::End(ended, spent())),
        TextEvent::Stage(_) => {}
    }
    ControlFlow::Continue(())
}
