//! Options of histories on command lines, the same for every command that reads them.

use clap::Args;

use crate::histories::{HistoryOptions, Layout, RowFilter};

/// Options that say what the columns of a file of histories hold.
#[derive(Clone, Debug, Default, Args)]
pub struct HistoryArgs {
    /// Names of columns of a published data set or a tool: movielens, amazon2018, amazon2023,
    /// kuairand, kuairec, yelp, steam, otto, retailrocket, hm, recbole, rechorus, merlin, grid,
    /// gorse, minionerec or taste
    ///
    /// It also says the format that its files have, whatever they are called. docs/file-formats.md
    /// has the columns of each.
    #[arg(long, value_name = "NAME", value_parser = layout, help_heading = "Histories")]
    pub layout: Option<&'static Layout>,
    /// Column of the users
    #[arg(long, value_name = "NAME", help_heading = "Histories")]
    pub user_column: Option<String>,
    /// Column of the items: one a row, or, with --target-column, whole histories; events.aid is a
    /// member of the objects in a list
    #[arg(long, value_name = "NAME", help_heading = "Histories")]
    pub item_column: Option<String>,
    /// Column of whole histories, a list a row
    #[arg(long, value_name = "NAME", help_heading = "Histories")]
    pub history_column: Option<String>,
    /// Column of the times by which a user's items are sorted
    #[arg(long, value_name = "NAME", help_heading = "Histories")]
    pub time_column: Option<String>,
    /// Column of the items that came next, beside whole histories
    #[arg(long, value_name = "NAME", help_heading = "Histories")]
    pub target_column: Option<String>,
    /// Read only the rows that match: NAME=VALUE, NAME=ONE,ANOTHER, != < <= > >=, or a filter in
    /// JSON; all, where it is given several times
    #[arg(long = "where", value_name = "CONDITION", value_parser = row_filter, help_heading = "Histories")]
    pub rows: Vec<RowFilter>,
    /// Separator of the cells of a file, such as ; or | or tab [default: a comma, or a tab in .tsv
    /// and .inter]
    #[arg(long, value_name = "CHAR", value_parser = palmette_catalog::readers::parse_separator, help_heading = "Histories")]
    pub separator: Option<char>,
    /// Separator of the items, or times, of a history in a cell, such as , or | [default: blanks;
    /// lists as JSON, Python and NumPy print them are told by their brackets]
    #[arg(long, value_name = "TEXT", help_heading = "Histories")]
    pub list_separator: Option<String>,
    /// Cells of tab-separated files may stand in quotes; without it a quote is a character as any
    /// other
    #[arg(long, help_heading = "Histories")]
    pub quotes: bool,
}

fn layout(name: &str) -> Result<&'static Layout, String> {
    name.parse()
}

fn row_filter(text: &str) -> Result<RowFilter, String> {
    text.parse()
}

impl HistoryArgs {
    /// Options for a reader of histories.
    ///
    /// # Errors
    /// When the conditions are too many for one.
    pub fn options(&self) -> Result<HistoryOptions, String> {
        Ok(HistoryOptions {
            layout: self.layout,
            user_column: self.user_column.clone(),
            item_column: self.item_column.clone(),
            history_column: self.history_column.clone(),
            time_column: self.time_column.clone(),
            target_column: self.target_column.clone(),
            rows: RowFilter::all(&self.rows)?,
            separator: self.separator,
            list_separator: self.list_separator.clone(),
            quoted_tabs: self.quotes,
        })
    }

    /// True if any of them is given.
    pub fn is_given(&self) -> bool {
        self.options() != Ok(HistoryOptions::default())
    }
}
