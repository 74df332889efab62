//! `<a_236><b_231> \t title \t item ID`: the info files of generative recommenders.

use std::io::BufRead;

use serde_json::Map;

use super::collector::Collector;
use super::error::{Kind, Problem};
use super::lines::{Lines, without_end};

pub(super) fn read(input: impl BufRead, collector: &mut Collector) -> Result<(), Problem> {
    let mut lines = Lines::new(input);
    while let Some((line, text)) = lines.next_line()? {
        let text = without_end(text);
        if text.is_empty() {
            continue;
        }
        let fields: Vec<&str> = text.split('\t').collect();
        let &[codes, title, id] = fields.as_slice() else {
            let line_start = text.chars().take(100).collect();
            return Err(Problem::at(line, Kind::FieldCount { found: fields.len(), line_start }));
        };
        let codes = collector.codes_from_text(line, id, codes)?;
        let mut attributes = Map::new();
        if !title.is_empty() {
            attributes.insert("title".to_owned(), title.into());
        }
        collector.push(line, id.to_owned(), codes, attributes)?;
    }
    Ok(())
}
