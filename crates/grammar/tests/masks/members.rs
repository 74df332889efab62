//! Members of bound sets as terminals: masks against every token tried, and against the list of
//! spellings in the grammar.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::gbnf::{self, GbnfOptions};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions, Whitespace};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::{
    BindError, Budget, CompileError, Grammar, GrammarConstraint, GrammarScratch, GrammarState,
    Lexing, MaskBudget, PrecomputeLimits, PreparedVocabulary, Recognizer, RecognizerLimits,
    SetBinding, Slot,
};
use palmette_testkit::member_sets::NaiveSet;
use proptest::prelude::*;

/// Grammars in GBNF with two sets.
const GRAMMARS: [&str; 9] = [
    r#"root ::= "<" <catalog:s> ">" "#,
    r#"root ::= <catalog:s>"#,
    r#"root ::= <catalog:s> <catalog:s>"#,
    r#"root ::= ("(" <catalog:s> ":" <catalog:t> ")")* "#,
    r#"root ::= <catalog:s> ("," <catalog:s>)* | <catalog:t> "." "#,
    r#"root ::= "a" <catalog:s> | "ab" <catalog:t> | [a-c]+ "." "#,
    r#"root ::= [a-c]* <catalog:s> [b-d]*"#,
    r#"root ::= x "!" x ::= <catalog:s> | x <catalog:t> | "(" x ")""#,
    r#"root ::= (<catalog:s> | <catalog:s> <catalog:s> | [ab]){1,4}"#,
];

const TOKENS: [&str; 30] = [
    "a", "b", "c", "d", "ab", "abc", "bc", "ba", "ca", "(", ")", ":", ",", ".", "!", "<", ">",
    "(a", "a)", "<a", "b>", "a:b", "),(", "a,b", ".", "aa", "bb", "cc", "b,", "c!",
];

fn vocabulary() -> Arc<PreparedVocabulary> {
    vocabulary_of(&TOKENS)
}

/// A vocabulary of these texts and an end token.
fn vocabulary_of(texts: &[&str]) -> Arc<PreparedVocabulary> {
    let end = TokenId(texts.len() as u32);
    let vocabulary = Vocabulary::new(texts.iter().map(Some).chain([None]), [end]).expect("texts");
    Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)))
}

fn constraint(grammar: Grammar, vocabulary: &Arc<PreparedVocabulary>) -> GrammarConstraint {
    GrammarConstraint::new(ready(grammar), Arc::clone(vocabulary))
}

/// A constraint whose masks are the definition's.
fn walking(grammar: Grammar, vocabulary: &Arc<PreparedVocabulary>) -> GrammarConstraint {
    GrammarConstraint::by_walking(ready(grammar), Arc::clone(vocabulary))
}

fn ready(grammar: Grammar) -> Arc<Recognizer> {
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    Arc::new(recognizer.expect("sound"))
}

/// The mask of a state by the engine alone, which may not walk instead.
fn explored(
    constraint: &GrammarConstraint,
    state: &GrammarState,
    scratch: &mut GrammarScratch,
) -> Vec<u32> {
    let mut mask = vec![!0; mask::num_words(constraint.num_tokens())];
    let work = MaskBudget { walk: 0, ..MaskBudget::unlimited() };
    constraint.fill_mask_within(state, scratch, &mut mask, &work).expect("small");
    mask
}

fn filled(
    constraint: &GrammarConstraint,
    state: &GrammarState,
    scratch: &mut GrammarScratch,
) -> Vec<u32> {
    let mut mask = vec![!0; mask::num_words(constraint.num_tokens())];
    constraint.fill_mask(state, scratch, &mut mask).expect("small");
    mask
}

