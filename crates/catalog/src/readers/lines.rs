//! Numbered lines, one in memory at a time.

use std::io::BufRead;

use super::error::Problem;

#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    text: String,
    line: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Lines<R> {
        Lines { input, text: String::new(), line: 0 }
    }

    /// The next line with its end as it is, and its number from 1.
    pub(super) fn next_line(&mut self) -> Result<Option<(u64, &str)>, Problem> {
        self.text.clear();
        if self.input.read_line(&mut self.text)? == 0 {
            return Ok(None);
        }
        self.line += 1;
        Ok(Some((self.line, &self.text)))
    }
}

/// `line` without its `\n` or `\r\n`.
pub(super) fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}
