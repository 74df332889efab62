//! Masks of the store against the definition, and with each step of streamlining against one another.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, TokenMask, Vocabulary};
use palmette_grammar::{
    CompiledGrammar, Grammar, GrammarConstraint, GrammarLimits, GrammarScratch, GrammarState,
    Lexing, store::Steps,
};
use palmette_testkit::{
    grammar::{
        TextOracle,
        generate::{ALPHABET, grammar_of, text_grammar, vocabulary},
    },
    laws,
};
use proptest::prelude::*;

const STORE_BYTES: usize = 1 << 20;

/// The tokens, one more that is special, and an end token.
fn with_specials(tokens: &[Vec<u8>]) -> Arc<Vocabulary> {
    let texts = tokens.iter().map(|token| Some(token.as_slice())).chain([None, None]);
    let end = TokenId(tokens.len() as u32 + 1);
    Arc::new(Vocabulary::new(texts, [end]).expect("the end has no text"))
}

fn constraint(grammar: &Grammar, tokens: &[Vec<u8>], steps: Steps) -> GrammarConstraint {
    let compiled = CompiledGrammar::new(grammar, &GrammarLimits::default()).expect("compiles");
    GrammarConstraint::new(Arc::new(compiled), with_specials(tokens), steps, STORE_BYTES)
        .expect("within the limits")
}

fn mask(constraint: &GrammarConstraint, state: &GrammarState) -> TokenMask {
    let mut mask = TokenMask::new(constraint.num_tokens());
    constraint.fill_mask(state, &mut GrammarScratch::default(), mask.as_words_mut());
    mask
}

