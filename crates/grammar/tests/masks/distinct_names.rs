//! Masks of grammars that remember names: exact, and no text gets stuck.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, PropertyOrder, parse};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};
use palmette_testkit::laws;
use proptest::prelude::*;

use palmette_testkit::json::schemas;

/// Schemas whose objects remember their names.
const SCHEMAS: &[&str] = &[
    r#"{"type":"object","additionalProperties":{"enum":[1]},"minProperties":2,"maxProperties":4}"#,
    r#"{"type":"object","propertyNames":{"pattern":"^(x|y+|[ab]y|é)$"},"minProperties":3,"maxProperties":5,
        "additionalProperties":{"enum":[1]}}"#,
    r#"{"type":"object","properties":{"a":{"enum":[1]},"ab":{"enum":[1]},"b":{"enum":[1]},"x":{"enum":[1]},"xy":{"enum":[1]}},
        "required":["a","ab","b","x","xy"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"enum":[1]},"ab":{"enum":[1]},"b":{"enum":[1]},"x":{"enum":[1]},"xy":{"enum":[1]}},
        "additionalProperties":false,"minProperties":3}"#,
    r##"{"type":"object","properties":{"a":{"enum":[1]},"b":{"anyOf":[{"enum":[1]},{"$ref":"#"}]}},"minProperties":2,
        "additionalProperties":{"enum":[1]},"maxProperties":3}"##,
    r#"{"anyOf":[{"type":"object","properties":{"a":{"enum":[1]}},"minProperties":3,"additionalProperties":{"enum":[1]},"maxProperties":3},
        {"type":"object","properties":{"b":{"enum":[1,11]}},"not":{"additionalProperties":{"enum":[1]}},"maxProperties":2,
            "additionalProperties":{"enum":[1,11]}}]}"#,
    r#"{"type":"object","properties":{"a":{"enum":[1,11]},"ab":{"enum":[1,11]},"b":{"enum":[1,11]},"x":{"enum":[1,11]},"xy":{"enum":[1,11]}},
        "additionalProperties":false,"not":{"additionalProperties":{"enum":[1]}}}"#,
];

const TOKENS: &[&str] = &[
    "{",
    "}",
    "\"",
    ":",
    ",",
    "1",
    "a",
    "b",
    "x",
    "y",
    " ",
    "\\",
    "u0079",
    "u00e9",
    "é",
    "{\"",
    "\":",
    "\":1",
    ",\"",
    ",\"a",
    ",\"a\":",
    "1,\"a\"",
    "1, \"x\":1",
    "ab\":1",
    "ab\"",
    "y\"",
    "\"}",
    "1}",
    ",\"x\":1,\"x",
    "{\"a\":1,\"",
    "{\"a\":1,\"a",
    "{\"y\":1,\"yy\":1",
    "1,\"y\":1,\"y\":",
    "x\" :",
    "\"a\"",
    "\"ab",
    "\\u0079",
    "\u{c3}",
    "yy",
    "[",
    "]",
    "[\"a",
    "\"]",
    ",\"a\",\"a\"",
];

fn recognizer(schema: &str) -> Arc<Recognizer> {
    let options = JsonSchemaOptions::default();
    let grammar = parse(schema, &options).unwrap_or_else(|error| panic!("{schema}: {error}"));
    assert!(grammar.distinct_names().is_some(), "{schema}");
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    Arc::new(recognizer.unwrap())
}

fn vocabulary() -> Arc<PreparedVocabulary> {
    let end = TokenId(TOKENS.len() as u32);
    let tokens = TOKENS.iter().copied().map(Some).chain([None]);
    let vocabulary = Arc::new(Vocabulary::new(tokens, [end]).unwrap());
    Arc::new(PreparedVocabulary::new(vocabulary))
}

fn constraint(schema: &str) -> GrammarConstraint {
    GrammarConstraint::new(recognizer(schema), vocabulary())
}

#[test]
fn laws_hold() {
    for schema in SCHEMAS {
        laws::check(&constraint(schema), 11, 40, 30);
    }
}

