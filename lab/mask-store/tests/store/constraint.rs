//! The constraint with a store's masks: its laws, its masks beside the engine's, and its refusals.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_core::{Constraint, TokenId, TokenMask, Vocabulary};
use palmette_grammar::frontends::json_schema::JsonSchemaOptions;
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarSource, Lexing, PreparedVocabulary,
    Recognizer, RecognizerLimits, RecognizerScratch,
};
use palmette_mask_store::{RowCounts, Steps, StoreConstraint, StoreRefusal, StoreScratch};
use palmette_testkit::laws;

const SUM: &str = r#"
start: NAME "=" sum
sum: product ("+" product)*
product: value ("*" value)*
value: NUMBER | NAME | "(" sum ")"
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore " "
"#;

fn vocabulary() -> Arc<PreparedVocabulary> {
    let tokens = [
        "a", "b", "1", "2", "=", "+", "*", "(", ")", " ", "ab", "12", "((", "))", ") +", "a=",
        " = ", "+(", "1)", "{", "}", "\"", ":", ",", "[", "]", "\":", "{\"", "true", "\",\"",
    ];
    let end = TokenId(tokens.len() as u32);
    let texts = tokens.iter().map(Some).chain([None]);
    let vocabulary = Vocabulary::new(texts, [end]).expect("the end has no text");
    Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)))
}

fn lark(text: &str, lexing: Lexing) -> GrammarSource {
    let options = LarkOptions { lexing: Some(lexing), ..LarkOptions::default() };
    GrammarSource::Lark { text: text.to_owned(), options }
}

fn schema(text: &str) -> GrammarSource {
    GrammarSource::JsonSchema { text: text.to_owned(), options: JsonSchemaOptions::default() }
}

fn recognizer(source: &GrammarSource, vocabulary: &PreparedVocabulary) -> Arc<Recognizer> {
    let (grammar, _) = source.parse().expect("a grammar");
    let grammar = grammar.with_tokens_of(vocabulary.vocabulary()).expect("tokens that there are");
    let limits = RecognizerLimits::default();
    Arc::new(Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).expect("small"))
}

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "boolean"}}},
    "required": ["a"],
    "additionalProperties": false
}"#;

/// Grammars that the store reads.
fn read() -> Vec<GrammarSource> {
    let by_token = "start: (<[0]> | A)+ <[7]>\nA: \"ab\" | \"(\"";
    vec![
        lark(SUM, Lexing::Any),
        lark(SUM, Lexing::Longest),
        lark(by_token, Lexing::Any),
        schema(SCHEMA),
    ]
}

#[test]
fn laws_hold_after_every_step() {
    let vocabulary = vocabulary();
    for source in read() {
        for count in 0..=Steps::MAX {
            let recognizer = recognizer(&source, &vocabulary);
            let steps = Steps::first(count);
            let made = StoreConstraint::new(recognizer, Arc::clone(&vocabulary), steps);
            laws::check(&made.expect("it is read"), 7, 6, 12);
        }
    }
}

#[test]
fn masks_are_those_of_the_engine_after_every_step() {
    let vocabulary = vocabulary();
    let mut compared = 0;
    for source in read() {
        let recognizer = recognizer(&source, &vocabulary);
        let engine = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(&vocabulary));
        let stores = (0..=Steps::MAX).map(|count| {
            let steps = Steps::first(count);
            StoreConstraint::new(Arc::clone(&recognizer), Arc::clone(&vocabulary), steps)
        });
        let stores: Vec<_> = stores.map(|made| made.expect("it is read")).collect();
        let (mut scratch, mut of_store) = (GrammarScratch::default(), StoreScratch::default());
        let mut random = 1_u64;
        for _ in 0..40 {
            let mut state = engine.start();
            for _ in 0..14 {
                let [mut expected, mut stored] =
                    [0; 2].map(|_| TokenMask::new(engine.num_tokens()));
                engine.fill_mask(&state, &mut scratch, expected.as_words_mut()).expect("small");
                for (count, store) in stores.iter().enumerate() {
                    let mask = stored.as_words_mut();
                    store.fill_mask(&state, &mut of_store, mask).expect("small");
                    assert_eq!(stored, expected, "step {count} of {source:?} at {state:?}");
                    compared += 1;
                }
                if expected.is_empty() {
                    break;
                }
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let nth = (random >> 33) as usize % expected.count();
                let token = expected.iter().nth(nth).expect("below the count");
                engine.commit(&mut state, token, &mut scratch).expect("in the mask");
            }
        }
        let rows: Vec<usize> = stores.iter().map(|of| of.store().statistics().rows).collect();
        assert!(rows.is_sorted_by(|more, fewer| more >= fewer), "{rows:?} of {source:?}");
        assert!(stores.iter().all(|store| store.bytes() > 0));
    }
    assert!(compared > 2_000, "only {compared} masks were compared");
}

#[test]
fn rows_are_counted_by_step() {
    let vocabulary = vocabulary();
    let recognizer = recognizer(&lark(SUM, Lexing::Any), &vocabulary);
    let mut scratch = RecognizerScratch::default();
    let mut at = recognizer.start().cloned();
    let mut states = BTreeSet::new();
    for &byte in b"a=(1+b)" {
        let position = at.expect("it fits");
        states.extend(position.branches().iter().map(|branch| branch.lexer));
        at = recognizer.advance(&position, byte, &mut scratch).expect("small");
    }
    let counts = RowCounts::by_step(&recognizer, &vocabulary, &states).expect("it is read");
    assert_eq!(counts.len(), Steps::MAX + 1);
    assert!(counts.iter().all(|of| of.of_states.len() == states.len() && of.rows > 0));
    let rows: Vec<usize> = counts.iter().map(|counts| counts.rows).collect();
    assert!(rows.is_sorted_by(|more, fewer| more >= fewer) && rows[0] > rows[4], "{rows:?}");
    let none = RowCounts::by_step(&recognizer, &vocabulary, &Default::default()).expect("nothing");
    assert_eq!([none[0].rows, none[0].p50(), none[0].max()], [0; 3]);
}

#[test]
fn grammars_that_rows_cannot_read_are_refused_by_name() {
    let vocabulary = vocabulary();
    let contextual =
        "start: (NAME | IF NUMBER)+\nIF: \"if\"\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore \" \"";
    let limited = "start: name \")\"\nname[max_tokens=3]: /[a-z]+/";
    let set = "start: \"(\" SKU\nSKU: %catalog {\"name\": \"shop\", \"field\": \"id\"}";
    let text = r#"{"type": "object", "minProperties": 2}"#.to_owned();
    let options = JsonSchemaOptions { distinct_members: true, ..JsonSchemaOptions::default() };
    let cases = [
        (lark(contextual, Lexing::Contextual), StoreRefusal::ContextualLexing, "contextual lexing"),
        (
            GrammarSource::JsonSchema { text, options },
            StoreRefusal::DistinctNames,
            "distinct names",
        ),
        (lark(set, Lexing::Any), StoreRefusal::Sets, "sets that a grammar names"),
        (lark(limited, Lexing::Any), StoreRefusal::TokenLimits, "limits on the tokens"),
    ];
    for (source, refusal, words) in cases {
        let recognizer = recognizer(&source, &vocabulary);
        let made = StoreConstraint::new(recognizer, Arc::clone(&vocabulary), Steps::NONE);
        let Err(error) = made else { panic!("{source:?} is read") };
        assert_eq!(error, refusal, "{source:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}
