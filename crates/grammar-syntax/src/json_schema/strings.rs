//! Sets of strings.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use super::{few_texts::few_texts, matching::matches};
use crate::{CharClass, Regex};

/// A set of strings, by their values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum StringSet {
    /// A finite set of texts.
    OneOf(BTreeSet<Arc<str>>),
    /// Texts with `min` to `max` characters that every regex of `all` matches as a whole.
    All { min: u32, max: Option<u32>, all: Vec<Texts> },
}

/// A regular set of strings; equal when written alike.
#[derive(Clone, Debug, Eq)]
pub(super) struct Texts {
    regex: Arc<Regex>,
    /// Hash of the expression. PERF: expressions are large, and each is compared with many.
    hash: u64,
}

impl Texts {
    pub(super) fn new(regex: Regex) -> Self {
        let mut hasher = DefaultHasher::new();
        regex.hash(&mut hasher);
        Self { regex: Arc::new(regex), hash: hasher.finish() }
    }

    pub(super) fn regex(&self) -> &Regex {
        &self.regex
    }
}

impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.regex == other.regex
    }
}

impl Hash for Texts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl StringSet {
    pub(super) fn any() -> Self {
        Self::All { min: 0, max: None, all: Vec::new() }
    }

    pub(super) fn one(text: Arc<str>) -> Self {
        Self::OneOf(BTreeSet::from([text]))
    }

    pub(super) fn texts(regex: Regex) -> Self {
        Self::All { min: 0, max: None, all: vec![Texts::new(regex)] }
    }

    pub(super) fn lengths(min: u32, max: Option<u32>) -> Self {
        Self::All { min, max, all: Vec::new() }
    }

    /// This set, by its strings where a pattern has few: `^(a|b)$` says what an enumeration of `a`
    /// and `b` says, and of these it is plain which sets have none in common.
    pub(super) fn listed(self) -> Self {
        let Self::All { all, .. } = &self else { return self };
        let Some(texts) = all.iter().find_map(|texts| few_texts(texts.regex())) else {
            return self;
        };
        let kept: BTreeSet<Arc<str>> =
            texts.into_iter().filter(|text| self.contains(text)).map(Arc::from).collect();
        if kept.is_empty() { self } else { Self::OneOf(kept) }
    }

    /// The strings not in this set, as a union.
    pub(super) fn complement(&self) -> Vec<Self> {
        match self {
            Self::OneOf(texts) => {
                vec![Self::texts(Regex::complement(Regex::alternate(
                    texts.iter().map(|text| Regex::literal(text)),
                )))]
            }
            Self::All { min, max, all } => {
                let mut parts = Vec::new();
                if let Some(below) = min.checked_sub(1) {
                    parts.push(Self::lengths(0, Some(below)));
                }
                if let Some(above) = max.and_then(|max| max.checked_add(1)) {
                    parts.push(Self::lengths(above, None));
                }
                for texts in all {
                    parts.push(Self::texts(match texts.regex() {
                        Regex::Not(inner) => Regex::clone(inner),
                        other => Regex::complement(other.clone()),
                    }));
                }
                parts
            }
        }
    }

    /// The strings in both; `None` when there is none.
    pub(super) fn intersection(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::OneOf(texts), set) | (set, Self::OneOf(texts)) => {
                let kept: BTreeSet<_> =
                    texts.iter().filter(|text| set.contains(text)).cloned().collect();
                (!kept.is_empty()).then_some(Self::OneOf(kept))
            }
            (
                Self::All { min, max, all },
                Self::All { min: other_min, max: other_max, all: other_all },
            ) => {
                let min = *min.max(other_min);
                let max = [*max, *other_max].into_iter().flatten().min();
                let mut all = all.clone();
                for texts in other_all {
                    if !all.contains(texts) {
                        all.push(texts.clone());
                    }
                }
                let opposed = all.iter().any(|texts| match texts.regex() {
                    Regex::Not(inner) => all.iter().any(|other| *other.regex() == **inner),
                    Regex::Never => true,
                    _ => all.iter().any(|other| begin_otherwise(texts.regex(), other.regex())),
                });
                (max.is_none_or(|max| min <= max) && !opposed).then_some(Self::All {
                    min,
                    max,
                    all,
                })
            }
        }
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        match self {
            Self::OneOf(texts) => texts.contains(text),
            Self::All { min, max, all } => {
                let length = text.chars().count() as u64;
                length >= u64::from(*min)
                    && max.is_none_or(|max| length <= u64::from(max))
                    && all.iter().all(|texts| matches(texts.regex(), text))
            }
        }
    }

    /// The strings as a regular expression over characters.
    pub(super) fn regex(&self) -> Regex {
        match self {
            Self::OneOf(texts) => Regex::alternate(texts.iter().map(|text| Regex::literal(text))),
            Self::All { min, max, all } => {
                let lengths = Regex::Class(CharClass::any()).repeat(*min, *max);
                let bounded = *min > 0 || max.is_some();
                let lengths = (bounded || all.is_empty()).then_some(lengths);
                Regex::and(all.iter().map(|texts| texts.regex().clone()).chain(lengths))
            }
        }
    }
}

/// True when it is plain that no text begins as all do that `one` matches and as all do that
/// `other` matches.
pub(super) fn begin_otherwise(one: &Regex, other: &Regex) -> bool {
    let (one, other) = (beginning(one), beginning(other));
    one.chars().zip(other.chars()).any(|(a, b)| a != b)
}

/// Common beginning of all texts that `regex` matches, as far as it is spelled.
fn beginning(regex: &Regex) -> &str {
    match regex {
        Regex::Literal(text) => text,
        Regex::Concat(parts) => parts.first().map_or("", beginning),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use palmette_grammar_regex::parse::{Dialect, Flags, parse_search};

    #[test]
    fn strings_that_begin_otherwise_have_none_in_common() {
        let set = |pattern| {
            StringSet::texts(parse_search(pattern, Dialect::Ecma, Flags::default()).expect(pattern))
        };
        let are_apart = |a, b| set(a).intersection(&set(b)).is_none();
        assert!(are_apart("^x1-[a-z]+$", "^x2-[a-z]+$"));
        assert!(are_apart("^x1-", "^y"));
        assert!(are_apart("^x-(a|b)*", "^xy"));
        assert!(!are_apart("^x-", "^x-y"));
        assert!(!are_apart("^x?a", "^y?a"));
        assert!(!are_apart("x", "^y"));
        assert!(!are_apart("^x|a", "^y"));
    }
}
