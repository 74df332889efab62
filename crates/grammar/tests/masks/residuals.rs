//! Masks put together from pieces are those of a walk: JSON Schemas whose strings are counted,
//! restricted and escaped, over a vocabulary in which tokens begin and end anywhere. All grammars
//! share what is known of pieces, as in a server.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, GrammarState, Lexing, PrecomputeLimits,
    PreparedVocabulary, Recognizer, RecognizerLimits,
    frontends::{json_schema, lark},
    prepare_json,
};
use proptest::prelude::*;
use serde_json::json;

use palmette_testkit::json::{schemas, values};

const SCHEMAS: &[&str] = &[
    "true",
    r#"{"type": "string", "maxLength": 3}"#,
    r#"{"type": "string", "minLength": 2, "maxLength": 4}"#,
    r#"{"type": "string", "minLength": 3, "maxLength": 3}"#,
    r#"{"type": "string", "minLength": 1}"#,
    r#"{"type": "array", "items": {"type": "string", "maxLength": 12}}"#,
    r#"{"properties": {"a": {"type": "string", "maxLength": 1}, "ab": {"const": 1}, "b": {"type": "string"}}}"#,
    r#"{"properties": {"a": true, "aa": true}, "additionalProperties": {"type": "integer"}}"#,
    r#"{"properties": {"a": {"maxLength": 2}}, "required": ["a"], "additionalProperties": false}"#,
    r#"{"properties": {"aaa": {"enum": ["a", "ab", "b"]}, "aab": {"type": "number"}}}"#,
    r#"{"properties": {"aab1": {"const": 1}, "aaba": {"const": 1}, "abb": {"const": 1}}, "required": ["aab1", "aaba", "abb"], "additionalProperties": false}"#,
    r#"{"type": "string", "pattern": "^[ab]*1$"}"#,
    r#"{"type": "string", "pattern": "a+b", "maxLength": 5}"#,
    r#"{"type": "string", "pattern": "ab"}"#,
    r#"{"type": "string", "pattern": "b1|a\"a|\\\\"}"#,
    r#"{"type": "string", "pattern": "(\\w+1)+b?$"}"#,
    r#"{"type": "string", "pattern": "^b|[^a]b.*1"}"#,
    r#"{"type": "string", "pattern": "^[a-z]{9}$"}"#,
    r#"{"type": "string", "pattern": "^[ab1]{4,9}1$"}"#,
    r#"{"type": "string", "pattern": "^[^ ]+$"}"#,
    r#"{"type": "string", "pattern": "^\\S*b\\S*$", "maxLength": 9}"#,
    r#"{"type": "string", "pattern": "^[^b]*é[^b]*$"}"#,
    r#"{"type": "string", "pattern": "1{2}.1{2,3}", "maxLength": 7}"#,
    r#"{"type": "string", "pattern": "^(a|é)*$", "not": {"enum": ["aa", "aaa", "a"]}}"#,
    r#"{"type": "string", "format": "date-time"}"#,
    r#"{"type": "string", "format": "email"}"#,
    r#"{"type": "string", "format": "uri"}"#,
    r#"{"type": "array", "items": {"enum": ["a", "a\"b", "é", 1, 11, null]}}"#,
    r#"{"patternProperties": {"^a": {"maxLength": 2}}, "additionalProperties": false}"#,
    r#"{"anyOf": [{"maxLength": 2, "type": "string"}, {"type": "string", "pattern": "^aa"}]}"#,
    r#"{"type": "array", "items": {"type": "array", "maxItems": 2, "items": {"type": "integer", "minimum": 0, "maximum": 111}}}"#,
];

/// Terminals overlap, are ignored, end several times within a token, and in the last three compete
/// or look around.
const LARKS: &[&str] = &[
    "start: (A | B | AB)* \"1\"\nA: \"a\"+\nB: \"b\"\nAB: \"ab\" | \"a\" \"b\"*\n%ignore \" \"",
    "start: x+\nx: \"{\" x* \"}\" | T\nT: /[ab]{2,3}/ | /a{1,5}b/\n%ignore / +/",
    "start: (T \",\")* T\nT: /\"[^\"]*\"/ | /[ab1]+/",
    "start: (N \",\")+\nN: /a(?=[b,])/ | \"b\"",
    "start: (S \",\")+\nS: /\"[^\"]*(?<!b)\"/ | /b1?(?<=b1|[ab])/\n%ignore / +/\n%ignore / ?n +/",
];

