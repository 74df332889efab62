//! Large enumerations as sets of the grammar's own: masks against those of the list.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{self, Escapes, JsonSchemaOptions, Whitespace};
use palmette_grammar::{
    BindError, Budget, GrammarConstraint, GrammarScratch, GrammarSource, GrammarState, MaskBudget,
    PrecomputeLimits, PreparedVocabulary, Recognizer, RecognizerLimits, SavedGrammar,
};
use palmette_testkit::{laws, member_sets::NaiveSet};
use proptest::prelude::*;

/// Schemas with two lists of texts, `S` and `T`.
const SCHEMAS: [&str; 9] = [
    r#"{"enum": [S]}"#,
    r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": [S]}, "c": {"enum": [T, null, 1]}}, "required": ["b"]}"#,
    r#"{"type": "array", "items": {"anyOf": [{"type": "array", "items": {"enum": [S]}}, {"type": "string", "maxLength": 2}]}}"#,
    r#"{"type": "array", "items": {"enum": [S]}, "maxItems": 3}"#,
    r#"{"type": "array", "items": {"enum": [S, T]}, "uniqueItems": true, "maxItems": 2}"#,
    r#"{"anyOf": [{"enum": [S, true]}, {"enum": [T]}]}"#,
    r##"{"$defs": {"s": {"enum": [S], "title": "x"}}, "type": "array", "prefixItems": [{"$ref": "#/$defs/s"}, {"enum": [T]}, {"$ref": "#/$defs/s"}]}"##,
    r#"{"oneOf": [{"enum": [S]}, {"enum": [T]}]}"#,
    r#"{"type": "object", "additionalProperties": {"enum": [S]}, "propertyNames": {"enum": [T]}, "maxProperties": 2}"#,
];

const TOKENS: [&str; 36] = [
    "{", "}", "[", "]", "\"", ":", ",", " ", "a", "b", "c", "ab", "abc", "true", "null", "1",
    "\":", "\",", "\"}", "{\"", "\":\"", "\",\"", "\"a", "a\"", "b\",", "\\", "\\\"", "\\n", "n",
    "\"\\", "false", "0", "u", "[\"", "é", "\\u00e9",
];

fn vocabulary() -> Arc<PreparedVocabulary> {
    let end = TokenId(TOKENS.len() as u32);
    let vocabulary = Vocabulary::new(TOKENS.iter().map(Some).chain([None]), [end]).expect("texts");
    Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)))
}

/// More texts than `max_listed` are a set.
fn options(max_listed: usize) -> JsonSchemaOptions {
    let whitespace = Whitespace::Compact;
    JsonSchemaOptions { max_listed, max_listed_bytes: usize::MAX, whitespace, ..Default::default() }
}

fn ready(schema: &str, options: &JsonSchemaOptions) -> Arc<Recognizer> {
    let grammar = json_schema::parse(schema, options);
    let grammar = Arc::new(grammar.unwrap_or_else(|error| panic!("{schema}: {error}")));
    let limits = RecognizerLimits::default();
    Arc::new(Recognizer::new(grammar, &limits, &mut Budget::unlimited()).expect("sound"))
}

fn constraint(schema: &str, max_listed: usize) -> GrammarConstraint {
    GrammarConstraint::new(ready(schema, &options(max_listed)), vocabulary())
}

/// The mask of a state by the engine alone, which may not walk instead.
fn explored(constraint: &GrammarConstraint, state: &GrammarState) -> Vec<u32> {
    let mut mask = vec![!0; mask::num_words(constraint.num_tokens())];
    let work = MaskBudget { walk: 0, ..MaskBudget::unlimited() };
    let scratch = &mut GrammarScratch::default();
    constraint.fill_mask_within(state, scratch, &mut mask, &work).expect("small");
    mask
}

fn list(texts: &BTreeSet<String>) -> String {
    let json = |text: &String| serde_json::to_string(text).expect("a text");
    texts.iter().map(json).collect::<Vec<_>>().join(", ")
}

fn shown(mask: &[u32]) -> Vec<Option<&&'static str>> {
    mask::iter(mask).map(|token| TOKENS.get(token.index())).collect()
}

