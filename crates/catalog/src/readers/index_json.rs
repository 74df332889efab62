//! `{"0": ["<a_183>", "<b_7>"], …}`: the index files of TIGER-like recommenders.

use std::io::BufRead;

use palmette_catalog_filter::UniqueValue;
use serde_json::Map;

use super::error::Problem;
use super::json::for_each_entry;
use super::{CheckedSink, ItemSink};

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    for_each_entry(input, |line, id, UniqueValue(value)| {
        sink.codes_from_json(line, &id, &value)?;
        sink.push(line, id, Map::new())
    })
}