fn read(source: &str) -> Grammar {
    gbnf::parse(source, &GbnfOptions::default()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn naive(texts: &BTreeSet<String>) -> SetBinding {
    let members = texts.iter().zip(0..).map(|(text, id)| (id, text.clone().into_bytes()));
    Arc::new(NaiveSet::raw(members))
}

fn bind(
    constraint: &GrammarConstraint,
    s: &BTreeSet<String>,
    t: &BTreeSet<String>,
) -> Result<GrammarConstraint, BindError> {
    constraint.bind(|slot| Ok(naive(if slot.name == "s" { s } else { t })))
}

/// The grammar with the texts of the sets in place of the sets.
fn listed(source: &str, s: &BTreeSet<String>, t: &BTreeSet<String>) -> Grammar {
    let list = |texts: &BTreeSet<String>| {
        let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        // No text at all, where a set is empty.
        match texts.is_empty() {
            true => "nothing".to_owned(),
            false => format!("({})", texts.join(" | ")),
        }
    };
    let source = source.replace("<catalog:s>", &list(s)).replace("<catalog:t>", &list(t));
    read(&format!("{source}\nnothing ::= nothing \"x\"\n"))
}

fn texts() -> impl Strategy<Value = BTreeSet<String>> {
    prop::collection::btree_set("[abc(),.!]{1,4}", 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Masks along random texts: those of every token tried, and of the grammar that lists the
    /// texts.
    #[test]
    fn masks_are_those_of_the_listed_texts(
        which in 0..GRAMMARS.len(),
        s in texts(),
        t in texts(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 8),
        ahead: bool,
    ) {
        let vocabulary = vocabulary();
        let open = constraint(read(GRAMMARS[which]), &vocabulary);
        if ahead {
            open.precompute(&PrecomputeLimits::default(), &AtomicBool::new(false)).expect("small");
        }
        // Another binding of the same grammar leaves nothing of its sets.
        if let Ok(other) = bind(&open, &t, &s) {
            explored(&other, &other.start(), &mut GrammarScratch::default());
        }
        let listed = constraint(listed(GRAMMARS[which], &s, &t), &vocabulary);
        let bound = match bind(&open, &s, &t) {
            Ok(bound) => bound,
            Err(BindError::Empty { empty }) => {
                prop_assert!(!empty.is_empty());
                prop_assert!(listed.recognizer().start().is_none());
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        let slow = bind(&walking(read(GRAMMARS[which]), &vocabulary), &s, &t).expect("it was bound");
        let (mut one, mut other, mut slowly) = (bound.start(), listed.start(), slow.start());
        let mut scratch = (GrammarScratch::default(), GrammarScratch::default());
        let mut text = Vec::new();
        for choice in choices {
            let masks = [explored(&bound, &one, &mut scratch.0), filled(&listed, &other, &mut scratch.1)];
            prop_assert_eq!(&masks[0], &filled(&slow, &slowly, &mut scratch.0));
            let of = |mask: &[u32]| mask::iter(mask).map(|token| token.0).collect::<Vec<_>>();
            prop_assert_eq!(of(&masks[0]), of(&masks[1]), "after {:?}", String::from_utf8_lossy(&text));
            for token in (0..bound.num_tokens() as u32).map(TokenId) {
                let taken = bound.commit(&mut one.clone(), token, &mut scratch.0).is_ok();
                prop_assert_eq!(taken, mask::contains(&masks[0], token), "{:?}", token);
            }
            let allowed: Vec<TokenId> = mask::iter(&masks[0]).filter(|token| token.index() < TOKENS.len()).collect();
            if allowed.is_empty() {
                break;
            }
            let token = allowed[choice.index(allowed.len())];
            bound.commit(&mut one, token, &mut scratch.0).expect("allowed");
            slow.commit(&mut slowly, token, &mut scratch.0).expect("allowed");
            listed.commit(&mut other, token, &mut scratch.1).expect("allowed");
            text.extend_from_slice(TOKENS[token.index()].as_bytes());
            // Members of the text are texts of their sets at their places.
            let members = bound.members(&text, &mut scratch.0).expect("small").expect("live");
            for member in &members {
                let written = String::from_utf8(text[member.span.clone()].to_vec()).expect("ASCII");
                let set = if bound.slots()[member.slot.index()].name == "s" { &s } else { &t };
                prop_assert_eq!(set.iter().position(|text| *text == written), Some(member.member.0 as usize));
            }
            prop_assert!(members.is_sorted_by(|one, other| one.span.end <= other.span.start));
        }
    }
}

/// Schemas with two sets, `S` and `T` in the place of their conditions.
const SCHEMAS: [&str; 8] = [
    r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", S}, "c": {"type": "string", T}}, "required": ["b"]}"#,
    r#"{"type": "array", "items": {"anyOf": [{"type": "array", "items": {"type": "string", S}}, {"type": "string", "maxLength": 2}]}}"#,
    r#"{"type": "object", "properties": {"a": {"type": "string", S}, "b": {"type": ["string", "null"], T}}, "required": ["a"],
        "additionalProperties": false}"#,
    r#"{"type": "array", "items": {"type": "string", S}, "maxItems": 3}"#,
    r#"{"anyOf": [{"type": "string", S}, {"type": "string", T}, {"type": "boolean"}]}"#,
    r##"{"$defs": {"s": {"type": "string", S, "title": "x"}}, "type": "array", "prefixItems": [{"$ref": "#/$defs/s"}, {"type": "string", T}]}"##,
    r#"{"oneOf": [{"type": "string", S}, {"type": "integer"}]}"#,
    r#"{"type": "object", "additionalProperties": {"allOf": [{"type": "string"}, {"type": "string", S}]}, "maxProperties": 2}"#,
];

const JSON_TOKENS: [&str; 34] = [
    "{", "}", "[", "]", "\"", ":", ",", " ", "a", "b", "c", "ab", "abc", "true", "null", "1",
    "\":", "\",", "\"}", "{\"", "\":\"", "\",\"", "\"a", "a\"", "b\",", "\\", "\\\"", "\\n", "n",
    "\"\\", "false", "0", "u", "[\"",
];

fn schema_of(source: &str, conditions: [String; 2]) -> Grammar {
    let [s, t] = conditions;
    let schema = source.replace('S', &s).replace('T', &t);
    let options = JsonSchemaOptions { whitespace: Whitespace::Compact, ..Default::default() };
    json_schema::parse(&schema, &options).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Strings of a schema that are members of sets: as if the schema listed them.
    #[test]
    fn schemas_with_sets_are_those_with_lists(
        which in 0..SCHEMAS.len(),
        s in prop::collection::btree_set("[abcn ]{1,3}", 1..5),
        t in prop::collection::btree_set("[abc]{1,3}", 1..5),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 14),
    ) {
        let vocabulary = vocabulary_of(&JSON_TOKENS);
        let named = |name: &str| format!("\"x-catalog\": \"{name}.id\"");
        let list = |texts: &BTreeSet<String>, null: &str| {
            let texts: Vec<String> = texts.iter().map(|text| serde_json::to_string(text).expect("a text")).collect();
            format!("\"enum\": [{}{null}]", texts.join(", "))
        };
        let with_null = if SCHEMAS[which].contains("null") { ", null" } else { "" };
        let open = constraint(schema_of(SCHEMAS[which], [named("s"), named("t")]), &vocabulary);
        let listed = constraint(schema_of(SCHEMAS[which], [list(&s, ""), list(&t, with_null)]), &vocabulary);
        let naive = |texts: &BTreeSet<String>| -> SetBinding {
            let members = texts.iter().zip(0..).map(|(text, id)| (id, text.clone().into_bytes()));
            Arc::new(NaiveSet::json_strings(members))
        };
        let bound = open.bind(|slot| Ok::<_, BindError>(naive(if slot.name == "s" { &s } else { &t }))).expect("texts");
        let (mut one, mut other) = (bound.start(), listed.start());
        let mut scratch = (GrammarScratch::default(), GrammarScratch::default());
        let mut text = Vec::new();
        for choice in choices {
            let ours = explored(&bound, &one, &mut scratch.0);
            let theirs = filled(&listed, &other, &mut scratch.1);
            let shown = |mask: &[u32]| mask::iter(mask).map(|token| JSON_TOKENS.get(token.index())).collect::<Vec<_>>();
            prop_assert_eq!(shown(&ours), shown(&theirs), "after {}", String::from_utf8_lossy(&text));
            let allowed: Vec<TokenId> = mask::iter(&ours).filter(|token| token.index() < JSON_TOKENS.len()).collect();
            if allowed.is_empty() {
                break;
            }
            let token = allowed[choice.index(allowed.len())];
            bound.commit(&mut one, token, &mut scratch.0).expect("allowed");
            listed.commit(&mut other, token, &mut scratch.1).expect("allowed");
            text.extend_from_slice(JSON_TOKENS[token.index()].as_bytes());
        }
    }
}

/// Masks over a real vocabulary along texts with sets, lengths, choices and any whitespace: those of
/// the walk.
#[test]
fn masks_over_a_real_vocabulary_are_those_of_the_walk() {
    const SCHEMA: &str = r#"{"type": "object", "required": ["why", "items"], "additionalProperties": false, "properties": {
        "why": {"type": "string", "maxLength": 30}, "note": {"type": "string", "pattern": "^[a-z ]*$"},
        "items": {"type": "array", "items": {"anyOf": [{"type": "string", "x-catalog": "s"}, {"type": "number"},
            {"type": "object", "properties": {"id": {"type": "string", "x-catalog": "t"}}, "required": ["id"]}]}}}}"#;
    let texts = [
        r#"{"why": "a quiet \"fan\", 30 W","items":["P0074","\"x\"",{"id":"fan"},4.5, {"id": "fan heater"}]}"#,
        r#"{"note":"none","why":"","items":[{"id":"f","n":[1]},"P0075"]}"#,
    ];
    let vocabulary = palmette_vocabulary::load("r50k_base").expect("it is built in").vocabulary;
    let vocabulary = Arc::new(PreparedVocabulary::new(vocabulary));
    let schema = json_schema::parse(SCHEMA, &JsonSchemaOptions::default()).expect("sound");
    let set = |texts: &[&str]| -> SetBinding {
        let members = (0..).zip(texts).map(|(id, text)| (id, text.as_bytes().to_vec()));
        Arc::new(NaiveSet::json_strings(members))
    };
    let (s, t) =
        (set(&["P0074", "P0075", "P01", "\"x\"", ","]), set(&["f", "fan", "fan heater", "\"}"]));
    let bound = |open: GrammarConstraint| {
        let sets =
            |slot: &Slot| Ok::<_, BindError>(Arc::clone(if slot.name == "s" { &s } else { &t }));
        open.bind(sets).expect("texts")
    };
    let (fast, slow) = (constraint(schema.clone(), &vocabulary), walking(schema, &vocabulary));
    let (fast, slow) = (bound(fast), bound(slow));
    let (scratch, slow_scratch) = (&mut GrammarScratch::default(), &mut GrammarScratch::default());
    for text in texts {
        let (mut one, mut other) = (fast.start(), slow.start());
        for (at, byte) in text.bytes().enumerate() {
            let found = explored(&fast, &one, scratch);
            let expected = filled(&slow, &other, slow_scratch);
            let differing: Vec<_> = mask::iter(&found)
                .filter(|&token| !mask::contains(&expected, token))
                .chain(mask::iter(&expected).filter(|&token| !mask::contains(&found, token)))
                .map(|token| String::from_utf8_lossy(vocabulary.vocabulary().text(token)))
                .collect();
            assert_eq!(differing, [""; 0], "after {}", &text[..at]);
            fast.commit_bytes(&mut one, &[byte], scratch).expect("it fits");
            slow.commit_bytes(&mut other, &[byte], slow_scratch).expect("it fits");
        }
        assert!(fast.is_accepting(&one, scratch).expect("small"), "{text}");
    }
}

/// Members after a string of limited length, in tokens that hold the end of the one and the
/// beginning of the other: where the string would be too long, the token does not count.
#[test]
fn members_begin_after_strings_that_are_not_too_long() {
    let letters = ["a", "b", ",", "(", ")"];
    let mut texts: Vec<String> = letters.map(str::to_owned).into();
    let mut from = 0;
    for _ in 0..4 {
        let until = texts.len();
        let longer =
            texts[from..until].iter().flat_map(|text| letters.map(|last| format!("{text}{last}")));
        let longer: Vec<String> = longer.collect();
        texts.extend(longer);
        from = until;
    }
    for length in 5..12 {
        texts.extend(
            ["a,b", "b,ab", ",a", ",ab)", "a,ba)"].map(|end| "ab".repeat(length / 2) + end),
        );
    }
    texts.sort();
    texts.dedup();
    let vocabulary = vocabulary_of(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let source =
        r#"root ::= "(" [ab]{0,9} "," <catalog:s> ")" | "(" [ab]{0,7} "," <catalog:t> "b)" "#;
    let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let (s, t) = (set(&["b", "ab", "ba"]), set(&["a", "aa"]));
    let fast = bind(&constraint(read(source), &vocabulary), &s, &t).expect("texts");
    let slow = bind(&walking(read(source), &vocabulary), &s, &t).expect("texts");
    let (mut one, mut other) = (fast.start(), slow.start());
    let (scratch, slow_scratch) = (&mut GrammarScratch::default(), &mut GrammarScratch::default());
    for byte in *b"(abbaabab,ba)" {
        assert_eq!(explored(&fast, &one, scratch), filled(&slow, &other, slow_scratch));
        fast.commit_bytes(&mut one, &[byte], scratch).expect("it fits");
        slow.commit_bytes(&mut other, &[byte], slow_scratch).expect("it fits");
    }
}

/// Bytes that a set forces follow at once.
#[test]
fn the_only_member_left_is_forced() {
    let open = constraint(read(r#"root ::= "<" <catalog:s> ">" "#), &vocabulary());
    let set: BTreeSet<String> = ["abba", "abca", "c"].map(str::to_owned).into();
    let bound = bind(&open, &set, &set).expect("texts");
    let (mut state, scratch) = (bound.start(), &mut GrammarScratch::default());
    for (text, forced) in [("", "<"), ("<", ""), ("a", "b"), ("b", ""), ("c", "a>")] {
        bound.commit_bytes(&mut state, text.as_bytes(), scratch).expect("it fits");
        let found = bound.forced_bytes(&state, 10, scratch).expect("small");
        assert_eq!(String::from_utf8(found).unwrap(), forced, "after {text}");
    }
    assert_eq!(bound.forced_bytes(&state, 1, scratch).expect("small"), b"a");
}

/// What a set cannot be asked before it is bound is refused at its place.
#[test]
fn conditions_beside_a_set_are_refused() {
    const BESIDE: &str = "stands beside another condition on the same string";
    for (schema, words) in [
        (r#"{"type": "string", "x-catalog": "s", "maxLength": 4}"#, BESIDE),
        (r#"{"type": "string", "x-catalog": "s", "pattern": "^a"}"#, BESIDE),
        (r#"{"type": "string", "x-catalog": "s", "enum": ["a"]}"#, BESIDE),
        (r#"{"allOf": [{"type": "string", "x-catalog": "s"}, {"minLength": 2}]}"#, BESIDE),
        (
            r#"{"allOf": [{"type": "string", "x-catalog": "s"}, {"type": "string", "x-catalog": "t"}]}"#,
            BESIDE,
        ),
        (
            r#"{"oneOf": [{"type": "string", "x-catalog": "s"}, {"type": "string", "x-catalog": "t"}]}"#,
            BESIDE,
        ),
        (r#"{"not": {"type": "string", "x-catalog": "s"}}"#, "all strings but its members"),
        (r#"{"x-catalog": "s"}"#, "\"type\": \"string\""),
        (r#"{"type": "integer", "x-catalog": "s"}"#, "\"type\": \"string\""),
        (r#"{"type": "string", "x-catalog": {}}"#, "\"name\""),
        (
            r#"{"type": "object", "propertyNames": {"type": "string", "x-catalog": "s"}}"#,
            "names an object may have",
        ),
    ] {
        let error = json_schema::parse(schema, &JsonSchemaOptions::default()).expect_err(schema);
        let error = error.to_string();
        assert!(error.contains(words) && error.contains("x-catalog"), "{schema}: {error}");
    }
}

#[test]
fn members_of_a_text_are_told_with_their_places() {
    let vocabulary = vocabulary();
    let open = constraint(read(r#"root ::= ("(" <catalog:s> ":" <catalog:t> ")")* "#), &vocabulary);
    let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let bound = bind(&open, &set(&["ab", "c"]), &set(&["a", "aa", "b"])).expect("sets");
    let scratch = &mut GrammarScratch::default();
    let members = bound.members(b"(c:aa)(ab:b", scratch).unwrap().unwrap();
    let shown: Vec<_> =
        members.iter().map(|of| (of.slot.0, of.member.0, of.span.clone())).collect();
    // The last one may go on as nothing else, and has not ended before the bracket is there.
    assert_eq!(shown, [(0, 1, 1..2), (1, 1, 3..5), (0, 0, 7..9)]);
    assert_eq!(bound.members(b"(c:aa)(ab:b)", scratch).unwrap().unwrap().len(), 4);
    assert!(bound.members(b"(x", scratch).unwrap().is_none());
    assert!(open.members(b"(c", scratch).unwrap().unwrap().is_empty());
}

/// What members cannot be told from is refused when the grammar is made ready, with the way out.
#[test]
fn members_that_compete_are_refused() {
    let ready = |grammar: Grammar| {
        let limits = RecognizerLimits::default();
        Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited())
    };
    let parse = |source: &str| {
        let source = format!("{source}\nsku: %catalog {{\"name\": \"shop\"}}");
        lark::parse(&source, &LarkOptions::default()).unwrap_or_else(|error| panic!("{error}"))
    };
    let delimited = parse("start: \"<\" sku \">\"");
    assert!(ready(delimited.clone()).is_ok());
    assert!(ready(delimited.with_lexing(Lexing::Any)).is_ok());
    let longest = ready(delimited.with_lexing(Lexing::Longest));
    assert!(matches!(longest, Err(CompileError::LongestMembers { .. })), "{longest:?}");
    let contextual = ready(parse("start: /[a-z]+/ sku"));
    assert!(matches!(contextual, Err(CompileError::ContextualMembers { .. })), "{contextual:?}");
    let looking = ready(parse("start: /a(?=b)/ sku").with_lexing(Lexing::Any));
    assert!(matches!(looking, Err(CompileError::MemberAfterLookahead { .. })), "{looking:?}");
    for error in [longest, contextual, looking].map(|result| result.unwrap_err().to_string()) {
        assert!(error.starts_with("<shop> stands for members of a set"), "{error}");
    }
}

/// A name in capitals may stand for a set, as a rule may; it is no part of other terminals.
#[test]
fn a_terminal_of_lark_may_stand_for_a_set() {
    let parse = |source: &str| {
        let source = format!("{source}\nSKU: %catalog {{\"name\": \"s\", \"field\": \"id\"}}");
        lark::parse(&source, &LarkOptions::default()).map_err(|error| error.to_string())
    };
    let open = constraint(parse("start: \"<\" SKU \">\"").expect("sound"), &vocabulary());
    assert_eq!(open.slots()[0].label(), "s");
    let set: BTreeSet<String> = ["ab", "c"].map(str::to_owned).into();
    let bound = bind(&open, &set, &set).expect("texts");
    let members = bound.members(b"<ab>", &mut GrammarScratch::default()).expect("small");
    assert_eq!(members.expect("it fits").len(), 1);
    for source in ["start: OTHER\nOTHER: \"a\" SKU", "start: \"a\"\n%ignore SKU"] {
        let error = parse(source).expect_err(source);
        assert!(error.contains("`SKU` stands for members of a set"), "{error}");
    }
    let error =
        lark::parse("start: SKU\nSKU.2: %catalog {\"name\": \"s\"}", &LarkOptions::default());
    assert!(error.expect_err("a priority").to_string().contains("leave the priority out"));
}

#[test]
fn references_that_name_no_catalog_are_refused() {
    for (source, words) in [
        (r#"root ::= <catalog:>"#, "is no name of a catalog"),
        (r#"root ::= <catalog:a.>"#, "a.id"),
        (r#"root ::= <catalog:a"#, "<catalog:name.field>"),
        (r#"root ::= <catalog:a b>"#, "is no name of a catalog"),
    ] {
        let error = gbnf::parse(source, &GbnfOptions::default()).expect_err(source).to_string();
        assert!(error.contains(words), "{source}: {error}");
    }
    for (object, words) in [
        ("{}", "\"name\""),
        ("{\"name\": 7}", "is a string"),
        ("{\"name\": \"a\", \"fields\": \"b\"}", "\"fields\" is no member here"),
        ("{\"name\": \"a b\"}", "is no name of a catalog"),
    ] {
        let source = format!("start: %catalog {object}");
        let error = lark::parse(&source, &LarkOptions::default()).expect_err(&source).to_string();
        assert!(error.contains(words), "{source}: {error}");
    }
}

/// A grammar whose sets are not bound has no mask: an error names the set.
#[test]
fn an_open_grammar_has_no_masks() {
    let open = constraint(read(r#"root ::= "<" <catalog:s.title> ">" "#), &vocabulary());
    let mut row = vec![!0; mask::num_words(open.num_tokens())];
    let error = open.fill_mask(&open.start(), &mut GrammarScratch::default(), &mut row);
    assert!(error.unwrap_err().to_string().contains("s.title is not bound"));
    assert!(mask::is_empty(&row));
}

/// The source of sets has errors of its own; a set without members takes its alternatives with it.
#[test]
fn a_source_of_sets_may_have_errors_of_its_own() {
    #[derive(Debug)]
    enum Error {
        Bind(BindError),
        Unknown(String),
    }
    impl From<BindError> for Error {
        fn from(error: BindError) -> Self {
            Self::Bind(error)
        }
    }
    let open = constraint(read(r#"root ::= <catalog:s> | "b" "#), &vocabulary());
    let unknown = open.bind(|slot| Err(Error::Unknown(slot.label())));
    assert!(matches!(unknown, Err(Error::Unknown(name)) if name == "s"));
    // An alternative is left where a set is empty.
    let bound = open.bind(|_| Ok::<_, Error>(naive(&BTreeSet::new()))).expect("a text is left");
    let scratch = &mut GrammarScratch::default();
    assert!(bound.commit(&mut bound.start(), TokenId(1), scratch).is_ok());
    assert!(bound.commit(&mut bound.start(), TokenId(0), scratch).is_err());
    let alone = constraint(read("root ::= <catalog:s>"), &vocabulary());
    let none = alone.bind(|_| Ok::<_, Error>(naive(&BTreeSet::new())));
    assert!(matches!(none, Err(Error::Bind(BindError::Empty { empty })) if empty == ["s"]));
}
