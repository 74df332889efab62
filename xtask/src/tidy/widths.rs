//! Widths of lines: comments end within the column at which `rustfmt` ends code.

use super::Tree;

/// The most columns of a line, as `rustfmt.toml` has it for code.
const COLUMNS: usize = 100;

/// Checks every line of a comment that can be broken.
///
/// Tables, links and examples are as wide as they are, and a word that Markdown would read as the mark of a list cannot begin
/// a line.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for source in tree.sources() {
        let mut is_example = false;
        for (number, line) in (1..).zip(source.text.lines()) {
            let text = line.trim_start();
            if !text.starts_with("//") {
                continue;
            }
            is_example ^= text.trim_start_matches(['/', '!', ' ']).starts_with("```");
            let is_fixed = is_example || ["://", "|", "]("].iter().any(|mark| text.contains(mark));
            let columns = line.chars().count();
            if !is_fixed && columns > COLUMNS && !is_mark(word_past(line)) {
                faults.push(format!("{}:{number}: {columns} columns, of {COLUMNS}", source.shown));
            }
        }
    }
    faults
}

/// The first word that ends past the last column.
fn word_past(line: &str) -> &str {
    let mut columns = 0;
    for word in line.split(' ') {
        columns += word.chars().count() + 1;
        if columns > COLUMNS + 1 {
            return word;
        }
    }
    ""
}

/// True for a word that begins a list, a heading or a quote where it begins a line.
fn is_mark(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']);
    word.starts_with(['-', '+', '*', '>', '#', '=', '|'])
        || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
