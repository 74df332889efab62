//! Records of histories: what rows become.

use palmette_recommend::{NamedItem, PromptFields};

use super::time::Time;

/// One history as its source gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRecord {
    /// The user's id, where the source has one.
    pub user: Option<String>,
    /// The items, oldest first.
    pub items: Vec<NamedItem>,
    /// The item that came next, where the source is one of questions with their answers.
    pub target: Option<NamedItem>,
    /// Fields of this history's prompts beside its items.
    pub fields: PromptFields,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} {at}: {reason}")]
pub struct BadRecord {
    /// `line`, `row` or `history`.
    pub(crate) place: &'static str,
    pub(crate) at: u64,
    /// The user's id, as far as it could be read.
    pub user: Option<String>,
    pub(crate) reason: String,
}

impl BadRecord {
    /// The reason, without the place.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Content of a row: a whole history, or one event of a user.
#[derive(Debug, PartialEq)]
pub(crate) enum Row {
    History(HistoryRecord),
    Event(Event),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) user: String,
    pub(crate) item: NamedItem,
    pub(crate) time: Option<Time>,
}
