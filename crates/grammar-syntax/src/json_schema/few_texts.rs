//! The texts of a regular expression that has few.

use std::collections::BTreeSet;

use crate::Regex;

/// Expressions that have more texts are not listed.
const MAX_TEXTS: usize = 64;

/// Nor are those that have longer ones.
const MAX_CHARACTERS: usize = 1024;

/// The texts that `regex` matches as a whole; `None` where they are more than [`MAX_TEXTS`] or
/// longer than [`MAX_CHARACTERS`], or that is not looked into, as with what is matched by several
/// expressions at once.
pub(super) fn few_texts(regex: &Regex) -> Option<BTreeSet<String>> {
    let none = || BTreeSet::from([String::new()]);
    match regex {
        Regex::Empty => Some(none()),
        Regex::Literal(text) => bounded(BTreeSet::from([text.to_string()])),
        Regex::Class(class) => {
            let sizes = class.ranges().iter().map(|&(low, high)| high as usize - low as usize + 1);
            let is_small = sizes.sum::<usize>() <= MAX_TEXTS;
            let characters = || class.ranges().iter().flat_map(|&(low, high)| low..=high);
            is_small.then(|| characters().map(String::from).collect())
        }
        Regex::Concat(parts) => {
            parts.iter().try_fold(none(), |before, part| then(&before, &few_texts(part)?))
        }
        Regex::Alternate(options) => {
            let mut all = BTreeSet::new();
            for option in options.iter() {
                all.append(&mut few_texts(option)?);
                if all.len() > MAX_TEXTS {
                    return None;
                }
            }
            Some(all)
        }
        &Regex::Repeat { ref inner, min, max: Some(max), .. } if max as usize <= MAX_CHARACTERS => {
            let inner = few_texts(inner)?;
            let (mut all, mut times) = (BTreeSet::new(), none());
            for count in 0..=max {
                if count >= min {
                    all.extend(times.iter().cloned());
                }
                if all.len() > MAX_TEXTS {
                    return None;
                }
                if count < max {
                    times = then(&times, &inner)?;
                }
            }
            Some(all)
        }
        _ => None,
    }
}

/// The concatenations of texts, if they are few.
fn then(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    if before.len() * after.len() > MAX_TEXTS * MAX_TEXTS {
        return None;
    }
    bounded(before.iter().flat_map(|a| after.iter().map(move |b| format!("{a}{b}"))).collect())
}

fn bounded(texts: BTreeSet<String>) -> Option<BTreeSet<String>> {
    let are_few = texts.len() <= MAX_TEXTS && texts.iter().all(|text| text.len() <= MAX_CHARACTERS);
    are_few.then_some(texts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::matching::matches, *};
    use palmette_grammar_regex::parse::{Dialect, Flags, parse_search, parse_text};

    fn of(pattern: &str) -> Option<Vec<String>> {
        let regex = parse_text(pattern, Dialect::Rust, Flags::default()).expect(pattern);
        few_texts(&regex).map(|texts| texts.into_iter().collect())
    }

    /// Meaning of `pattern` in a schema.
    #[test]
    fn what_patterns_list() {
        let of = |pattern| {
            let regex = parse_search(pattern, Dialect::Ecma, Flags::default()).expect(pattern);
            few_texts(&regex).map(|texts| texts.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(of("^ab$").unwrap(), ["ab"]);
        assert_eq!(of("^(a|b)7$").unwrap(), ["a7", "b7"]);
        assert_eq!(of("^a?$").unwrap(), ["", "a"]);
        assert_eq!(of("^a$|^b$").unwrap(), ["a", "b"]);
        assert_eq!(of("^(?!b)[ab]$").unwrap(), ["a"]);
        assert_eq!(of("ab"), None);
        assert_eq!(of("^ab"), None);
    }

    #[test]
    fn what_is_listed() {
        assert_eq!(of("ab|c[de]f?").unwrap(), ["ab", "cd", "cdf", "ce", "cef"]);
        assert_eq!(of("(a|b){2}").unwrap(), ["aa", "ab", "ba", "bb"]);
        assert_eq!(of("(){0,1000}").unwrap(), [""]);
        assert_eq!(of("[0-9]").unwrap().len(), 10);
    }

    #[test]
    fn what_is_not() {
        for pattern in ["a*", "[^a]", "[0-9]{2}", "a{2000}", "(a|b){0,6}", "(?:[0-9]?){20}"] {
            assert_eq!(of(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn what_is_listed_is_what_matches(
            pattern in prop::string::string_regex("[ab](\\?|\\{1,2\\})?(\\|[ab][ab]?\\?)?(\\[ab\\])?").unwrap(),
            texts in prop::collection::vec("[abc]{0,5}", 30),
        ) {
            let listed = of(&pattern).expect("few");
            let regex = parse_text(&pattern, Dialect::Rust, Flags::default()).expect("a pattern");
            for text in texts.iter().chain(&listed) {
                prop_assert_eq!(matches(&regex, text), listed.contains(text), "{} {:?}", pattern, text);
            }
        }
    }
}
