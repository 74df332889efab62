//! Output of commands: text for people, JSON for programs.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
pub(crate) use palmette_catalog::grouped;
use serde::Serialize;

/// Prints a text and a line end. A reader that has gone away (`palmette … | head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("writing the output"),
    }
}

/// Prints one JSON document on one line.
pub(crate) fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string(document)?)
}

/// A failure that the document on standard output has told already.
#[derive(Debug)]
pub(crate) struct Reported(pub(crate) String);

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Reported {}

/// Tells programs of a failure: `{"error": …}` on standard output.
pub(crate) fn print_json_error(message: &str) {
    // Nothing is left to tell it to.
    let _ = print_json(&serde_json::json!({"error": message}));
}

/// Tells people of a failure, on standard error. Messages quote files, whose control characters are
/// not for the terminal.
pub(crate) fn print_error(message: &str) {
    let lines: Vec<String> = message.lines().map(visible).collect();
    eprintln!("error: {}", lines.join("\n"));
}

/// Text from a file as a terminal may show it: control characters, which could end a line or
/// command the terminal, become `U+FFFD`. As many characters as before.
pub(crate) fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Rows under headings, columns as wide as their widest cell; a column whose heading begins with
/// a space is aligned right. Cells are made [`visible`].
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let visible_row = |row: &Vec<String>| row.iter().map(|cell| visible(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(visible_row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(headings[column].trim().chars().count())
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.enumerate().map(|(column, cell)| {
            let width = widths[column];
            match headings[column].starts_with(' ') {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let head = line(&mut headings.iter().map(|heading| heading.trim()));
    let body = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    head + &body.collect::<String>()
}

/// A byte count in the unit that suits it.
pub(crate) fn bytes(count: usize) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let (mut value, mut unit) = (count as f64 / 1000.0, 0);
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Makes a folder for a file that is to be written.
pub(crate) fn make_parent(path: &Path) -> anyhow::Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => std::fs::create_dir_all(parent)
            .with_context(|| format!("{}: cannot be made", parent.display())),
        None => Ok(()),
    }
}

/// True for two names of one file that is there.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// A bar with rate and time left on the terminal's error stream; hidden where there is none or
/// where `quiet`.
pub(crate) fn progress_bar(len: usize, what: &str, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(len as u64);
    let style = "{bar:30} {pos}/{len} {msg}  {per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a sound template"));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A line on the terminal's error stream that says what is done, as [`progress_bar`].
#[cfg(feature = "bench")]
pub(crate) fn progress_spinner(quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} {msg}, {elapsed}").expect("a sound template"),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A bar over the bytes of a file that is being read, with the time left, as [`progress_bar`].
pub(crate) fn reading_bar(file_bytes: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(file_bytes);
    let style = "{bar:30} {bytes}/{total_bytes} {msg}  {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a sound template"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [12, 1500, 999_960, 3_000_000_000].map(bytes),
            ["12 B", "1.5 KB", "1.0 MB", "3.0 GB"]
        );
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(visible("a\n\x1b[31mb\u{9b}\u{7f}ü\t"), "a��[31mb��ü�");
        let rows = [vec!["x\ny".to_owned()], vec!["long".to_owned()]];
        assert_eq!(table(&[" id"], &rows), "  id\n x�y\nlong\n");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["ä".to_owned(), "5".to_owned()], vec!["long".to_owned(), "17".to_owned()]];
        assert_eq!(table(&["name", " n"], &rows), "name   n\nä      5\nlong  17\n");
    }
}
