//! Tokens by name and number: masks equal those of a grammar that spells them by characters of
//! their own.

use std::sync::Arc;

use palmette_core::{CommitError, Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::{gbnf, lark};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer,
    RecognizerLimits, Regex, TokenError, TokenPattern,
};
use palmette_testkit::grammar::generate::{ALPHABET, over_alphabet, text_grammar};
use palmette_testkit::laws;
use proptest::prelude::*;

/// Ten tokens: texts, among them one spelled like a name and one that is no UTF-8; then special
/// ones, the last of them the end.
fn vocabulary() -> Vocabulary {
    let texts: [Option<&[u8]>; 10] = [
        Some(b"a"),
        Some(b"<call>"),
        Some(b"ab"),
        Some(b"\xFF"),
        Some(b"{"),
        Some(b"}"),
        None,
        None,
        None,
        None,
    ];
    let names = [(6, "<call>"), (7, "<|end|>"), (9, "<eos>")];
    let names = names.map(|(token, name)| (TokenId(token), name.to_owned()));
    Vocabulary::new(texts, [TokenId(9)]).unwrap().with_names(names).unwrap()
}

fn recognizer(grammar: Grammar) -> Arc<Recognizer> {
    let made =
        Recognizer::new(Arc::new(grammar), &RecognizerLimits::default(), &mut Budget::unlimited());
    Arc::new(made.unwrap())
}

fn lark(source: &str) -> GrammarConstraint {
    let grammar = lark::parse(source, &lark::LarkOptions::default()).unwrap();
    over(grammar, vocabulary())
}

fn over(grammar: Grammar, vocabulary: Vocabulary) -> GrammarConstraint {
    let recognizer = recognizer(grammar.with_tokens_of(&vocabulary).unwrap());
    GrammarConstraint::new(recognizer, Arc::new(PreparedVocabulary::new(Arc::new(vocabulary))))
}

/// The tokens allowed after some.
fn allowed(constraint: &GrammarConstraint, tokens: &[u32]) -> Vec<u32> {
    let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
    for &token in tokens {
        constraint.commit(&mut state, TokenId(token), &mut scratch).unwrap();
    }
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
    mask::iter(&row).map(|token| token.0).collect()
}

#[test]
fn a_name_is_its_token_and_never_its_text() {
    let call = lark("start: <call> \"a\" <|end|>");
    assert_eq!(allowed(&call, &[]), [6]);
    assert_eq!(allowed(&call, &[6]), [0]);
    assert_eq!(allowed(&call, &[6, 0]), [7]);
    assert_eq!(allowed(&call, &[6, 0, 7]), [9]);
    let text = lark("start: \"<call>\" \"a\"");
    assert_eq!(allowed(&text, &[]), [1]);
}

#[test]
fn free_text_holds_no_token_by_name() {
    let thought = lark("start: /(.|\\n)*/ <call>");
    assert_eq!(allowed(&thought, &[]), [0, 1, 2, 4, 5, 6]);
    assert_eq!(allowed(&thought, &[1, 0]), [0, 1, 2, 4, 5, 6]);
    assert_eq!(allowed(&thought, &[1, 6]), [9]);
}

#[test]
fn numbers_ranges_and_all_others() {
    assert_eq!(allowed(&lark("start: <[0-1,7]>"), &[]), [0, 1, 7]);
    assert_eq!(allowed(&lark("start: <[^0-4,6-7]>"), &[]), [5, 8], "9 ends the output");
    assert_eq!(allowed(&lark("start: <[*]> \"a\""), &[]), (0..9).collect::<Vec<_>>());
    let until = "root ::= <call> !<|end|>* <|end|>";
    let until = over(gbnf::parse(until, &gbnf::GbnfOptions::default()).unwrap(), vocabulary());
    assert_eq!(allowed(&until, &[6]), (0..9).collect::<Vec<_>>());
    assert_eq!(allowed(&until, &[6, 3, 6, 7]), [9]);
}

/// By its text the token may go on, by its number it ends what is asked for.
#[test]
fn a_token_with_text_is_read_in_either_way() {
    let either = lark("start: <[0]> \"{\" | \"ab\" \"}\" | \"a\" \"}\"");
    assert_eq!(allowed(&either, &[]), [0, 2]);
    assert_eq!(allowed(&either, &[0]), [4, 5]);
    assert_eq!(allowed(&either, &[2]), [5]);
    laws::check(&either, 3, 5, 8);
}

/// A token that is not read as a number is not taken from those that are read as text.
#[test]
fn text_is_read_beside_a_token_with_text() {
    assert_eq!(allowed(&lark("start: /[abc]/? <[0]> | /[ab]+/ <[1]>"), &[]), [0, 2]);
    assert_eq!(allowed(&lark("start: /[ab]+/? <[4]>"), &[]), [0, 2, 4]);
}

/// The end token ends where the text may end, and is a special token elsewhere.
#[test]
fn the_end_token_may_be_asked_for() {
    let ends = lark("start: <eos> \"a\" | \"a\"");
    assert_eq!(allowed(&ends, &[]), [0, 9]);
    assert_eq!(allowed(&ends, &[9]), [0]);
    assert_eq!(allowed(&ends, &[9, 0]), [9]);
    assert!(allowed(&ends, &[0, 9]).is_empty());
}

