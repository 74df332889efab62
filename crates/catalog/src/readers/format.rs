//! The formats and their names.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Format of a source: the spelling of its items.
///
/// In every format a source spells either all codes as plain numbers or all as `<a_12>`, with
/// one prefix a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object from item ID to codes: `{"0": ["<a_183>", "<b_7>"], …}`. An item's codes may
    /// also be numbers, `[183, 7]`, or one text, `"<a_183><b_7>"`. A list is read as `JsonLines`.
    IndexJson,
    /// One JSON object from semantic ID, one text, to its items: an ID, a list of IDs or of objects
    /// with an ID (`item_id`, `id`, `pid` or `iid`) and attributes, or an object from IDs to
    /// counts, which become the attribute `count`.
    InverseJson,
    /// A line per item, `<a_236><b_231> \t title \t item ID`. An empty title is left out, and
    /// so are empty lines. Where the first line is a header, as of `Tsv`, it is read as that.
    InfoText,
    /// A JSON object per line, or a list of objects: `item_id` (or `id`), text or a whole number;
    /// `codes` (or `semantic_id`, or `sid`), a list or one text; all other fields are attributes.
    /// Blank lines are left out.
    JsonLines,
    /// Comma-separated, with a header: `item_id` (or `id`); either `codes` (or `semantic_id`, or
    /// `sid`), such as `1 2 3`, `1-2-3` or `<a_1><b_2>`, or columns `code_0`, `code_1`, …, where
    /// empty trailing cells shorten the ID. All other columns are attributes: an empty cell is left
    /// out, `true`, `false` and numbers that print back as they were written, up to zeros that end
    /// a fraction, are read as such (`19.99` and `1.50`, but not `007`), and the rest is text.
    /// Empty lines are left out.
    Csv,
    /// Separated text as in `Csv`, with tabs for commas.
    Tsv,
    /// An array of NumPy, `(items, levels)` whole numbers; IDs are the numbers of the rows, from 0.
    Npy,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 7] = [
        Format::IndexJson,
        Format::InverseJson,
        Format::InfoText,
        Format::JsonLines,
        Format::Csv,
        Format::Tsv,
        Format::Npy,
    ];

    /// The format a file name's extension stands for, in either case: `.json`, `.txt` or `.tsv`,
    /// `.jsonl` or `.ndjson`, `.csv`, `.npy`.
    pub fn from_path(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Format::IndexJson),
            "txt" | "tsv" => Some(Format::InfoText),
            "jsonl" | "ndjson" => Some(Format::JsonLines),
            "csv" => Some(Format::Csv),
            "npy" => Some(Format::Npy),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Format::IndexJson => "index-json",
            Format::InverseJson => "inverse-json",
            Format::InfoText => "info-text",
            Format::JsonLines => "jsonl",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Npy => "npy",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// A name that no [`Format`] has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {name:?}; the formats are {}", Format::ALL.map(|format| format.to_string()).join(", "))]
pub struct UnknownFormat {
    name: String,
}
