//! The reader of regular expressions against the crate `regex` and against tables.

use palmette_grammar::{
    Regex,
    regex::parse::{Dialect, Flags, parse, parse_search, parse_text},
};
use proptest::prelude::*;

/// Whether `regex` matches `text` whole, by the definition.
fn matches(regex: &Regex, text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    ends(regex, &chars, 0).contains(&chars.len())
}

/// Where a match from `at` may end, in ascending order.
fn ends(regex: &Regex, text: &[char], at: usize) -> Vec<usize> {
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

/// Expressions with anchors and word boundaries in all places.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "ab", "-", r"\n", "[ab]", "[^a]", ".", r"\w", r"\W", "(?i:A)"]),
        3 => prop::sample::select(vec!["^", "$", r"\b", r"\B", "(?m:^)", "(?m:$)", r"\b{start}", r"\b{end-half}", ""]),
    ];
    leaf.prop_map(|leaf| format!("(?:{leaf})")).prop_recursive(4, 14, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            2 => (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"]))
                .prop_map(|(inner, times)| format!("(?:{inner}){times}")),
        ]
    })
}

/// All texts of up to four of these characters.
fn texts() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..4 {
        let until = all.len();
        for at in from..until {
            for next in ["a", "b", "-", "\n"] {
                all.push(format!("{}{next}", all[at]));
            }
        }
        from = until;
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_the_crate_regex(pattern in pattern()) {
        let whole = regex::Regex::new(&format!(r"\A(?:{pattern})\z")).expect("sound");
        let search = regex::Regex::new(&pattern).expect("sound");
        let too_much = |message: &str| ["more than"].iter().any(|words| message.contains(words));
        let ours = parse_text(&pattern, Dialect::Rust, Flags::default());
        match ours {
            Ok(ours) => for text in texts() {
                prop_assert_eq!(matches(&ours, &text), whole.is_match(&text), "{:?} on {:?}: {:?}", pattern, text, ours);
            },
            Err(error) => prop_assert!(too_much(&error.message), "{}", error),
        }
        match parse_search(&pattern, Dialect::Rust, Flags::default()) {
            Ok(ours) => for text in texts() {
                prop_assert_eq!(matches(&ours, &text), search.is_match(&text), "search {:?} on {:?}: {:?}", pattern, text, ours);
            },
            Err(error) => prop_assert!(too_much(&error.message), "{}", error),
        }
        match parse(&pattern, Dialect::Rust, Flags::default()) {
            Ok(ours) => for text in texts() {
                prop_assert_eq!(matches(&ours, &text), whole.is_match(&text), "lexeme {:?} on {:?}: {:?}", pattern, text, ours);
            },
            Err(error) => prop_assert!(too_much(&error.message), "{}", error),
        }
    }
}
