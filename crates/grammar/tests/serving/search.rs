//! Occurrences of expressions in streams are those that the definition finds.

use palmette_grammar::{CacheLimits, PatternError, PatternSearch};
use proptest::prelude::*;
use regex::Regex;

/// The first end of an occurrence with its first beginning, by trying all parts.
fn first(whole: &Regex, text: &str) -> Option<(usize, usize)> {
    let mut parts = (1..=text.len()).flat_map(|end| (0..end).map(move |begin| (begin, end)));
    parts.find(|&(begin, end)| whole.is_match(&text[begin..end]))
}

/// The first place from which a text goes on as a member, by trying all texts up to a length.
fn first_open(whole: &Regex, read: &str, longest: usize) -> usize {
    let mut tails = vec![String::new()];
    for begin in 0..longest {
        let from = tails.len() - 2_usize.pow(begin as u32);
        let longer: Vec<_> = tails[from..]
            .iter()
            .flat_map(|tail| ["a", "b"].map(|c| format!("{tail}{c}")))
            .collect();
        tails.extend(longer);
    }
    let goes_on = |begin: &usize| {
        tails.iter().any(|tail| whole.is_match(&format!("{}{tail}", &read[*begin..])))
    };
    (0..read.len()).find(goes_on).unwrap_or(read.len())
}

proptest! {
    #[test]
    fn the_first_occurrence_is_found(
        pattern in prop::sample::select(vec!["ab", "a+b", "aab|b{2}", "(ab)*b", "a.a", "b(a|ab)b", "[ab]{3}", "a*ba*b"]),
        text in "[ab]{0,12}",
    ) {
        let whole = Regex::new(&format!("^(?:{pattern})$")).unwrap();
        let mut search = PatternSearch::new(pattern, &CacheLimits::default()).unwrap();
        let expected = first(&whole, &text);
        for (at, byte) in text.bytes().enumerate() {
            let found = search.clone().push(byte).unwrap();
            prop_assert_eq!(search.push(byte).unwrap(), found);
            if let Some(begin) = found {
                prop_assert_eq!(Some((begin, at + 1)), expected);
                return Ok(());
            }
            prop_assert_eq!(search.num_decided(), first_open(&whole, &text[..=at], 4));
        }
        prop_assert_eq!(expected, None);
    }
}

/// However long the stream is, what is open stays small: each byte costs as much as the one before.
#[test]
fn streams_without_end_are_searched() {
    let mut search = PatternSearch::new("a+b", &CacheLimits::default()).unwrap();
    for _ in 0..20_000 {
        assert_eq!(search.push(b'a').unwrap(), None);
    }
    assert_eq!(search.num_decided(), 0);
    assert_eq!(search.push(b'b').unwrap(), Some(0));
}

#[test]
fn expressions_that_are_everywhere_or_none_are_refused() {
    let refused = |pattern| PatternSearch::new(pattern, &CacheLimits::default()).unwrap_err();
    assert!(matches!(refused("a*"), PatternError::EmptyText));
    assert!(matches!(refused("(a"), PatternError::Source(_)));
}
