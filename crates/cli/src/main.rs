//! The program `palmette`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(palmette_cli::run(std::env::args_os()))
}
