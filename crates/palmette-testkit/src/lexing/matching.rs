//! Where lexemes of a regular expression end.

use std::collections::BTreeSet;

use palmette_grammar::Regex;

/// Where a lexeme that begins at `begin` in `text` may end, as a terminal with this regular expression: by definition,
/// or, with reluctant quantifiers, where a backtracking matcher ends it.
///
/// Cost: exponential.
pub fn lexeme_ends(regex: &Regex, text: &[char], begin: usize) -> BTreeSet<usize> {
    let place = Place { text, begin };
    if is_reluctant(regex) {
        place.tried(regex, begin).into_iter().take(1).collect()
    } else {
        place.ends(regex, begin)
    }
}

fn is_reluctant(regex: &Regex) -> bool {
    match regex {
        Regex::Never | Regex::Empty | Regex::Literal(_) | Regex::Class(_) => false,
        Regex::Look { .. } => false,
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(is_reluctant)
        }
        Regex::Repeat { inner, reluctant, .. } => *reluctant || is_reluctant(inner),
        Regex::Not(inner) => is_reluctant(inner),
    }
}

/// A text and where the lexeme in it begins: lookbehinds do not look before.
#[derive(Clone, Copy)]
struct Place<'a> {
    text: &'a [char],
    begin: usize,
}

impl Place<'_> {
    /// Where a match from `at` may end.
    fn ends(self, regex: &Regex, at: usize) -> BTreeSet<usize> {
        match regex {
            Regex::Never => BTreeSet::new(),
            Regex::Empty => BTreeSet::from([at]),
            Regex::Literal(literal) => {
                let literal: Vec<char> = literal.chars().collect();
                let found = self.text[at..].starts_with(&literal);
                found.then_some(at + literal.len()).into_iter().collect()
            }
            Regex::Class(class) => {
                let found = self.text.get(at).is_some_and(|&c| class.contains(c));
                found.then_some(at + 1).into_iter().collect()
            }
            Regex::Concat(parts) => parts.iter().fold(BTreeSet::from([at]), |from, part| {
                from.into_iter().flat_map(|at| self.ends(part, at)).collect()
            }),
            Regex::Alternate(options) => {
                options.iter().flat_map(|option| self.ends(option, at)).collect()
            }
            Regex::Repeat { inner, min, max, .. } => self.repeated(inner, *min, *max, at),
            Regex::And(parts) => {
                let all = (at..=self.text.len()).collect();
                parts.iter().fold(all, |kept: BTreeSet<_>, part| &kept & &self.ends(part, at))
            }
            Regex::Not(inner) => {
                let not = self.ends(inner, at);
                (at..=self.text.len()).filter(|end| !not.contains(end)).collect()
            }
            Regex::Look { inner, behind, negated } => {
                let found = if *behind {
                    (self.begin..=at).any(|from| self.ends(inner, from).contains(&at))
                } else {
                    !self.ends(inner, at).is_empty()
                };
                (found != *negated).then_some(at).into_iter().collect()
            }
        }
    }

    fn repeated(self, inner: &Regex, min: u32, max: Option<u32>, at: usize) -> BTreeSet<usize> {
        // With more repetitions than that, one more than `min` is empty and may be left out.
        let enough = min + self.text.len() as u32 + 1;
        let (mut ends, mut reached) = (BTreeSet::new(), BTreeSet::from([at]));
        for times in 0..=max.unwrap_or(enough).min(enough) {
            if times >= min {
                ends.extend(&reached);
            }
            reached = reached.into_iter().flat_map(|at| self.ends(inner, at)).collect();
        }
        ends
    }

    /// Where a match from `at` may end, in the order in which a backtracking matcher tries it. Of a set of texts
    /// (an intersection or complement) it tries the longest first. A repetition that takes nothing ends its loop.
    fn tried(self, regex: &Regex, at: usize) -> Vec<usize> {
        let mut tried = match regex {
            Regex::Concat(parts) => parts.iter().fold(vec![at], |from, part| {
                from.into_iter().flat_map(|at| self.tried(part, at)).collect()
            }),
            Regex::Alternate(options) => {
                options.iter().flat_map(|option| self.tried(option, at)).collect()
            }
            Regex::Repeat { inner, min, max, reluctant } => {
                self.tried_times(inner, *min, *max, *reluctant, at)
            }
            _ => self.ends(regex, at).into_iter().rev().collect(),
        };
        let mut seen = BTreeSet::new();
        tried.retain(|&end| seen.insert(end));
        tried
    }

    fn tried_times(
        self,
        inner: &Regex,
        min: u32,
        max: Option<u32>,
        reluctant: bool,
        at: usize,
    ) -> Vec<usize> {
        if max == Some(0) {
            return vec![at];
        }
        let mut on = Vec::new();
        for end in self.tried(inner, at) {
            if end == at {
                on.push(at);
            } else {
                let max = max.map(|max| max - 1);
                on.extend(self.tried_times(inner, min.saturating_sub(1), max, reluctant, end));
            }
        }
        match (min, reluctant) {
            (0, true) => on.insert(0, at),
            (0, false) => on.push(at),
            _ => {}
        }
        on
    }
}
