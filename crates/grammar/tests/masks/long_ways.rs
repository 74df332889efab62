//! Texts that take at least so many tokens, against every text tried.

use std::collections::BTreeMap;

use palmette_core::{Constraint, Lengths, TokenId, mask};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::{EndingError, GrammarState, MaskBudget};
use palmette_testkit::grammar::generate::{over_alphabet, text_grammar, vocabulary};
use proptest::prelude::*;

use crate::ending::{EndingCase, with_bytes, with_end};

/// Positions that are tried of one number of tokens, at most.
const MAX_TRIED: usize = 200;

impl EndingCase {
    fn has_way(&mut self, state: &GrammarState, lengths: Lengths) -> bool {
        self.constraint.has_way(state, lengths, &mut self.scratch).unwrap()
    }

    /// Numbers of tokens, up to `most`, after which a text is whole, as true: by trying every
    /// token. `None` where there are too many.
    fn whole_by_search(&mut self, from: &GrammarState, most: usize) -> Option<Vec<bool>> {
        let mut level = vec![from.clone()];
        let mut whole = Vec::new();
        for _ in 0..=most {
            whole.push(level.iter().any(|state| self.is_whole(state)));
            let mut next = BTreeMap::new();
            for state in &level {
                for token in mask::iter(&self.mask(state)).collect::<Vec<_>>() {
                    let after = self.after(state, token);
                    if !after.ended() {
                        next.insert(format!("{:?}", after.position()), after);
                    }
                }
                if next.len() > MAX_TRIED {
                    return None;
                }
            }
            level = next.into_values().collect();
        }
        Some(whole)
    }

