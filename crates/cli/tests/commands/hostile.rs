//! Hostile schemas under a limit on memory: an error or a verdict, soon.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::write;

/// KiB of address space: the program itself and some dozen megabytes.
const LIMIT: u32 = 400_000;

/// Long enough for the slowest machine; without bounds these run until memory is full.
const SOON: Duration = Duration::from_secs(20);

/// Runs `grammar check` of a schema with 64 megabytes or so beside the program; whether it accepts
/// `text`, `None` where it is an error.
#[track_caller]
fn check(schema: &str, text: &str) -> Option<bool> {
    let folder = tempfile::tempdir().unwrap();
    let (schema_file, text) =
        (write(folder.path(), "schema.json", schema), write(folder.path(), "text", text));
    let script = format!("ulimit -v {LIMIT} && exec \"$@\"");
    let began = Instant::now();
    let output = Command::new("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_palmette"), "grammar", "check"])
        .args([&schema_file, "--text", &text, "--budget", "2000000000"])
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let shown: String = schema.chars().take(100).collect();
    assert!(began.elapsed() < SOON, "{shown}");
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{shown}: {:?}\n{errors}", output.status);
    if out.is_empty() {
        assert!(errors.starts_with("error: "), "{shown}: {errors}");
        return None;
    }
    Some(out.contains(": in the language"))
}

#[test]
fn extreme_numbers() {
    for (schema, text, expected) in [
        ("{\"const\":1e1000000000}", "1e1000000000", true),
        ("{\"enum\":[1e400,-2e-2000000000]}", "-2e-2000000000", true),
        ("{\"minimum\":1e1000000000}", "1e999999999", false),
        ("{\"exclusiveMaximum\":1e-1000000000}", "0", true),
        ("{\"multipleOf\":1e-1000000000}", "0.5", true),
        ("{\"multipleOf\":1e1000000000,\"minimum\":1}", "1", false),
        ("{\"multipleOf\":18446744073709551557}", "18446744073709551557", true),
        (
            "{\"allOf\":[{\"multipleOf\":9973},{\"multipleOf\":999983},{\"multipleOf\":86400}]}",
            "1",
            false,
        ),
    ] {
        assert_eq!(check(schema, text), Some(expected), "{schema}");
    }
    assert_eq!(check("{\"minimum\":1e99999999999}", "1"), None);
    let digits = "7".repeat(1_000_000);
    assert_eq!(check(&format!("{{\"minimum\":{digits}}}"), "1"), None);
    assert_eq!(check(&format!("{{\"const\":{digits}}}"), &digits), None);
    assert_eq!(check(&format!("{{\"const\":{}}}", &digits[..4_096]), &digits[..4_096]), Some(true));
}

#[test]
fn extreme_lengths_and_counts() {
    for schema in [
        "{\"type\":\"string\",\"minLength\":4294967295}",
        "{\"type\":\"string\",\"maxLength\":4294967295,\"pattern\":\"^(a{1,1000}){1,1000}$\"}",
        "{\"type\":\"array\",\"minItems\":18446744073709551615}",
        "{\"type\":\"object\",\"minProperties\":9007199254740993}",
        "{\"type\":\"array\",\"uniqueItems\":true,\"items\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000000}}",
        "{\"type\":\"array\",\"contains\":{\"type\":\"null\"},\"minContains\":1000000}",
        "{\"type\":\"string\",\"pattern\":\"((((a{0,99}){0,99}){0,99}){0,99}){0,99}\"}",
    ] {
        let _ = check(schema, "1");
    }
}

#[test]
fn deep_and_wide_schemas() {
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(100_000), "}".repeat(100_000));
    assert_eq!(check(&deep, "1"), None);
    let branches: Vec<String> = (0..18)
        .map(|at| {
            format!("{{\"anyOf\":[{{\"required\":[\"a{at}\"]}},{{\"required\":[\"b{at}\"]}}]}}")
        })
        .collect();
    let _ = check(&format!("{{\"allOf\":[{}]}}", branches.join(",")), "{}");
    let chain: Vec<String> = (0..2_000)
        .map(|at| {
            format!(
                "\"d{at}\":{{\"anyOf\":[{{\"$ref\":\"#/$defs/d{}\"}},{{\"type\":\"null\"}}]}}",
                at + 1
            )
        })
        .collect();
    let chain = format!(
        "{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{},\"d2000\":{{\"const\":1}}}}}}",
        chain.join(",")
    );
    assert_ne!(check(&chain, "1"), Some(false));
}
