//! Masks of the store against the definition, and with each step of streamlining against one
//! another.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, TokenMask, Vocabulary};
use palmette_grammar::{
    Budget, CharClass, Grammar, GrammarBuilder, GrammarConstraint, GrammarScratch, GrammarState,
    Lexing, PreparedVocabulary, Recognizer, RecognizerLimits, Regex, Symbol, Terminal,
    TerminalKind, engine::glr::ParserScratch,
};
use palmette_mask_store::{MaskStore, Step, Steps};
use palmette_testkit::grammar::{
    TextOracle,
    generate::{ALPHABET, over_alphabet, text_grammar_of, vocabulary},
};
use proptest::prelude::*;

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

/// A store over the vocabulary of a constraint.
fn store(of: &GrammarConstraint, steps: Steps) -> MaskStore {
    MaskStore::new(of.recognizer().clone(), of.prepared_vocabulary(), steps).expect("it is read")
}

/// The store's mask of a state, with the tokens that end a text.
fn stored(store: &MaskStore, of: &GrammarConstraint, state: &GrammarState) -> TokenMask {
    let mut mask = TokenMask::new(of.num_tokens());
    let Some(position) = state.position().filter(|_| !state.ended()) else { return mask };
    store.fill_mask(position, &mut ParserScratch::default(), mask.as_words_mut()).unwrap();
    if of.is_accepting(state, &mut GrammarScratch::default()).unwrap() {
        of.ends().iter().for_each(|&end| mask.insert(end));
    }
    mask
}

fn mask(constraint: &GrammarConstraint, state: &GrammarState) -> TokenMask {
    let mut mask = TokenMask::new(constraint.num_tokens());
    constraint.fill_mask(state, &mut GrammarScratch::default(), mask.as_words_mut()).unwrap();
    mask
}

/// No step, each alone, the published ones, and all.
fn all_steps() -> Vec<Steps> {
    let alone = Step::ALL.into_iter().map(Steps::only);
    let together = [Steps::NONE, Steps::first(2), Steps::first(Steps::NUM_PUBLISHED), Steps::ALL];
    together.into_iter().chain(alone).collect()
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
        let stores: Vec<_> =
            all_steps().into_iter().map(|steps| (steps, store(&walked, steps))).collect();
        let mut state = walked.start();
        let mut path = Vec::new();
        for choice in choices {
            let allowed = mask(&walked, &state);
            for (steps, store) in &stores {
                prop_assert_eq!(stored(store, &walked, &state), allowed.clone(), "{:?} after {:?}", steps, path);
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
        let store = store(&walked, Steps::ALL);
        let oracle = TextOracle::new(&grammar, &ALPHABET, 200);
        let mut state = walked.start();
        let mut text = Vec::new();
        for choice in choices {
            let allowed = stored(&store, &walked, &state);
            for (number, token) in tokens.iter().enumerate() {
                let live = oracle.is_live(&[&text[..], token].concat());
                let ours = allowed.contains(TokenId(number as u32));
                match grammar.lexing() {
                    // A terminal may be live though its lexemes cannot be told from their
                    // neighbours'.
                    Lexing::Longest | Lexing::Contextual => prop_assert!(ours || live != Some(true), "{:?}{:?}", text, token),
                    Lexing::Any => prop_assert!(live.is_none_or(|live| live == ours), "{:?}{:?}", text, token),
                }
            }
            if let Ok(text) = std::str::from_utf8(&text)
                && let Some(is_text) = oracle.contains(text)
            {
                let accepts = walked.is_accepting(&state, &mut GrammarScratch::default());
                prop_assert_eq!(accepts.unwrap(), is_text, "{:?}", text);
                prop_assert_eq!(allowed.contains(TokenId(tokens.len() as u32 + 1)), is_text);
            }
            prop_assert!(!allowed.contains(TokenId(tokens.len() as u32)), "a special token");
            let texts: Vec<_> = allowed.iter().filter(|token| token.index() < tokens.len()).collect();
            if texts.is_empty() {
                break;
            }
            let token = texts[choice.index(texts.len())];
            walked.commit(&mut state, token, &mut GrammarScratch::default()).expect("in the mask");
            text.extend_from_slice(&tokens[token.index()]);
        }
    }
}

/// A terminal in a rule that derives nothing takes no lexemes from those that sentences are made
/// of.
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
    let store = store(&walked, Steps::ALL);
    let allowed = stored(&store, &walked, &walked.start());
    assert_eq!(allowed.iter().collect::<Vec<_>>(), [0, 1, 4].map(TokenId));
    assert_eq!(mask(&walked, &walked.start()), allowed);
}