/// Ends of a request: special tokens and texts. The vocabulary's own is a special token like others
/// then.
#[test]
fn other_tokens_may_end_a_text() {
    let texts = lark("start: \"{\" \"a\" \"{\"? <eos>?");
    assert_eq!(allowed(&texts, &[4, 0]), [4, 9]);
    let ended = texts.with_ends([8, 5, 8, 99].map(TokenId));
    assert_eq!(ended.ends(), [5, 8].map(TokenId));
    assert_eq!(allowed(&ended, &[]), [4]);
    assert_eq!(allowed(&ended, &[4, 0]), [4, 5, 8, 9], "asked for, the old end is no end");
    assert_eq!(allowed(&ended, &[4, 0, 9]), [5, 8]);
    assert!(allowed(&ended, &[4, 0, 9, 5]).is_empty());
    assert_eq!(allowed(&texts, &[4, 0]), [4, 9], "the original is as it was");

    let text = texts.with_ends([TokenId(4)]);
    assert_eq!(allowed(&text, &[]), [4], "elsewhere it is text");
    assert_eq!(allowed(&text, &[4, 0]), [4, 9]);
    assert!(allowed(&text, &[4, 0, 4]).is_empty(), "it ends, though the text could go on");
    let (mut scratch, start) = (GrammarScratch::default(), text.start());
    let mask_of = |ends: &GrammarConstraint| {
        ends.mask(&start, &mut GrammarScratch::default()).unwrap().words().to_vec()
    };
    assert_eq!(mask_of(&text), mask_of(&texts));
    assert!(!text.is_accepting(&start, &mut scratch).unwrap());
    for constraint in [&ended, &text, &texts.with_ends([])] {
        laws::check(constraint, 3, 5, 8);
    }
}

#[test]
fn bytes_spell_no_number() {
    let call = lark("start: <call> | \"a\"");
    let (mut state, mut scratch) = (call.start(), GrammarScratch::default());
    let error = call.commit_bytes(&mut state, b"\xFF\0\0\0\x06", &mut scratch).unwrap_err();
    assert!(error.to_string().contains("offset 0"), "{error}");
    let refused = call.commit(&mut state, TokenId(3), &mut scratch).unwrap_err();
    assert!(matches!(refused, CommitError::NotAllowed { .. }), "{refused:?}");
    let only = lark("start: <call>");
    assert!(only.forced_bytes(&only.start(), 5, &mut scratch).unwrap().is_empty());
    assert_eq!(only.forced_tokens(&only.start(), 5, &mut scratch).unwrap(), [6, 9].map(TokenId));
}

#[test]
fn an_unknown_token_is_an_error_that_lists_some() {
    let grammar = |source| lark::parse(source, &lark::LarkOptions::default()).unwrap();
    let error = grammar("start: <calls>").with_tokens_of(&vocabulary()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the grammar asks for token <calls>, and the vocabulary has none of this name; it has <call> <eos> <|end|>"
    );
    let error = grammar("start: <[3-10]>").with_tokens_of(&vocabulary()).unwrap_err();
    assert_eq!(error, TokenError::Outside { number: 10, last: 9 });
    let named = Arc::new(grammar("start: <call>"));
    let made = Recognizer::new(named, &RecognizerLimits::default(), &mut Budget::unlimited());
    assert!(made.unwrap_err().to_string().contains("token <call> by name"));
}

/// The terminals of these places as tokens 0 to 2, or spelled by characters of their own.
fn replaced(grammar: &Grammar, places: &[usize], with: impl Fn(u32) -> Regex) -> Grammar {
    let mut builder = palmette_grammar::GrammarBuilder::new();
    for (at, terminal) in grammar.terminals().iter().enumerate() {
        let mut terminal = terminal.clone();
        if let Some(number) = places.iter().position(|&place| place == at) {
            terminal.regex = with(number as u32);
        }
        builder.terminal(terminal);
    }
    for nonterminal in grammar.nonterminals() {
        builder.nonterminal(nonterminal.name.clone(), None);
    }
    for rule in grammar.rules() {
        builder.rule(rule.head, rule.body.clone());
    }
    grammar.ignored().iter().for_each(|&ignored| builder.ignore(ignored));
    builder.build(grammar.start(), grammar.lexing())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn masks_are_those_of_characters_of_their_own(
        grammar in text_grammar(),
        places in prop::collection::vec(0..4_usize, 1..3),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 6),
    ) {
        let grammar = over_alphabet(&grammar);
        let private = |number: u32| char::from_u32(0xE000 + number).unwrap().to_string();
        let texts = ALPHABET.iter().map(char::to_string).chain(["ab", "ba", "aé"].map(String::from));
        let texts: Vec<Option<String>> = texts.map(Some).collect();
        let first = texts.len() as u32;
        let end = TokenId(first + 3);
        let special = texts.iter().cloned().chain((0..4).map(|_| None));
        let spelled = texts.iter().cloned().chain((0..3).map(|n| Some(private(n)))).chain([None]);
        let by_number = over(
            replaced(&grammar, &places, |n| Regex::Tokens(TokenPattern::numbers(first + n..=first + n))),
            Vocabulary::new(special, [end]).unwrap(),
        );
        let by_text = over(
            replaced(&grammar, &places, |n| Regex::literal(&private(n))),
            Vocabulary::new(spelled, [end]).unwrap(),
        );
        let mut tokens = Vec::new();
        for choice in choices {
            let next = allowed(&by_number, &tokens);
            prop_assert_eq!(&next, &allowed(&by_text, &tokens), "after {:?}", tokens);
            let next: Vec<_> = next.into_iter().filter(|&token| token != end.0).collect();
            if next.is_empty() {
                break;
            }
            tokens.push(*choice.get(&next));
        }
    }
}
