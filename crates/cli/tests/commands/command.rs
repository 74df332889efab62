//! The built command, run as a user runs it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn palmette(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_palmette")).args(args).output().expect("the built command")
}

/// The same with text on standard input.
pub(crate) fn palmette_with_input(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palmette"));
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the built command");
    // A command that refuses its arguments does not read.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

/// Runs a command that must succeed; what it prints.
#[track_caller]
pub(crate) fn run(args: &[&str]) -> String {
    let output = palmette(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs a command that must print exactly one JSON document.
#[track_caller]
pub(crate) fn run_json(args: &[&str]) -> Value {
    let text = run(&[args, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}\n{text}"))
}

/// Runs a command that must fail with a message that holds `words`; nothing may panic.
#[track_caller]
pub(crate) fn check_refused(args: &[&str], words: &[&str]) {
    let output = palmette(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{args:?} passed");
    assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {:?}\n{errors}", output.status);
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    for word in words {
        assert!(errors.contains(word), "{args:?} lacks {word:?}:\n{errors}");
    }
}

/// Writes a file; its path, as an argument.
pub(crate) fn write(dir: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = dir.join(name);
    std::fs::write(&path, text).expect("a writable folder");
    path.to_str().expect("UTF-8").to_owned()
}
