//! The seam between search policy and device: one step of a search, as the side that computes it sees it.

use palmette_core::{TokenId, mask};

use crate::error::DecodeError;

/// One allowed extension of one live hypothesis.
///
/// Ordered by score, then lower parent, then lower token: the tie rule of every search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extension {
    /// Sum of log-probabilities including `token`'s.
    pub score: f32,
    /// Row of the hypothesis it extends.
    pub parent: u32,
    /// The token it extends it by.
    pub token: TokenId,
}

impl Eq for Extension {}

impl Ord for Extension {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.parent.cmp(&self.parent))
            .then(other.token.cmp(&self.token))
    }
}

impl PartialOrd for Extension {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Request for one step of a search: its rows, their masks and the number of extensions to keep.
///
/// Rows are live hypotheses, best first. At step 0 there is one, the prompt's, and its parent and token mean nothing.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Tokens generated before: 0 for the step after the prompt.
    pub index: usize,
    /// Row that each hypothesis continues, in the rows of the step before. Shape: `[rows]`.
    pub parents: &'a [u32],
    /// Last token of each hypothesis. Shape: `[rows]`.
    pub tokens: &'a [TokenId],
    /// Score of each hypothesis. Shape: `[rows]`.
    pub scores: &'a [f32],
    /// Allowed tokens of each hypothesis. Shape: `[rows, num_words(num_tokens)]`.
    pub masks: &'a [u32],
    /// V: size of the vocabulary.
    pub num_tokens: usize,
    /// Extensions to keep at most.
    pub width: usize,
    /// Extensions that score less are not kept.
    pub floor: f32,
    /// All tokens of each hypothesis, `max_tokens` places a row of which `index` are used.
    pub(crate) sequences: &'a [TokenId],
    pub(crate) max_tokens: usize,
}

impl<'a> Step<'a> {
    /// Live hypotheses.
    pub fn rows(&self) -> usize {
        self.scores.len()
    }

    /// The mask of one row.
    pub fn mask(&self, row: usize) -> &'a [u32] {
        let words = mask::num_words(self.num_tokens);
        &self.masks[row * words..][..words]
    }

    /// The tokens that one row has generated.
    pub fn sequence(&self, row: usize) -> &'a [TokenId] {
        &self.sequences[row * self.max_tokens..][..self.index]
    }
}

/// The side of a search that holds the logits: a model on this processor or on an accelerator.
///
/// The search decides which hypotheses live, under which masks and floors; the backend computes their logits and picks
/// the best extensions where the logits are, so that a row of a large vocabulary need not travel. A driver calls
/// [`compute`](Self::compute), then [`select`](Self::select), once for each step.
///
/// A search may begin again after the same prompt, at step 0: the backend then answers from the pass it has made.
/// [`HostBackend`](crate::HostBackend) makes one of any [`LogitsSource`](crate::LogitsSource).
pub trait StepBackend {
    /// Anything that can go wrong while computing.
    type Error: From<DecodeError>;

    /// V: logits per row.
    fn num_tokens(&self) -> usize;

    /// Computes the logits of the step's rows, or begins to.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn compute(&mut self, step: &Step<'_>) -> Result<(), Self::Error>;

    /// Writes the best `step.width` allowed extensions of the rows computed last over `best`, best first, none below
    /// `step.floor`; their scores are the row's plus the token's log-probability.
    ///
    /// # Errors
    /// When a row has no distribution, or they cannot be computed.
    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), Self::Error>;
}
