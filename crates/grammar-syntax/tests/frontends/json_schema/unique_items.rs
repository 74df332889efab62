//! Arrays none of whose items comes twice: strings are remembered by the position, few other values
//! by the rules.

use palmette_grammar_parser::Budget;
use palmette_grammar_syntax::json_schema::{
    JsonSchemaOptions, parse_with_budget, parse_with_warnings,
};
use proptest::prelude::*;

use super::keywords::check;
use palmette_testkit::grammar::Machine;

#[test]
fn many_listed_values_are_told_apart() {
    let tags: Vec<String> = (0..200).map(|at| format!("\"tag{at}\"")).collect();
    let schema = format!(
        r#"{{"type": "array", "items": {{"enum": [{}]}}, "uniqueItems": true}}"#,
        tags.join(",")
    );
    let all = format!("[{}]", tags.join(","));
    let again = format!("[{},\"tag0\"]", tags.join(","));
    check(
        &schema,
        &["[]", "[\"tag7\",\"tag70\"]", &all],
        &["[\"tag7\",\"tag7\"]", &again, "[\"tag200\"]"],
    );
}

/// Schema of arrays of up to three of so many listed tags, none twice.
fn up_to_three_of(tags: usize) -> String {
    let tags: Vec<String> = (0..tags).map(|at| format!("\"tag{at}\"")).collect();
    let tags = tags.join(",");
    format!(
        r#"{{"type": "array", "items": {{"enum": [{tags}]}}, "uniqueItems": true, "maxItems": 3}}"#
    )
}

#[test]
fn some_of_very_many_listed_values_are_told_apart() {
    check(
        &up_to_three_of(2_000),
        &["[]", "[\"tag7\",\"tag70\",\"tag1999\"]"],
        &[
            "[\"tag7\",\"tag7\"]",
            "[\"tag1\",\"tag2\",\"tag1\"]",
            "[\"tag2000\"]",
            "[\"tag1\",\"tag2\",\"tag3\",\"tag4\"]",
        ],
    );
}

/// Steps of compiling grow with the values that are listed, and no faster.
#[test]
fn the_work_is_in_proportion_to_the_values() {
    let steps = |schema: &str| {
        let mut budget = Budget::new(u64::MAX);
        parse_with_budget(schema, &JsonSchemaOptions::default(), &mut budget).expect(schema);
        u64::MAX - budget.left()
    };
    let any_number_of = |tags| up_to_three_of(tags).replace(r#", "maxItems": 3"#, "");
    for schema in [up_to_three_of, any_number_of] {
        let (few, many) = (steps(&schema(2_000)), steps(&schema(16_000)));
        assert!(many < 10 * few, "{few} steps for 2,000 values, {many} for 16,000");
    }
}

#[test]
fn more_items_than_values_are_impossible() {
    let tags: Vec<String> = (0..30).map(|at| format!("\"{at}\"")).collect();
    let schema = format!(
        r#"{{"anyOf": [{{"type": "array", "items": {{"enum": [{}]}}, "uniqueItems": true, "minItems": 31}}, {{"type": "null"}}]}}"#,
        tags.join(",")
    );
    let all = format!("[{},\"0\"]", tags.join(","));
    check(&schema, &["null"], &["[]", &all]);
}

/// What cannot be told apart is no reason to lose the request.
#[test]
fn other_values_are_not_told_apart_and_that_is_said() {
    for schema in [
        r#"{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}"#,
        r#"{"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": true}"#,
        r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true, "minItems": 5000}"#,
    ] {
        let (_, warnings) =
            parse_with_warnings(schema, &JsonSchemaOptions::default()).expect(schema);
        assert_eq!(warnings.len(), 1, "{schema}: {warnings:?}");
        assert!(
            warnings[0].message.starts_with("not enforced: items that come twice"),
            "{warnings:?}"
        );
        assert_eq!(warnings[0].pointer, "/uniqueItems");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Lists of short strings, spelled in several ways.
    #[test]
    fn lists_are_those_without_a_repeated_item(
        items in prop::collection::vec("[ab]{0,2}", 0..5),
        escaped in any::<u32>(),
        min in 0..3_usize,
        max in 3..5_usize,
    ) {
        let schema = format!(r#"{{"type": "array", "items": {{"type": "string"}}, "uniqueItems": true, "minItems": {min}, "maxItems": {max}}}"#);
        let options = JsonSchemaOptions { escapes: palmette_grammar_syntax::json_schema::Escapes::Any, ..JsonSchemaOptions::default() };
        let grammar = palmette_grammar_syntax::json_schema::parse(&schema, &options).unwrap();
        let machine = Machine::new(&grammar).expect("engines");
        let spelled = items.iter().enumerate().map(|(at, item)| {
            let letter = |(place, letter): (usize, char)| match escaped >> ((at * 3 + place) % 32) & 1 {
                1 => format!("\\u{:04x}", u32::from(letter)),
                _ => letter.to_string(),
            };
            format!("\"{}\"", item.chars().enumerate().map(letter).collect::<String>())
        });
        let text = format!("[{}]", spelled.collect::<Vec<_>>().join(", "));
        let mut distinct = items.clone();
        distinct.sort();
        distinct.dedup();
        let valid = distinct.len() == items.len() && (min..=max).contains(&items.len());
        prop_assert_eq!(machine.accepts(&text), valid, "{}", text);
    }
}
