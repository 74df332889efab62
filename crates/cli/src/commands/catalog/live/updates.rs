//! Lines of a source of updates.

use std::io::BufRead;

use anyhow::{Context, anyhow, ensure};
use palmette_catalog_live::Update;

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
            let text = match self.number {
                1 => text.strip_prefix('\u{feff}').unwrap_or(&text),
                _ => &text,
            };
            if !text.trim().is_empty() {
                return Ok(Some(Line { number: self.number, text: text.trim().to_owned() }));
            }
        }
    }
}

impl Line {
    /// The update that the line is.
    pub(super) fn update(&self) -> anyhow::Result<Update> {
        Ok(Update::from_json_line(&self.text)?)
    }
}
