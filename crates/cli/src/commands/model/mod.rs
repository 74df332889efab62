//! `palmette model`: models as directories.

mod inspect;

use clap::Subcommand;

/// Subcommands of `palmette model`.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    Inspect(Box<inspect::InspectArgs>),
}

pub(crate) const AFTER_HELP: &str = "\
Examples:
  palmette model inspect my-model --catalog shop.palm
  palmette model inspect my-model --catalog shop.palm --history 12,7,99
  palmette model inspect my-model --catalog shop.palm --preset minionerec --write";

pub(crate) fn run(command: &ModelCommand) -> anyhow::Result<()> {
    match command {
        ModelCommand::Inspect(args) => inspect::run(args),
    }
}
