//! The mask loop of structured output: mask, sample, commit; and going back.
//!
//! `cargo run --release -p palmette --example json_mask_loop`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;

use palmette::{Mask, TokenId, Vocabulary};

/// Stands for a model: of the allowed tokens, the one whose number a hash likes best.
fn sample(allowed: &Mask, step: u32) -> TokenId {
    let liking = |token: &TokenId| (token.0 ^ step).wrapping_mul(0x9E37_79B1);
    allowed.iter().max_by_key(liking).expect("a mask allows something")
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let tokens = Vocabulary::encoding("o200k_base")?;
    let order = r#"{
        "type": "object",
        "properties": {
            "size": {"enum": ["S", "M", "L"]},
            "quantity": {"type": "integer", "minimum": 1, "maximum": 20}
        },
        "required": ["size", "quantity"],
        "additionalProperties": false
    }"#;
    let mut matcher = tokens.json_schema(order)?.matcher();

    // The beginning is given; its bytes need not fall on tokens.
    matcher.commit_bytes(br#"{"quantity": 1"#)?;
    let mut written = Vec::new();
    while let Some(allowed) = matcher.mask()? {
        let token = sample(&allowed, written.len() as u32);
        matcher.commit(token)?;
        written.push(token);
        // Whitespace is free: a model that only writes blanks is stopped by its caller.
        if written.len() == 40 {
            break;
        }
    }
    println!(r#"{{"quantity": 1{}"#, String::from_utf8_lossy(&tokens.decode(&written)));

    // Go back to the given beginning, and write what must be valid JSON there.
    matcher.rollback(written.len())?;
    for token in tokens.encode(r#"2, "size": "M"}"#)? {
        let allowed = matcher.mask()?.expect("the text is not whole yet");
        assert!(allowed.contains(token));
        matcher.commit(token)?;
    }
    assert!(matcher.is_accepting()?);

    // What does not fit is an error, and the matcher is as it was.
    let refused = matcher.commit_bytes(b" 7").unwrap_err();
    println!("{refused}");
    assert!(refused.is_refusal() && matcher.is_accepting()?);
    Ok(())
}
