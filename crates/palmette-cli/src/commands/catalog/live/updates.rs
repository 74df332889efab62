//! Updates as lines of JSON.

use std::io::BufRead;

use anyhow::{Context, bail, ensure};
use palmette_catalog::Item;
use palmette_catalog::readers::{Format, parse_items};
use palmette_live::Update;
use serde_json::{Map, Value};

/// Longest line that is read: far more than an item takes.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The updates of a source, with the line each stands in, from 1. Blank lines are left out.
pub(super) struct Updates<R> {
    name: String,
    reader: R,
    line: u64,
    text: String,
}

impl<R: BufRead> Updates<R> {
    pub(super) fn new(name: &str, reader: R) -> Self {
        Self { name: name.to_owned(), reader, line: 0, text: String::new() }
    }

    /// The next update; `None` at the end.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<(u64, Update)>> {
        loop {
            self.text.clear();
            let read = self.reader.read_line(&mut self.text);
            let read = read.with_context(|| format!("{}, line {}", self.name, self.line + 1))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            let at = || format!("{}, line {}", self.name, self.line);
            ensure!(read <= MAX_LINE_BYTES, "{}: the line is longer than 64 MiB", at());
            let line = self.text.trim();
            if line.is_empty() {
                continue;
            }
            return Ok(Some((self.line, parse(line).with_context(at)?)));
        }
    }
}

fn parse(line: &str) -> anyhow::Result<Update> {
    let object: Map<String, Value> =
        serde_json::from_str(line).context("an update is a JSON object")?;
    if let Some(id) = object.get("delete") {
        ensure!(object.len() == 1, "a line with delete has nothing else: {{\"delete\": \"id\"}}");
        return match id {
            Value::String(id) if !id.is_empty() => Ok(Update::Delete(id.clone())),
            Value::Number(id) if id.is_u64() || id.is_i64() => Ok(Update::Delete(id.to_string())),
            other => bail!("{other} is no id: delete takes text or a whole number"),
        };
    }
    // The item is written as for a build, so it is read as for a build.
    let source = parse_items("item", line.as_bytes(), Format::JsonLines)
        .map_err(|e| anyhow::anyhow!("{}", without_place(&e.to_string())))?;
    let item: Option<Item> = source.items.into_iter().next();
    item.map(Update::Upsert).context("the line holds no item")
}

/// The reader sees one line only, so the place that it names means nothing.
fn without_place(message: &str) -> &str {
    message.strip_prefix("item, line 1: ").unwrap_or(message)
}
