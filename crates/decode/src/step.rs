//! The seam between search policy and device: one step of a search, as the side that computes it
//! sees it.

use std::num::NonZeroUsize;

use palmette_core::{MaskWindow, TokenId};

use crate::error::DecodeError;
use crate::gains::ExtensionGains;

/// One allowed extension of one live hypothesis.
///
/// Ordered by total, then lower parent, then lower token: the tie rule of every search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extension {
    /// Sum of log-probabilities including `token`'s.
    pub score: f32,
    /// The largest [gain](crate::Gains) of what may come of it; 0 in a search without gains.
    pub bound: f32,
    /// Row of the hypothesis it extends.
    pub parent: u32,
    /// The token it extends it by.
    pub token: TokenId,
}

impl Extension {
    /// Score and bound together: the most that a result may have that comes of it.
    pub fn total(&self) -> f32 {
        self.score + self.bound
    }
}

impl Eq for Extension {}

impl Ord for Extension {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.total()
            .total_cmp(&other.total())
            .then(other.parent.cmp(&self.parent))
            .then(other.token.cmp(&self.token))
    }
}

impl PartialOrd for Extension {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Rows of one forward pass of a search: what a model needs to compute their logits.
///
/// Rows are live hypotheses, best first. At step 0 there is one, the prompt's, and its parent and
/// token mean nothing.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// Tokens generated before: 0 for the pass over the prompt.
    pub index: usize,
    /// Row that each hypothesis continues, in the rows of the pass before. Shape: `[rows]`.
    pub parents: &'a [u32],
    /// Last token of each hypothesis. Shape: `[rows]`.
    pub tokens: &'a [TokenId],
    /// Score of each hypothesis. Shape: `[rows]`.
    pub scores: &'a [f32],
    /// All tokens of each hypothesis, `max_tokens` places a row of which `index` are used.
    pub(crate) sequences: &'a [TokenId],
    pub(crate) max_tokens: usize,
}

impl<'a> Pass<'a> {
    /// Live hypotheses.
    pub fn rows(&self) -> usize {
        self.scores.len()
    }

    /// The tokens that one row has generated.
    pub fn sequence(&self, row: usize) -> &'a [TokenId] {
        &self.sequences[row * self.max_tokens..][..self.index]
    }
}

/// Request for one step of a search: the rows of its pass, their masks and the number of extensions
/// to keep.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The rows, as they were computed.
    pub pass: Pass<'a>,
    /// The largest [gain](crate::Gains) of what may come of each hypothesis; 0 in a search without
    /// gains. Shape: `[rows]`.
    pub bounds: &'a [f32],
    /// Allowed tokens of each hypothesis, over the part of the vocabulary where they are.
    pub masks: &'a MaskWindow,
    /// V: size of the vocabulary.
    pub num_tokens: usize,
    /// Extensions to keep at most.
    pub width: usize,
    /// Extensions of a smaller total are not kept.
    pub floor: f32,
    pub(crate) gains: Option<&'a dyn ExtensionGains>,
}

impl Step<'_> {
    /// Live hypotheses.
    pub fn rows(&self) -> usize {
        self.pass.rows()
    }

    /// True where results gain besides their log-probability, so that extensions of equal score may
    /// not be equal.
    pub fn has_gains(&self) -> bool {
        self.gains.is_some()
    }

    /// Bound on the totals of extensions that a selection did not keep, by those that it kept: the
    /// worst of as many as the width, or the floor. `None` where there are none.
    pub fn dropped_at_most(&self, best: &[Extension]) -> Option<f32> {
        dropped_at_most(self.width, self.floor, best)
    }

    /// The largest gain of what may come of a row's extension by an allowed token: never more than
    /// the row's. Cost: none in a search without gains; else up to a commit and a look at the items
    /// below.
    pub fn bound(&self, row: usize, token: TokenId) -> f32 {
        let of_row = self.bounds[row];
        self.gains.map_or(of_row, |gains| gains.bound(row, of_row, token))
    }
}

/// The larger of two totals, of which either may be missing.
pub(crate) fn larger(a: Option<f32>, b: Option<f32>) -> Option<f32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (one, other) => one.or(other),
    }
}

/// Bound on the totals of extensions that a selection of this width above this floor did not keep,
/// by what it kept; `None` where it kept all.
pub(crate) fn dropped_at_most(width: usize, floor: f32, best: &[Extension]) -> Option<f32> {
    match best.last() {
        Some(last) if best.len() >= width => Some(last.total()),
        _ => (floor > f32::NEG_INFINITY).then_some(floor),
    }
}

/// Sizes of a whole search, for a backend that runs all of its steps.
#[derive(Clone, Copy, Debug)]
pub struct SearchPlan<'a> {
    /// Extensions to keep at most at each step.
    pub widths: &'a [NonZeroUsize],
    /// Extensions of a smaller score are not kept.
    pub floor: f32,
}

/// The side of a search that holds the logits: a model on this processor or on an accelerator.
///
/// The search decides which hypotheses live, under which masks and floors; the backend computes
/// their logits and picks the best extensions where the logits are, so that a row of a large
/// vocabulary need not travel. A driver calls [`compute`](Self::compute), then
/// [`select`](Self::select), once for each step. A pass needs no masks: a device may begin it and
/// return, and the masks are made while it computes (xGR, arXiv 2512.11529, §6).
///
/// A search may begin again after the same prompt, at step 0: the backend then answers from the
/// pass it has made. [`HostBackend`](crate::HostBackend) makes one of any
/// [`LogitsSource`](crate::LogitsSource).
pub trait StepBackend {
    /// Anything that can go wrong while computing.
    type Error: From<DecodeError>;

    /// V: logits per row.
    fn num_tokens(&self) -> usize;

    /// Computes the logits of the pass's rows, or begins to.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), Self::Error>;

    /// Writes the best `step.width` allowed extensions of the rows computed last over `best`, best
    /// first, none below `step.floor`; their scores are the row's plus the token's log-probability,
    /// their bounds [`Step::bound`]. What they are ordered and held to the floor by is the sum of
    /// both.
    ///
    /// # Errors
    /// When a row has no distribution, or they cannot be computed.
    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), Self::Error>;

    /// Bound on the totals of allowed extensions that the latest [`select`](Self::select) did not
    /// write to `best`; `None` where it wrote all.
    ///
    /// A backend that knows the largest answers with that. By default it is what `best` tells:
    /// [`Step::dropped_at_most`].
    fn dropped_at_most(&self, step: &Step<'_>, best: &[Extension]) -> Option<f32> {
        step.dropped_at_most(best)
    }

    /// Runs all steps of a search without gains, where the constraint is where the logits are:
    /// writes the extensions of each step over `steps`, as [`select`](Self::select) would. False
    /// where the search is to be run step by step, as it is by default.
    ///
    /// The search moves over the extensions afterwards: its constraint holds whatever they are.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn search(
        &mut self,
        plan: &SearchPlan<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, Self::Error> {
        let _ = (plan, steps);
        Ok(false)
    }
}
