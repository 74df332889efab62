//! Lengths of numbers: what the usual policy leaves out, and that conditions stay exact within it.

use std::sync::Arc;

use palmette_grammar_parser::{Budget, Recognizer, RecognizerLimits, RecognizerScratch};
use palmette_grammar_syntax::json_schema::{Digits, JsonSchemaOptions, parse};
use palmette_testkit::grammar::Machine;

use super::keywords::{check, check_with};

fn any() -> JsonSchemaOptions {
    JsonSchemaOptions { digits: Digits::Any, ..JsonSchemaOptions::default() }
}

#[test]
fn numbers_do_not_run_away() {
    let (long, zeros) = ("2".repeat(300), "0".repeat(300));
    let (small, padded) = (format!("0.{long}"), format!("1.{zeros}"));
    let exponent = format!("1e{zeros}1");
    let inside = ["42", "-0", "9223372036854775807", "18446744073709551615", "1.0"];
    let outside = [&*long, &padded, "1e5000", "1.5e309", "1e-5000"];
    for schema in [
        r#"{"type":"integer"}"#,
        r#"{"type":"number"}"#,
        "{}",
        r#"{"type":"integer","minimum":-5}"#,
        r#"{"type":["string","integer"]}"#,
        r#"{"type":"number","multipleOf":1}"#,
    ] {
        check(schema, &inside, &outside);
    }
    check(r#"{"type":"number"}"#, &["0.1", "1e308", "2.5E-10"], &[&*small, &exponent]);
    check(
        r#"{"type":"number","exclusiveMinimum":0}"#,
        &["0.1", "1e-300"],
        &[&*small, "1e400", "0", "1e-400"],
    );
    check(r#"{"const":1}"#, &["1", "1.0", "1e0"], &[&*padded, &*exponent]);
    check(r#"{"enum":[1,2.5]}"#, &["2.50"], &[&*format!("2.5{zeros}")]);
    check_with(&any(), r#"{"type":"integer"}"#, &[&*long, &padded], &[]);
    check_with(
        &any(),
        r#"{"type":"number"}"#,
        &[&*long, &padded, &small, &exponent, "1e5000"],
        &[],
    );
}

#[test]
fn what_a_schema_asks_for_is_allowed_whatever_its_length() {
    let long = format!("1{}", "0".repeat(80));
    check(&format!(r#"{{"type":"integer","minimum":{long}}}"#), &[&*long], &["5"]);
    check(&format!(r#"{{"const":{long}1}}"#), &[&*format!("{long}1")], &["5"]);
    check(r#"{"type":"number","multipleOf":1e-60}"#, &[&*format!("0.{}1", "0".repeat(59))], &[]);
}

/// Of a divisor with many remainders the digits are counted by its own automaton, so that no end is
/// lost.
#[test]
fn multiples_of_great_numbers_end() {
    for (divisor, multiple) in [
        ("1001", "2002"),
        ("4096", "8192"),
        ("999999999989", "1999999999978"),
        ("1000.5", "2001"),
        ("12.345", "24.690"),
    ] {
        let long = format!("{divisor}{}", "0".repeat(60));
        let long = long.replace('.', "");
        check(
            &format!(r#"{{"type":"number","multipleOf":{divisor}}}"#),
            &[divisor, multiple, "0"],
            &["7", &*long],
        );
        check_with(
            &any(),
            &format!(r#"{{"type":"number","multipleOf":{divisor}}}"#),
            &[divisor, &*long],
            &["7"],
        );
    }
    let long = "3".repeat(60);
    check(r#"{"type":"integer","not":{"multipleOf":1009}}"#, &["3"], &["1009", "2018.0", &*long]);
    // Up to forty digits each multiple is there, and nothing leads to an end that there is not.
    let schema = r#"{"type":"integer","multipleOf":7919}"#;
    let grammar = parse(schema, &JsonSchemaOptions::default()).unwrap();
    let machine = Machine::new(&grammar).unwrap();
    let greatest = 10_u128.pow(38) / 7919 * 7919;
    for multiple in [greatest, greatest - 7919, 7919] {
        assert!(machine.accepts(&multiple.to_string()), "{multiple}");
        assert!(!machine.accepts(&(multiple + 1).to_string()), "{multiple} + 1");
    }
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).unwrap();
    let mut scratch = RecognizerScratch::default();
    let mut at = recognizer.start().unwrap().clone();
    for byte in "1".repeat(50).bytes() {
        let Some(next) = recognizer.advance(&at, byte, &mut scratch).unwrap() else { break };
        at = next;
        let mut goes_on = b'0'..=b'9';
        let goes_on =
            goes_on.any(|byte| recognizer.advance(&at, byte, &mut scratch).unwrap().is_some());
        assert!(goes_on || recognizer.is_accepting(&at, &mut scratch).unwrap());
    }
}

/// Within the lengths a condition allows the same texts as without.
#[test]
fn conditions_stay_exact() {
    let texts: Vec<String> = [
        "0", "-0", "7", "-12", "12", "99", "100", "101", "0.5", "-0.25", "12.50", "1e1", "1.2e1",
        "5e-1", "120", "1e300",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    for schema in [
        r#"{"type":"integer","minimum":7,"maximum":100}"#,
        r#"{"type":"integer","multipleOf":4}"#,
        r#"{"type":"number","multipleOf":0.25}"#,
        r#"{"type":"number","minimum":-12,"exclusiveMaximum":12.5}"#,
        r#"{"type":"number","not":{"multipleOf":3}}"#,
        r#"{"type":"number","exclusiveMinimum":0.25}"#,
        r#"{"enum":[12,0.5,100]}"#,
    ] {
        let machines = [JsonSchemaOptions::default(), any()]
            .map(|options| Machine::new(&parse(schema, &options).unwrap()).unwrap());
        for text in &texts {
            assert_eq!(machines[0].accepts(text), machines[1].accepts(text), "{schema}: {text}");
        }
    }
}
