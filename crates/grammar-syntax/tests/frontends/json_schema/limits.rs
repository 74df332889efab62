//! Schemas at the bounds of what is read: extreme numbers, long enumerations, long chains of
//! references.

use std::time::{Duration, Instant};

use palmette_grammar_parser::{Budget, Recognizer, RecognizerLimits};
use palmette_grammar_syntax::json_schema::{JsonSchemaOptions, parse, parse_with_budget};

use super::keywords::check;

/// Numbers of which one written out would fill the memory, and what is an instance beside what is
/// not.
#[test]
fn extreme_numbers_are_not_written_out() {
    let begin = Instant::now();
    for number in ["1e2000000000", "5e-2000000000", "1e4097", "-7.5e-4096"] {
        let (more, less) = match number.strip_prefix('-') {
            Some(size) => (format!("-0.{size}"), format!("-9{}", &size[1..])),
            None => (format!("9{}", &number[1..]), "-1".to_owned()),
        };
        check(&format!("{{\"const\": {number}}}"), &[number], &[&more, &less, "1"]);
        check(&format!("{{\"enum\": [1, {number}]}}"), &[number, "1"], &[&more, &less]);
        check(&format!("{{\"minimum\": {number}}}"), &[number, "9e2000000001"], &[&less]);
        check(&format!("{{\"exclusiveMaximum\": {number}}}"), &[&less], &[number, "9e2000000001"]);
        check(
            &format!(
                "{{\"items\": {{\"anyOf\": [{{\"const\": {number}}}, {{\"type\": \"null\"}}]}}}}"
            ),
            &[&format!("[null, {number}]")],
            &[&format!("[null, {less}]")],
        );
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "nothing is as large as the numbers are");
}

#[test]
fn exponents_beyond_all_use_are_an_error() {
    for schema in ["{\"const\": #}", "{\"items\": {\"minimum\": #}}", "{\"multipleOf\": #}"] {
        for number in ["1e99999999999", "-1e2147483648", "1e-99999999999999999999"] {
            let schema = schema.replace('#', number);
            let error =
                parse(&schema, &JsonSchemaOptions::default()).expect_err(&schema).to_string();
            assert!(error.contains(number) && error.contains("exponent"), "{schema}: {error}");
        }
    }
    let long = format!("{{\"minimum\": 0.{}}}", "3".repeat(500));
    let error = parse(&long, &JsonSchemaOptions::default()).expect_err("a long bound").to_string();
    assert!(error.contains("/minimum") && error.contains("500 digits"), "{error}");
}

/// Divisors of more states than an automaton could be given in full.
#[test]
fn multiples_are_told_by_their_digits() {
    for of in [997u64, 1_000, 3_600, 10_000, 10_007, 86_400, 999_983, 123_456_789] {
        let (valid, invalid): (Vec<u64>, Vec<u64>) = (0..40)
            .flat_map(|times| [of * times * times * 37, of * times + of / 2, of * times + 1])
            .partition(|number| number.is_multiple_of(of));
        let texts = |numbers: Vec<u64>| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
        let (valid, invalid) = (texts(valid), texts(invalid));
        let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
        let invalid: Vec<&str> = invalid.iter().map(String::as_str).collect();
        check(&format!("{{\"multipleOf\": {of}}}"), &valid, &invalid);
    }
}

/// The work of extreme numbers is bounded by the budget.
#[test]
fn long_numbers_stop_with_the_budget() {
    for schema in [
        "{\"multipleOf\": 1e-4000}",
        "{\"type\": \"number\", \"multipleOf\": 1e-9, \"minimum\": 0, \"maximum\": 0.5}",
        "{\"multipleOf\": 7e-4000, \"minimum\": 1e-4000}",
        "{\"const\": 1e4000}",
        "{\"minimum\": 1e2000000000, \"multipleOf\": 7e-2000000000}",
        "{\"allOf\": [{\"multipleOf\": 9973}, {\"multipleOf\": 999983}, {\"not\": {\"multipleOf\": 1e9}}]}",
        "{\"minimum\": 1e1999, \"multipleOf\": 3}",
    ] {
        let mut budget = Budget::new(1_000_000);
        let read = parse_with_budget(schema, &JsonSchemaOptions::default(), &mut budget);
        let Ok((grammar, _)) = read else { continue };
        let made = Recognizer::new(grammar.into(), &RecognizerLimits::default(), &mut budget);
        assert!(made.is_ok() || budget.spend(1_000_000).is_err(), "{schema}");
    }
}

/// Near a bound few digits are left, of which hardly any make a multiple: none is looked for one by
/// one.
#[test]
fn rare_multiples_below_a_bound() {
    let schema =
        r#"{"type":"integer","multipleOf":999999999989,"minimum":1,"maximum":1000000000000000}"#;
    check(
        schema,
        &["1999999999978", "999999999989000.00"],
        &["1234", "999999999990", "1000000000000001"],
    );
}

fn constants(count: usize, keyword: &str) -> String {
    let one = |at| {
        format!("{{\"const\": \"v{at}\", \"title\": \"T{at}\", \"description\": \"about {at}\"}}")
    };
    let all: Vec<String> = (0..count).map(one).collect();
    format!("{{\"{keyword}\": [{}]}}", all.join(","))
}

#[test]
fn constants_with_titles_are_an_enumeration() {
    for keyword in ["oneOf", "anyOf"] {
        check(
            &constants(5_000, keyword),
            &["\"v0\"", "\"v4999\""],
            &["\"v5000\"", "\"v\"", "\"T0\""],
        );
    }
}

#[test]
fn a_constant_of_two_alternatives_is_valid_for_neither() {
    let denied =
        r#"{"not": {"oneOf": [{"const": 1}, {"const": 1}, {"const": 2}]}, "type": "integer"}"#;
    check(denied, &["1", "3"], &["2"]);
}

#[test]
fn references_are_followed_however_long_the_chain() {
    let link = |at: usize| format!("\"d{at}\": {{\"$ref\": \"#/$defs/d{}\"}}", at + 1);
    let links: Vec<String> = (0..2_000).map(link).collect();
    let schema = format!(
        "{{\"$ref\": \"#/$defs/d0\", \"$defs\": {{{}, \"d2000\": {{\"type\": \"null\"}}}}}}",
        links.join(",")
    );
    check(&schema, &["null"], &["1"]);
    let circle = schema.replace("{\"type\": \"null\"}", "{\"$ref\": \"#/$defs/d0\"}");
    let error = parse(&circle, &JsonSchemaOptions::default()).unwrap_err().to_string();
    assert!(error.contains("refers to itself"), "{error}");
}

#[test]
fn patterns_of_python_and_rust_are_read() {
    let of = |pattern: &str| format!("{{\"type\": \"string\", \"pattern\": {pattern:?}}}");
    check(&of(r"(?i)^abc$"), &["\"ABC\"", "\"abC\""], &["\"abd\"", "\"abcd\""]);
    check(&of(r"\A[0-9]+\Z"), &["\"12\""], &["\"a12\"", "\"12b\"", "\"\""]);
    check(&of(r"\A[0-9]+\z"), &["\"12\""], &["\"a12\"", "\"12b\""]);
    check(&of(r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})$"), &["\"2026-01\""], &["\"26-01\""]);
    let error = parse(&of("(?i"), &JsonSchemaOptions::default()).unwrap_err().to_string();
    assert!(error.contains("the pattern"), "{error}");
}
