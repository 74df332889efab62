//! Substrings by definition: every pair of places in a document is tried.

use std::collections::BTreeMap;

use palmette_core::{SubstringRule, SubstringUnit};

/// All substrings of documents by a rule, each with the document and the byte of its first place.
///
/// Of characters after ASCII, the combining acute accent alone is taken for a mark: texts have no
/// other.
pub fn all_substrings(
    documents: &[String],
    rule: SubstringRule,
) -> BTreeMap<String, (usize, usize)> {
    let mut found = BTreeMap::new();
    for (number, document) in documents.iter().enumerate() {
        let places: Vec<usize> =
            document.char_indices().map(|(at, _)| at).chain([document.len()]).collect();
        for &from in &places {
            for &to in places.iter().filter(|&&to| to > from) {
                let text = &document[from..to];
                let chars = text.chars().count() as u32;
                let is_long = chars >= rule.min() && rule.max().is_none_or(|max| chars <= max);
                if is_long && begins(document, from, rule.unit()) && ends(document, to, rule.unit())
                {
                    found.entry(text.to_owned()).or_insert((number, from));
                }
            }
        }
    }
    found
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '\u{301}')
}

fn begins(document: &str, at: usize, unit: SubstringUnit) -> bool {
    let (before, after) = document.split_at(at);
    let Some(next) = after.chars().next() else { return false };
    match unit {
        SubstringUnit::Chars => true,
        _ if next.is_whitespace() => false,
        SubstringUnit::Words => !(before.ends_with(is_word) && is_word(next)),
        SubstringUnit::Sentences => {
            before.trim().is_empty() || ends(document, before.trim_end().len(), unit)
        }
    }
}

fn ends(document: &str, at: usize, unit: SubstringUnit) -> bool {
    let (before, after) = document.split_at(at);
    let Some(last) = before.chars().next_back() else { return false };
    match unit {
        SubstringUnit::Chars => true,
        _ if last.is_whitespace() => false,
        SubstringUnit::Words => !(is_word(last) && after.starts_with(is_word)),
        SubstringUnit::Sentences => {
            let is_mark = |c: char| ".!?…。！？".contains(c);
            let is_run = |c: char| is_mark(c) || "\"'”’)]}»›」』）】".contains(c);
            let run = &before[before.trim_end_matches(is_run).len()..];
            let is_wide = run.contains(['。', '！', '？']);
            after.trim().is_empty()
                || run.contains(is_mark)
                    && (after.starts_with(char::is_whitespace)
                        || is_wide && !after.starts_with(is_run))
        }
    }
}
