//! Detection of a format by the first bytes of an input.

use serde_json::Value;

use super::bare_words::BareWords;
use super::codes::parse_codes;
use super::format::Format;
use super::item_columns::ItemColumns;
use super::options::SourceOptions;

impl Format {
    /// The format of an input of attributes that the first bytes show: `JsonLines`, `IndexJson`,
    /// `Csv` or `Tsv`; `None` where they leave a doubt.
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
