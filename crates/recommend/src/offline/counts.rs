//! Counts of a run: answers, errors and items that were left out.

use serde::{Deserialize, Serialize};

use super::record::AnswerRecord;
use crate::question::CheckedQuestion;

/// Numbers of a run's answers, with the first of what went wrong.
///
/// Written down they are those of all its answers, whichever process gave them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerCounts {
    /// Histories in all, each of which has a record.
    pub histories: usize,
    /// Records that an earlier run had made.
    #[serde(skip)]
    pub kept: usize,
    /// Histories that could not be answered.
    pub errors: usize,
    /// Reason of the first of these.
    pub first_error: Option<String>,
    /// Answers that are proven to be those of scoring every item.
    #[serde(default)]
    pub proven: usize,
    /// Unknown items that were left out of histories.
    pub skipped: usize,
    /// Histories that had such items.
    pub histories_with_skipped: usize,
    /// Histories of this process, of one item or more, all of which are unknown.
    #[serde(skip)]
    pub strangers: usize,
    /// The first unknown item of the first of these.
    #[serde(skip)]
    pub first_stranger: Option<String>,
}

impl AnswerCounts {
    /// Counts a record.
    pub(super) fn add(&mut self, record: &AnswerRecord) {
        self.histories += 1;
        self.proven += usize::from(record.proven == Some(true));
        self.skipped += record.skipped as usize;
        self.histories_with_skipped += usize::from(record.skipped > 0);
        if let Some(error) = &record.error {
            self.errors += 1;
            self.first_error.get_or_insert_with(|| error.clone());
        }
    }

    /// Counts a question as a stranger's, where none of its items is known.
    pub(super) fn add_stranger(&mut self, question: &CheckedQuestion) {
        let first = question.unknown().next().filter(|_| question.history().is_empty());
        if let Some(first) = first {
            self.strangers += 1;
            self.first_stranger.get_or_insert_with(|| first.to_string());
        }
    }
}
