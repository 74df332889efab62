//! Speculative decoding under a grammar: a draft model proposes, the grammar cuts, forced tokens
//! come for free.
//!
//! `cargo run --release -p palmette --example speculative_drafts`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;

use palmette::Vocabulary;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let tokens = Vocabulary::encoding("o200k_base")?;
    let schema = r#"{"properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"],
                     "additionalProperties": false, "type": "object"}"#;
    let mut matcher = tokens.json_schema(schema)?.matcher();
    matcher.commit_bytes(b"{")?;

    // A draft that goes wrong: the grammar has no such colour.
    let draft = tokens.encode(r#""colour": "blue"}"#)?;
    let kept = matcher.accepted_prefix(&draft)?;
    assert!(0 < kept && kept < draft.len());
    for &token in &draft[..kept] {
        matcher.commit(token)?;
    }
    let text = String::from_utf8(tokens.decode(&draft[..kept]))?;
    println!("kept {kept} of {} drafted tokens: {{{text}", draft.len());

    // The target model chooses one token for itself, here the beginning of "green".
    let choice = tokens.encode("g")?[0];
    assert!(matcher.mask()?.is_some_and(|allowed| allowed.contains(choice)));
    matcher.commit(choice)?;
    let must = matcher.forced_bytes(64)?;
    println!("then must follow: {}", String::from_utf8_lossy(&must));
    assert_eq!(must, b"reen\"");

    // A tree of drafts: each branch is a fork, and forks do not see each other.
    let branches = [r#"reen"}"#, r#"reen" , "#].map(|branch| {
        let mut fork = matcher.clone();
        let draft = tokens.encode(branch)?;
        Ok::<_, Box<dyn Error>>((fork.accepted_prefix(&draft)?, draft.len()))
    });
    for branch in branches {
        let (kept, drafted) = branch?;
        println!("a branch keeps {kept} of {drafted}");
    }
    Ok(())
}