/// All texts of up to three characters, and longer ones.
static TEXTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let alphabet = ["a", "b", "1", "\"", "\\", "n", ",", ":", " ", "{", "}", "é"];
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..3 {
        let until = texts.len();
        for at in from..until {
            for letter in alphabet {
                texts.push([&texts[at], letter.as_bytes()].concat());
            }
        }
        from = until;
    }
    let long = [
        "aaaa",
        "aaaaaaaa",
        "aaaaaaaaaaaaaaaa",
        "aaaaaaaa\"",
        "abab1\"",
        "\": \"",
        "\": \"a",
        "a\":\"b\",\"",
        "\",\"aa\":",
        "\"aa\": 1",
        "[[",
        "]]",
        "],[",
        "[\"",
        "\"]",
        "\\u00e9",
        "\\u00e9\\u00e9a",
        "null",
        "true",
        "111,",
        "1, 11",
        "  \"a",
        "    ",
        "\"a\",\"b\",",
        "ab1\"}",
        "-1.5e1",
        "{\"a\":",
        "a, a,",
    ];
    texts.extend(long.map(|text| text.as_bytes().to_vec()));
    texts.extend((0..=u8::MAX).map(|byte| vec![byte]));
    texts.remove(0);
    texts
});

static VOCABULARY: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| {
    let end = TokenId(TEXTS.len() as u32);
    let texts = TEXTS.iter().map(|text| Some(text.as_slice())).chain([None]);
    Arc::new(Vocabulary::new(texts, [end]).expect("the end has no text"))
});

static SHARED: LazyLock<Arc<PreparedVocabulary>> =
    LazyLock::new(|| Arc::new(PreparedVocabulary::new(Arc::clone(&VOCABULARY))));

static GRAMMARS: LazyLock<Vec<Arc<Recognizer>>> = LazyLock::new(|| {
    let schema = |source: &&str| {
        json_schema::parse(source, &json_schema::JsonSchemaOptions::default()).expect(source)
    };
    let lark = |source: &&str, lexing| {
        let options = lark::LarkOptions::default().with_lexing(lexing);
        lark::parse(source, &options).expect(source)
    };
    let any = LARKS.iter().map(|source| lark(source, Lexing::Any));
    let longest = LARKS.iter().map(|source| lark(source, Lexing::Longest));
    let contextual = LARKS.iter().map(|source| lark(source, Lexing::Contextual));
    let larks = any.chain(longest).chain(contextual);
    SCHEMAS.iter().map(schema).chain(larks).map(recognizer).collect()
});

fn recognizer(grammar: Grammar) -> Arc<Recognizer> {
    let limits = RecognizerLimits::default();
    let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    Arc::new(made.expect("a small grammar"))
}

/// Walks along tokens that `choices` picks, and compares each mask; some of what they need may be
/// found out ahead, within so many steps.
fn walk(
    recognizer: &Arc<Recognizer>,
    slices: &Arc<PreparedVocabulary>,
    choices: &[prop::sample::Index],
    ahead: Option<u64>,
) {
    let read = GrammarConstraint::new(Arc::clone(recognizer), Arc::clone(slices));
    if let Some(steps) = ahead {
        let limits = PrecomputeLimits { steps, ..PrecomputeLimits::default() };
        read.precompute(&limits, &AtomicBool::new(false)).expect("no limit of the grammar");
    }
    let walked = GrammarConstraint::by_walking(Arc::clone(recognizer), Arc::clone(slices));
    let (mut state, mut text) = (read.start(), Vec::new());
    for choice in choices {
        let allowed = compared(&read, &walked, &state, &text);
        if allowed.is_empty() {
            break;
        }
        let token = *choice.get(&allowed);
        read.commit(&mut state, token, &mut GrammarScratch::default()).unwrap();
        text.extend_from_slice(VOCABULARY.text(token));
    }
}

