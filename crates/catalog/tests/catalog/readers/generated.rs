//! Generated items, written in every format and read back, and damaged.

use std::fmt::Write as _;

use palmette_catalog::index::MAX_CODE;
use palmette_catalog::readers::{
    CellOptions, Format, SourceItems, SourceOptions, parse_into, parse_items,
};
use palmette_catalog::{BuildOptions, Catalog, ColumnKind, Item};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{text_formats, usual};

/// Items every format can hold: the title has no tab, no line end and is not read as a number.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = (
        prop::collection::vec(prop_oneof![0..300u32, 0..=MAX_CODE], 1..5),
        prop::option::of("[a-zé\"',<>\\\\{}-][a-z0-9é\"',<>\\\\{} -]{0,12}"),
        0..1000u32,
    );
    prop::collection::vec(item, 0..20).prop_map(|items| {
        let item = |(index, (codes, title, salt)): (usize, (Vec<u32>, Option<String>, u32))| {
            let mut attributes = Map::new();
            // "true" and "false" alone would come back as truth values from CSV.
            if let Some(title) = title {
                attributes.insert("title".to_owned(), format!("{title}!").into());
            }
            Item { id: format!("P{index}-{salt}"), codes, attributes }
        };
        items.into_iter().enumerate().map(item).collect()
    })
}

const PREFIXES: [&str; 4] = ["a", "b", "c2", "d"];

fn tags(item: &Item) -> Vec<String> {
    let levels = item.codes.iter().zip(PREFIXES);
    levels.map(|(code, prefix)| format!("<{prefix}_{code}>")).collect()
}

/// Writes `items` as `format` in one of its spellings, `way`; the flag says whether with prefixes.
fn write_items(items: &[Item], format: Format, way: usize) -> (String, bool) {
    let title = |item: &Item| item.title().unwrap_or_default().to_owned();
    let numbers = |item: &Item, separator| {
        item.codes.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
    };
    let tagged = way == 0;
    let mut text = String::new();
    match format {
        Format::IndexJson => {
            let entries = items.iter().map(|item| {
                let codes = if tagged { json!(tags(item)) } else { json!(item.codes) };
                (item.id.clone(), codes)
            });
            let object = Value::Object(entries.collect());
            text = if tagged { object.to_string() } else { format!("{object:#}") };
        }
        Format::InfoText => {
            for item in items {
                let codes = if tagged { tags(item).concat() } else { numbers(item, " ") };
                writeln!(text, "{codes}\t{}\t{}", title(item), item.id).unwrap();
            }
        }
        Format::JsonLines => {
            for item in items {
                let mut object = item.attributes.clone();
                object.insert("item_id".to_owned(), json!(item.id));
                let codes = match way {
                    0 => json!(tags(item).concat()),
                    1 => json!(item.codes),
                    _ => json!(numbers(item, "-")),
                };
                object.insert("codes".to_owned(), codes);
                writeln!(text, "{}", Value::Object(object)).unwrap();
            }
        }
        Format::InverseJson => {
            let entries = items.iter().map(|item| {
                let codes = if tagged { tags(item).concat() } else { numbers(item, ",") };
                let mut object = item.attributes.clone();
                object.insert(["item_id", "id", "pid"][way].to_owned(), json!(item.id));
                // A semantic ID that several items share stands several times.
                format!("{}: [{}]", json!(codes), Value::Object(object))
            });
            text = format!("{{{}}}", entries.collect::<Vec<_>>().join(",\n"));
        }
        Format::Npy => unreachable!("no text"),
        Format::Csv | Format::Tsv => {
            let separator = if format == Format::Csv { b',' } else { b'\t' };
            let quotes = match format {
                Format::Csv => csv::QuoteStyle::Necessary,
                _ => csv::QuoteStyle::Never,
            };
            let mut writer = csv::WriterBuilder::new()
                .delimiter(separator)
                .quote_style(quotes)
                .from_writer(Vec::new());
            if way == 2 {
                writer
                    .write_record(["id", "code_0", "code_1", "code_2", "code_3", "title"])
                    .unwrap();
            } else {
                writer.write_record(["id", "codes", "title"]).unwrap();
            }
            for item in items {
                let mut cells = vec![item.id.clone()];
                match way {
                    0 => cells.push(tags(item).concat()),
                    1 => cells.push(numbers(item, " ")),
                    _ => {
                        cells.extend(item.codes.iter().map(u32::to_string));
                        cells.resize(5, String::new());
                    }
                }
                cells.push(title(item));
                writer.write_record(cells).unwrap();
            }
            text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        }
    }
    (text, tagged)
}

