//! Widths of lines: sources and their documentation end within the same column.

use super::Tree;

/// The most columns of a line, as `rustfmt.toml` has it for code.
const COLUMNS: usize = 100;

/// Checks every line that can be broken: one whose words after the mark of a comment are more than one.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for source in tree.sources() {
        for (number, line) in (1..).zip(source.text.lines()) {
            let text = line.trim_start();
            let is_comment = text.starts_with("//");
            // Tables and links are as wide as they are.
            let is_fixed = text.contains("://") || text.contains('|') || text.contains("](");
            let columns = line.chars().count();
            if is_comment && !is_fixed && columns > COLUMNS {
                faults.push(format!("{}:{number}: {columns} columns, of {COLUMNS}", source.shown));
            }
        }
    }
    faults
}