/// Compares the masks of sets, by the engine and by walking, with those of a list, along tokens
/// that are allowed.
fn same_masks(
    sets: &GrammarConstraint,
    listed: &GrammarConstraint,
    choices: &[prop::sample::Index],
) -> Result<(), TestCaseError> {
    let recognizer = Arc::clone(sets.recognizer());
    let slow = GrammarConstraint::by_walking(recognizer, vocabulary());
    let mut states = [sets.start(), listed.start(), slow.start()];
    let scratch = &mut GrammarScratch::default();
    for choice in choices {
        let ours = explored(sets, &states[0]);
        for (other, state) in [(listed, &states[1]), (&slow, &states[2])] {
            let mut theirs = ours.clone();
            other.fill_mask(state, scratch, &mut theirs).expect("small");
            prop_assert_eq!(shown(&ours), shown(&theirs));
        }
        let text = |token: &TokenId| token.index() < TOKENS.len();
        let allowed: Vec<TokenId> = mask::iter(&ours).filter(text).collect();
        if allowed.is_empty() {
            break;
        }
        let token = allowed[choice.index(allowed.len())];
        for (constraint, state) in [sets, listed, &slow].into_iter().zip(&mut states) {
            constraint.commit(state, token, scratch).expect("allowed");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Texts that are written in one way as alternatives too: both grammars have one language.
    #[test]
    fn masks_are_those_of_the_list(
        which in 0..SCHEMAS.len(),
        s in prop::collection::btree_set("[abcn ]{0,3}", 2..7),
        t in prop::collection::btree_set("[abc]{1,3}", 2..7),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 14),
        ahead: bool,
    ) {
        let schema = SCHEMAS[which].replace('S', &list(&s)).replace('T', &list(&t));
        let few = constraint(&schema, 1);
        prop_assert!(few.slots().is_empty(), "nobody binds them");
        let many = constraint(&schema, usize::MAX);
        if ahead {
            few.precompute(&PrecomputeLimits::default(), &AtomicBool::new(false)).expect("small");
        }
        same_masks(&few, &many, &choices)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Texts of one spelling are a set where they are long, and those that may be escaped
    /// alternatives beside it.
    #[test]
    fn masks_of_texts_that_may_be_escaped_are_those_of_the_list(
        which in 0..SCHEMAS.len(),
        s in prop::collection::vec("[abc]{2,5}|[ab/é\"]{0,3}", 90),
        t in prop::collection::btree_set("[abc]{1,3}|[ab/é]{1,2}", 2..7),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 14),
    ) {
        let s: BTreeSet<String> = s.into_iter().collect();
        let schema = SCHEMAS[which].replace('S', &list(&s)).replace('T', &list(&t));
        let partly = JsonSchemaOptions { max_listed_bytes: 40, ..options(usize::MAX) };
        let partly = GrammarConstraint::new(ready(&schema, &partly), vocabulary());
        same_masks(&partly, &constraint(&schema, usize::MAX), &choices)?;
    }
}

fn takes(constraint: &GrammarConstraint, text: &str) -> bool {
    let (mut state, scratch) = (constraint.start(), &mut GrammarScratch::default());
    constraint.commit_bytes(&mut state, text.as_bytes(), scratch).is_ok()
        && constraint.is_accepting(&state, scratch).expect("small")
}

/// Every byte, and pieces of texts.
fn bytes_and_pieces() -> Arc<PreparedVocabulary> {
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let pieces = TOKENS.iter().filter(|piece| piece.len() > 1).map(|piece| piece.as_bytes().into());
    let tokens: Vec<Option<Vec<u8>>> = bytes.chain(pieces).map(Some).chain([None]).collect();
    let end = TokenId(tokens.len() as u32 - 1);
    Arc::new(PreparedVocabulary::new(Arc::new(Vocabulary::new(tokens, [end]).expect("texts"))))
}

#[test]
fn laws_hold() {
    for schema in SCHEMAS {
        let schema = schema.replace('S', r#""a", "", "ab", "é""#);
        let schema = schema.replace('T', r#""a", "c", "b\"""#);
        let recognizer = ready(&schema, &options(1));
        laws::check(&GrammarConstraint::new(recognizer, bytes_and_pieces()), 7, 10, 20);
    }
}

/// A set's texts are written in one way, those of a list with any escape that JSON has for what is
/// no printable ASCII.
#[test]
fn a_set_has_one_spelling() {
    let schema = r#"{"enum": ["a/b", "é", "\n", "\"", "", "a"]}"#;
    let (set, list) = (constraint(schema, 1), constraint(schema, usize::MAX));
    for text in [r#""a/b""#, r#""é""#, r#""\n""#, r#""\"""#, r#""""#, r#""a""#] {
        assert!(takes(&set, text) && takes(&list, text), "{text}");
    }
    for text in [r#""a\/b""#, r#""\u00e9""#, r#""\u000a""#, r#""\u0022""#] {
        assert!(!takes(&set, text) && takes(&list, text), "{text}");
    }
    assert!(!takes(&set, r#""b""#) && !takes(&list, r#""b""#));
    // Where any escape is asked for, they stay a list.
    let any = JsonSchemaOptions { escapes: Escapes::Any, ..options(1) };
    assert!(ready(schema, &any).source().slots().is_empty());
}

/// By itself, where the language is the same; what may be escaped is accepted in any way.
#[test]
fn long_lists_are_sets_of_what_has_one_spelling() {
    let titles = |num: usize| (0..num).map(|at| format!("Portable Water Bottle, {at:03} oz"));
    let own = |texts: BTreeSet<String>| {
        let schema = format!(r#"{{"enum": [{}]}}"#, list(&texts));
        let recognizer = ready(&schema, &JsonSchemaOptions::default());
        recognizer.source().own_sets().map(|set| set.len()).sum::<u64>()
    };
    assert_eq!([own(titles(100).collect()), own(titles(500).collect())], [0, 500]);
    let words = (0..500).map(|at| format!("w{at}"));
    let [ten, inches] = [10, 4_097].map(|num| (0..num).map(|at| format!("{at}\" Monitor")));
    assert_eq!(own(words.chain(ten.clone()).collect()), 0);
    assert_eq!(own(titles(500).chain(ten.clone()).collect()), 500);
    assert_eq!(own(inches.collect()), 4_097);
    let schema = format!(r#"{{"enum": [{}]}}"#, list(&titles(500).chain(ten).collect()));
    let recognizer = ready(&schema, &JsonSchemaOptions::default());
    let schema = GrammarConstraint::new(recognizer, vocabulary());
    for text in [r#""9\u0022 Monitor""#, r#""9\" Monitor""#, r#""Portable Water Bottle, 499 oz""#] {
        assert!(takes(&schema, text), "{text}");
    }
    assert!(!takes(&schema, r#""\u0050ortable Water Bottle, 499 oz""#));
}

#[test]
fn sets_of_a_request_are_bound_beside() {
    let schema = r#"{"type": "array", "prefixItems": [{"enum": ["b", "a", "c"]}, {"type": "string", "x-catalog": "shop"}]}"#;
    let open = constraint(schema, 2);
    let names = open.slots().iter().map(|slot| slot.label()).collect::<Vec<_>>();
    assert_eq!(names, ["shop"]);
    let shop = || Arc::new(NaiveSet::json_strings([(4, b"tea".to_vec())]));
    let bound = open.bind(|_| Ok::<_, BindError>(shop())).expect("a member");
    assert!(takes(&bound, r#"["a","tea"]"#));
    assert!(!takes(&bound, r#"["tea","tea"]"#) && !takes(&bound, r#"["a","a"]"#));
    let members = bound.members(br#"["a","tea"]"#, &mut GrammarScratch::default());
    let members = members.unwrap().expect("it is in the language");
    assert_eq!(members.iter().map(|of| (of.slot.0, of.member.0)).collect::<Vec<_>>(), [(0, 4)]);
}

#[test]
fn a_file_gives_the_sets_back() {
    let text = r#"{"type": "array", "items": {"enum": ["a", "ab", "c"]}}"#.to_owned();
    let source = GrammarSource::JsonSchema { text: text.clone(), options: options(2) };
    let made = constraint(&text, 2);
    let bytes = made.to_bytes(&source).expect("its source");
    let saved = SavedGrammar::from_bytes(bytes.into()).expect("sound");
    let limits = RecognizerLimits::default();
    let reopened = saved.compile(&vocabulary(), &limits, &mut Budget::unlimited()).expect("sound");
    for text in ["[]", r#"["ab","c"]"#] {
        assert!(takes(&reopened.constraint, text), "{text}");
    }
    assert!(!takes(&reopened.constraint, r#"["b"]"#));
    let state = reopened.constraint.start();
    assert_eq!(explored(&reopened.constraint, &state), explored(&made, &made.start()));
}

/// What is listed costs what it takes to read it.
#[test]
fn a_large_enumeration_is_a_set_by_itself() {
    let texts: BTreeSet<String> = (0..20_000).map(|at| format!("title {at}")).collect();
    let schema = format!(r#"{{"enum": [{}]}}"#, list(&texts));
    let recognizer = ready(&schema, &JsonSchemaOptions::default());
    let slots = recognizer.source().slots();
    assert_eq!((slots.len(), recognizer.source().open_slots().len()), (1, 0));
    assert_eq!(recognizer.source().own_sets().map(|set| set.len()).sum::<u64>(), 20_000);
    let constraint = GrammarConstraint::new(recognizer, vocabulary());
    assert!(takes(&constraint, r#""title 19999""#) && !takes(&constraint, r#""title 20000""#));
}
