//! `{"7-0-3": [101, 102], …}`: maps from semantic IDs to the items that have them.

use std::io::BufRead;

use palmette_catalog_filter::UniqueValue;
use serde_json::{Map, Value};

use super::error::{Kind, Problem, shorten};
use super::json::{for_each_entry, id_from_json, take_field};
use super::{CheckedSink, ItemSink, SourceOptions};

/// The names under which such maps have IDs, besides the usual ones.
const MAP_ID_NAMES: [&str; 2] = ["pid", "iid"];

/// An item: its ID and attributes.
type KeyedItem = (String, Map<String, Value>);

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    for_each_entry(input, |line, codes, UniqueValue(value)| {
        for (id, attributes) in items(line, &codes, value, options)? {
            sink.codes_from_text(line, &id, &codes)?;
            sink.push(line, id, attributes)?;
        }
        Ok(())
    })
}

/// The items of one semantic ID: one ID, a list of IDs or of objects with an ID and attributes, or
/// an object from IDs to counts.
fn items(
    line: u64,
    codes: &str,
    value: Value,
    options: &SourceOptions,
) -> Result<Vec<KeyedItem>, Problem> {
    match value {
        Value::Array(items) => {
            items.into_iter().map(|item| one_item(line, item, options)).collect()
        }
        Value::Object(counts) if counts.values().all(Value::is_u64) => {
            let with_count = |(id, count)| (id, Map::from_iter([("count".to_owned(), count)]));
            Ok(counts.into_iter().map(with_count).collect())
        }
        value @ (Value::String(_) | Value::Number(_)) => Ok(vec![one_item(line, value, options)?]),
        _ => Err(Problem::at(line, Kind::NotItems { codes: shorten(codes) })),
    }
}

fn one_item(line: u64, value: Value, options: &SourceOptions) -> Result<KeyedItem, Problem> {
    let Value::Object(mut object) = value else {
        return Ok((id_from_json(line, value)?, Map::new()));
    };
    let mut names = options.id_names();
    if options.id_column.is_none() {
        names.extend(MAP_ID_NAMES);
    }
    let missing = |found: &[String]| Kind::missing_id(options, found);
    let id = take_field(line, &mut object, &names, missing)?;
    Ok((id_from_json(line, id)?, object))
}