/// Cells as people and programs write them, whole and broken.
fn cells() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "'a'",
        "\"b\"",
        "'",
        "\"",
        ", ",
        " ",
        "|",
        "...",
        "None",
        "null",
        "NaN",
        "NA",
        "true",
        "yes",
        "0",
        "1",
        "20260101",
        "-3",
        "1.50",
        "1,5",
        "1.234,50",
        "1e5",
        "2026-11-21",
        "T09:30:00Z",
        "\n",
        "é",
        "\\",
    ]);
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// The attributes of the one item in a file whose attribute `x` has this kind.
fn attributes_of(
    file: &str,
    format: Format,
    kind: Option<ColumnKind>,
    options: &SourceOptions,
) -> Result<Map<String, Value>, String> {
    let mut source = SourceItems::default();
    let read = parse_into("in", file.as_bytes(), format, options, &mut source);
    read.map_err(|error| error.to_string())?;
    let columns = kind.map(|kind| ("x".to_owned(), kind)).into_iter().collect();
    let built = Catalog::build(source, &BuildOptions { columns, ..BuildOptions::default() });
    let catalog = built.map_err(|error| error.to_string())?;
    Ok(catalog.attributes(catalog.rank_of("A").expect("the item is in")))
}

const KINDS: [ColumnKind; 6] = [
    ColumnKind::Keyword,
    ColumnKind::Number,
    ColumnKind::Boolean,
    ColumnKind::Timestamp,
    ColumnKind::Keywords,
    ColumnKind::Json,
];

proptest! {
    /// Values of cells are the same when written as JSON and read again by the same options.
    #[test]
    fn kept_cells_read_back(
        cell in cells(),
        kind in 0..=KINDS.len(),
        has_null: bool,
        list_separator in prop::option::of("[|,]"),
        is_german: bool,
    ) {
        let kind = KINDS.get(kind).copied();
        let options = SourceOptions {
            cells: CellOptions {
                kinds: kind.map(|kind| ("x".to_owned(), kind)).into_iter().collect(),
                nulls: if has_null { vec!["NA".to_owned()] } else { Vec::new() },
                list_separator,
                decimal: is_german.then_some(','),
                thousands: is_german.then_some('.'),
            },
            ..usual()
        };
        let table = format!("item_id,codes,x\nA,1,\"{}\"\n", cell.replace('"', "\"\""));
        match attributes_of(&table, Format::Csv, kind, &options) {
            Ok(attributes) => {
                let mut item = json!({"item_id": "A", "codes": [1]});
                item.as_object_mut().expect("an object").extend(attributes.clone());
                let again = attributes_of(&item.to_string(), Format::JsonLines, kind, &options);
                prop_assert_eq!(again, Ok(attributes));
            }
            Err(reason) => prop_assert!(reason.starts_with("in, line 2") || reason.contains("\"A\""), "{}", reason),
        }
    }

    #[test]
    fn written_items_read_back(items in items(), way in 0..3usize) {
        for format in text_formats() {
            let (text, tagged) = write_items(&items, format, way);
            let source = parse_items("generated", text.as_bytes(), format).unwrap();
            let mut expected = items.clone();
            if format == Format::IndexJson {
                expected.iter_mut().for_each(|item| item.attributes.clear());
            }
            prop_assert_eq!(&source.items, &expected);
            let num_levels = items.iter().map(|item| item.codes.len()).max().unwrap_or(0);
            let prefixes = (tagged && num_levels > 0)
                .then(|| PREFIXES[..num_levels].iter().map(|&prefix| prefix.to_owned()).collect());
            prop_assert_eq!(&source.level_prefixes, &prefixes);
            prop_assert!(source.lines.is_sorted());

            let mut pushed = SourceItems::default();
            let summary =
                parse_into("generated", text.as_bytes(), format, &usual(), &mut pushed).unwrap();
            prop_assert_eq!(summary.num_items, items.len() as u64);
            pushed.level_prefixes = summary.level_prefixes;
            prop_assert_eq!(pushed, source);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL {
            let _ = parse_items("noise", bytes.as_slice(), format);
        }
    }

    /// Damage to well-formed input reaches deeper than noise.
    #[test]
    fn damaged_items_do_not_panic(
        items in items(),
        way in 0..3usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for format in text_formats() {
            let mut bytes = write_items(&items, format, way).0.into_bytes();
            for (place, byte) in &damage {
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = *byte;
                }
            }
            match parse_items("damaged", bytes.as_slice(), format) {
                Ok(source) => prop_assert_eq!(source.items.len(), source.lines.len()),
                Err(error) => prop_assert!(error.line().is_some(), "{}", error),
            }
        }
    }
}
