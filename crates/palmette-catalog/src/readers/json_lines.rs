//! `{"item_id": "P1", "codes": [1, 2, 3], "price": 9.5}`: an item a line.

use std::io::BufRead;

use super::collector::Collector;
use super::error::Problem;
use super::json::{CODES_NAMES, ID_NAMES, for_each_object, id_from_json, take_field};

pub(super) fn read(input: impl BufRead, collector: &mut Collector) -> Result<(), Problem> {
    for_each_object(input, |line, mut object| {
        let id = id_from_json(line, take_field(line, &mut object, ID_NAMES)?)?;
        let codes = take_field(line, &mut object, CODES_NAMES)?;
        let codes = collector.codes_from_json(line, &id, &codes)?;
        collector.push(line, id, codes, object)
    })
}
