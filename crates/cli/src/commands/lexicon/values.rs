//! Values from files: one in each line, or in a member of each line's JSON object.

use std::io::{BufRead, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use indicatif::ProgressBar;
use palmette_catalog::readers::utf8_text;
use palmette_lexicon::{LexiconBuilder, MAX_TEXT_BYTES};
use serde_json::{Map, Value};

use crate::input::{Input, is_stdin};
use crate::output::{grouped, visible};

/// Values that were read, and lines without one.
#[derive(Debug, Default)]
pub(crate) struct ListedValues {
    pub(crate) builder: LexiconBuilder,
    pub(crate) num_lines: u64,
    /// Lines that are empty, or whose objects lack the member.
    pub(crate) num_without: u64,
}

/// Longest line with a JSON object.
const MAX_OBJECT_BYTES: usize = 16 << 20;

impl ListedValues {
    /// Reads files, `-` being standard input, decompressed where they are gzip. `field` names the
    /// member of the JSON object that each line is then.
    pub(crate) fn read(
        paths: &[impl AsRef<Path>],
        field: Option<&str>,
        bar: &ProgressBar,
    ) -> anyhow::Result<Self> {
        let mut values = Self::default();
        for path in paths {
            values.read_file(path.as_ref(), field, bar)?;
        }
        Ok(values)
    }

    fn read_file(
        &mut self,
        path: &Path,
        field: Option<&str>,
        bar: &ProgressBar,
    ) -> anyhow::Result<()> {
        ensure!(
            is_stdin(path) || !path.is_dir(),
            "{} is a folder; give the files of values in it",
            path.display()
        );
        let watched = bar.clone();
        let input = Input::open(path, |file| Box::new(watched.wrap_read(file)));
        let input = input.map_err(|e| anyhow!("{}: cannot be read: {e}", path.display()))?;
        let name = input.name.display().to_string();
        let mut reader = utf8_text(input.reader());
        let max_bytes = if field.is_some() { MAX_OBJECT_BYTES } else { MAX_TEXT_BYTES };
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let at_line = || format!("{name}, line {}", grouped(number));
            // The line's end, of two bytes at most, and a byte to tell that it is longer.
            let mut limited = (&mut reader).take(max_bytes as u64 + 3);
            limited.read_until(b'\n', &mut line).with_context(at_line)?;
            if line.is_empty() {
                break;
            }
            line.pop_if(|last| *last == b'\n');
            line.pop_if(|last| *last == b'\r');
            self.add_line(&line, field, max_bytes).with_context(at_line)?;
        }
        Ok(())
    }

    fn add_line(
        &mut self,
        line: &[u8],
        field: Option<&str>,
        max_bytes: usize,
    ) -> anyhow::Result<()> {
        self.num_lines += 1;
        ensure!(
            line.len() <= max_bytes,
            "it is longer than the limit of {} bytes; shorten it or leave it out",
            grouped(max_bytes as u64)
        );
        let text = std::str::from_utf8(line).context("it is not UTF-8")?;
        let before = self.builder.len();
        match field {
            None => self.add(text)?,
            Some(_) if text.trim().is_empty() => {}
            Some(field) => self.add_member(text, field)?,
        }
        self.num_without += u64::from(self.builder.len() == before);
        Ok(())
    }

    /// The values of a member: a text, a number, or a list of these.
    fn add_member(&mut self, object: &str, field: &str) -> anyhow::Result<()> {
        let object: Map<String, Value> =
            serde_json::from_str(object).context("it is no JSON object; leave --field out")?;
        match object.get(field) {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Array(values)) => {
                values.iter().try_for_each(|value| self.add_value(value, field))
            }
            Some(value) => self.add_value(value, field),
        }
    }

    fn add_value(&mut self, value: &Value, field: &str) -> anyhow::Result<()> {
        match value {
            Value::String(text) => self.add(text),
            Value::Number(number) => self.add(&number.to_string()),
            other => {
                let shown: String = visible(&other.to_string()).chars().take(60).collect();
                bail!("{field:?} is {shown}; values are texts, numbers, or lists of these")
            }
        }
    }

    fn add(&mut self, text: &str) -> anyhow::Result<()> {
        if !text.is_empty() {
            ensure!(
                text.len() <= MAX_TEXT_BYTES,
                "it has a value longer than the limit of {} bytes; shorten it or leave it out",
                grouped(MAX_TEXT_BYTES as u64)
            );
            self.builder.push(text.as_bytes())?;
        }
        Ok(())
    }
}
