//! Words of the documentation: how lines begin, and that each idea has one name, here and on the page about masks.

use std::fs;
use std::path::Path;

use super::files;

/// Crates whose words these are.
const CRATES: &[&str] = &[
    "palmette-grammar-regex",
    "palmette-grammar-parser",
    "palmette-grammar-syntax",
    "palmette-grammar-masks",
    "palmette-grammar",
];

/// Sources of all of them, with the names that messages give them.
fn sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for name in CRATES {
        for file in files(&crates.join(name).join("src")) {
            let shown = file.strip_prefix(&crates).expect("it is below").display().to_string();
            sources.push((shown, fs::read_to_string(&file).expect("a crate's own source")));
        }
    }
    sources
}

/// First words of documentation that name nothing.
const EMPTY: &[&str] =
    &["What", "Whether", "Where", "How", "As", "Its", "Which", "Why", "Who", "The same"];

/// First words that name nothing either. The crates of [`TOLD`] are free of them.
const VAGUE: &[&str] =
    &["Of", "Whatever", "Those", "So", "It", "They", "Nothing", "Something", "Most", "Up to", "By"];

/// Crates whose documentation begins with none of [`VAGUE`].
const TOLD: &[&str] = &[
    "palmette-grammar-regex",
    "palmette-grammar-parser",
    "palmette-grammar-syntax",
    "palmette-grammar-masks",
    "palmette-grammar",
];

/// Names of ideas that have another one: the field's.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("Piece", "Residual"),
    ("VocabularySlices", "PreparedVocabulary"),
    ("MaskWork", "MaskBudget"),
    ("Completion", "Precomputed"),
    ("ReadNodes", "StackAutomaton"),
    ("Tops", "PartialStack"),
    ("Views", "PartialStack"),
    ("Pending", "DeferredReduction"),
    ("Tails", "SuffixSets"),
    ("Merged", "QuotientTrie"),
];

#[test]
fn documentation_begins_with_a_word_that_names_something() {
    let (mut wrong, mut num_first) = (Vec::new(), 0);
    for (shown, source) in sources() {
        if !source.starts_with("//! ") {
            wrong.push(format!("{shown}: its first line does not say what is in it"));
        }
        let documentation = |line: &str| {
            let line = line.trim_start();
            ["/// ", "//! "].into_iter().find_map(|mark| line.strip_prefix(mark)).map(str::to_owned)
        };
        let mut goes_on = false;
        for (number, line) in (1..).zip(source.lines()) {
            let is_blank = matches!(line.trim(), "///" | "//!");
            if let Some(text) = documentation(line).filter(|_| !goes_on) {
                num_first += 1;
                let begins = |word: &&&str| {
                    text.strip_prefix(**word)
                        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
                };
                let is_told = TOLD.iter().any(|name| shown.starts_with(name));
                let vague = if is_told { VAGUE } else { &[] };
                if let Some(word) = EMPTY.iter().chain(vague).find(begins) {
                    wrong.push(format!("{shown}:{number}: begins with `{word}`"));
                }
            }
            goes_on = is_blank || documentation(line).is_some();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(num_first > 3000, "only {num_first} items with documentation were found");
}

#[test]
fn ideas_have_one_name() {
    let mut wrong = Vec::new();
    for (shown, source) in sources() {
        for word in source.split(|at: char| !(at.is_alphanumeric() || at == '_')) {
            if let Some((_, name)) = OTHER_NAMES.iter().find(|(other, _)| *other == word) {
                wrong.push(format!("{shown}: `{word}` is called `{name}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each row of the page's last table: names in the files that stand after them.
#[test]
fn the_page_about_masks_names_what_is_in_the_code() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page =
        fs::read_to_string(crate_folder.join("../../docs/how-masks-work.md")).expect("a page");
    let table = page.split("## Terms and code").nth(1).expect("its table of terms");
    let (mut missing, mut num_names) = (Vec::new(), 0);
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let mut names = Vec::new();
        for code in row.split('`').skip(1).step_by(2) {
            if !code.contains('/') {
                names.extend(code.split("::"));
                continue;
            }
            let path = crate_folder.join("..").join(code);
            let source = match path.is_dir() {
                true => {
                    files(&path).iter().filter_map(|file| fs::read_to_string(file).ok()).collect()
                }
                false => fs::read_to_string(&path).unwrap_or_default(),
            };
            num_names += names.len();
            let absent = names.drain(..).filter(|name| !source.contains(name));
            missing.extend(absent.map(|name| format!("no `{name}` in {code}")));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(num_names > 20, "only {num_names} names were found");
}
