//! Time and memory from a JSON Schema with a large enumeration to its first mask.
//!
//! `cargo run --release -p palmette-grammar --example large_enumerations -- [--listed]
//! [KEYWORDS] NUMBER…`: a line for each number of listed names. They are the schema, or the items of
//! an array that has the keywords, such as `'"uniqueItems": true'`. With `--listed` they are
//! alternatives of an expression, however many.

#![expect(clippy::print_stdout, reason = "the result is printed")]

use std::sync::Arc;
use std::time::Instant;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse_with_warnings};
use palmette_grammar::{Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer};

fn main() -> anyhow::Result<()> {
    let (mut array, mut options) = (String::new(), JsonSchemaOptions::default());
    for argument in std::env::args().skip(1) {
        match argument.parse() {
            Ok(number) => measure(&array, number, &options)?,
            Err(_) if argument == "--listed" => {
                (options.max_listed, options.max_listed_bytes) = (usize::MAX, usize::MAX);
            }
            Err(_) => array = argument,
        }
    }
    Ok(())
}

fn measure(array: &str, number: usize, options: &JsonSchemaOptions) -> anyhow::Result<()> {
    let names: Vec<String> = (0..number).map(name).collect();
    let listed = serde_json::json!({ "enum": names });
    let schema = match array {
        "" => listed.to_string(),
        _ => format!(r#"{{"type": "array", "items": {listed}, {array}}}"#),
    };
    let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte])).chain([None]);
    let vocabulary = Arc::new(Vocabulary::new(bytes, [TokenId(256)])?);
    let vocabulary = Arc::new(PreparedVocabulary::new(vocabulary));
    let began = Instant::now();
    let parsed = parse_with_warnings(&schema, options);
    let read = began.elapsed();
    let (grammar, warnings) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            println!("{number}: {error} after {read:.2?}");
            return Ok(());
        }
    };
    let terminals = grammar.terminals().len();
    let began = Instant::now();
    let recognizer =
        Recognizer::new(Arc::new(grammar), &Default::default(), &mut Budget::unlimited())?;
    let constraint = GrammarConstraint::new(Arc::new(recognizer), vocabulary);
    let made = began.elapsed();
    let began = Instant::now();
    let (state, mut scratch) = (constraint.start(), GrammarScratch::default());
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    constraint.fill_mask(&state, &mut scratch, &mut row)?;
    println!(
        "{number}: read {read:.2?}, made {made:.2?}, first mask {:.2?}; {terminals} terminals, {} bytes, peak {} KB, {} warnings",
        began.elapsed(),
        constraint.bytes(),
        peak_kilobytes().unwrap_or_default(),
        warnings.len()
    );
    Ok(())
}

/// A name of some words, by its number.
fn name(number: usize) -> String {
    const WORDS: [&str; 16] = [
        "Alder", "Birch", "Cedar", "Dune", "Ember", "Fjord", "Glade", "Heath", "Inlet", "Juniper",
        "Kelp", "Larch", "Moss", "Nettle", "Oak", "Pine",
    ];
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = |at: u32| WORDS[(mixed >> (at * 4)) as usize % 16];
    format!("{} {} {} {}, size {number}", word(15), word(12), word(9), word(6))
}

/// The most memory that the process has had, where the system says it.
fn peak_kilobytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
