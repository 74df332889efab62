//! Extraction: companies in JSON that are of a register of any size, compiled once.
//!
//! `cargo run --release -p palmette --example extraction [NAMES]`, a file with a name a line, or a
//! number of names to make, such as `1000000`.
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use palmette::{Bindings, CompiledGrammar, Lexicon, LexiconBuilder, Vocabulary};

const SCHEMA: &str = r#"{
    "type": "object", "required": ["parties"], "additionalProperties": false, "properties": {
        "parties": {"type": "array", "maxItems": 8, "items": {
            "type": "object", "required": ["company", "role"], "additionalProperties": false,
            "properties": {
                "company": {"type": "string", "x-catalog": "register"},
                "role": {"enum": ["buyer", "seller", "adviser"]}
            }}}}}"#;

/// Names of companies, the first of which are always the same.
fn register(argument: Option<&str>) -> Result<Lexicon, Box<dyn Error>> {
    let mut builder = LexiconBuilder::new();
    for name in ["Aldwin & Sons", "Aldwin Shipping", "Bergmann \"Nord\" AG", "Çelik Holding"] {
        builder.push(name.as_bytes())?;
    }
    match argument.map(|argument| (argument, argument.parse::<u32>())) {
        None => {}
        Some((_, Ok(number))) => {
            for number in 0..number {
                let mixed = number.wrapping_mul(0x9E37_79B1);
                let kind = ["Ltd", "GmbH", "Inc.", "S.A.", "Trading", "Group"][number as usize % 6];
                builder.push(format!("{mixed:08X} {kind}").as_bytes())?;
            }
        }
        Some((path, Err(_))) => {
            for name in std::fs::read_to_string(path)?.lines().filter(|name| !name.is_empty()) {
                builder.push(name.as_bytes())?;
            }
        }
    }
    Ok(builder.finish())
}

/// Reads an answer as a model would write it, token by token, and tells whether each was allowed.
fn is_written(grammar: &CompiledGrammar, answer: &str) -> Result<bool, Box<dyn Error>> {
    let mut matcher = grammar.matcher();
    let tokens = grammar.vocabulary().encode(answer)?;
    for token in tokens {
        let allowed = matcher.mask()?.is_some_and(|mask| mask.contains(token));
        if !allowed {
            return Ok(false);
        }
        matcher.commit(token)?;
    }
    for member in matcher.members()? {
        println!("  bytes {:?}: {:?} of {}", member.span, member.value, member.set);
    }
    Ok(matcher.is_accepting()?)
}

pub(crate) fn run(argument: Option<&str>) -> Result<(), Box<dyn Error>> {
    let tokens = Vocabulary::encoding("o200k_base")?;
    // It names a register and knows no company.
    let grammar = tokens.json_schema(SCHEMA)?;

    let began = Instant::now();
    let register = Arc::new(register(argument)?);
    println!("{} names indexed in {:.1?}", register.len(), began.elapsed());
    let began = Instant::now();
    let bound = grammar.bind(&Bindings::new().lexicon("register", Arc::clone(&register)))?;
    println!("bound in {:.1?}", began.elapsed());

    let right = r#"{"parties": [{"company": "Aldwin & Sons", "role": "seller"}, {"company": "Bergmann \"Nord\" AG", "role": "buyer"}]}"#;
    println!("{right}");
    assert!(is_written(&bound, right)?);
    // What is in no register cannot be written, however likely it is.
    let invented = r#"{"parties": [{"company": "Aldwin & Daughters", "role": "seller"}]}"#;
    assert!(!is_written(&bound, invented)?);

    // One way on: the rest of a name needs no model.
    let mut matcher = bound.matcher();
    matcher.commit_bytes(r#"{"parties": [{"company": "Çel"#.as_bytes())?;
    let forced = String::from_utf8(matcher.forced_bytes(100)?)?;
    println!("after \"Çel\" follows {forced:?}");
    assert!(forced.starts_with("ik Holding\""));
    Ok(())
}

#[cfg(not(test))] // Tests have arguments of their own.
fn main() -> Result<(), Box<dyn Error>> {
    run(std::env::args().nth(1).as_deref())
}
