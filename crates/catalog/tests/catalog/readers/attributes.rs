//! Attributes in a file of their own.

use std::fmt::Write as _;
use std::fs;

use palmette_catalog::readers::{
    AttributeReport, Format, SourceItems, parse_items, read_attributes,
};
use serde_json::{Value, json};

/// Reads attributes for the items `0`, `1`, …, `num_items - 1`; item 0 has the title `old`.
fn with_attributes(
    name: &str,
    content: &str,
    num_items: usize,
) -> (SourceItems, Result<AttributeReport, String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let mut info = String::from("1\told\t0\n");
    (1..num_items).for_each(|id| writeln!(info, "1\t\t{id}").unwrap());
    let mut source = parse_items("in", info.as_bytes(), Format::InfoText).unwrap();
    let report = read_attributes(&path, &mut source).map_err(|error| {
        assert_eq!(error.path(), path);
        error.to_string().split_once(name).expect("the path").1.to_owned()
    });
    (source, report)
}

#[test]
fn attributes_are_merged_by_id() {
    for (name, content) in [
        (
            "A.JSON",
            "\u{feff}{\"1\": {\"b\": 1}, \"9\": {}, \"0\": {\"title\": \"new\", \"b\": null}}",
        ),
        (
            "A.JSONL",
            "\u{feff}{\"id\": 1, \"b\": 1}\n{\"id\": 9}\n{\"title\": \"new\", \"id\": 0, \"b\": null}",
        ),
        ("a.json", r#"{"1": {"b": 1}, "9": {}, "0": {"title": "new", "b": null}}"#),
        (
            "a.jsonl",
            "{\"id\": 1, \"b\": 1}\n{\"item_id\": \"9\"}\n{\"title\": \"new\", \"id\": \"0\", \"b\": null}",
        ),
        ("a.json", r#"[{"id": 1, "b": 1}, {"id": 9}, {"title": "new", "id": 0, "b": null}]"#),
    ] {
        let (source, report) = with_attributes(name, content, 8);
        let strings = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
        let expected = AttributeReport {
            num_without_attributes: 6,
            without_attributes: strings(&["2", "3", "4", "5", "6"]),
            num_unknown: 1,
            unknown: strings(&["9"]),
            num_replaced: 1,
            ..AttributeReport::default()
        };
        assert_eq!(report, Ok(expected));
        assert_eq!(source.items[0].title(), Some("new"));
        assert_eq!(
            Value::from(source.items[0].attributes.clone()),
            json!({"title": "new", "b": null})
        );
        assert_eq!(Value::from(source.items[1].attributes.clone()), json!({"b": 1}));
    }
}

#[test]
fn attribute_errors_change_nothing() {
    for (name, content, expected) in [
        (
            "a.json",
            "{\"0\": {\"title\": \"new\"},\n\"0\": {}}",
            ", line 2: item ID \"0\" appears twice, first at line 1",
        ),
        (
            "a.json",
            "{\"0\": {\"title\": \"new\"},\n\"1\": 5\n}",
            ", line 2: invalid type: integer `5`, expected a JSON object",
        ),
        (
            "a.jsonl",
            "{\"id\": 0, \"title\": \"new\"}\n{\"title\": 3}",
            ", line 2: no field \"item_id\" or \"id\"; the fields are \"title\"",
        ),
        (
            "a.npy",
            "item_id,title\n0,new\n",
            ": attributes are read from JSON, {\"item ID\": {\"title\": …}, …}, from objects with item_id, a line each or \
             in a list, or from tables with that column; npy holds none",
        ),
        (
            "a.csv",
            "item_id,title\n0,new\n0,\n",
            ", line 3: item ID \"0\" appears twice, first at line 2",
        ),
        (
            "a.csv",
            "asin,title\n",
            ", line 1: no field \"item_id\" or \"id\"; the fields are \"asin\", \"title\"",
        ),
        ("a.tsv", "id\ttitle\n0\n", ", line 2: 1 cells, but the header has 2"),
    ] {
        let (source, report) = with_attributes(name, content, 1);
        assert_eq!(report, Err(expected.to_owned()));
        assert_eq!(source.items[0].title(), Some("old"));
    }
}
