//! `<a_236><b_231> \t title \t item ID`: the info files of generative recommenders.

use std::io::BufRead;

use serde_json::Map;

use super::error::{Kind, Problem};
use super::lines::{Lines, without_end};
use super::{CheckedSink, ItemSink};

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let mut lines = Lines::new(input);
    while let Some((line, text)) = lines.next_line()? {
        let text = without_end(text);
        if text.is_empty() {
            continue;
        }
        let mut fields = text.split('\t');
        let (Some(codes), Some(title), Some(id), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            let (found, line_start) = (text.split('\t').count(), text.chars().take(100).collect());
            return Err(Problem::at(line, Kind::FieldCount { found, line_start }));
        };
        sink.codes_from_text(line, id, codes)?;
        let mut attributes = Map::new();
        if !title.is_empty() {
            attributes.insert("title".to_owned(), title.into());
        }
        sink.push(line, id.to_owned(), attributes)?;
    }
    Ok(())
}
