//! The formats of histories, and how to tell them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Format of a text file with histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryFormat {
    /// `{user: [item, …], …}`, or a list of the objects that JSON lines are.
    Json,
    /// An object a line.
    JsonLines,
    /// RecBole's atomic files: columns between tabs, named `user_id:token`, `item_id:token`, `timestamp:float`.
    Inter,
    /// Columns between commas, named in the first record: MiniOneRec's rows among others.
    Csv,
    /// Columns between tabs, named in the first line.
    Tsv,
    /// P5's sequential data: a user and its items a line, blanks between.
    Sequential,
}

impl HistoryFormat {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::Json, Self::JsonLines, Self::Inter, Self::Csv, Self::Tsv, Self::Sequential];

    /// The format that a file name's extension stands for, in either case.
    pub fn from_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Self::Json,
            "jsonl" | "ndjson" => Self::JsonLines,
            "inter" => Self::Inter,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "txt" => Self::Sequential,
            _ => return None,
        })
    }

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Inter => "inter",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Sequential => "sequential",
        }
    }
}

impl fmt::Display for HistoryFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for HistoryFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| format!("{name:?} is no format of histories; use one of {names}"))
    }
}
