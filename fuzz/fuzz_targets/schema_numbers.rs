//! JSON schemas of numbers: whatever the digits and exponents, reading ends within its budget, with a grammar or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_grammar::Budget;
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse_with_budget};

const KEYWORDS: [&str; 4] = ["const", "minimum", "exclusiveMaximum", "multipleOf"];

/// Keyword, sign, digits before the point, digits after it, exponent.
type Member = (u8, bool, u32, Option<u32>, Option<i32>);

fuzz_target!(|members: Vec<Member>| {
    let members = members.iter().map(|&(keyword, negative, whole, fraction, exponent)| {
        let name = KEYWORDS[usize::from(keyword) % KEYWORDS.len()];
        let sign = if negative { "-" } else { "" };
        let fraction = fraction.map_or(String::new(), |digits| format!(".{digits}"));
        let exponent = exponent.map_or(String::new(), |exponent| format!("e{exponent}"));
        format!("\"{name}\": {sign}{whole}{fraction}{exponent}")
    });
    let schema = format!("{{{}}}", members.collect::<Vec<_>>().join(", "));
    let mut budget = Budget::new(10_000_000);
    if let Err(error) = parse_with_budget(&schema, &JsonSchemaOptions::default(), &mut budget) {
        assert!(!error.to_string().is_empty());
    }
});
