//! The leave-one-out split: a user's last item is the test, the one before it validation.

use std::str::FromStr;

use palmette_recommend::PromptFields;
use serde::{Deserialize, Serialize};

/// Item of each history that is asked for.
///
/// Histories of fewer than 3 items ask nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The last item but one, after those before it.
    Validation,
    /// The last item, after all others, the validation item included.
    Test,
}

/// Items of each history that are kept from training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldOut {
    /// The validation and the test item, to choose and to measure a model.
    Both,
    /// The test item, for a last run with what validation has chosen.
    Test,
    /// No item, for a model that goes into service.
    Nothing,
}

/// One user's question: what comes after `history`?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// Items before, oldest first.
    pub history: &'a [u64],
    /// The item that came.
    pub target: u64,
    /// Fields of the prompt beside the items, where the data has some.
    pub fields: Option<&'a PromptFields>,
}

impl<'a> Question<'a> {
    /// A question without fields.
    pub fn new(history: &'a [u64], target: u64) -> Self {
        Self { history, target, fields: None }
    }
}

impl Split {
    /// Fewest items of a history that is asked about.
    pub const MIN_ITEMS: usize = 3;

    /// The question a history asks.
    pub fn question(self, history: &[u64]) -> Option<Question<'_>> {
        if history.len() < Self::MIN_ITEMS {
            return None;
        }
        let at = history.len()
            - match self {
                Self::Validation => 2,
                Self::Test => 1,
            };
        Some(Question::new(&history[..at], history[at]))
    }
}

impl HoldOut {
    /// Name on command lines and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Test => "test",
            Self::Nothing => "nothing",
        }
    }

    /// The part of a history that is trained on; all of one that asks no question.
    pub fn training(self, history: &[u64]) -> &[u64] {
        let held_out = match self {
            Self::Both => 2,
            Self::Test => 1,
            Self::Nothing => 0,
        };
        match history.len() {
            n if n < Split::MIN_ITEMS => history,
            n => &history[..n - held_out],
        }
    }
}

/// At most `count` of `all`, evenly spread, so that the choice of whom to ask needs no randomness.
pub fn evenly_spread<T: Copy>(all: &[T], count: usize) -> Vec<T> {
    let count = count.min(all.len());
    (0..count).map(|i| all[i * all.len() / count]).collect()
}

impl FromStr for Split {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "validation" => Ok(Self::Validation),
            "test" => Ok(Self::Test),
            _ => Err(format!("{text:?} is no split; use validation or test")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_items_are_held_out() {
        let history = [5, 6, 7, 8];
        assert_eq!(HoldOut::Both.training(&history), [5, 6]);
        assert_eq!(HoldOut::Test.training(&history), [5, 6, 7]);
        assert_eq!(HoldOut::Nothing.training(&history), history);
        let validation = Split::Validation.question(&history).unwrap();
        assert_eq!(validation, Question::new(&[5, 6], 7));
        let test = Split::Test.question(&history).unwrap();
        assert_eq!(test, Question::new(&[5, 6, 7], 8));
        assert_eq!(Split::Test.question(&history[..2]), None);
        assert_eq!(HoldOut::Both.training(&history[..2]), [5, 6]);
    }

    #[test]
    fn few_are_spread_over_all() {
        let all: Vec<u64> = (0..10).collect();
        assert_eq!(evenly_spread(&all, 3), [0, 3, 6]);
        assert!(evenly_spread(&all, 0).is_empty());
        assert_eq!(evenly_spread(&all, 11), all);
    }
}
