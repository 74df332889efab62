//! Dead letters: lines of updates that were refused, kept with the reason to be mended and applied
//! again.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use super::updates::Line;

/// A file that refused lines are appended to, an object each: `line`, `error`, and `update`, the
/// line as JSON or, where it is none, as text.
pub(super) struct DeadLetters {
    path: PathBuf,
    file: File,
    pub(super) count: u64,
}

impl DeadLetters {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), file, count: 0 })
    }

    pub(super) fn add(&mut self, line: &Line, error: &str) -> anyhow::Result<()> {
        let update: Value =
            serde_json::from_str(&line.text).unwrap_or_else(|_| Value::String(line.text.clone()));
        let mut letter = serde_json::to_vec(&json!({
            "line": line.number,
            "error": error,
            "update": update,
        }))?;
        letter.push(b'\n');
        self.count += 1;
        self.file.write_all(&letter).with_context(|| self.path.display().to_string())
    }

    /// Forces what was added to the disk: before the batch that leaves it out is acknowledged.
    pub(super) fn sync(&self) -> anyhow::Result<()> {
        self.file.sync_data().with_context(|| self.path.display().to_string())
    }
}
