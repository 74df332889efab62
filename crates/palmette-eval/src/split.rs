//! The leave-one-out split: a user's last item is the test, the one before it validation.

use std::str::FromStr;

use serde::Serialize;

/// Which item of each history is asked for.
///
/// A history of n items trains on its first n − 2. Shorter ones than 3 ask nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The last item but one, after those before it.
    Validation,
    /// The last item, after all others, the validation item included.
    Test,
}

/// One user's question: what comes after `history`?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// Items before, oldest first.
    pub history: &'a [u32],
    /// The item that came.
    pub target: u32,
}

impl Split {
    /// Fewest items of a history that is asked about.
    pub const MIN_ITEMS: usize = 3;

    /// The part of a history that models are trained on.
    pub fn training(history: &[u32]) -> &[u32] {
        match history.len() {
            n if n < Self::MIN_ITEMS => history,
            n => &history[..n - 2],
        }
    }

    /// The question a history asks.
    pub fn question(self, history: &[u32]) -> Option<Question<'_>> {
        if history.len() < Self::MIN_ITEMS {
            return None;
        }
        let at = history.len()
            - match self {
                Self::Validation => 2,
                Self::Test => 1,
            };
        Some(Question { history: &history[..at], target: history[at] })
    }
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
        assert_eq!(Split::training(&history), [5, 6]);
        let validation = Split::Validation.question(&history).unwrap();
        assert_eq!(validation, Question { history: &[5, 6], target: 7 });
        let test = Split::Test.question(&history).unwrap();
        assert_eq!(test, Question { history: &[5, 6, 7], target: 8 });
        assert_eq!(Split::Test.question(&history[..2]), None);
        assert_eq!(Split::training(&history[..2]), [5, 6]);
    }
}
