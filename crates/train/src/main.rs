//! `palmette-train`: the command that trains the models `palmette` serves.

mod command;
mod tokenize;

use clap::{CommandFactory, Parser, Subcommand};

const AFTER_HELP: &str = "\
Example:
  palmette-train tokenize --embeddings items.parquet --out items.json
  palmette catalog build items.json --out shop.palm
  palmette-train train --catalog shop.palm --histories histories.json --out model
  palmette-train draft --model model --catalog shop.palm --histories histories.json --out drafting

`palmette-train train --help` says what to train with and when to change a default.";

/// Train the models that Palmette serves.
#[derive(Debug, Parser)]
#[command(name = "palmette-train", version, about, max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Train(Box<command::TrainArgs>),
    Draft(Box<command::DraftArgs>),
    Tokenize(Box<tokenize::TokenizeArgs>),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().command {
        Command::Train(args) => command::train(&args),
        Command::Draft(args) => command::draft(&args),
        Command::Tokenize(args) => tokenize::tokenize(&args),
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
