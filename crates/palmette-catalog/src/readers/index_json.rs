//! `{"0": ["<a_183>", "<b_7>"], …}`: the index files of TIGER-like recommenders.

use std::io::BufRead;

use serde_json::{Map, Value};

use super::collector::Collector;
use super::error::Problem;
use super::json::for_each_entry;

pub(super) fn read(input: impl BufRead, collector: &mut Collector) -> Result<(), Problem> {
    for_each_entry(input, |line, id, value: Value| {
        let codes = collector.codes_from_json(line, &id, &value)?;
        collector.push(line, id, codes, Map::new())
    })
}
