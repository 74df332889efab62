//! Regular expressions matched by definition, and their derivatives.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use palmette_grammar_parser::Regex;

/// Ends of matches of `regex` from `from`, each once, in a backtracking matcher's order.
///
/// Lookarounds see all of `text`.
pub fn ends(regex: &Regex, text: &[char], from: usize) -> Vec<usize> {
    Match { text, alone: None, known: RefCell::default() }.ends(regex, from)
}

/// True when `regex` matches `text` whole.
pub fn matches(regex: &Regex, text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    ends(regex, &chars, 0).contains(&chars.len())
}

struct Match<'a> {
    text: &'a [char],
    /// The beginning of a text by itself, within one.
    alone: Option<usize>,
    /// Ends of repetitions by their keys, since the same are tried again and again.
    known: RefCell<HashMap<Repetition, Vec<usize>>>,
}

/// Key of a repetition: address of the repeated, least and most times, reluctance, start.
type Repetition = (*const Regex, u32, Option<u32>, bool, usize);

impl Match<'_> {
    fn ends(&self, regex: &Regex, at: usize) -> Vec<usize> {
        match regex {
            Regex::Never | Regex::Tokens(_) => Vec::new(),
            Regex::Empty => vec![at],
            Regex::Literal(literal) => {
                let literal: Vec<char> = literal.chars().collect();
                let matches = self.text[at..].starts_with(&literal);
                matches.then_some(at + literal.len()).into_iter().collect()
            }
            Regex::Class(class) => {
                let matches = self.text.get(at).is_some_and(|&next| class.contains(next));
                matches.then_some(at + 1).into_iter().collect()
            }
            // By the definition of a set of texts: the longest first.
            Regex::Multiple(of) => {
                let (mut of, mut ends) = (Some(*of), Vec::new());
                for end in at..=self.text.len() {
                    ends.extend(of.filter(|of| of.may_end()).map(|_| end));
                    let next = self.text.get(end).and_then(|&next| u8::try_from(next).ok());
                    of = of.zip(next).and_then(|(of, next)| of.after(next));
                }
                ends.into_iter().rev().collect()
            }
            Regex::Concat(parts) => parts.iter().fold(vec![at], |places, part| {
                once_each(places.into_iter().flat_map(|place| self.ends(part, place)))
            }),
            Regex::Alternate(options) => {
                once_each(options.iter().flat_map(|option| self.ends(option, at)))
            }
            Regex::Repeat { inner, min, max, reluctant } => {
                self.repeats(inner, *min, *max, *reluctant, at)
            }
            // Of a set of texts the longest is tried first.
            Regex::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.ends(part, at)).collect();
                let all = (at..=self.text.len()).rev();
                all.filter(|end| parts.iter().all(|ends| ends.contains(end))).collect()
            }
            Regex::Not(inner) => {
                let matched = self.ends(inner, at);
                (at..=self.text.len()).rev().filter(|end| !matched.contains(end)).collect()
            }
            Regex::Whole(inner) => {
                let alone = |end: usize| Match {
                    text: &self.text[..end],
                    alone: Some(at),
                    known: RefCell::default(),
                };
                let ends = (at..=self.text.len()).rev();
                ends.filter(|&end| alone(end).ends(inner, at).contains(&end)).collect()
            }
            Regex::Look { inner, behind, negated } => {
                let found = if *behind {
                    let mut starts = self.alone.map_or(0..=at, |start| start..=start);
                    starts.any(|start| self.ends(inner, start).contains(&at))
                } else {
                    !self.ends(inner, at).is_empty()
                };
                (found != *negated).then_some(at).into_iter().collect()
            }
        }
    }

    fn repeats(
        &self,
        inner: &Regex,
        min: u32,
        max: Option<u32>,
        reluctant: bool,
        at: usize,
    ) -> Vec<usize> {
        if max == Some(0) {
            return vec![at];
        }
        let key = (std::ptr::from_ref(inner), min, max, reluctant, at);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let further = self.ends(inner, at).into_iter().flat_map(|end| {
            let (left, max) = (min.saturating_sub(1), max.map(|max| max - 1));
            // A repetition that reads nothing is worth one that is demanded, and no more.
            if end == at && left == 0 {
                return vec![at];
            }
            self.repeats(inner, left, max, reluctant, end)
        });
        let stop = (min == 0).then_some(at);
        let found = if reluctant {
            once_each(stop.into_iter().chain(further))
        } else {
            once_each(further.chain(stop))
        };
        self.known.borrow_mut().insert(key, found.clone());
        found
    }
}

