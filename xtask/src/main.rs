//! Checks of the sources themselves: `cargo run -p xtask -- tidy`.
//!
//! They are a program beside the crates so that they run before anything else is compiled; the
//! tests of the workspace run them as well.

mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
Checks of the sources themselves.

Usage: cargo run -p xtask -- tidy [CHECK]...

  CHECK  one of the checks by name; all of them where none is named:
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let names: Vec<String> = arguments.collect();
    let unknown = names.iter().find(|name| tidy::CHECKS.iter().all(|check| check.name != **name));
    if command.as_deref() != Some("tidy") || unknown.is_some() {
        if let Some(name) = unknown {
            eprintln!("{name:?} is no check");
        }
        eprint!("{USAGE}");
        for check in tidy::CHECKS {
            eprintln!("           {:<12} {}", check.name, check.about);
        }
        return ExitCode::from(2);
    }
    let tree = tidy::Tree::read();
    let mut is_tidy = true;
    for check in tidy::CHECKS {
        if !names.is_empty() && !names.iter().any(|name| name == check.name) {
            continue;
        }
        let faults = (check.run)(&tree);
        is_tidy &= faults.is_empty();
        for fault in &faults {
            eprintln!("{}: {fault}", check.name);
        }
    }
    if is_tidy { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
