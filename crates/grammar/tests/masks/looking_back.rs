//! Terminals that look at the text before their lexemes: texts by the definition, and masks by the
//! recogniser's.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::lark::{LarkOptions, parse};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, Lexing, PreparedVocabulary, Recognizer,
    RecognizerLimits, RecognizerScratch,
};
use palmette_testkit::grammar::TextOracle;
use proptest::prelude::*;

const ALPHABET: [char; 4] = ['a', 'b', '-', ' '];

/// Terminals, most of which look back.
const TERMINALS: [&str; 12] = [
    r"/\bb\b/",
    r"/(?<=a)b/",
    r"/(?<!a)b+/",
    r"/(?<=a-)a/",
    r"/(?<![ab])a+/",
    r"/\Ba/",
    r"/(?<=-)[ab]+?(?= |$)/",
    r"/(?<= a)-/",
    "/a+/",
    "/[ab]+/",
    "/-/",
    "\"ab\"",
];

/// Rules over some terminals, with or without blanks between them.
fn grammar() -> impl Strategy<Value = Grammar> {
    let terminals = prop::sample::subsequence(TERMINALS.to_vec(), 3);
    let symbol = prop::sample::select(vec!["A", "B", "C", "rule", "A?", "B*"]);
    let rules = prop::collection::vec(prop::collection::vec(symbol, 1..4), 2..4);
    let lexing = prop::sample::select(vec![Lexing::Contextual, Lexing::Longest, Lexing::Any]);
    (terminals, rules, any::<bool>(), lexing).prop_map(|(terminals, rules, ignores, lexing)| {
        let body = |rule: &Vec<&str>| rule.join(" ");
        let rules: Vec<String> = rules.iter().map(body).collect();
        let mut source =
            format!("start: {}\nrule: {}\n  | A\n", rules[0], rules[1..].join("\n  | "));
        for (name, terminal) in ["A", "B", "C"].into_iter().zip(&terminals) {
            source += &format!("{name}: {terminal}\n");
        }
        if ignores {
            source += "%ignore \" \"\n";
        }
        let options = LarkOptions::default().with_lexing(lexing);
        parse(&source, &options).unwrap_or_else(|error| panic!("{source}\n{error}"))
    })
}

/// All texts of up to five characters.
fn texts() -> Vec<String> {
    let (mut all, mut from) = (vec![String::new()], 0);
    for _ in 0..5 {
        let until = all.len();
        for at in from..until {
            let longer = ALPHABET.map(|next| format!("{}{next}", all[at]));
            all.extend(longer);
        }
        from = until;
    }
    all
}

fn is_in(recognizer: &Recognizer, text: &str) -> bool {
    let (mut scratch, mut at) = (RecognizerScratch::default(), recognizer.start().cloned());
    for byte in text.bytes() {
        let Some(before) = &at else { return false };
        at = recognizer.advance(before, byte, &mut scratch).expect("within limits");
    }
    at.is_some_and(|at| recognizer.is_accepting(&at, &mut scratch).expect("within limits"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn texts_are_those_of_the_definition(grammar in grammar()) {
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar.clone()), &limits, &mut Budget::unlimited());
        let recognizer = made.expect("a small grammar");
        let definition = TextOracle::new(&grammar, &ALPHABET, 200);
        for text in texts() {
            if let Some(expected) = definition.contains(&text) {
                prop_assert_eq!(is_in(&recognizer, &text), expected, "{:?}: {:?}", text, grammar);
            }
        }
    }

    #[test]
    fn masks_are_those_of_the_recogniser(
        grammar in grammar(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 6),
    ) {
        let tokens = ["a", "b", "-", " ", "ab", "ba", "a b", "b-", "-a", " a", "bb", "- b", "a-a"];
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        let recognizer = Arc::new(made.expect("a small grammar"));
        let end = TokenId(tokens.len() as u32);
        let texts = tokens.map(Some).into_iter().chain([None]);
        let vocabulary = Arc::new(Vocabulary::new(texts, [end]).expect("a vocabulary"));
        let prepared = Arc::new(PreparedVocabulary::new(vocabulary));
        let constraint = GrammarConstraint::new(Arc::clone(&recognizer), prepared);
        let (mut scratch, mut state) = (GrammarScratch::default(), constraint.start());
        let mut row = vec![0; mask::num_words(constraint.num_tokens())];
        for choice in choices {
            constraint.fill_mask(&state, &mut scratch, &mut row).expect("within limits");
            let Some(position) = state.position() else { break };
            let mut allowed = Vec::new();
            for (token, id) in tokens.iter().zip(0..) {
                let mut reading = RecognizerScratch::default();
                let after = recognizer.advance_all(position, token.as_bytes(), &mut reading);
                let expected = after.expect("within limits").is_some();
                prop_assert_eq!(mask::contains(&row, TokenId(id)), expected, "{:?}", token);
                if expected {
                    allowed.push(TokenId(id));
                }
            }
            if allowed.is_empty() {
                break;
            }
            constraint.commit(&mut state, *choice.get(&allowed), &mut scratch).expect("allowed");
        }
    }
}

/// Lark's rule: what is before a lexeme is seen, blanks that are ignored too.
#[test]
fn a_boundary_at_the_beginning_sees_the_text_before() {
    for (source, inside, outside) in [
        (
            "start: NUMBER (AND NUMBER)*\nAND: /\\band\\b/i\nNUMBER: /[0-9]+/\n%ignore \" \"",
            &["1 and 2", "1 AND 2", "3"][..],
            &["1and 2", "1and2", "1 and2"][..],
        ),
        ("start: KEY \"=\" VALUE\nKEY: /[a-z]+/\nVALUE: /(?<==)[0-9]+/", &["a=1"], &["a=", "a1"]),
        (
            "start: (HASH | X | NL)+\nHASH: /(?m)^#/\nX: \"x\"\nNL: \"\\n\"",
            &["#x", "x\n#", "\n\n#\n#"],
            &["x#", "##"],
        ),
        (
            "start: (A | B)+\nA: /(?<=-)[ab]+?(?= |$)/\nB: \"-\"",
            &["-a", "--ab", "-"],
            &["a", "-a-", "ab"],
        ),
        (
            "start: (A | B)+\nA: \"a\"\nB: /(?<=aa|ba)b/",
            &["aab", "aabab", "a"],
            &["ab", "b", "aabb"],
        ),
    ] {
        let grammar = parse(source, &LarkOptions::default()).expect(source);
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        let recognizer = made.expect(source);
        assert!(!recognizer.lexer().looking_back().is_empty(), "{source}");
        for text in inside {
            assert!(is_in(&recognizer, text), "{source}\nhas {text:?}");
        }
        for text in outside {
            assert!(!is_in(&recognizer, text), "{source}\nhas not {text:?}");
        }
    }
}

/// Where the bytes of a lexeme decide all that is asked, masks are read from the automaton as ever.
#[test]
fn a_lookbehind_within_a_lexeme_does_not_look_back() {
    for source in [
        r#"start: /"[^"\n]*?(?<!\\)(\\\\)*?"/"#,
        r#"start: /".*?(?<!\\)(\\\\)*?"/ | /a(?<=a)b/ | /[a-z][a-z]+(?<!ab)/"#,
        r#"start: /\w+\b/ "x""#,
    ] {
        let grammar = parse(source, &LarkOptions::default()).expect(source);
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        assert!(made.expect(source).lexer().looking_back().is_empty(), "{source}");
    }
}
