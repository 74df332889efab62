//! Options of a reader of histories, and its notes.

use std::path::Path;

use super::columns::HistoryColumns;
use super::format::HistoryFormat;
use super::layout::Layout;
use super::row_filter::RowFilter;
use super::time::TimeNotes;

/// Options of a source: the meaning of its columns, and a condition on rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryOptions {
    /// The data set, or the tool, whose names are known.
    pub layout: Option<&'static Layout>,
    /// The column of users.
    pub user_column: Option<String>,
    /// The column of items, one a row; of whole histories, where there is a target.
    pub item_column: Option<String>,
    /// The column of whole histories.
    pub history_column: Option<String>,
    /// The column of times: one a row, or a list beside a whole history.
    pub time_column: Option<String>,
    /// The column of the items that came next.
    pub target_column: Option<String>,
    /// The rows that are read; all, unless it says.
    pub rows: Option<RowFilter>,
    /// Separator of the cells of a file; by its format a comma or a tab unless given.
    pub separator: Option<char>,
    /// Separator of the items, or times, of a list in a cell; blanks unless given.
    pub list_separator: Option<String>,
    /// True if cells between tabs may stand in quotes, as those between commas. Otherwise a quote
    /// is a plain character.
    pub quoted_tabs: bool,
}

/// Notes on a source: the parts that were not read, or perhaps not as meant. Said once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadNotes {
    /// Columns and members that are not read, in the order in which they came.
    pub(crate) unread: Vec<String>,
    /// Rows that do not match [`HistoryOptions::rows`].
    pub(crate) left_out: u64,
    /// True where rows are single things at no time.
    pub(crate) is_untimed: bool,
    pub(crate) times: TimeNotes,
}

impl HistoryOptions {
    /// Finds the columns of a table by their names.
    ///
    /// # Errors
    /// As [`HistoryColumns::of`], and when a column that is named is not there.
    pub fn columns(&self, names: &[&str]) -> Result<HistoryColumns, String> {
        HistoryColumns::find(self, names, false)
    }

    /// The format of a file: where there is a layout, that of its files that end alike.
    pub fn format_of(&self, path: &Path) -> Option<HistoryFormat> {
        match self.layout {
            Some(layout) => Some(layout.file(path).format),
            None => HistoryFormat::from_path(path),
        }
    }

    /// # Errors
    /// A sentence, when columns are named of a format that has none.
    pub(crate) fn check(&self, format: HistoryFormat) -> Result<(), String> {
        let named = [
            ("--user-column", self.user_column.is_some()),
            ("--item-column", self.item_column.is_some()),
            ("--history-column", self.history_column.is_some()),
            ("--time-column", self.time_column.is_some()),
            ("--target-column", self.target_column.is_some()),
            ("--where", self.rows.is_some()),
        ];
        if self.quoted_tabs && !matches!(format, HistoryFormat::Tsv | HistoryFormat::Inter) {
            return Err(format!(
                "--quotes goes with cells between tabs, and the format is {format}"
            ));
        }
        if let Some(separator) = self.separator {
            let has_cells =
                matches!(format, HistoryFormat::Csv | HistoryFormat::Tsv | HistoryFormat::Inter);
            if !has_cells {
                return Err(format!(
                    "--separator {separator:?} goes with the formats csv, tsv and inter, and the format is {format}"
                ));
            }
        }
        if self.list_separator.as_deref() == Some("") {
            return Err(
                "--list-separator is empty; name what parts the items of a cell, such as |"
                    .to_owned(),
            );
        }
        match named.into_iter().find(|&(_, is_given)| is_given) {
            Some((option, _)) if format.has_no_names() => Err(format!(
                "{option} names a column, and a file in the format {format} has none; leave it out, or name another format"
            )),
            _ => Ok(()),
        }
    }
}

/// Limit on the columns that are named as unread.
const MOST_NAMED: usize = 24;

impl ReadNotes {
    /// Adds names that are not read, each once.
    pub(crate) fn add_unread<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        for name in names {
            if !self.unread.iter().any(|known| known == name) {
                self.unread.push(name.to_owned());
            }
        }
    }

    /// Adds the member of the objects in a list.
    pub(crate) fn add_unread_member(&mut self, list: &str, member: &str) {
        let is_it = |known: &String| {
            known.strip_prefix(list).and_then(|rest| rest.strip_prefix('.')) == Some(member)
        };
        if !self.unread.iter().any(is_it) {
            self.unread.push(format!("{list}.{member}"));
        }
    }

    /// A sentence about each.
    pub fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.unread.is_empty() {
            let named = &self.unread[..self.unread.len().min(MOST_NAMED)];
            let more = match self.unread.len() - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            all.push(format!("not read: {}{more}", named.join(", ")));
        }
        if self.is_untimed {
            all.push("no column has times: a user's items keep the order of the file (--time-column names one)".to_owned());
        }
        if self.left_out > 0 {
            all.push(format!("{} rows do not match --where and are left out", self.left_out));
        }
        all.extend(self.times.sentences());
        all
    }
}