/// Arrays of up to three of more texts than have a terminal each.
#[test]
fn laws_hold_for_long_lists() {
    let mut texts = vec![String::new()];
    for at in 0.. {
        if texts[at].len() == 5 {
            break;
        }
        let longer = ["a", "b", "x", "y"].map(|letter| format!("{}{letter}", texts[at]));
        texts.extend(longer);
    }
    let listed = serde_json::json!({ "enum": texts });
    let schema = format!(
        r#"{{"type": "array", "items": {listed}, "uniqueItems": true, "minItems": 2, "maxItems": 3}}"#
    );
    laws::check(&constraint(&schema), 5, 40, 20);
}

/// Every byte, and pieces of members.
fn bytes_and_pieces() -> Arc<PreparedVocabulary> {
    let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte]));
    let pieces = TOKENS.iter().filter(|piece| piece.len() > 1);
    let pieces = pieces.map(|piece| Some(piece.as_bytes().to_vec()));
    let tokens: Vec<Option<Vec<u8>>> = bytes.chain(pieces).chain([None]).collect();
    let end = TokenId(tokens.len() as u32 - 1);
    Arc::new(PreparedVocabulary::new(Arc::new(Vocabulary::new(tokens, [end]).unwrap())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Names of all objects are remembered that have any to count, or that require some.
    #[test]
    fn laws_hold_for_random_schemas(schema in schemas(), seed in any::<u64>()) {
        let order = PropertyOrder::Any { max_tracked: 0 };
        let options = JsonSchemaOptions { order, ..JsonSchemaOptions::default() };
        let Ok(grammar) = parse(&schema.to_string(), &options) else { return Ok(()) };
        if grammar.distinct_names().is_none() {
            return Ok(());
        }
        let limits = RecognizerLimits::default();
        let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        let constraint = GrammarConstraint::new(Arc::new(recognizer.unwrap()), bytes_and_pieces());
        laws::check(&constraint, seed, 4, 24);
    }
}

#[test]
fn masks_by_walking_and_by_reference_are_the_same() {
    for schema in SCHEMAS {
        let (recognizer, vocabulary) = (recognizer(schema), vocabulary());
        let walk = GrammarConstraint::by_walking(Arc::clone(&recognizer), Arc::clone(&vocabulary));
        let constraint = GrammarConstraint::new(recognizer, vocabulary);
        let mut scratch = GrammarScratch::default();
        for seed in 0..40_usize {
            let mut state = constraint.start();
            for step in 0..30_usize {
                let mut row = vec![0; mask::num_words(constraint.num_tokens())];
                let mut walked = row.clone();
                constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
                walk.fill_mask(&state, &mut scratch, &mut walked).unwrap();
                assert_eq!(row, walked, "{schema}");
                let allowed: Vec<TokenId> = mask::iter(&row).collect();
                let by_reference = constraint.mask(&state, &mut scratch).unwrap();
                assert_eq!(by_reference.words(), row);
                if allowed.is_empty() {
                    break;
                }
                let token = allowed[(seed * 31 + step * step * 7 + step) % allowed.len()];
                constraint.commit(&mut state, token, &mut scratch).unwrap();
            }
        }
    }
}

#[test]
fn names_that_must_follow_are_forced() {
    let constraint = constraint(SCHEMAS[2]);
    let mut scratch = GrammarScratch::default();
    let mut state = constraint.start();
    let text = br#"{"xy":1,"a":1,"b":1,"ab":1"#;
    constraint.commit_bytes(&mut state, text, &mut scratch).unwrap();
    constraint.commit_bytes(&mut state, b",\"", &mut scratch).unwrap();
    let forced = constraint.forced_bytes(&state, 2, &mut scratch).unwrap();
    assert_eq!(forced, b"x\"");
    constraint.commit_bytes(&mut state, b"x\":1", &mut scratch).unwrap();
    assert!(constraint.commit_bytes(&mut state, b",", &mut scratch).is_err());
}
