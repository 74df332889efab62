//! Grammars within Lark grammars, and lexemes by context.

use std::sync::Arc;

use palmette_grammar_parser::{
    Budget, EmbedError, Grammar, GrammarBuilder, Lexing, Recognizer, RecognizerLimits,
};
use palmette_grammar_syntax::lark::{LarkOptions, parse, parse_with_budget};
use palmette_testkit::grammar::Machine;
use proptest::prelude::*;

fn accepts(grammar: &Grammar, text: &str) -> bool {
    Machine::new(grammar).unwrap().accepts(text)
}

#[track_caller]
fn check(source: &str, valid: &[&str], invalid: &[&str]) {
    let grammar = parse(source, &LarkOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    for text in valid {
        assert!(accepts(&grammar, text), "{text:?} is refused by\n{source}");
    }
    for text in invalid {
        assert!(!accepts(&grammar, text), "{text:?} is accepted by\n{source}");
    }
}

#[track_caller]
fn refused(source: &str, message: &str) {
    let error = parse(source, &LarkOptions::default()).expect_err(source).to_string();
    assert!(error.contains(message), "{message:?} is not in:\n{error}");
}

#[test]
fn integers_between_two_numbers() {
    refused("start: %regex {\"integer_between\": [2, 1]}", "no integer is between 2 and 1");
    for wrong in
        ["[1]", "[1, 2, 3]", "[0, 1.5]", "[0, 1e3]", "[\"0\", 1]", "{}", "[0, 9223372036854775808]"]
    {
        refused(
            &format!("start: %regex {{\"integer_between\": {wrong}}}"),
            "a list of two integers",
        );
    }
}

proptest! {
    /// Digits are read as an integer between the bounds by the standard library, or refused.
    #[test]
    fn integers_between_are_those_of_the_standard_library(
        low in -1100_i64..1100,
        size in 0_i64..1100,
        texts in prop::collection::vec("-?[0-9]{1,5}", 1..40),
    ) {
        let high = low + size;
        let source = format!("start: %regex {{\"integer_between\": [{low}, {high}]}}");
        let grammar = parse(&source, &LarkOptions::default()).unwrap();
        let machine = Machine::new(&grammar).unwrap();
        let near = [low - 1, low, low + 1, high - 1, high, high + 1].map(|at| at.to_string());
        for text in texts.iter().chain(&near) {
            let value: i64 = text.parse().unwrap();
            let expected = value.to_string() == *text && (low..=high).contains(&value);
            prop_assert_eq!(machine.accepts(text), expected, "{} in {}..={}", text, low, high);
        }
    }
}

/// After these terminals nothing can follow, and after no others.
#[test]
fn terminals_that_nothing_can_follow_are_told() {
    let stuck = |source: &str| {
        let grammar = parse(source, &LarkOptions::default()).unwrap();
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).unwrap();
        let terminals = made.grammar().terminals();
        let name =
            |terminal: palmette_grammar_parser::TerminalId| &*terminals[terminal.index()].name;
        let found = made.dead_ends();
        assert!(found.are_excluded, "{source}");
        let shown = found.stuck.iter().map(|found| {
            let followers: Vec<_> = found.followers.iter().copied().map(name).collect();
            format!("{} < {}", name(found.terminal), followers.join(" "))
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(stuck("start: NAME \"x\"\nNAME: /[a-z]+/"), "NAME < X");
    assert_eq!(stuck("start: NAME \"x\"\nNAME: /[a-z]+/\n%ignore \" \""), "");
    assert_eq!(stuck("start: NAME (\"x\" | \"!\")\nNAME: /[a-z]+/"), "");
    assert_eq!(stuck("start: NAME \"x\"?\nNAME: /[a-z]+/"), "", "the text may end there");
    assert_eq!(stuck("start: key \"7\"\nkey: \"k\" WORD\nWORD: /[a-z0-9]+/"), "WORD < \"7\"");
    assert_eq!(
        stuck("start: TEXT \"end\" | \"<\" NAME \">\"\nTEXT: /.+/s\nNAME: /[a-z]+/"),
        "TEXT < END, LESSTHAN < NAME"
    );
    assert_eq!(stuck("start: \"if\" NAME \";\" | NAME \";\"\nNAME: /[a-z]+/"), "IF < NAME");
}

/// A rule for each number, of which those are made that are reached.
#[test]
fn parametric_rules() {
    let counted = r#"
        start: aa::0
        aa::_: "b" aa::incr(_) %if lt(_, 3) | bb::_
        bb::_: "a" bb::incr([0:8]) %if le([0:8], 2) | "c" end::bit_and(1)
        end::_: "odd" %if true | "even" %if or(is_zeros(_), false_::0)
        false_::_: "x" %if and(true, ge(_, 1))
    "#;
    refused(counted, "after the name of a function");
    let counted =
        counted.replace("or(is_zeros(_), false_::0)", "or(is_zeros(_), bit_count_gt(_, 9))");
    check(
        &counted.replace("%if true", "%if ne(_, 0)").replace("false_", "unused"),
        &["ceven", "bcodd", "baceven", "aaceven", "bbbcodd"],
        &["bceven", "codd", "bbbbc", "bacodd"],
    );
}

#[test]
fn parametric_rules_that_are_wrong() {
    refused("start: p\np::_: \"a\"", "`p` is a rule for each number: give it one, `p::0`");
    refused("start: p::0\np: \"a\"", "`p` has no number: define it as `p::_: …`");
    refused("start: q::0", "`q` is used but not defined");
    refused("start: p::incr(_)\np::_: \"a\"", "the rule that it stands in, which has none");
    refused("start: \"a\" %if bit_set(1)", "the rule that it stands in, which has none");
    refused("start: p::0\np::_: \"a\" %if bit_set(64)", "there is no bit 64");
    refused("start: p::0\np::_: \"a\" %if is_ones([4:2])", "bits 4 to 2 are none");
    refused("start: p::0\np::_: \"a\" %if odd(_)", "there is no such condition");
    refused("start: p::18446744073709551616\np::_: \"a\"", "a number below 2^64");
    refused("start: p::twice(_)\np::_: \"a\"", "set_bit(k)");
    refused("start: p::0\np::_: \"a\" p::incr(_) | \"b\"", "limit `template_instances`");
    refused("start: A\nA: p::0\np::_: \"a\"", "`p` is a rule: a terminal is built of");
}

/// Of a lazy rule no lexeme begins another.
#[test]
fn attributes_of_rules() {
    refused("start: t\nt[stop=\"x\"]: /a/", "there is no attribute `stop` here");
    refused("start: t\nt[lazy]: u\nu: \"a\"", "`u` is a rule: a terminal is built of");
    refused("start: t\nt[lazy: \"a\"", "to close the attributes");
    for count in ["=x", "=-1", "=1.5", "=1e3", "=4294967296", ""] {
        let source = format!("start: t\nt[max_tokens{count}]: /a/");
        refused(&source, "max_tokens is a whole number");
    }
    refused("start: t\nt[max_tokens=1, max_tokens=2]: /a/", "given twice");
    let read = |source: &str| {
        parse_with_budget(source, &LarkOptions::default(), &mut Budget::unlimited()).unwrap()
    };
    let without = [
        ("start: t\nt[max_tokens=12]: u\nu: \"a\" u?", "`u` is built of itself"),
        ("start: t\nt[max_tokens=12]: \"a\" t?", "`t` is built of itself"),
        ("start: t\nt[max_tokens=12]: u{\"a\"}\nu{x}: x", "`u` is a template"),
        ("start: t\nt[max_tokens=12]: u::0\nu::_: \"a\"", "`u` is a rule for each number"),
        ("start: t\nt[max_tokens=12]: u\nu: <[7]>", "`u` has the token <[7]> within"),
        ("start: t\nt[max_tokens=12]: u\nu: %json {}", "`u` has a grammar within"),
    ];
    for (source, why) in without {
        let (grammar, warnings) = read(source);
        assert!(warnings.len() == 1 && warnings[0].message.contains(why), "{warnings:?}");
        assert!(grammar.token_limits().is_empty());
    }
    refused("start: t\nt[max_tokens=12]: u\nu: v", "`v` is used but not defined");
    refused("start: t\nt[max_tokens=12]: /a/\n%extend t[max_tokens=1]: /b/", "write it there");
    for (source, what) in [("temperature=0.5", "temperature"), ("capture=\"x\"", "capture")] {
        let (_, warnings) = read(&format!("start: t\nt[{source}]: /a/"));
        let said = format!("`{what}` has no effect");
        assert!(warnings.len() == 1 && warnings[0].message.contains(&said), "{warnings:?}");
    }
    let inner = "start: t\nt[max_tokens=12]: u \"c\"\nu[max_tokens=3]: /a+/";
    let within = "start: A B\nA[max_tokens=1]: /a+/\nB: A \",\" A";
    let blanks = "start: \"a\" \"b\"\nWS[max_tokens=1]: / +/\n%ignore WS";
    for (source, said) in [
        (within, "the limit on the tokens of `A` does not hold within"),
        (inner, "the limit on the tokens of `u` does not hold within"),
        (blanks, "any number of them"),
    ] {
        let (_, warnings) = read(source);
        assert!(warnings.len() == 1 && warnings[0].message.contains(said), "{warnings:?}");
    }
    // Limits are kept through grammars within grammars.
    let sources = [
        "start: t\nt[max_tokens=12]: /a+/",
        "start: t \";\"\nt[max_tokens=12, suffix=\".\"]: /a+/",
        "start: %lark { start: T\nT[max_tokens=12]: /a+/ }",
        "start: t u\nt[max_tokens=12]: u v \";\"\nu: v | A\nv: A \",\" | \"x\"\nA: /a+/",
        "start: t\nt[max_tokens=12]: A & ~B\nA: /a+/\nB: \"aa\"",
        "start: t\nt[max_tokens=12]: /a/\n%extend t: /b/",
    ];
    for source in sources {
        let (grammar, warnings) = read(source);
        assert!(warnings.is_empty(), "{warnings:?}");
        let limits: Vec<u32> =
            grammar.token_limits().iter().map(|limit| limit.tokens.get()).collect();
        assert_eq!(limits, [12], "{source}");
    }
    // No token, no text.
    let (grammar, _) = read("start: \"x\" t\nt[max_tokens=0]: /a+/");
    assert!(grammar.token_limits().is_empty());
}

#[test]
fn errors_name_the_place_and_the_way_out() {
    refused("start: %json {\"type\": \"text\"}", "line 1, column 8: in this schema");
    refused("start: %json {\"type\": \"object\"", "it is none");
    refused(
        "start: %lark { start: b }",
        "in this grammar: line 1, column 9: `b` is used but not defined",
    );
    refused("start: %lark { start: \"}\" ", "not closed");
    refused("start: %regex {\"words\": \"a\"}", "substring_words");
    refused("start: A\nA: %json {}", "no part of a terminal");
    refused("start: %yaml {}", "`%json {…}`");
    let deep =
        (0..20).fold("start: \"a\"".to_owned(), |inner, _| format!("start: %lark {{ {inner} }}"));
    refused(&deep, "more than 8 deep");
    let longest = LarkOptions::default().with_lexing(Lexing::Longest);
    let error = parse("start: %json {}", &longest).unwrap_err().to_string();
    assert!(error.contains("contextual lexing"), "{error}");
}

#[test]
fn warnings_of_a_schema_within_are_given() {
    let source = "start: %json {\"type\": \"string\", \"fromat\": \"date\"}";
    let (_, warnings) =
        parse_with_budget(source, &LarkOptions::default(), &mut Budget::unlimited()).unwrap();
    assert!(warnings.iter().any(|warning| warning.message.contains("fromat")), "{warnings:?}");
}

#[test]
fn what_depends_on_more_than_its_own_text_is_not_embedded() {
    let longest =
        parse("start: \"a\"", &LarkOptions::default().with_lexing(Lexing::Longest)).unwrap();
    assert_eq!(GrammarBuilder::new().embed(&longest), Err(EmbedError::Longest));
}
