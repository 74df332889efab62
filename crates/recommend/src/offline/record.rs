//! Answer records: one history's recommendations, as files and tables of answers have them.

use serde::{Deserialize, Serialize};

use crate::question::CheckedQuestion;
use crate::request::Recommendations;

/// Recommendations for one user, or the reason why there are none.
///
/// A line of a file of answers is its JSON, and a row of a table has its members as columns, so
/// that an answer is the same in both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The user's id, where the history has one.
    pub user: Option<String>,
    /// Ids of the items, best first; `None` beside an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<String>>,
    /// Score of each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<Vec<f32>>,
    /// Semantic ID of each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codes: Option<Vec<Vec<u32>>>,
    /// True where these are the items that scoring every one would give; `None` beside an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<bool>,
    /// Largest score of an item that may be missing; `None` where the answer is proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_at_most: Option<f32>,
    /// Items of the history that the catalog never had, and that were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u32,
    /// The reason why there are no items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl AnswerRecord {
    /// The record of a question's answer, or of the error in its place.
    pub fn from_answer<E: ToString>(
        user: Option<String>,
        question: &CheckedQuestion,
        answer: Result<&Recommendations, E>,
    ) -> Self {
        let skipped = u32::try_from(question.unknown().len()).unwrap_or(u32::MAX);
        match answer {
            Err(error) => Self { skipped, ..Self::from_error(user, error) },
            Ok(answer) => {
                let (items, view) = (&answer.items, answer.view.view());
                Self {
                    user,
                    items: Some(items.iter().map(|item| view.id(item.number).to_owned()).collect()),
                    scores: Some(items.iter().map(|item| item.score).collect()),
                    codes: Some(items.iter().map(|item| view.codes(item.number)).collect()),
                    proven: Some(answer.is_proven()),
                    missed_at_most: answer.missed_at_most,
                    skipped,
                    error: None,
                }
            }
        }
    }

    /// The record of a history that could not be asked about.
    pub fn from_error(user: Option<String>, error: impl ToString) -> Self {
        Self { user, error: Some(error.to_string()), ..Self::default() }
    }
}
