//! Errors of training; every message names the value, the rule and the way out.

use std::path::{Path, PathBuf};

/// A run that cannot start, go on, or be saved.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TrainError(Box<TrainErrorKind>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum TrainErrorKind {
    #[error("`{field}` is {value}; {rule}")]
    Option { field: &'static str, value: String, rule: &'static str },
    #[error("the model's configuration is unusable: {0}")]
    Config(String),
    #[error("there are no training examples; give the dataset at least one sequence")]
    NoExamples,
    #[error(
        "the {count} examples drawn for step {step} have no target at all; give examples of at \
         least two tokens, or a target other than `NO_TARGET`"
    )]
    NoTargets { step: u64, count: usize },
    #[error(
        "example {example} has {tokens} tokens and {targets} targets; there must be one target per \
         token, `NO_TARGET` where nothing is predicted"
    )]
    TargetCount { example: usize, tokens: usize, targets: usize },
    #[error(
        "example {example} has {length} tokens, but `max_position_embeddings` is {limit}; shorten \
         the example or configure a longer model"
    )]
    TooLong { example: usize, length: usize, limit: usize },
    #[error(
        "example {example} has {what} {token} at position {position}, but `vocab_size` is {vocab}; \
         tokens must be smaller: was the data made for another vocabulary?"
    )]
    TokenRange { example: usize, what: &'static str, position: usize, token: u32, vocab: usize },
    #[error("example {example}: {reason}")]
    Branches { example: usize, reason: String },
    #[error(
        "{what} is {value} at step {step}: training has diverged and the step was not applied; \
         lower the learning rate, lengthen the warm-up or clip gradients harder, and go on from \
         an earlier checkpoint"
    )]
    Diverged { step: u64, what: &'static str, value: f64 },
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}: {reason}", path = path.display())]
    File { path: PathBuf, reason: String },
    #[error(
        "{path}: the checkpoint was made with `{field}` = {saved}, but this run has {wanted}; \
         resume with the value of the checkpoint, or start a new run",
        path = path.display()
    )]
    Disagrees { path: PathBuf, field: String, saved: String, wanted: String },
    #[error("the worker threads cannot be started: {0}; lower `threads`")]
    Threads(String),
    #[error(
        "the embeddings have {rows} rows and {columns} columns; there must be at least one of each"
    )]
    NoEmbeddings { rows: usize, columns: usize },
    #[error("item {item:?} has two embeddings; every item needs one")]
    ItemTwice { item: String },
    #[error(
        "item {item:?}: number {column} of its embedding is {value}; embeddings must be finite: leave the item out, or mend it"
    )]
    NotFinite { item: String, column: usize, value: f32 },
    #[error("`{what}` is {value}; it must be from 1 to {most}")]
    Size { what: &'static str, value: usize, most: usize },
    #[error("the embeddings have {found} columns, but the tokenizer was fitted to {wanted}")]
    OtherWidth { found: usize, wanted: usize },
    #[error(
        "{items} items have codes that begin with {prefix:?}, but a level has {codes} codes, so they cannot all differ in the last one: give more levels or codes, append a code, or keep collisions"
    )]
    TooManyAlike { prefix: Vec<u32>, items: usize, codes: usize },
}

impl TrainError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        TrainErrorKind::Io { path: path.to_owned(), source }.into()
    }

    pub(crate) fn file(path: &Path, reason: impl Into<String>) -> Self {
        TrainErrorKind::File { path: path.to_owned(), reason: reason.into() }.into()
    }

    /// True if the loss or the gradient stopped being finite. An earlier checkpoint may be resumed
    /// with other options.
    pub fn is_divergence(&self) -> bool {
        matches!(*self.0, TrainErrorKind::Diverged { .. })
    }

    /// True if a checkpoint and the run that wants to resume it disagree.
    pub fn is_disagreement(&self) -> bool {
        matches!(*self.0, TrainErrorKind::Disagrees { .. })
    }

    /// True if the operating system refused a file, as opposed to what the file says.
    pub fn is_io(&self) -> bool {
        matches!(*self.0, TrainErrorKind::Io { .. })
    }
}

impl From<TrainErrorKind> for TrainError {
    fn from(kind: TrainErrorKind) -> Self {
        Self(Box::new(kind))
    }
}
