//! The command `palmette`, whose servers may share a log in the object store of a cloud.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    palmette_clouds::add_homes();
    ExitCode::from(palmette_cli::run(std::env::args_os()))
}
