//! The check of devices over the emulation: it runs to its end, and says what it does not know.

use std::process::{Command, Output};

use palmette_cuda::Architecture;
use palmette_cuda_emulator::Emulator;

/// Runs the example, which is built before tests are; none where it was not, or nothing is emulated.
fn run(arguments: &[&str]) -> Option<Output> {
    Emulator::new(Architecture::Hopper, 1)?;
    let mut program = std::env::current_exe().unwrap();
    program.pop();
    program.set_file_name("examples");
    program.push("palmette-cuda-check");
    if !program.exists() {
        eprintln!("SKIPPED: {} is built by `cargo test` without --test", program.display());
        return None;
    }
    Some(Command::new(program).args(arguments).output().unwrap())
}

#[test]
fn laws_hold_and_kernels_are_timed() {
    // Golden bits are a test of their own.
    let parts = ["--device", "emulated", "steps", "laws", "kernels", "cells"];
    let Some(output) = run(&parts) else { return };
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    for line in [
        "steps     mma.sync 2304 equal",
        "steps     wgmma 2304 equal",
        "laws      Hopper: alone = together 3, = portable 3",
        "product   Hopper       5 rows smallest",
        "cell      prompt 10 W 4 b2",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn what_it_does_not_know_is_named() {
    for (arguments, words) in [
        (&["--device", "emulated", "stairs"][..], "\"stairs\" is no part; there are steps, golden"),
        (&["--device", "gpu"], "\"gpu\" is no device: cuda:0, cuda:1 …, or emulated"),
        (&["--device"], "--device needs a value"),
    ] {
        let Some(output) = run(arguments) else { return };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(words), "{errors}");
    }
}