/// Follows a text as far as it is allowed, cut into tokens as `cuts` say, and compares each mask.
/// Gets where random tokens do not: to the end of closed objects and counted lists.
fn follow(
    recognizer: &Arc<Recognizer>,
    slices: &Arc<PreparedVocabulary>,
    text: &[u8],
    cuts: &[prop::sample::Index],
) {
    let read = GrammarConstraint::new(Arc::clone(recognizer), Arc::clone(slices));
    let walked = GrammarConstraint::by_walking(Arc::clone(recognizer), Arc::clone(slices));
    let (mut state, mut at, mut cuts) = (read.start(), 0, cuts.iter().cycle());
    loop {
        let allowed = compared(&read, &walked, &state, &text[..at]);
        let rest = &text[at..];
        let next: Vec<_> = allowed
            .into_iter()
            .filter(|&token| rest.starts_with(VOCABULARY.text(token)) && !rest.is_empty())
            .collect();
        let (false, Some(cut)) = (next.is_empty(), cuts.next()) else { break };
        let token = *cut.get(&next);
        read.commit(&mut state, token, &mut GrammarScratch::default()).unwrap();
        at += VOCABULARY.text(token).len();
    }
}

/// The tokens that may follow, which both say.
fn compared(
    read: &GrammarConstraint,
    walked: &GrammarConstraint,
    state: &GrammarState,
    text: &[u8],
) -> Vec<TokenId> {
    let num_words = mask::num_words(read.num_tokens());
    let (mut ours, mut theirs) = (vec![!0; num_words], vec![!0; num_words]);
    let mut scratch = GrammarScratch::default();
    read.fill_mask(state, &mut scratch, &mut ours).unwrap();
    walked.fill_mask(state, &mut scratch, &mut theirs).unwrap();
    let show = |row: &[u32], other: &[u32]| -> Vec<String> {
        let only = mask::iter(row).filter(|&token| !mask::contains(other, token));
        only.map(|token| String::from_utf8_lossy(VOCABULARY.text(token)).into_owned()).collect()
    };
    assert_eq!(
        (show(&ours, &theirs), show(&theirs, &ours)),
        (vec![], vec![]),
        "after {:?}",
        String::from_utf8_lossy(text)
    );
    mask::iter(&ours).collect()
}

/// Blanks after blanks are the same blanks: places within tokens of many are as many as these, not
/// their square on each stack.
#[test]
fn long_runs_of_blanks_take_little() {
    let source = "start: \"[\" [v (\",\" v)*] \"]\"\nv: start | A | T\nA: /a+/\nT: /\"[^\"]+\"/\n%ignore /[ n]+/";
    let grammar = lark::parse(source, &lark::LarkOptions::default()).unwrap();
    let blanks = (1..200).flat_map(|length| {
        ["", "a", "\"a", "],"].map(|after| Some([&vec![b' '; length], after.as_bytes()].concat()))
    });
    let texts: Vec<_> = blanks.chain(["[", "a", ",", "]"].map(|text| Some(text.into()))).collect();
    let end = TokenId(texts.len() as u32);
    let open = TokenId(end.0 - 4);
    let vocabulary = Vocabulary::new(texts.into_iter().chain([None]), [end]).unwrap();
    let slices = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
    let recognizer = recognizer(grammar);
    let read = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(&slices));
    let walked = GrammarConstraint::by_walking(recognizer, slices);
    let (mut state, mut scratch) = (read.start(), GrammarScratch::default());
    let mut rows = [(); 2].map(|()| vec![0; mask::num_words(read.num_tokens())]);
    for token in [open, open, TokenId(open.0 + 1), TokenId(0), TokenId(3)] {
        read.commit(&mut state, token, &mut scratch).unwrap();
        read.fill_mask(&state, &mut scratch, &mut rows[0]).unwrap();
        walked.fill_mask(&state, &mut scratch, &mut rows[1]).unwrap();
        assert_eq!(rows[0], rows[1]);
    }
    assert!(read.bytes() < 2 << 20, "{} bytes", read.bytes());
}

