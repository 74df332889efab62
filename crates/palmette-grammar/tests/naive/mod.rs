//! What regular expressions and grammars match, by the definitions.
#![allow(dead_code)] // Each test uses a part.

use std::collections::BTreeSet;

use palmette_grammar::{Grammar, Regex, Symbol};

/// Whether `text` is in the language of a grammar whose lexemes may be cut in any way.
pub(crate) fn is_sentence(grammar: &Grammar, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // By nonterminal and beginning: where it may end. Grown until nothing is added.
    let mut found = vec![vec![BTreeSet::new(); text.len() + 1]; grammar.nonterminals().len()];
    let lexemes: Vec<Vec<Vec<usize>>> = grammar
        .terminals()
        .iter()
        .map(|terminal| {
            let longer = |at: usize| {
                ends(&terminal.regex, &text, at).into_iter().filter(|&end| end > at).collect()
            };
            (0..=text.len()).map(longer).collect()
        })
        .collect();
    loop {
        let mut grown = false;
        for rule in grammar.rules() {
            for at in 0..=text.len() {
                let mut places = BTreeSet::from([at]);
                for symbol in &rule.body {
                    places = places
                        .iter()
                        .flat_map(|&place| match symbol {
                            Symbol::Terminal(id) => lexemes[id.index()][place].clone(),
                            Symbol::Nonterminal(id) => {
                                found[id.index()][place].iter().copied().collect()
                            }
                        })
                        .collect();
                }
                for end in places {
                    grown |= found[rule.head.index()][at].insert(end);
                }
            }
        }
        if !grown {
            return found[grammar.start().index()][0].contains(&text.len());
        }
    }
}

/// Whether `regex` matches `text` whole, by the definition.
pub(crate) fn matches(regex: &Regex, text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    ends(regex, &chars, 0).contains(&chars.len())
}

/// Where a match from `at` may end, in ascending order.
pub(crate) fn ends(regex: &Regex, text: &[char], at: usize) -> Vec<usize> {
    let mut found = match regex {
        Regex::Never => vec![],
        Regex::Empty => vec![at],
        Regex::Literal(literal) => {
            let literal: Vec<char> = literal.chars().collect();
            if text[at..].starts_with(&literal) { vec![at + literal.len()] } else { vec![] }
        }
        Regex::Class(class) => {
            let first = text.get(at).filter(|&&next| class.contains(next));
            first.map(|_| at + 1).into_iter().collect()
        }
        Regex::Concat(parts) => {
            parts.iter().fold(vec![at], |places, part| step(part, text, places))
        }
        Regex::Alternate(options) => {
            options.iter().flat_map(|option| ends(option, text, at)).collect()
        }
        Regex::Repeat { inner, min, max, .. } => {
            let mut places = vec![at];
            for _ in 0..*min {
                places = step(inner, text, places);
            }
            let mut all = places.clone();
            let mut times = *min;
            while !places.is_empty() && max.is_none_or(|max| times < max) {
                let new = step(inner, text, places);
                places = new.into_iter().filter(|place| !all.contains(place)).collect();
                all.extend(&places);
                times += 1;
            }
            all
        }
        Regex::And(parts) => {
            let mut parts = parts.iter().map(|part| ends(part, text, at));
            let first = parts.next().unwrap_or_default();
            parts
                .fold(first, |all, part| all.into_iter().filter(|end| part.contains(end)).collect())
        }
        Regex::Not(inner) => {
            let inner = ends(inner, text, at);
            (at..=text.len()).filter(|end| !inner.contains(end)).collect()
        }
        Regex::Look { inner, behind, negated } => {
            let found = match behind {
                false => !ends(inner, text, at).is_empty(),
                true => (0..=at).any(|from| ends(inner, &text[..at], from).contains(&at)),
            };
            if found != *negated { vec![at] } else { vec![] }
        }
    };
    found.sort_unstable();
    found.dedup();
    found
}

fn step(regex: &Regex, text: &[char], places: Vec<usize>) -> Vec<usize> {
    let mut next: Vec<usize> =
        places.into_iter().flat_map(|place| ends(regex, text, place)).collect();
    next.sort_unstable();
    next.dedup();
    next
}