/// True if `regex` matches some text over `alphabet` that begins with `beginning`. Lookarounds are
/// taken to hold.
///
/// # Panics
/// When `regex` has more than a few thousand different derivatives: it is too large for an oracle.
pub fn may_begin(regex: &Regex, beginning: &[char], alphabet: &[char]) -> bool {
    let Some(plain) = without_looks(regex) else { return true };
    let begun = beginning.iter().fold(plain, |regex, &next| derivative(&regex, next));
    let mut seen = HashSet::new();
    let mut work = vec![begun];
    while let Some(regex) = work.pop() {
        if nullable(&regex) {
            return true;
        }
        if regex != Regex::Never && seen.insert(regex.clone()) {
            work.extend(alphabet.iter().map(|&next| derivative(&regex, next)));
        }
        assert!(seen.len() < 5000, "too many derivatives of {regex:?}");
    }
    false
}

/// Replaces lookarounds by ones that always hold; `None` where that might be fewer texts.
fn without_looks(regex: &Regex) -> Option<Regex> {
    Some(match regex {
        Regex::Look { .. } => Regex::Empty,
        Regex::Whole(_) => return None,
        Regex::Not(inner) if has_look(inner) => return None,
        Regex::Concat(parts) => Regex::concat(each_without_looks(parts)?),
        Regex::Alternate(parts) => Regex::alternate(each_without_looks(parts)?),
        Regex::And(parts) => Regex::and(each_without_looks(parts)?),
        Regex::Repeat { inner, min, max, .. } => without_looks(inner)?.repeat(*min, *max),
        other => other.clone(),
    })
}

fn each_without_looks(parts: &[Regex]) -> Option<Vec<Regex>> {
    parts.iter().map(without_looks).collect()
}

/// True if a lookaround is in it.
pub(super) fn has_look(regex: &Regex) -> bool {
    match regex {
        Regex::Look { .. } | Regex::Whole(_) => true,
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(has_look)
        }
        Regex::Repeat { inner, .. } | Regex::Not(inner) => has_look(inner),
        _ => false,
    }
}

/// Derivative of `regex` by `next` (Brzozowski 1964).
fn derivative(regex: &Regex, next: char) -> Regex {
    match regex {
        Regex::Never | Regex::Empty | Regex::Look { .. } | Regex::Tokens(_) => Regex::Never,
        Regex::Literal(literal) => match literal.strip_prefix(next) {
            Some(rest) => Regex::literal(rest),
            None => Regex::Never,
        },
        Regex::Class(class) if class.contains(next) => Regex::Empty,
        Regex::Class(_) => Regex::Never,
        Regex::Multiple(of) => {
            let after = u8::try_from(next).ok().and_then(|next| of.after(next));
            after.map_or(Regex::Never, Regex::Multiple)
        }
        Regex::Concat(parts) => {
            let mut options = Vec::new();
            for (at, part) in parts.iter().enumerate() {
                let rest = parts[at + 1..].iter().cloned();
                options.push(Regex::concat([derivative(part, next)].into_iter().chain(rest)));
                if !nullable(part) {
                    break;
                }
            }
            any_of(options)
        }
        Regex::Alternate(options) => any_of(options.iter().map(|option| derivative(option, next))),
        Regex::Repeat { inner, min, max, .. } => {
            let rest = inner.as_ref().clone();
            let rest = rest.repeat(min.saturating_sub(1), max.map(|max| max.saturating_sub(1)));
            if *max == Some(0) {
                Regex::Never
            } else {
                Regex::concat([derivative(inner, next), rest])
            }
        }
        Regex::And(parts) => Regex::and(once_each(parts.iter().map(|part| derivative(part, next)))),
        Regex::Not(inner) => Regex::complement(derivative(inner, next)),
        Regex::Whole(_) => unreachable!("a text by itself counts as one with lookarounds"),
    }
}

/// One of these, nested options taken out and equal ones once.
fn any_of(options: impl IntoIterator<Item = Regex>) -> Regex {
    let flat = options.into_iter().flat_map(|option| match option {
        Regex::Alternate(options) => options.to_vec(),
        other => vec![other],
    });
    Regex::alternate(once_each(flat))
}