/// What names have in common is a part of each of them, also where the others are used up.
#[test]
fn names_that_begin_alike_are_told_apart() {
    let names = ["aab1", "aaba", "abb"];
    let schema = r#"{"additionalProperties": false, "required": ["aab1", "aaba", "abb"],
        "properties": {"aab1": {"const": 1}, "aaba": {"const": 1}, "abb": {"const": 1}}}"#;
    let grammar = json_schema::parse(schema, &json_schema::JsonSchemaOptions::default()).unwrap();
    let recognizer = recognizer(grammar);
    let walked = GrammarConstraint::by_walking(Arc::clone(&recognizer), Arc::clone(&SHARED));
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let read = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(&SHARED));
        let members = order.map(|at| format!("\"{}\":1", names[at]));
        let (mut state, mut text) = (read.start(), Vec::new());
        for byte in format!("{{{}}}", members.join(",")).into_bytes() {
            let allowed = compared(&read, &walked, &state, &text);
            let token = allowed.iter().find(|&&token| VOCABULARY.text(token) == [byte]);
            read.commit(
                &mut state,
                *token.expect("a text of the schema"),
                &mut GrammarScratch::default(),
            )
            .unwrap();
            text.push(byte);
        }
        compared(&read, &walked, &state, &text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Names that begin alike, as many of them required as there are, in any order.
    #[test]
    fn masks_of_closed_objects_are_those_of_a_walk(
        names in prop::collection::btree_set("[ab1]{1,5}", 1..6),
        required in any::<prop::sample::Index>(),
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
    ) {
        let names: Vec<String> = names.into_iter().collect();
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| (name.clone(), json!({"enum": [1, "a", null]}))).collect();
        let schema = json!({
            "properties": properties,
            "required": &names[..required.index(names.len() + 1)],
            "additionalProperties": false,
        });
        let options = json_schema::JsonSchemaOptions::default();
        let grammar = json_schema::parse(&schema.to_string(), &options).expect("a schema");
        let recognizer = recognizer(grammar);
        let values = ["1", "\"a\"", "null"].iter().cycle();
        let chosen = order.iter().filter_map(|&at| names.get(at)).zip(values);
        let members: Vec<_> = chosen.map(|(name, value)| format!("\"{name}\": {value}")).collect();
        let text = format!("{{{}}}", members.join(","));
        follow(&recognizer, &SHARED, text.as_bytes(), &cuts);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn masks_are_those_of_a_walk(
        grammar in 0..SCHEMAS.len() + 2 * LARKS.len(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 8),
        ahead in prop::option::of(0..100_000_u64),
    ) {
        walk(&GRAMMARS[grammar], &SHARED, &choices, ahead);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn what_was_asked_before_changes_no_mask(
        grammar in 0..SCHEMAS.len(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 6),
        prepared in any::<bool>(),
        ahead in prop::option::of(0..100_000_u64),
    ) {
        let slices = Arc::new(PreparedVocabulary::new(Arc::clone(&VOCABULARY)));
        if prepared {
            prepare_json(&slices);
        }
        walk(&GRAMMARS[grammar], &slices, &choices, ahead);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Several keywords together, of schemas within schemas.
    #[test]
    fn masks_of_random_schemas_are_those_of_a_walk(
        schema in schemas(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 8),
        ahead in prop::option::of(0..100_000_u64),
    ) {
        let options = json_schema::JsonSchemaOptions::default();
        // Nothing is valid for some, and some cannot be expressed: that is another test's matter.
        if let Ok(grammar) = json_schema::parse(&schema.to_string(), &options) {
            walk(&recognizer(grammar), &SHARED, &choices, ahead);
        }
    }

    /// The same along texts that may be valid, in whatever order their members are.
    #[test]
    fn masks_along_random_values_are_those_of_a_walk(
        schema in schemas(),
        values in prop::collection::vec(values(), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..20),
    ) {
        let options = json_schema::JsonSchemaOptions::default();
        if let Ok(grammar) = json_schema::parse(&schema.to_string(), &options) {
            let recognizer = recognizer(grammar);
            for value in values {
                follow(&recognizer, &SHARED, value.to_string().as_bytes(), &cuts);
            }
        }
    }
}
