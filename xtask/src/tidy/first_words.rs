//! First words of documentation: each begins with its subject.

use super::Tree;

/// First words that name nothing.
const EMPTY: &[&str] = &[
    "As",
    "By",
    "How",
    "It",
    "Its",
    "Most",
    "Nothing",
    "Of",
    "So",
    "Something",
    "The same",
    "They",
    "Those",
    "Up to",
    "What",
    "Whatever",
    "Where",
    "Whether",
    "Which",
    "Who",
    "Why",
];

/// Checks the first line of the documentation of every item, and that every file has one.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    let mut num_first = 0;
    for source in tree.sources() {
        if !source.text.starts_with("//! ") {
            faults.push(format!("{}: its first line does not say what is in it", source.shown));
        }
        let mut continues = false;
        for (number, line) in (1..).zip(source.text.lines()) {
            let is_blank = matches!(line.trim(), "///" | "//!");
            let text = documentation(line);
            if let Some(text) = text.filter(|_| !continues) {
                num_first += 1;
                if let Some(word) = EMPTY.iter().find(|word| begins_with(text, word)) {
                    faults.push(format!("{}:{number}: begins with `{word}`", source.shown));
                }
            }
            continues = is_blank || text.is_some();
        }
    }
    assert!(num_first > 10_000, "only {num_first} items with documentation were found");
    faults
}

/// Text of a line of documentation.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["/// ", "//! "].into_iter().find_map(|mark| line.strip_prefix(mark))
}

fn begins_with(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}
