//! `palmette-train`: the command that trains the models `palmette` serves.

mod command;

use clap::{CommandFactory, Parser, Subcommand};

/// Train the models that Palmette serves.
#[derive(Debug, Parser)]
#[command(name = "palmette-train", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a next-item model on user histories
    Train(Box<command::TrainArgs>),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Train(args) => command::train(&args),
        Command::Completions { shell } => {
            let name = "palmette-train";
            clap_complete::generate(shell, &mut Cli::command(), name, &mut std::io::stdout());
            Ok(())
        }
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
