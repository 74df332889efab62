//! Masks of the store against the definition, and with each step of streamlining against one another.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, TokenMask, Vocabulary};
use palmette_grammar::{
    Budget, CharClass, Grammar, GrammarBuilder, GrammarConstraint, GrammarScratch, GrammarState,
    Lexing, PreparedVocabulary, Recognizer, RecognizerLimits, Regex, Symbol, Terminal,
    TerminalKind,
    engine::store::{MaskStore, Steps},
};
use palmette_testkit::{
    grammar::{
        TextOracle,
        generate::{ALPHABET, grammar_of, over_alphabet, text_grammar_of, vocabulary},
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

/// Masks by walking the vocabulary; the grammar must compile.
fn walked(grammar: &Grammar, tokens: &[Vec<u8>]) -> GrammarConstraint {
    try_walked(grammar, tokens).expect("compiles")
}

/// `None` for a grammar with a terminal that matches the empty text, which random ones may have.
fn try_walked(grammar: &Grammar, tokens: &[Vec<u8>]) -> Option<GrammarConstraint> {
    let (limits, grammar) = (RecognizerLimits::default(), Arc::new(grammar.clone()));
    let recognizer = Recognizer::new(grammar, &limits, &mut Budget::unlimited());
    let vocabulary = with_specials(tokens);
    let vocabulary = Arc::new(PreparedVocabulary::new(vocabulary));
    Some(GrammarConstraint::by_walking(Arc::new(recognizer.ok()?), vocabulary))
}

/// Masks by a store of at most so many bytes.
fn stored(
    of: &GrammarConstraint,
    steps: Steps,
    bytes: usize,
) -> (GrammarConstraint, Arc<MaskStore>) {
    let (recognizer, vocabulary) = (of.recognizer().clone(), of.prepared_vocabulary().clone());
    let store = Arc::new(MaskStore::new(recognizer, vocabulary, steps, bytes));
    (of.clone().with_store(store.clone()), store)
}

fn mask(constraint: &GrammarConstraint, state: &GrammarState) -> TokenMask {
    let mut mask = TokenMask::new(constraint.num_tokens());
    constraint.fill_mask(state, &mut GrammarScratch::default(), mask.as_words_mut()).unwrap();
    mask
}

/// No step, each alone, and both.
fn all_steps() -> Vec<Steps> {
    let none = Steps::NONE;
    let alone = [Steps { interchange: true, ..none }, Steps { successors: true, ..none }];
    [none].into_iter().chain(alone).chain([Steps::ALL]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn streamlining_changes_no_mask(
        grammar in text_grammar_of(&[Lexing::Any, Lexing::Longest]),
        tokens in vocabulary(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 6),
    ) {
        let Some(walked) = try_walked(&grammar, &tokens) else { return Ok(()) };
        let stored: Vec<_> = all_steps()
            .into_iter()
            .map(|steps| (steps, stored(&walked, steps, STORE_BYTES).0))
            .collect();
        let mut state = walked.start();
        let mut path = Vec::new();
        for choice in choices {
            let allowed = mask(&walked, &state);
            for (steps, stored) in &stored {
                prop_assert_eq!(mask(stored, &state), allowed.clone(), "{:?} after {:?}", steps, path);
            }
            if allowed.is_empty() {
                break;
            }
            let token = allowed.iter().nth(choice.index(allowed.count())).expect("below the count");
            walked.commit(&mut state, token, &mut GrammarScratch::default()).expect("in the mask");
            path.push(token);
        }
    }

    #[test]
    fn masks_are_those_of_the_definition(
        grammar in text_grammar_of(&[Lexing::Any, Lexing::Longest]),
        tokens in vocabulary(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 4),
    ) {
        let grammar = over_alphabet(&grammar);
        let Some(walked) = try_walked(&grammar, &tokens) else { return Ok(()) };
        let constraint = stored(&walked, Steps::ALL, STORE_BYTES).0;
        let oracle = TextOracle::new(&grammar, &ALPHABET, 200);
        let mut state = constraint.start();
        let mut text = Vec::new();
        for choice in choices {
            let allowed = mask(&constraint, &state);
            for (number, token) in tokens.iter().enumerate() {
                let live = oracle.is_live(&[&text[..], token].concat());
                let ours = allowed.contains(TokenId(number as u32));
                match grammar.lexing() {
                    // A terminal may be live though its lexemes cannot be told from their neighbours'.
                    Lexing::Longest | Lexing::Contextual => prop_assert!(ours || live != Some(true), "{:?}{:?}", text, token),
                    Lexing::Any => prop_assert!(live.is_none_or(|live| live == ours), "{:?}{:?}", text, token),
                }
            }
            if let Ok(text) = std::str::from_utf8(&text)
                && let Some(is_text) = oracle.contains(text)
            {
                let accepts = constraint.is_accepting(&state, &mut GrammarScratch::default());
                prop_assert_eq!(accepts.unwrap(), is_text, "{:?}", text);
                prop_assert_eq!(allowed.contains(TokenId(tokens.len() as u32 + 1)), is_text);
            }
            prop_assert!(!allowed.contains(TokenId(tokens.len() as u32)), "a special token");
            let texts: Vec<_> = allowed.iter().filter(|token| token.index() < tokens.len()).collect();
            if texts.is_empty() {
                break;
            }
            let token = texts[choice.index(texts.len())];
            constraint.commit(&mut state, token, &mut GrammarScratch::default()).expect("in the mask");
            text.extend_from_slice(&tokens[token.index()]);
        }
    }

    #[test]
    fn the_laws_of_constraints_hold(grammar in text_grammar_of(&[Lexing::Any, Lexing::Longest]), seed in any::<u64>()) {
        // All bytes are tokens, so that no live text is stuck.
        if grammar.lexing() == Lexing::Any {
            let tokens: Vec<Vec<u8>> =
                ["a", "b", "é", "ab", "ba", "aé", "bb"].iter().map(|text| text.as_bytes().to_vec())
                    .chain((0..=u8::MAX).map(|byte| vec![byte])).collect();
            let Some(walked) = try_walked(&grammar, &tokens) else { return Ok(()) };
            laws::check(&stored(&walked, Steps::ALL, STORE_BYTES).0, seed, 1, 3);
        }
    }
}

/// A terminal in a rule that derives nothing takes no lexemes from those that sentences are made of.
#[test]
fn what_no_sentence_uses_does_not_compete() {
    let mut builder = GrammarBuilder::new();
    let (letter, word) = (CharClass::new([('a', 'c')]), CharClass::new([('a', 'b')]));
    let [letter, word] = [(letter, 1), (word, 2)].map(|(class, min)| {
        builder.terminal(Terminal {
            name: format!("{class:?}"),
            regex: Regex::Class(class).repeat(min, (min == 1).then_some(1)),
            priority: 0,
            kind: TerminalKind::Pattern,
            span: None,
        })
    });
    let [start, never] = ["start", "never"].map(|name| builder.nonterminal(name, None));
    builder.rule(start, []);
    builder.rule(start, [Symbol::Nonterminal(start), Symbol::Terminal(letter)]);
    builder.rule(start, [Symbol::Terminal(word), Symbol::Nonterminal(never)]);
    let grammar = builder.build(start, Lexing::Longest);
    let walked = walked(&grammar, &[b"abc".to_vec(), b"ab".to_vec(), b"d".to_vec()]);
    let stored = stored(&walked, Steps::ALL, STORE_BYTES).0;
    let allowed = mask(&stored, &stored.start());
    assert_eq!(allowed.iter().collect::<Vec<_>>(), [0, 1, 4].map(TokenId));
    assert_eq!(mask(&walked, &walked.start()), allowed);
}

/// A store that can keep almost nothing gives the same masks as one that keeps all.
#[test]
fn evicted_rows_are_built_anew() {
    let grammar = grammar_of("s -> a s b | a b");
    let tokens: Vec<Vec<u8>> = ["a", "b", "ab", "aab", "abb"].map(|t| t.as_bytes().to_vec()).into();
    let walked = walked(&grammar, &tokens);
    let (large, all) = stored(&walked, Steps::ALL, STORE_BYTES);
    let mut state = large.start();
    let text = [0, 0, 0, 1, 1, 1].map(TokenId);
    let mut expected = Vec::new();
    for token in text {
        expected.push(mask(&large, &state));
        large.commit(&mut state, token, &mut GrammarScratch::default()).unwrap();
    }
    let all = all.statistics();
    assert!(all.states > 1);
    for max_bytes in [0, all.bytes / 2, all.bytes - 1] {
        let (constraint, store) = stored(&walked, Steps::ALL, max_bytes);
        for _ in 0..2 {
            let mut state = constraint.start();
            for (token, expected) in text.into_iter().zip(&expected) {
                assert_eq!(mask(&constraint, &state), *expected);
                assert!(store.statistics().bytes <= max_bytes);
                constraint.commit(&mut state, token, &mut GrammarScratch::default()).unwrap();
            }
        }
    }
}
