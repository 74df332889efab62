//! Every mask engine gives the masks of the definition: random grammars, random vocabularies,
//! random walks.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, CharClass, Grammar, GrammarBuilder, GrammarConstraint, GrammarScratch, Lexing,
    PreparedVocabulary, Recognizer, RecognizerLimits, Regex, Symbol, Terminal, TerminalKind,
};
use palmette_testkit::grammar::TextOracle;
use palmette_testkit::grammar::generate::{ALPHABET, over_alphabet, text_grammar, vocabulary};
use palmette_testkit::laws;
use proptest::prelude::*;

/// Checks that every token that is allowed can be followed by the rest of a sentence.
fn is_exact(recognizer: &Recognizer) -> bool {
    recognizer.grammar().lexing() != Lexing::Longest && recognizer.dead_ends().are_excluded
}

/// Walks a grammar by tokens that `choose` picks; every mask of every engine is compared with the
/// others', and with the oracle's where that can tell.
fn walk(grammar: &Grammar, tokens: &[Vec<u8>], choices: &[prop::sample::Index]) {
    let recognizer = Recognizer::new(
        Arc::new(grammar.clone()),
        &RecognizerLimits::default(),
        &mut Budget::unlimited(),
    );
    let recognizer = Arc::new(recognizer.expect("a small grammar"));
    let is_exact = is_exact(&recognizer);
    let end = TokenId(tokens.len() as u32);
    let texts = tokens.iter().map(Some).chain([None]);
    let slices =
        Arc::new(PreparedVocabulary::new(Arc::new(Vocabulary::new(texts, [end]).unwrap())));
    let automaton = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(&slices));
    let walking = GrammarConstraint::by_walking(recognizer, slices);
    let definition = TextOracle::new(grammar, &ALPHABET, 200);

    let num_words = mask::num_words(automaton.num_tokens());
    let (mut read, mut walked) = (vec![!0; num_words], vec![!0; num_words]);
    let (mut scratch, mut state, mut text) =
        (GrammarScratch::default(), automaton.start(), Vec::new());
    for choice in choices {
        automaton.fill_mask(&state, &mut scratch, &mut read).unwrap();
        walking.fill_mask(&state, &mut scratch, &mut walked).unwrap();
        let show = |row: &[u32]| mask::iter(row).map(|token| token.0).collect::<Vec<_>>();
        assert_eq!(show(&read), show(&walked), "after {:?}", String::from_utf8_lossy(&text));
        // With the longest lexemes everywhere, what the parser could go on with may not be spelled
        // apart: the engines allow it.
        if let Some(expected) = definition.allowed(&text, tokens) {
            let allowed: Vec<_> = (0..tokens.len() as u32)
                .map(|token| mask::contains(&read, TokenId(token)))
                .collect();
            if is_exact {
                assert_eq!(allowed, expected, "after {:?}", String::from_utf8_lossy(&text));
            } else {
                let missing = |at: usize| expected[at] && !allowed[at];
                assert!(
                    !(0..tokens.len()).any(missing),
                    "after {:?}",
                    String::from_utf8_lossy(&text)
                );
            }
        }
        let whole =
            std::str::from_utf8(&text).map_or(Some(false), |text| definition.contains(text));
        if let Some(whole) = whole {
            let shown = String::from_utf8_lossy(&text);
            assert_eq!(mask::contains(&read, end), whole, "the end after {shown:?}");
        }

        let allowed: Vec<_> = mask::iter(&read).filter(|&token| token != end).collect();
        if allowed.is_empty() {
            break;
        }
        let token = *choice.get(&allowed);
        automaton.commit(&mut state, token, &mut scratch).unwrap();
        text.extend_from_slice(&tokens[token.index()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn engines_agree_with_each_other_and_the_definition(
        grammar in text_grammar(),
        tokens in vocabulary(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 5),
    ) {
        walk(&over_alphabet(&grammar), &tokens, &choices);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn laws_hold_where_every_byte_is_a_token(grammar in text_grammar(), tokens in vocabulary()) {
        let mut tokens = tokens;
        tokens.extend((0..=u8::MAX).map(|byte| vec![byte]));
        let recognizer = Recognizer::new(Arc::new(over_alphabet(&grammar)), &RecognizerLimits::default(), &mut Budget::unlimited()).unwrap();
        prop_assume!(is_exact(&recognizer));
        let end = TokenId(tokens.len() as u32);
        let texts = tokens.iter().map(Some).chain([None]);
        let slices = PreparedVocabulary::new(Arc::new(Vocabulary::new(texts, [end]).unwrap()));
        let constraint = GrammarConstraint::new(Arc::new(recognizer), Arc::new(slices));
        laws::check(&constraint, 11, 1, 4);
    }
}

/// A lexeme in progress may be one for stacks whose topmost states are in several contexts: blanks
/// after what may be the end.
#[test]
fn lexemes_after_ignored_ones_begin_in_the_contexts_of_all_stacks() {
    let mut grammar = GrammarBuilder::new();
    let mut terminal = |name: &str, regex, priority, kind| {
        grammar.terminal(Terminal { name: name.into(), regex, priority, kind, span: None })
    };
    let b = || Regex::Class(CharClass::new([('b', 'b')]));
    let others = Regex::Class(CharClass::new([('a', 'a'), ('é', 'é')]));
    let one = terminal("one", b(), 1, TerminalKind::Pattern);
    let several = terminal("several", b().repeat(2, Some(3)), 0, TerminalKind::Pattern);
    let other = terminal("other", others, 0, TerminalKind::Free);
    grammar.ignore(several);
    let start = grammar.nonterminal("start", None);
    grammar
        .rule(start, [Symbol::Terminal(one), Symbol::Nonterminal(start), Symbol::Terminal(other)]);
    grammar.rule(start, [Symbol::Terminal(other)]);
    grammar.rule(start, []);
    let grammar = grammar.build(start, Lexing::Contextual);
    let tokens: Vec<Vec<u8>> = ["bé", "b", "é", "bb"].map(|token| token.as_bytes().to_vec()).into();
    proptest!(ProptestConfig::with_cases(64), |(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 5),
    )| {
        walk(&over_alphabet(&grammar), &tokens, &choices);
    });
}