/// Each step alone, and the first so many.
fn all_steps() -> Vec<Steps> {
    let none = Steps::NONE;
    let alone = [
        Steps { interchange: true, ..none },
        Steps { successors: true, ..none },
        Steps { pairs: true, ..none },
        Steps { sequences: true, ..none },
    ];
    alone.into_iter().chain((2..=4).map(Steps::first)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn streamlining_changes_no_mask(
        grammar in text_grammar(),
        tokens in vocabulary(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 6),
    ) {
        let plain = constraint(&grammar, &tokens, Steps::NONE);
        let streamlined: Vec<_> = all_steps()
            .into_iter()
            .map(|steps| (steps, constraint(&grammar, &tokens, steps)))
            .collect();
        let mut state = plain.start();
        let mut others: Vec<_> = streamlined.iter().map(|(_, other)| other.start()).collect();
        let mut path = Vec::new();
        for choice in choices {
            let allowed = mask(&plain, &state);
            for ((steps, other), state) in streamlined.iter().zip(&others) {
                prop_assert_eq!(mask(other, state), allowed.clone(), "{:?} after {:?}", steps, path);
            }
            if allowed.is_empty() {
                break;
            }
            let token = allowed.iter().nth(choice.index(allowed.count())).expect("below the count");
            plain.commit(&mut state, token).expect("in the mask");
            for ((_, other), state) in streamlined.iter().zip(&mut others) {
                other.commit(state, token).expect("in the mask");
            }
            path.push(token);
        }
    }

    #[test]
    fn masks_are_those_of_the_definition(
        grammar in text_grammar(),
        tokens in vocabulary(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 4),
    ) {
        let constraint = constraint(&grammar, &tokens, Steps::ALL);
        let oracle = TextOracle::new(&grammar, &ALPHABET, 2_000);
        let mut state = constraint.start();
        let mut text = Vec::new();
        for choice in choices {
            let allowed = mask(&constraint, &state);
            for (number, token) in tokens.iter().enumerate() {
                let live = oracle.is_live(&[&text[..], token].concat());
                let ours = allowed.contains(TokenId(number as u32));
                match grammar.lexing() {
                    // A terminal may be live though its lexemes cannot be told from their neighbours'.
                    Lexing::Longest => prop_assert!(ours || live != Some(true), "{:?}{:?}", text, token),
                    Lexing::Any => prop_assert!(live.is_none_or(|live| live == ours), "{:?}{:?}", text, token),
                }
            }
            if let Ok(text) = std::str::from_utf8(&text) {
                let is_text = oracle.contains(text);
                prop_assert_eq!(constraint.is_accepting(&state), is_text, "{:?}", text);
                prop_assert_eq!(allowed.contains(TokenId(tokens.len() as u32 + 1)), is_text);
            }
            prop_assert!(!allowed.contains(TokenId(tokens.len() as u32)), "a special token");
            let texts: Vec<_> = allowed.iter().filter(|token| token.index() < tokens.len()).collect();
            if texts.is_empty() {
                break;
            }
            let token = texts[choice.index(texts.len())];
            constraint.commit(&mut state, token).expect("in the mask");
            text.extend_from_slice(&tokens[token.index()]);
        }
    }

    #[test]
    fn the_laws_of_constraints_hold(grammar in text_grammar(), seed in any::<u64>()) {
        // All bytes are tokens, so that no live text is stuck.
        if grammar.lexing() == Lexing::Any {
            let tokens: Vec<Vec<u8>> =
                ["a", "b", "é", "ab", "ba", "aé", "bb"].iter().map(|text| text.as_bytes().to_vec())
                    .chain((0..=u8::MAX).map(|byte| vec![byte])).collect();
            laws::check(&constraint(&grammar, &tokens, Steps::ALL), seed, 2, 5);
        }
    }
}

#[test]
fn bytes_and_tokens_lead_to_the_same_masks() {
    let grammar = grammar_of("s: a s b | a b");
    let tokens: Vec<Vec<u8>> = ["a", "b", "ab", "aab", "abb"].map(|t| t.as_bytes().to_vec()).into();
    let constraint = constraint(&grammar, &tokens, Steps::ALL);
    let mut scratch = GrammarScratch::default();
    let (mut by_bytes, mut by_token) = (constraint.start(), constraint.start());
    constraint.commit_bytes(&mut by_bytes, b"aab", &mut scratch).expect("begins a text");
    constraint.commit(&mut by_token, TokenId(3)).expect("begins a text");
    assert_eq!(by_bytes, by_token);
    assert_eq!(constraint.forced_bytes(&by_bytes, 10, &mut scratch).unwrap(), b"b");
    assert_eq!(mask(&constraint, &by_bytes).iter().collect::<Vec<_>>(), [TokenId(1)]);
    let before = by_bytes.clone();
    assert!(constraint.commit_bytes(&mut by_bytes, b"ba", &mut scratch).is_err());
    assert_eq!(by_bytes, before);
    // After the end nothing follows, and it can be taken back.
    constraint.commit(&mut by_bytes, TokenId(1)).unwrap();
    let accepting = by_bytes.clone();
    constraint.commit(&mut by_bytes, TokenId(6)).expect("the text may end");
    assert!(constraint.is_accepting(&by_bytes) && mask(&constraint, &by_bytes).is_empty());
    assert!(constraint.commit_bytes(&mut by_bytes, b"", &mut scratch).is_err());
    constraint.rollback(&mut by_bytes, 1).unwrap();
    assert_eq!(by_bytes, accepting);
}

/// A store that can keep almost nothing gives the same masks as one that keeps all.
#[test]
fn evicted_rows_are_built_anew() {
    let grammar = grammar_of("s: a s b | a b");
    let tokens: Vec<Vec<u8>> = ["a", "b", "ab", "aab", "abb"].map(|t| t.as_bytes().to_vec()).into();
    let compiled =
        Arc::new(CompiledGrammar::new(&grammar, &GrammarLimits::default()).expect("compiles"));
    let small = |bytes| {
        GrammarConstraint::new(compiled.clone(), with_specials(&tokens), Steps::ALL, bytes).unwrap()
    };
    let large = small(STORE_BYTES);
    let mut state = large.start();
    let text = [0, 0, 0, 1, 1, 1].map(TokenId);
    let mut expected = Vec::new();
    for token in text {
        expected.push(mask(&large, &state));
        large.commit(&mut state, token).unwrap();
    }
    let all = large.store_statistics();
    assert!(all.positions > 1);
    for max_bytes in [0, all.bytes / 2, all.bytes - 1] {
        let constraint = small(max_bytes);
        for _ in 0..2 {
            let mut state = constraint.start();
            for (token, expected) in text.into_iter().zip(&expected) {
                assert_eq!(mask(&constraint, &state), *expected);
                assert!(constraint.store_statistics().bytes <= max_bytes);
                constraint.commit(&mut state, token).unwrap();
            }
        }
    }
}

/// Dropping a history of a million commits does not recurse.
#[test]
fn long_histories_are_dropped() {
    let grammar = grammar_of("s: a s | a");
    let tokens = [b"a".to_vec()];
    let constraint = constraint(&grammar, &tokens, Steps::ALL);
    let mut state = constraint.start();
    let mut scratch = GrammarScratch::default();
    for _ in 0..200_000 {
        constraint.try_commit(&mut state, TokenId(0), &mut scratch).unwrap();
    }
    let copy = state.clone();
    drop(state);
    drop(copy);
}