/// True if the empty text is matched, lookarounds being taken to hold.
fn nullable(regex: &Regex) -> bool {
    match regex {
        Regex::Never | Regex::Class(_) | Regex::Tokens(_) => false,
        Regex::Empty | Regex::Look { .. } => true,
        Regex::Literal(literal) => literal.is_empty(),
        Regex::Multiple(of) => of.may_end(),
        Regex::Concat(parts) | Regex::And(parts) => parts.iter().all(nullable),
        Regex::Alternate(options) => options.iter().any(nullable),
        Regex::Repeat { inner, min, .. } => *min == 0 || nullable(inner),
        Regex::Not(inner) => !nullable(inner),
        Regex::Whole(_) => unreachable!("a text by itself counts as one with lookarounds"),
    }
}

/// Each value where it comes first.
fn once_each<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use palmette_grammar_parser::CharClass;

    use super::*;

    #[track_caller]
    fn check(regex: &Regex, text: &str, expected: &[usize]) {
        let text: Vec<char> = text.chars().collect();
        assert_eq!(ends(regex, &text, 0), expected, "{regex:?}");
    }

    fn reluctant(inner: Regex) -> Regex {
        Regex::Repeat { inner: inner.into(), min: 0, max: None, reluctant: true }
    }

    fn look(inner: Regex, behind: bool, negated: bool) -> Regex {
        Regex::Look { inner: inner.into(), behind, negated }
    }

    #[test]
    fn ends_come_in_the_order_of_backtracking() {
        let a = || Regex::literal("a");
        check(&a().repeat(0, None), "aaab", &[3, 2, 1, 0]);
        check(&reluctant(a()), "aaab", &[0, 1, 2, 3]);
        check(&a().repeat(2, Some(3)), "aaaa", &[3, 2]);
        check(&a().optional().repeat(2, Some(2)), "a", &[1, 0]);
        check(&a().optional().repeat(2, Some(2)), "aaa", &[2, 1, 0]);
        check(&Regex::alternate([Regex::literal("ab"), a()]), "ab", &[2, 1]);
    }

    #[test]
    fn a_part_that_is_repeated_in_two_ways_is_told_apart() {
        let inner = std::sync::Arc::new(Regex::literal("a"));
        let repeat = |reluctant| Regex::Repeat {
            inner: std::sync::Arc::clone(&inner),
            min: 0,
            max: None,
            reluctant,
        };
        check(&Regex::alternate([repeat(true), repeat(false)]), "aa", &[0, 1, 2]);
        check(&Regex::alternate([repeat(false), repeat(true)]), "aa", &[2, 1, 0]);
        let both = Regex::concat([Regex::literal("b").optional(), repeat(false)]);
        check(&Regex::alternate([repeat(true), both]), "aa", &[0, 1, 2]);
    }

    #[test]
    fn looks_hold_where_they_should() {
        let a = || Regex::literal("a");
        let b = || Regex::literal("b");
        let before_b = Regex::concat([a(), look(b(), false, false)]);
        check(&before_b, "ab", &[1]);
        check(&before_b, "aa", &[]);
        let not_before_b = Regex::concat([a(), look(b(), false, true)]);
        check(&not_before_b, "ab", &[]);
        check(&not_before_b, "a", &[1]);
        let any = Regex::Class(CharClass::any()).repeat(1, None);
        check(&Regex::concat([any, look(b(), true, false)]), "abab", &[4, 2]);
    }

    #[test]
    fn beginnings_are_those_of_texts() {
        let ab = ['a', 'b'];
        let no_bb = Regex::complement(Regex::concat([
            Regex::anything(),
            Regex::literal("bb"),
            Regex::anything(),
        ]));
        assert!(may_begin(&no_bb, &['a', 'b'], &ab));
        assert!(!may_begin(&no_bb, &['b', 'b', 'a'], &ab));
        let both = Regex::and([no_bb, Regex::literal("b").repeat(2, None)]);
        assert!(!may_begin(&both, &[], &ab));
        assert!(may_begin(&Regex::literal("aab").repeat(2, Some(3)), &['a', 'a'], &ab));
        assert!(!may_begin(&Regex::literal("aab"), &['a', 'b'], &ab));
    }
}
