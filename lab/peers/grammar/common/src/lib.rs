//! Cases for grammar engines, and walking an engine over them; `../README.md` says how to run it.

pub mod cases;
mod engine;
mod walk;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

pub use engine::{Compiled, Engine, Walk};

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the cases of a file of schemas, tokenised, and the vocabulary
    Prepare {
        /// A line each: {"name", "schema", "tests": [{"valid", "data"}]}
        #[arg(long)]
        schemas: Option<PathBuf>,
        /// NAME=GRAMMAR.lark:TEXT[,TEXT...]
        #[arg(long)]
        lark: Vec<String>,
        #[arg(long)]
        out: PathBuf,
        /// Vocabulary for engines outside these programs
        #[arg(long)]
        vocab_out: Option<PathBuf>,
    },
    /// Walk the cases; prints a JSON line for each
    Run {
        #[arg(long)]
        cases: PathBuf,
        /// Cases to leave out at the start
        #[arg(long, default_value_t = 0)]
        skip: usize,
        /// Times each text is walked
        #[arg(long, default_value_t = 3)]
        walks: usize,
        /// Milliseconds to sleep before the first walk, as engines wait that find out masks then
        #[arg(long, default_value_t = 0)]
        ahead: u64,
        /// Milliseconds to sleep before each mask of the first walk, as a model takes for a token
        #[arg(long, default_value_t = 0)]
        pace: u64,
    },
}

/// The program around an engine.
pub fn main(load: impl Fn(&cases::Vocabulary) -> anyhow::Result<Box<dyn Engine>>) -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Prepare { schemas, lark, out, vocab_out } => {
            cases::prepare(schemas.as_deref(), &lark, &out, vocab_out.as_deref())
        }
        Command::Run { cases, skip, walks, ahead, pace } => {
            let [ahead, pace] = [ahead, pace].map(Duration::from_millis);
            let walks = walk::Walks { times: walks, ahead, pace };
            let engine = load(&cases::vocabulary())?;
            let file = BufReader::new(std::fs::File::open(cases)?);
            let mut out = std::io::stdout().lock();
            for line in file.lines().skip(skip) {
                let case: cases::Case = serde_json::from_str(&line?)?;
                serde_json::to_writer(&mut out, &walk::walk(&*engine, &case, walks))?;
                out.write_all(b"\n")?;
                out.flush()?;
            }
            Ok(())
        }
    }
}
