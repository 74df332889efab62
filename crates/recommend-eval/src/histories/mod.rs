//! Histories: what users did, oldest first.

mod columns;
mod dealing;
mod format;
mod input;
mod layout;
mod lines;
mod options;
mod read;
mod record;
mod row_filter;
mod rows;
mod tfrecord;
mod time;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use palmette_catalog_live::CatalogView;
use palmette_recommend::{NamedItem, PromptFields, Prompts, UnknownItems};

use crate::split::{Question, Split};

pub use columns::HistoryColumns;
pub use dealing::deal;
pub use format::HistoryFormat;
pub use layout::Layout;
pub use lines::MAX_LINE_BYTES;
pub use options::{HistoryOptions, ReadNotes};
pub use read::{parse_histories, read_histories};
pub use record::{BadRecord, HistoryRecord};
pub use row_filter::RowFilter;
pub use rows::{EachRecord, HistoryRows, Progress};

/// Histories as read, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histories {
    records: Vec<HistoryRecord>,
    users: HashSet<String>,
}

/// Histories whose items are numbers of one view of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserHistories {
    /// Each history's items, oldest first.
    pub items: Vec<Vec<u64>>,
    /// True where each history is a question: its last item is the one asked for.
    pub are_questions: bool,
    /// Number of each history's user, those of one user having one; `None` where the source names
    /// none.
    pub users: Vec<Option<u32>>,
    /// Fields of the prompts of each history beside its items; empty where none has any.
    pub fields: Vec<PromptFields>,
    /// Items that the view does not have and that were left out.
    pub skipped: Skipped,
}

/// Counts of items and users left out since the catalog does not have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Items of histories.
    pub items: usize,
    /// Histories that had one of these.
    pub histories: usize,
    /// Questions whose answer the catalog does not have.
    pub questions: usize,
}

/// Histories that cannot be used; the message names the file, the value and the rule.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct HistoryError {
    path: PathBuf,
    reason: String,
}

impl HistoryError {
    pub(crate) fn new(path: &Path, reason: String) -> Self {
        Self { path: path.to_owned(), reason }
    }
}

impl Histories {
    /// Reads a text file in the format that its name tells; JSON where it tells none.
    ///
    /// # Errors
    /// When the file cannot be read, a record is wrong, or a user has two histories.
    pub fn read(path: &Path) -> Result<Self, HistoryError> {
        Self::read_as(path, HistoryFormat::from_path(path).unwrap_or(HistoryFormat::Json))
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_as(path: &Path, format: HistoryFormat) -> Result<Self, HistoryError> {
        Self::read_with(path, format, &HistoryOptions::default()).map(|(all, _)| all)
    }

    /// Reads a text file by options, and what is to be said of it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_with(
        path: &Path,
        format: HistoryFormat,
        options: &HistoryOptions,
    ) -> Result<(Self, ReadNotes), HistoryError> {
        let (all, notes) = Self::gather(|each| read_histories(path, format, options, each))?;
        Ok((all.map_err(|reason| HistoryError::new(path, reason))?, notes))
    }

    /// Gathers the records that a reader hands on, up to the first that is wrong: then a sentence
    /// about it. With them comes what the reader returns.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn gather<T, E>(
        read: impl FnOnce(&mut EachRecord<'_>) -> Result<T, E>,
    ) -> Result<(Result<Self, String>, T), E> {
        let (mut all, mut wrong) = (Self::default(), None);
        let read = read(&mut |record, _| match all.push(record) {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason) => {
                wrong = Some(reason);
                ControlFlow::Break(())
            }
        })?;
        Ok((wrong.map_or(Ok(all), Err), read))
    }

    /// Adds a record as a reader hands it on.
    ///
    /// # Errors
    /// A sentence when it could not be read, its user has a history already, or only some records
    /// say which item came next.
    pub fn push(&mut self, record: Result<HistoryRecord, BadRecord>) -> Result<(), String> {
        let record = record.map_err(|bad| match &bad.user {
            Some(user) => format!("{bad} (user {user:?})"),
            None => bad.to_string(),
        })?;
        if let Some(first) = self.records.first()
            && first.target.is_some() != record.target.is_some()
        {
            let number = self.records.len() + 1;
            return Err(format!(
                "history {number}: some histories have an item that came next and some have none; give it to all or to none"
            ));
        }
        // Each of a user's questions has a record of its own.
        if record.target.is_none()
            && let Some(user) = &record.user
            && !self.users.insert(user.clone())
        {
            return Err(format!("user {user:?} stands twice; each user has one history"));
        }
        self.records.push(record);
        Ok(())
    }

    /// The records.
    pub fn records(&self) -> &[HistoryRecord] {
        &self.records
    }

    /// Finds every item in a view of a catalog. A semantic ID stands for the first item that has
    /// it.
    ///
    /// Where unknown items are left out, the others of their history close up, before any of them
    /// is held out; a question whose answer is unknown is left out whole.
    ///
    /// # Errors
    /// For the first item that the view does not have, unless those are to be left out.
    pub fn bind(
        self,
        path: &Path,
        view: &CatalogView,
        unknown: UnknownItems,
    ) -> Result<UserHistories, HistoryError> {
        let are_questions = self.records.first().is_some_and(|record| record.target.is_some());
        let mut bound = UserHistories { are_questions, ..UserHistories::default() };
        let mut users: HashMap<String, u32> = HashMap::new();
        let has_fields = self.records.iter().any(|record| !record.fields.is_empty());
        for (number, record) in (1..).zip(self.records) {
            let find = |item: &NamedItem| match (item.number_in(view), unknown) {
                (None, UnknownItems::Error) => {
                    let user = record.user.as_ref();
                    let of =
                        user.map_or(format!("history {number}"), |user| format!("user {user:?}"));
                    let reason = format!(
                        "{of} has item {item}, which the catalog lacks: build the catalog from all items that histories name, or leave out what is unknown (--unknown skip)"
                    );
                    Err(HistoryError::new(path, reason))
                }
                (found, _) => Ok(found),
            };
            let found: Vec<Option<u64>> =
                record.items.iter().map(find).collect::<Result<_, _>>()?;
            let mut items: Vec<u64> = found.iter().flatten().copied().collect();
            let lacking = found.len() - items.len();
            bound.skipped.items += lacking;
            bound.skipped.histories += usize::from(lacking > 0);
            if let Some(target) = &record.target {
                match find(target)? {
                    Some(target) => items.push(target),
                    None => {
                        bound.skipped.questions += 1;
                        continue;
                    }
                }
            }
            bound.items.push(items);
            bound.fields.extend(has_fields.then_some(record.fields));
            let next = users.len() as u32;
            let user = record.user.map(|user| *users.entry(user).or_insert(next));
            bound.users.push(user);
        }
        Ok(bound)
    }
}

