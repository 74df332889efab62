//! The formats of histories, and how to tell them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Format of a file with histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryFormat {
    /// `{user: [item, …], …}`, or a list of the objects that JSON lines are.
    Json,
    /// An object a line.
    JsonLines,
    /// RecBole's atomic files: columns between tabs, named `user_id:token`, `item_id:token`,
    /// `timestamp:float`.
    Inter,
    /// Columns between commas, named in the first record: MiniOneRec's rows among others.
    Csv,
    /// Columns between tabs, named in the first line. Quotes are characters as others.
    Tsv,
    /// P5's sequential data: a user and its items a line, blanks between.
    Sequential,
    /// An object a line, as Python prints a dict, or as JSON.
    Python,
    /// Columns between `::`, as MovieLens has them.
    Colons,
    /// A user, its items up to the first 0 and the item that came next, tabs between, after a line
    /// of names: TASTE's.
    Padded,
    /// TensorFlow's records of `tf.train.Example`.
    TfRecord,
}

impl HistoryFormat {
    /// Every format.
    pub const ALL: [Self; 10] = [
        Self::Json,
        Self::JsonLines,
        Self::Inter,
        Self::Csv,
        Self::Tsv,
        Self::Sequential,
        Self::Python,
        Self::Colons,
        Self::Padded,
        Self::TfRecord,
    ];

    /// The format that a file name's extension stands for, in either case and before a `.gz`.
    pub fn from_path(path: &Path) -> Option<Self> {
        Some(match ending(path)?.as_str() {
            "json" => Self::Json,
            "jsonl" | "ndjson" => Self::JsonLines,
            "inter" => Self::Inter,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "txt" => Self::Sequential,
            "tfrecord" | "tfrecords" => Self::TfRecord,
            _ => return None,
        })
    }

    /// Name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Inter => "inter",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Sequential => "sequential",
            Self::Python => "python",
            Self::Colons => "colons",
            Self::Padded => "padded",
            Self::TfRecord => "tfrecord",
        }
    }

    /// True where the place in a line, not a name, says what something is.
    pub(crate) fn has_no_names(self) -> bool {
        matches!(self, Self::Sequential | Self::Padded)
    }
}

/// The extension of a file, in lower case: of what is compressed, that of what it is.
pub(crate) fn ending(path: &Path) -> Option<String> {
    let ending = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
    match ending(path)?.as_str() {
        "gz" => ending(Path::new(path.file_stem()?)),
        other => Some(other.to_owned()),
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
