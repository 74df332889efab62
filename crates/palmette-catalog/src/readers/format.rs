//! The formats and their names.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde_json::Value;

use super::bare_words::BareWords;
use super::{ItemColumns, SourceOptions, parse_codes};

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
    /// with an ID (`item_id`, `id`, `pid` or `iid`) and attributes, or an object from IDs to counts,
    /// which become the attribute `count`.
    InverseJson,
    /// A line per item, `<a_236><b_231> \t title \t item ID`. An empty title is left out, and
    /// so are empty lines. Where the first line is a header, as of `Tsv`, it is read as that.
    InfoText,
    /// A JSON object per line, or a list of objects: `item_id` (or `id`), text or a whole number; `codes` (or
    /// `semantic_id`, or `sid`), a list or one text; all other fields are attributes.
    /// Blank lines are left out.
    JsonLines,
    /// Comma-separated, with a header: `item_id` (or `id`); either `codes` (or `semantic_id`, or
    /// `sid`), such as `1 2 3`, `1-2-3` or `<a_1><b_2>`, or columns `code_0`, `code_1`, …, where
    /// empty trailing cells shorten the ID. All other columns are attributes: an empty cell is left
    /// out, `true`, `false` and numbers that print back as they were written, up to zeros that end a
    /// fraction, are read as such (`19.99` and `1.50`, but not `007`), and the rest is text. Empty
    /// lines are left out.
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

    /// The format of an input of attributes that the first bytes show: `JsonLines`, `IndexJson`, `Csv` or `Tsv`; `None` where they
    /// leave a doubt.
    pub fn detect_attributes(head: &[u8], options: &SourceOptions) -> Option<Format> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let line = first_line(head);
        let has_id = |names: &[&str]| {
            let ids = options.id_names_among(|name| names.contains(&name));
            ids.iter().any(|id| names.contains(id))
        };
        match head.first()? {
            b'[' => Some(Format::JsonLines),
            b'{' => match json_line(&line, options) {
                Some(Value::Object(object))
                    if has_id(&object.keys().map(String::as_str).collect::<Vec<_>>()) =>
                {
                    Some(Format::JsonLines)
                }
                _ => Some(Format::IndexJson),
            },
            _ => tables(options).find_map(|(separator, format)| {
                let names: Vec<&str> =
                    line.split(separator).map(|name| name.trim_matches('"')).collect();
                (names.len() > 1 && has_id(&names)).then_some(format)
            }),
        }
    }

    /// The format that the first bytes of an input show, for inputs whose names tell none; `None`
    /// where they leave a doubt. An object of JSON is an item where its line is a whole object with
    /// fields for ID and codes, else an index.
    pub fn detect(head: &[u8], options: &SourceOptions) -> Option<Format> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        let line = &first_line(head);
        match head.first()? {
            0x93 if head.starts_with(b"\x93NUMPY") => Some(Format::Npy),
            b'[' if !line.contains('\t') => Some(Format::JsonLines),
            b'{' if is_item(line, options) => Some(Format::JsonLines),
            b'{' => Some(Format::IndexJson),
            _ => of_table(line, options),
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

/// True of lines that are an object with an ID, text or a number, and codes.
fn is_item(line: &str, options: &SourceOptions) -> bool {
    let Some(Value::Object(object)) = json_line(line, options) else { return false };
    let ids = options.id_names_among(|name| object.contains_key(name));
    let id = ids.into_iter().find_map(|name| object.get(name));
    let mut codes = options.codes_names();
    codes.extend(options.level_names().into_iter().flatten().map(String::as_str));
    id.is_some_and(|id| id.is_string() || id.is_number())
        && codes.into_iter().any(|name| object.contains_key(name))
}

/// The first line of an input, as far as it is text.
fn first_line(head: &[u8]) -> String {
    let line = head.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    String::from_utf8_lossy(line).trim_end().to_owned()
}

/// A line as JSON, with the bare words in it that mean none.
fn json_line(line: &str, options: &SourceOptions) -> Option<Value> {
    serde_json::from_reader(BareWords::new(line.as_bytes(), &options.cells.nulls)).ok()
}

/// The formats of tables, and what stands between their cells.
fn tables(options: &SourceOptions) -> impl Iterator<Item = (char, Format)> {
    let usual = [('\t', Format::Tsv), (',', Format::Csv)];
    let given = options.separator.map(|separator| (separator, Format::Csv));
    given.into_iter().chain(usual.into_iter().filter(move |_| given.is_none()))
}

/// The format of a table or of info text that begins with this line.
fn of_table(line: &str, options: &SourceOptions) -> Option<Format> {
    for (separator, format) in tables(options) {
        let names: Vec<String> =
            line.split(separator).map(|name| name.trim_matches('"').to_owned()).collect();
        if ItemColumns::from_names(&names, options).is_ok() {
            return Some(format);
        }
    }
    let codes = line.split('\t').next().filter(|_| line.matches('\t').count() == 2)?;
    parse_codes(codes).is_ok_and(|codes| !codes.is_empty()).then_some(Format::InfoText)
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
