//! Updates as lines of JSON.

use std::io::BufRead;

use anyhow::{Context, anyhow, bail, ensure};
use palmette_catalog::Item;
use palmette_catalog::readers::{Format, Patch, parse_items, parse_patch};
use palmette_live::Update;
use serde_json::{Map, Value};

/// Longest line that is read: far more than an item takes.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// A line of a source.
#[derive(Debug)]
pub(super) struct Line {
    /// From 1.
    pub(super) number: u64,
    pub(super) text: String,
}

/// The lines of a source that are not blank.
pub(super) struct Lines<R> {
    name: String,
    reader: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(name: &str, reader: R) -> Self {
        Self { name: name.to_owned(), reader, number: 0 }
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Line>> {
        loop {
            let mut bytes = Vec::new();
            let at = || format!("{}, line {}", self.name, self.number + 1);
            let mut limited = std::io::Read::take(&mut self.reader, MAX_LINE_BYTES + 1);
            let read = limited.read_until(b'\n', &mut bytes).with_context(at)?;
            ensure!(read as u64 <= MAX_LINE_BYTES, "{}: the line is longer than 64 MiB", at());
            if read == 0 {
                return Ok(None);
            }
            let text = String::from_utf8(bytes)
                .map_err(|e| anyhow!("{}: {}; updates are UTF-8", at(), e.utf8_error()))?;
            self.number += 1;
            if !text.trim().is_empty() {
                return Ok(Some(Line { number: self.number, text: text.trim().to_owned() }));
            }
        }
    }
}

impl Line {
    /// The update that the line is.
    pub(super) fn update(&self) -> anyhow::Result<Update> {
        let object: Map<String, Value> =
            serde_json::from_str(&self.text).context("an update is a JSON object")?;
        if let Some(id) = object.get("delete") {
            ensure!(
                object.len() == 1,
                "a line with delete has nothing else: {{\"delete\": \"id\"}}"
            );
            return match id {
                Value::String(id) if !id.is_empty() => Ok(Update::Delete(id.clone())),
                Value::Number(id) if id.is_u64() || id.is_i64() => {
                    Ok(Update::Delete(id.to_string()))
                }
                other => bail!("{other} is no id: delete takes text or a whole number"),
            };
        }
        let patch = parse_patch(&self.text)
            .map_err(|problem| anyhow!("{}", without_place(&problem.to_string())))?;
        if let Some(Patch { id, attributes }) = patch {
            return Ok(Update::Patch { id, attributes });
        }
        // The item is written as for a build, so it is read as for a build.
        let source = parse_items("item", self.text.as_bytes(), Format::JsonLines)
            .map_err(|e| anyhow!("{}", without_place(&e.to_string())))?;
        let item: Option<Item> = source.items.into_iter().next();
        item.map(Update::Upsert).context("the line holds no item")
    }
}

/// The reader sees one line only, so the place that it names means nothing.
fn without_place(message: &str) -> &str {
    let message = message.strip_prefix("item, ").unwrap_or(message);
    message.strip_prefix("line 1: ").unwrap_or(message)
}
