//! Time that a text took, by the work that it went into.

use std::ops::AddAssign;
use std::time::Duration;

/// Time that the work on a text took. A pass of the model that several texts share counts for each
/// by its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Waiting for a place, which is no work.
    pub waited: Duration,
    /// Reading the prompt.
    pub prompt: Duration,
    /// Passes of the model after that.
    pub passes: Duration,
    /// Masks and forced tokens.
    pub masks: Duration,
    /// Drawing tokens.
    pub choices: Duration,
    /// Number of the passes after the prompt's.
    pub num_passes: usize,
}

impl Spent {
    /// All of the work.
    pub fn total(&self) -> Duration {
        self.prompt + self.passes + self.masks + self.choices
    }

    /// Counts the share of a pass: rows of the text among those of all.
    pub(super) fn count_pass(&mut self, took: Duration, rows: f64, is_prompt: bool) {
        let share = took.mul_f64(rows);
        match is_prompt {
            true => self.prompt += share,
            false => {
                self.passes += share;
                self.num_passes += 1;
            }
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.waited += other.waited;
        self.prompt += other.prompt;
        self.passes += other.passes;
        self.masks += other.masks;
        self.choices += other.choices;
        self.num_passes += other.num_passes;
    }
}
