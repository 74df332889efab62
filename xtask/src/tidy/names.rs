//! Names of types: nouns, and one for each idea.

use super::Tree;

/// Participles, prepositions and pronouns: a type's name says what it is, not when or where.
const NO_NOUNS: &[&str] = &[
    "Above",
    "After",
    "Asked",
    "At",
    "Before",
    "Begun",
    "Below",
    "Beside",
    "Between",
    "Both",
    "Checked",
    "Chosen",
    "Closed",
    "Deeper",
    "Done",
    "Drawn",
    "Due",
    "Ended",
    "Failed",
    "Forbidden",
    "Found",
    "From",
    "Given",
    "Gone",
    "Held",
    "Into",
    "Joined",
    "Kept",
    "Known",
    "Left",
    "Listed",
    "Loaded",
    "Made",
    "Merged",
    "Met",
    "Named",
    "Needed",
    "Of",
    "Open",
    "Opened",
    "Over",
    "Own",
    "Read",
    "Refused",
    "Said",
    "Seen",
    "Sent",
    "Served",
    "Shown",
    "Spelled",
    "Started",
    "Stopped",
    "Taken",
    "Told",
    "Under",
    "Unknown",
    "Unmet",
    "Unread",
    "Used",
    "Wanted",
    "Whole",
    "With",
    "Within",
    "Without",
    "Written",
];

/// Names of ideas that have another one: the field's.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("Normaliser", "SoftmaxScope"),
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

/// Crates in which these ideas live.
const GRAMMARS: &[&str] =
    &["grammar", "grammar-masks", "grammar-parser", "grammar-regex", "grammar-syntax"];

/// Checks the names of types everywhere, and those of ideas in the crates of grammars.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    let (mut faults, mut num_types) = (Vec::new(), 0);
    for source in tree.sources() {
        let words = |line: &str| -> Vec<String> {
            let words = line.split(|at: char| !(at.is_alphanumeric() || at == '_'));
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        for (number, line) in (1..).zip(source.text.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            let words = words(code);
            let declares =
                |word: &str| matches!(word, "enum" | "struct" | "trait" | "type" | "union");
            let is_item = words.iter().take(4).position(|word| declares(word));
            if let Some(name) = is_item.and_then(|at| words.get(at + 1)) {
                num_types += 1;
                if NO_NOUNS.contains(&name.as_str()) {
                    faults.push(format!(
                        "{}:{number}: `{name}` is no noun: name the thing itself",
                        source.shown
                    ));
                }
            }
            if GRAMMARS.contains(&source.krate.as_str()) {
                for word in &words {
                    if let Some((_, name)) = OTHER_NAMES.iter().find(|(other, _)| other == word) {
                        faults.push(format!(
                            "{}:{number}: `{word}` is called `{name}`",
                            source.shown
                        ));
                    }
                }
            }
        }
    }
    assert!(num_types > 1000, "only {num_types} types were found");
    faults
}
