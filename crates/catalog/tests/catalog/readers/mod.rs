//! The readers on small inputs, good and bad, on generated ones, and on published files where
//! present; a file a family of formats.

mod attributes;
mod formats;
mod generated;
mod json;
mod options;
mod tables;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use palmette_catalog::BuildError;
use palmette_catalog::readers::{
    AttributeReport, Format, ItemSink, ReadError, SourceItems, SourceOptions, parse_into,
    parse_items, read_attributes, read_items,
};
use palmette_testkit::data::unpacked;
use serde_json::{Map, Value};

/// `expected` is what [`show`] prints, or the error without the source's name.
#[track_caller]
fn check(format: Format, input: impl AsRef<[u8]>, expected: &str) {
    let input = input.as_ref();
    assert_eq!(show(parse_items("in", input, format)), expected);

    let with_mark = [b"\xef\xbb\xbf", input].concat();
    assert_eq!(show(parse_items("in", &*with_mark, format)), expected, "after a byte order mark");
}

/// A line an item, `line: id codes attributes`, then the prefixes.
fn show(result: Result<SourceItems, ReadError>) -> String {
    let source = match result {
        Ok(source) => source,
        Err(error) => return error.to_string().strip_prefix("in").expect("the name").to_owned(),
    };
    assert_eq!(source.items.len(), source.lines.len());
    let mut text = String::new();
    for (item, line) in source.items.iter().zip(&source.lines) {
        let attributes = Value::Object(item.attributes.clone());
        writeln!(text, "{line}: {} {:?} {attributes}", item.id, item.codes).unwrap();
    }
    if let Some(prefixes) = source.level_prefixes {
        writeln!(text, "<{}>", prefixes.join(" ")).unwrap();
    }
    text
}

fn text_formats() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|&format| format != Format::Npy)
}

fn usual() -> SourceOptions {
    SourceOptions::default()
}

#[test]
fn nothing_is_a_legal_catalog() {
    assert_eq!(show(parse_items("in", &b""[..], Format::Npy)), "");
    for format in text_formats() {
        check(format, "", "");
        check(format, "\n", "");
        check(format, "\r\n\r\n", "");
    }
    check(Format::IndexJson, "{}", "");
    check(Format::IndexJson, " \n { } \n", "");
    check(Format::Csv, "item_id,codes\n", "");
}

/// Reads with these options; `expected` as in [`check`].
#[track_caller]
fn check_with(options: &SourceOptions, format: Format, input: &str, expected: &str) {
    let mut items = SourceItems::default();
    let result = parse_into("in", input.as_bytes(), format, options, &mut items);
    let result =
        result.map(|summary| SourceItems { level_prefixes: summary.level_prefixes, ..items });
    assert_eq!(show(result), expected);
}

#[test]
fn errors_know_path_and_line() {
    let missing = Path::new("no-such-folder/items.csv");
    let error = read_items(missing, Format::Csv).unwrap_err();
    assert_eq!((error.path(), error.line()), (missing, None));
    assert!(error.to_string().starts_with("no-such-folder/items.csv: cannot be read: "), "{error}");

    let error = parse_items("in", "x".as_bytes(), Format::InfoText).unwrap_err();
    assert_eq!((error.path(), error.line()), (Path::new("in"), Some(1)));
}

/// Refuses items without attributes.
#[derive(Default)]
struct Described(Vec<String>);

impl ItemSink for Described {
    fn push(
        &mut self,
        line: u64,
        id: String,
        _codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        if attributes.is_empty() {
            return Err(BuildError::of_item(line, id, "has no attributes"));
        }
        self.0.push(id);
        Ok(())
    }
}

#[test]
fn a_refused_item_is_named_once() {
    let lines = "{\"id\": 3, \"codes\": [1], \"a\": 1}\n\n{\"id\": \"x\", \"codes\": [1]}\n";
    let mut sink = Described::default();
    let error =
        parse_into("in", lines.as_bytes(), Format::JsonLines, &usual(), &mut sink).unwrap_err();
    assert_eq!(error.to_string(), "in, line 3: item \"x\" has no attributes");
    assert_eq!((error.line(), sink.0), (Some(3), vec!["3".to_owned()]));
}

#[test]
fn a_sink_may_take_an_id_twice() {
    let lines = "{\"id\": 3, \"codes\": [1]}\n{\"id\": 3, \"codes\": [2]}\n";
    let mut items = SourceItems::default();
    let summary =
        parse_into("in", lines.as_bytes(), Format::JsonLines, &usual(), &mut items).unwrap();
    assert_eq!((summary.num_items, summary.level_prefixes), (2, None));
    assert_eq!(items.lines, [1, 2]);
}

/// The `expected` of [`check`] cannot hold a whole file, so published ones are checked by count.
/// The files are not part of this repository: `PALMETTE_DATA` names their folder.
#[test]
fn published_files() {
    let test = "published_files";
    let Some(scientific) = unpacked(test, "scientific") else { return };
    let Some(minionerec) = unpacked(test, "minionerec") else { return };

    let scientific = scientific.path().join("data/Scientific");
    for (index, num_distinct) in
        [("rqvae_native", 3790), ("rkmeans_native", 3469), ("rqvae_zcr", 4344)]
    {
        let path = scientific.join(format!("indexes/{index}/Scientific.index.json"));
        let mut source = read_items(&path, Format::IndexJson).unwrap();
        assert_eq!(source.items.len(), 4344);
        assert!(source.items.iter().all(|item| item.codes.len() == 4));
        assert_eq!(
            source.level_prefixes.as_deref(),
            Some(&["a", "b", "c", "d"].map(String::from)[..])
        );
        let distinct: HashSet<&[u32]> = source.items.iter().map(|item| &*item.codes).collect();
        assert_eq!(distinct.len(), num_distinct, "{index}");

        let report = read_attributes(&scientific.join("Scientific.item.json"), &mut source);
        assert_eq!(report.unwrap(), AttributeReport::default());
        assert!(source.items.iter().all(|item| item.title().is_some()));
    }

    for (name, num_items, num_distinct) in
        [("Industrial_and_Scientific", 3686, 3670), ("Office_Products", 3459, 3444)]
    {
        let folder = minionerec.path().join("minionerec");
        let index =
            read_items(&folder.join(format!("{name}.index.json")), Format::IndexJson).unwrap();
        let info = folder.join(format!("{name}_5_2016-10-2018-11.txt"));
        let info = read_items(&info, Format::InfoText).unwrap();
        assert_eq!(index.items.len(), num_items);
        let distinct: HashSet<&[u32]> = index.items.iter().map(|item| &*item.codes).collect();
        assert_eq!(distinct.len(), num_distinct, "{name}");
        let names = |source: &SourceItems| -> Vec<(String, Vec<u32>)> {
            source.items.iter().map(|item| (item.id.clone(), item.codes.clone())).collect()
        };
        assert_eq!(names(&index), names(&info), "{name}: both files tell the same");
        assert!(info.items.iter().all(|item| item.title().is_some()));
    }
}
