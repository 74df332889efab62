//! A matcher of one text against an expression, by the definition.

use std::collections::BTreeSet;

use crate::{Multiple, Regex};

/// True when `regex` matches the whole of `text`.
///
/// By the definition: every subtree's set of ends. Cost: up to the square of the text per subtree;
/// the texts here are names and literals of a schema.
pub(super) fn matches(regex: &Regex, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    Matcher { text: &text, alone: None }.ends(regex, &BTreeSet::from([0])).contains(&text.len())
}

struct Matcher<'a> {
    text: &'a [char],
    /// The beginning of a text by itself, within one.
    alone: Option<usize>,
}

impl Matcher<'_> {
    /// The places at which a match that starts at one of `starts` can end.
    fn ends(&self, regex: &Regex, starts: &BTreeSet<usize>) -> BTreeSet<usize> {
        match regex {
            Regex::Never | Regex::Tokens(_) => BTreeSet::new(),
            Regex::Empty => starts.clone(),
            Regex::Literal(literal) => {
                let literal: Vec<char> = literal.chars().collect();
                let found = starts.iter().filter(|&&at| self.text[at..].starts_with(&literal));
                found.map(|&at| at + literal.len()).collect()
            }
            Regex::Class(class) => {
                let found = starts.iter().filter(|&&at| {
                    self.text.get(at).is_some_and(|&character| class.contains(character))
                });
                found.map(|&at| at + 1).collect()
            }
            Regex::Multiple(of) => starts.iter().flat_map(|&at| self.multiples(*of, at)).collect(),
            Regex::Concat(parts) => {
                parts.iter().fold(starts.clone(), |ends, part| self.ends(part, &ends))
            }
            Regex::Alternate(options) => {
                options.iter().flat_map(|option| self.ends(option, starts)).collect()
            }
            Regex::Repeat { inner, min, max, .. } => self.repeat(inner, *min, *max, starts),
            Regex::And(parts) => self.each(starts, |at| {
                let mut all: Option<BTreeSet<usize>> = None;
                for part in parts.iter() {
                    let ends = self.ends(part, &BTreeSet::from([at]));
                    all = Some(match all {
                        Some(all) => all.intersection(&ends).copied().collect(),
                        None => ends,
                    });
                }
                all.unwrap_or_else(|| (at..=self.text.len()).collect())
            }),
            Regex::Not(inner) => self.each(starts, |at| {
                let ends = self.ends(inner, &BTreeSet::from([at]));
                (at..=self.text.len()).filter(|end| !ends.contains(end)).collect()
            }),
            Regex::Whole(inner) => self.each(starts, |at| {
                let within = |end: usize| Matcher { text: &self.text[..end], alone: Some(at) };
                let start = BTreeSet::from([at]);
                let ends = (at..=self.text.len())
                    .filter(|&end| within(end).ends(inner, &start).contains(&end));
                ends.collect()
            }),
            Regex::Look { inner, behind, negated } => {
                let seen = |at: usize| {
                    if *behind {
                        let from = self.alone.map_or((0..=at).collect(), |start| [start].into());
                        self.ends(inner, &from).contains(&at)
                    } else {
                        !self.ends(inner, &BTreeSet::from([at])).is_empty()
                    }
                };
                starts.iter().copied().filter(|&at| seen(at) != *negated).collect()
            }
        }
    }

    fn multiples(&self, of: Multiple, start: usize) -> Vec<usize> {
        let (mut of, mut ends) = (Some(of), Vec::new());
        for at in start..=self.text.len() {
            ends.extend(of.filter(|of| of.may_end()).map(|_| at));
            let next = self.text.get(at).and_then(|&next| u8::try_from(next).ok());
            of = of.zip(next).and_then(|(of, next)| of.after(next));
        }
        ends
    }

    fn each(
        &self,
        starts: &BTreeSet<usize>,
        ends: impl Fn(usize) -> BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        starts.iter().flat_map(|&at| ends(at)).collect()
    }

    fn repeat(
        &self,
        inner: &Regex,
        min: u32,
        max: Option<u32>,
        starts: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let mut at = starts.clone();
        // A repetition that reads nothing adds no end, so more rounds than characters change
        // nothing; and once a round gives what the one before gave, all later ones do.
        for _ in 0..min {
            let next = self.ends(inner, &at);
            if next == at {
                break;
            }
            at = next;
        }
        let mut all = at.clone();
        let more = max.map_or(u64::MAX, |max| u64::from(max.saturating_sub(min)));
        let mut round = 0;
        while round < more && !at.is_empty() {
            at = self.ends(inner, &at).difference(&all).copied().collect();
            all.extend(&at);
            round += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CharClass;

    #[track_caller]
    fn check(regex: &Regex, inside: &[&str], outside: &[&str]) {
        for text in inside {
            assert!(matches(regex, text), "{text:?}");
        }
        for text in outside {
            assert!(!matches(regex, text), "{text:?}");
        }
    }

    #[test]
    fn every_kind_of_regex() {
        let a = Regex::literal("a");
        let letters = Regex::Class(CharClass::new([('a', 'z')])).repeat(1, None);
        check(&a.clone().repeat(2, Some(3)), &["aa", "aaa"], &["", "a", "aaaa", "ab"]);
        check(&Regex::complement(a.clone()), &["", "b", "aa"], &["a"]);
        check(
            &Regex::and([letters.clone(), Regex::complement(a.clone())]),
            &["b", "aa"],
            &["a", "1"],
        );
        check(&Regex::Empty.repeat(1_000_000_000, None), &[""], &["a"]);
        let look = |behind, negated| Regex::Look { inner: a.clone().into(), behind, negated };
        check(&Regex::concat([look(false, true), letters.clone()]), &["ba"], &["ab"]);
        check(&Regex::concat([letters.clone(), look(true, false)]), &["ba", "a"], &["ab"]);
    }
}