impl UserHistories {
    /// The questions that the histories ask, in their order: by the split, or each what came last
    /// where they [are questions](Self::are_questions).
    pub fn questions(&self, split: Split) -> impl Iterator<Item = Question<'_>> {
        self.items.iter().enumerate().filter_map(move |(place, history)| {
            let question = match self.are_questions {
                false => split.question(history)?,
                true => {
                    let (&target, history) = history.split_last()?;
                    Question::new(history, target)
                }
            };
            Some(Question { fields: self.fields.get(place), ..question })
        })
    }

    /// Leaves out the fields that no text of a model's prompts reads; a sentence about them.
    pub fn drop_unread_fields(&mut self, prompts: &Prompts) -> Option<String> {
        let names = self.fields.iter_mut().flat_map(|fields| prompts.drop_unread(fields));
        unread_fields(&names.collect())
    }
}

/// A sentence about fields of histories that were left out; `None` where there are none.
pub fn unread_fields(names: &BTreeSet<String>) -> Option<String> {
    const MOST_NAMED: usize = 10;
    let mut named: Vec<&str> = names.iter().take(MOST_NAMED).map(String::as_str).collect();
    named.extend((names.len() > MOST_NAMED).then_some("others"));
    (!names.is_empty()).then(|| {
        let list = named.join(", ");
        format!("no text of the model's prompts reads {list} of the histories: left out")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: Result<&[(&str, &[&str])], &str>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        match (Histories::read(&path), expected) {
            (Ok(got), Ok(want)) => {
                let want = want.iter().map(|(user, items)| HistoryRecord {
                    user: Some((*user).to_owned()),
                    items: items.iter().map(|&item| item.into()).collect(),
                    target: None,
                    fields: PromptFields::default(),
                });
                assert_eq!(got.records(), want.collect::<Vec<_>>());
            }
            (Err(error), Err(word)) => {
                let message = error.to_string();
                assert!(message.contains(word) && message.contains(name), "{message}");
            }
            (got, want) => panic!("{got:?} where {want:?} was expected"),
        }
    }

    #[test]
    fn objects_and_lines() {
        check("a.json", r#"{"9": [3, "x"], "2": []}"#, Ok(&[("9", &["3", "x"]), ("2", &[])]));
        let lines = "{\"user_id\": 7, \"history\": [1]}\n\n{\"user\": \"u\", \"items\": [\"b\"]}\n";
        check("a.jsonl", lines, Ok(&[("7", &["1"]), ("u", &["b"])]));
        check("a.json", "{}", Ok(&[]));
        check("a.JSONL", "\u{feff}{\"user\": -1, \"items\": [-2]}", Ok(&[("-1", &["-2"])]));
    }

    #[test]
    fn bad_files_are_named() {
        check("a.json", "[1]", Err("history 1: 1 is no object"));
        check("a.json", r#"{"1": [1.5]}"#, Err("floating point `1.5`, expected an item: its id"));
        check("a.json", r#"{"1": [1]} x"#, Err("trailing"));
        check("a.json", r#"{"1": [1], "1": [2]}"#, Err("\"1\" stands twice"));
        check("a.jsonl", "{\"user_id\": 7, \"history\": [1]}\n{}", Err("line 2"));
    }
}
