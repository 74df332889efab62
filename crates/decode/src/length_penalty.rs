//! Length penalty of a search: sums of log-probabilities made comparable between lengths.

/// Penalty on the lengths of sequences: a score is the sum of a sequence's log-probabilities by its
/// tokens to the power of this.
///
/// At 0 it is the sum, which long sequences lower; at 1 the mean; above, longer sequences are
/// preferred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthPenalty(f32);

impl LengthPenalty {
    /// Limit on a penalty and on its negative.
    pub const MOST: f32 = 10.0;
    /// Penalty of no account: the plain sum.
    pub const NONE: Self = Self(0.0);

    /// The penalty of a power; `None` where that is no number, or beyond [`MOST`](Self::MOST).
    pub fn new(power: f32) -> Option<Self> {
        (power.abs() <= Self::MOST).then_some(Self(power))
    }

    /// The score of a sequence of so many tokens, the one that ended it counted; none count as one.
    pub fn score(self, sum: f32, tokens: usize) -> f32 {
        // Adding 0 turns −0 into +0, which `total_cmp` would tell apart.
        (f64::from(sum) / (tokens.max(1) as f64).powf(f64::from(self.0))) as f32 + 0.0
    }

    /// Bound on the scores of all that may come of a sequence of this sum, which ends with one of
    /// these numbers of tokens. Sums only fall, and a score grows or falls with the tokens
    /// throughout.
    pub(crate) fn bound(self, sum: f32, (fewest, most): (usize, usize)) -> f32 {
        self.score(sum, fewest).max(self.score(sum, most))
    }
}

impl Default for LengthPenalty {
    /// Mean of the log-probabilities.
    fn default() -> Self {
        Self(1.0)
    }
}
