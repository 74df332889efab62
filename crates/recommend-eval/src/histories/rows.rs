//! Rows to histories: those that are one each, and those that are one thing a user did.

use std::collections::HashMap;
use std::ops::ControlFlow;

use palmette_recommend::{NamedItem, PromptFields};
use serde_json::{Map, Value};

use super::columns::HistoryColumns;
use super::options::{HistoryOptions, ReadNotes};
use super::record::{BadRecord, Event, HistoryRecord, Row};
use super::time::{Time, by_time};

/// Progress of reading a source: bytes, rows of a table, or users of those that were put together;
/// of 0 where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Read so far.
    pub done: u64,
    /// In all.
    pub of: u64,
}

/// Told of each record in the order of the source; ends the reading by `Break`.
pub type EachRecord<'a> =
    dyn FnMut(Result<HistoryRecord, BadRecord>, Progress) -> ControlFlow<()> + 'a;

/// Rows as objects, handed on as histories.
///
/// A row that is a history is handed on at once. Rows that are one thing a user did are kept to the
/// end, as a history for each user in the order in which the users appear, sorted by time where
/// there are times; those of one time keep their order.
pub struct HistoryRows<'a> {
    place: &'static str,
    each: &'a mut EachRecord<'a>,
    users: HashMap<String, usize>,
    events: Vec<UserEvents>,
    histories: u64,
    notes: ReadNotes,
    /// Members of the latest object, and the columns that they are.
    latest: Option<(Vec<String>, HistoryColumns)>,
}

/// A user, and each thing that it did, with its time.
type UserEvents = (String, Vec<(Option<Time>, NamedItem)>);

impl std::fmt::Debug for HistoryRows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistoryRows").field("histories", &self.histories).finish_non_exhaustive()
    }
}

impl<'a> HistoryRows<'a> {
    /// For rows that are counted as `place`: lines or rows.
    pub fn new(place: &'static str, each: &'a mut EachRecord<'a>) -> Self {
        let (users, events) = (HashMap::new(), Vec::new());
        let notes = ReadNotes::default();
        Self { place, each, users, events, histories: 0, notes, latest: None }
    }

    /// Says what is read of these columns, for the notes.
    pub fn note_columns(&mut self, names: &[&str], columns: &HistoryColumns) {
        let read = columns.names();
        self.notes.add_unread(names.iter().copied().filter(|name| !read.contains(name)));
        self.notes.is_untimed |= columns.is_untimed();
    }

    /// Reads an object whose members are columns, by options.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_object(
        &mut self,
        at: u64,
        options: &HistoryOptions,
        row: Map<String, Value>,
        progress: Progress,
    ) -> Result<ControlFlow<()>, BadRecord> {
        let is_same = |latest: &&(Vec<String>, HistoryColumns)| latest.0.iter().eq(row.keys());
        let columns = match self.latest.as_ref().filter(is_same) {
            Some((_, columns)) => columns.clone(),
            None => {
                let names: Vec<&str> = row.keys().map(String::as_str).collect();
                let columns = match HistoryColumns::find(options, &names, true) {
                    Ok(columns) => columns,
                    Err(reason) => return Ok(self.push_bad(at, reason, progress)),
                };
                self.note_columns(&names, &columns);
                self.latest = Some((row.keys().cloned().collect(), columns.clone()));
                columns
            }
        };
        for (list, member) in columns.unread_members(&row) {
            self.notes.add_unread_member(list, member);
        }
        self.push(at, &columns, row, progress)
    }

    /// Reads row number `at`. A history that cannot be read is handed on as that.
    ///
    /// # Errors
    /// When one thing a user did cannot be read, or rows of both kinds are mixed: no history can
    /// then be made.
    pub fn push(
        &mut self,
        at: u64,
        columns: &HistoryColumns,
        row: Map<String, Value>,
        progress: Progress,
    ) -> Result<ControlFlow<()>, BadRecord> {
        let bad = |user, reason| BadRecord { place: self.place, at, user, reason };
        match columns.read(row, &mut self.notes.times) {
            Ok(None) => {
                self.notes.left_out += 1;
                Ok(ControlFlow::Continue(()))
            }
            Ok(Some(Row::Event(event))) if self.histories == 0 => {
                self.add(event);
                Ok(ControlFlow::Continue(()))
            }
            Ok(Some(Row::History(record))) if self.events.is_empty() => {
                self.histories += 1;
                Ok((self.each)(Ok(record), progress))
            }
            Ok(Some(_)) => {
                let reason =
                    "some rows are whole histories and some are single items; split the file";
                Err(bad(None, reason.to_owned()))
            }
            Err((user, reason)) if columns.is_events() => Err(bad(user, reason)),
            Err((user, reason)) => {
                self.histories += 1;
                Ok((self.each)(Err(bad(user, reason)), progress))
            }
        }
    }

    /// Hands on a row that says nothing usable.
    pub(crate) fn push_bad(
        &mut self,
        at: u64,
        reason: String,
        progress: Progress,
    ) -> ControlFlow<()> {
        (self.each)(Err(BadRecord { place: self.place, at, user: None, reason }), progress)
    }

    fn add(&mut self, Event { user, item, time }: Event) {
        let next = self.events.len();
        let place = *self.users.entry(user).or_insert_with_key(|user| {
            self.events.push((user.clone(), Vec::new()));
            next
        });
        self.events[place].1.push((time, item));
    }

    /// Hands on the histories that end with the source; what is to be said of it.
    pub fn finish(self) -> ReadNotes {
        let of = self.events.len() as u64;
        for (at, (user, events)) in (1..).zip(self.events) {
            let record = match by_time(events.into_iter()) {
                Ok(items) => {
                    let (user, fields) = (Some(user), PromptFields::default());
                    Ok(HistoryRecord { user, items, target: None, fields })
                }
                Err(reason) => Err(BadRecord { place: "user", at, user: Some(user), reason }),
            };
            if (self.each)(record, Progress { done: at, of }).is_break() {
                break;
            }
        }
        self.notes
    }
}
