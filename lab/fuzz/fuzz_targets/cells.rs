//! A cell of a table under a declared kind: what is kept of it is the same when it is written as
//! JSON and read again, or it is refused with a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_catalog::readers::{CellOptions, Format, SourceItems, SourceOptions, parse_into};
use palmette_catalog::{BuildOptions, Catalog, ColumnKind};
use serde_json::{Map, Value, json};

const KINDS: [ColumnKind; 6] = [
    ColumnKind::Keyword,
    ColumnKind::Number,
    ColumnKind::Boolean,
    ColumnKind::Timestamp,
    ColumnKind::Keywords,
    ColumnKind::Json,
];

/// The attributes of the one item in a file.
fn read(
    file: &str,
    format: Format,
    kind: Option<ColumnKind>,
    options: &SourceOptions,
) -> Result<Map<String, Value>, String> {
    let mut source = SourceItems::default();
    let read = parse_into("file", file.as_bytes(), format, options, &mut source);
    read.map_err(|error| error.to_string())?;
    let columns = kind.map(|kind| ("x".to_owned(), kind)).into_iter().collect();
    let built = Catalog::build(source, &BuildOptions { columns, ..BuildOptions::default() });
    let catalog = built.map_err(|error| error.to_string())?;
    Ok(catalog.attributes(catalog.rank_of("A").expect("the item is in")))
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, cell)) = data.split_first() else { return };
    let Ok(cell) = std::str::from_utf8(cell) else { return };
    let kind = KINDS.get(usize::from(choice % 7)).copied();
    let options = SourceOptions {
        cells: CellOptions {
            kinds: kind.map(|kind| ("x".to_owned(), kind)).into_iter().collect(),
            nulls: if choice & 0x10 != 0 { vec!["NA".to_owned()] } else { Vec::new() },
            list_separator: (choice & 0x20 != 0).then(|| "|".to_owned()),
            decimal: (choice & 0x40 != 0).then_some(','),
            thousands: (choice & 0x80 != 0).then_some('.').filter(|_| choice & 0x40 != 0),
        },
        ..SourceOptions::default()
    };
    let table = format!("item_id,codes,x\nA,1,\"{}\"\n", cell.replace('"', "\"\""));
    match read(&table, Format::Csv, kind, &options) {
        Ok(attributes) => {
            let mut item = json!({"item_id": "A", "codes": [1]});
            item.as_object_mut().expect("an object").extend(attributes.clone());
            let again = read(&item.to_string(), Format::JsonLines, kind, &options);
            assert_eq!(again, Ok(attributes));
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
});