    /// The tokens after which a text is known with one of these lengths, the token counted.
    fn lasting_by_definition(&mut self, state: &GrammarState, lengths: Lengths) -> Vec<u32> {
        let mut kept = vec![0; mask::num_words(self.constraint.num_tokens())];
        for token in mask::iter(&self.mask(state)).collect::<Vec<_>>() {
            let after = self.after(state, token);
            let Some(lengths) = lengths.after(1).filter(|_| !after.ended()) else { continue };
            if self.has_way(&after, lengths) {
                mask::insert(&mut kept, token);
            }
        }
        kept
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    /// Ways that are known are there; with tokens to spare all that are there are known. Along a text that
    /// an adversary writes, who ends it as early as he can or draws at random, a way stays.
    #[test]
    fn texts_do_not_end_before_their_tokens(
        grammar in text_grammar(),
        tokens in vocabulary(),
        (least, more) in (1..9_usize, 0..6_usize),
        has_bytes in prop::bool::weighted(0.8),
        choices in prop::collection::vec(0..16_usize, 40),
    ) {
        // Without a byte of its own, a text may be one that no path of bytes leads to.
        let vocabulary = if has_bytes { with_bytes(tokens) } else { with_end(tokens) };
        let Some(mut asked) = EndingCase::new(over_alphabet(&grammar), &vocabulary) else { return Ok(()) };
        let mut state = asked.constraint.start();
        let mut lengths = Lengths { least, most: least + more };
        let known = asked.has_way(&state, lengths);
        if let Some(whole) = asked.whole_by_search(&state, least + more) {
            let is_there = whole[least..].contains(&true);
            prop_assert!(is_there || !known, "{:?} {:?}", grammar, lengths);
            let open = Lengths { least, most: usize::MAX };
            let is_known = !has_bytes || asked.has_way(&state, open);
            prop_assert!(!is_there || is_known, "{:?} {:?}", grammar, open);
        }
        let mask = asked.mask_within(&state, lengths);
        if !known {
            let error = mask.expect_err("no way");
            let is_named = match error {
                EndingError::TooFew { needed, left } => needed > left && left == lengths.most,
                EndingError::TooMany { least, most } => (least, most) == (lengths.least, lengths.most),
                EndingError::Unknown => asked.fewest(&state).is_none(),
                EndingError::Limit(_) => false,
            };
            prop_assert!(is_named, "{}", error);
            return Ok(());
        }
        let mut choices = choices.into_iter();
        let mut written = 0;
        loop {
            let allowed = asked.mask_within(&state, lengths).unwrap();
            if lengths.least > 0 {
                prop_assert_eq!(&allowed, &asked.lasting_by_definition(&state, lengths), "{:?} {:?}", grammar, lengths);
            }
            // A smaller number of tokens that must follow takes nothing away.
            let fewer = Lengths { least: lengths.least.saturating_sub(1), ..lengths };
            let fewer = asked.mask_within(&state, fewer).unwrap();
            prop_assert!(allowed.iter().zip(&fewer).all(|(allowed, fewer)| allowed & !fewer == 0), "{:?} {:?}", grammar, lengths);
            let texts: Vec<TokenId> = mask::iter(&allowed).collect();
            let mut shortest = Vec::new();
            for token in texts {
                let after = asked.after(&state, token);
                shortest.push((if after.ended() { None } else { asked.fewest(&after) }, token));
            }
            shortest.sort_unstable();
            if shortest.is_empty() {
                break;
            }
            let choice = choices.next().unwrap_or(0);
            let (_, token) = shortest[if choice < 12 { 0 } else { choice % shortest.len() }];
            let after = asked.after(&state, token);
            if after.ended() {
                break;
            }
            (state, lengths) = (after, lengths.after(1).unwrap());
            written += 1;
        }
        prop_assert!(asked.is_whole(&state));
        prop_assert!((least..=least + more).contains(&written));
    }
}

#[test]
fn the_longest_text_is_known() {
    let vocabulary = with_bytes(vec![b"ab".to_vec(), b"abab".to_vec()]);
    let case = |source: &str| {
        let grammar = lark::parse(source, &LarkOptions::default());
        EndingCase::new(grammar.unwrap_or_else(|e| panic!("{e}")), &vocabulary).expect("a language")
    };
    for (source, longest) in [
        ("start: \"ab\" | \"abab\" | \"b\"", Some(4)),
        ("start: /(ab){2,7}/", Some(14)),
        ("start: \"a\" start \"b\" | \"a\"", None),
        ("start: (\"a\" | \"b\")* \"a\"", None),
        ("start: /a{3,2000}/", Some(2000)),
    ] {
        let mut asked = case(source);
        let start = asked.constraint.start();
        let most = longest.unwrap_or(3001);
        for least in [1, 2, 3, 4, 5, 14, 15, 1999, 2000, 2001, 3001] {
            let open = Lengths { least, most: usize::MAX };
            assert_eq!(asked.has_way(&start, open), least <= most, "{source} {least}");
        }
        assert!(!asked.has_way(&start, Lengths { least: 5, most: 4 }));
    }
    // One that comes round is as long as one likes.
    let mut asked = case("start: (\"a\" | \"b\")* \"a\"");
    let start = asked.constraint.start();
    assert!(asked.has_way(&start, Lengths { least: usize::MAX - 1, most: usize::MAX }));
}

/// Masks of places with more ways on than are tried have the one that is known.
#[test]
fn places_with_many_ways_keep_one() {
    let words: Vec<String> = (0..300).map(|word| format!("{:09b}", word * 7 % 512)).collect();
    let words =
        words.iter().map(|word| format!("\"{}\"", word.replace('0', "a").replace('1', "b")));
    let source = format!("start: word \";\" word\nword: {}", words.collect::<Vec<_>>().join(" | "));
    let vocabulary =
        with_bytes(vec![b"ab".to_vec(), b"ba".to_vec(), b"abab".to_vec(), b";".to_vec()]);
    let grammar = lark::parse(&source, &LarkOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut asked = EndingCase::new(grammar, &vocabulary).expect("a language");
    for steps in [u64::MAX, 40_000, 4_000] {
        let (mut state, mut lengths) = (asked.constraint.start(), Lengths { least: 19, most: 19 });
        while lengths.least > 0 {
            let work = MaskBudget::of_steps(steps, None);
            let mut allowed = vec![0; mask::num_words(asked.constraint.num_tokens())];
            let EndingCase { constraint, scratch } = &mut asked;
            let filled =
                constraint.fill_ending_mask_within(&state, lengths, scratch, &mut allowed, &work);
            filled.unwrap_or_else(|error| panic!("{steps} steps, {lengths}: {error}"));
            let token = mask::iter(&allowed).last().expect("a token");
            state = asked.after(&state, token);
            lengths = lengths.after(1).expect("one is left");
        }
        assert!(asked.is_whole(&state));
    }
}
