//! Substrings of documents in the front ends: slots with their rules, and what is refused.

use std::collections::HashSet;

use palmette_grammar::frontends::gbnf::{self, GbnfOptions};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::{Grammar, MemberSpelling, Slot, SlotKind, SubstringRule, SubstringUnit};

fn schema(source: &str) -> Result<Grammar, String> {
    json_schema::parse(source, &JsonSchemaOptions::default()).map_err(|error| error.to_string())
}

fn lark(source: &str) -> Result<Grammar, String> {
    lark::parse(source, &LarkOptions::default()).map_err(|error| error.to_string())
}

fn gbnf(source: &str) -> Result<Grammar, String> {
    gbnf::parse(source, &GbnfOptions::default()).map_err(|error| error.to_string())
}

#[track_caller]
fn check(grammar: Result<Grammar, String>, spelling: MemberSpelling, rule: SubstringRule) {
    let grammar = grammar.expect("a grammar");
    let [Slot { name, kind, field: None, filter: None, .. }] = grammar.slots() else {
        panic!("one slot of substrings, not {:?}", grammar.slots())
    };
    assert_eq!((&**name, *kind), ("doc", SlotKind::Documents(rule)));
    assert_eq!(grammar.slots()[0].spelling, spelling);
    assert_eq!(grammar.slots()[0].label(), "doc");
}

#[test]
fn substrings_are_named_with_their_rule() {
    let (json, raw) = (MemberSpelling::JsonString, MemberSpelling::Raw);
    let words = SubstringRule::default();
    let some = SubstringRule::new(SubstringUnit::Sentences, 20, Some(400)).expect("bounds");
    let chars = SubstringUnit::Chars.into();
    let object = r#"{"of": "doc", "unit": "sentences", "min": 20, "max": 400}"#;
    check(schema(r#"{"type": "string", "x-substring": "doc"}"#), json, words);
    check(schema(r#"{"type": "string", "x-substring": "doc.chars"}"#), json, chars);
    check(
        schema(&format!(r#"{{"type": ["string", "null"], "x-substring": {object}}}"#)),
        json,
        some,
    );
    check(lark(r#"start: "<" %substring {"of": "doc"} ">""#), raw, words);
    check(lark(&format!("start: \"<\" quote \">\"\nquote: %substring {object}")), raw, some);
    check(gbnf("root ::= <substring:doc>"), raw, words);
    check(gbnf("root ::= <substring:doc.chars> \"!\""), raw, chars);
}

/// Substrings by other rules are other sets; a catalog of the same name is another.
#[test]
fn slots_of_other_rules_are_others() {
    let string = |keyword: &str| format!(r#"{{"type": "string", {keyword}}}"#);
    let of = [
        string(r#""x-substring": {"of": "doc"}"#),
        string(r#""x-substring": {"of": "doc", "min": 2}"#),
        string(r#""x-substring": "doc""#),
        string(r#""x-catalog": "doc""#),
    ];
    let grammar = schema(&format!(r#"{{"prefixItems": [{}]}}"#, of.join(", "))).expect("a schema");
    let kinds: HashSet<SlotKind> = grammar.slots().iter().map(|slot| slot.kind).collect();
    let longer = SubstringRule::new(SubstringUnit::Words, 2, None).expect("bounds");
    let expected = [
        SlotKind::Documents(SubstringRule::default()),
        SlotKind::Documents(longer),
        SlotKind::Catalog,
    ];
    assert_eq!((kinds, grammar.slots().len()), (HashSet::from(expected), 3));
}

#[test]
fn what_is_no_substring_is_refused() {
    const BESIDE: &str = "stands beside another condition on the same string";
    for (keywords, words) in [
        (r#""x-substring": "doc", "maxLength": 4"#, BESIDE),
        (r#""x-substring": "doc", "x-catalog": "s""#, BESIDE),
        (r#""x-substring": {}"#, "\"of\" names"),
        (r#""x-substring": {"of": "d c"}"#, "\"d c\" is no name of documents"),
        (r#""x-substring": {"of": 7}"#, "\"of\" is a string"),
        (
            r#""x-substring": {"of": "doc", "unit": "lines"}"#,
            "\"lines\" is no unit of substrings; units are chars, words, sentences",
        ),
        (r#""x-substring": {"of": "doc", "min": 0}"#, "`min` is 1 or more"),
        (r#""x-substring": {"of": "doc", "min": 5, "max": 4}"#, "at least 5 and at most 4"),
        (r#""x-substring": {"of": "doc", "max": 2.5}"#, "\"max\" is an integer from 1"),
        (r#""x-substring": {"of": "doc", "least": 4}"#, "\"least\" is no member here"),
        (r#""x-substring": ["doc"]"#, "\"of\" names"),
    ] {
        let error = schema(&format!(r#"{{"type": "string", {keywords}}}"#)).expect_err(keywords);
        assert!(error.contains(words) && error.contains("x-substring"), "{keywords}: {error}");
    }
    let not = schema(r#"{"not": {"type": "string", "x-substring": "doc"}}"#).unwrap_err();
    assert!(not.contains("all strings but its members"), "{not}");
    let integer = schema(r#"{"type": "integer", "x-substring": "doc"}"#).unwrap_err();
    assert!(integer.contains("\"type\": \"string\""), "{integer}");
    for (source, words) in [
        ("root ::= <substring:>", "is no name of documents"),
        ("root ::= <substring:a.b>", "\"b\" is no unit of substrings"),
        ("root ::= <substring:a", "`<substring:name.unit>`"),
    ] {
        let error = gbnf(source).expect_err(source);
        assert!(error.contains(words), "{source}: {error}");
    }
    for (object, words) in
        [("{}", "\"of\" names"), ("{\"of\": \"a\", \"max\": \"b\"}", "an integer")]
    {
        let error = lark(&format!("start: %substring {object}")).expect_err(object);
        assert!(error.contains(words), "{object}: {error}");
    }
}
