//! `palmette bench`: what things cost on this machine.

mod catalog;
mod grammar;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Catalog(catalog::CatalogArgs),
    Grammar(grammar::GrammarArgs),
}

pub(crate) fn run(command: &BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Catalog(args) => catalog::run(args),
        BenchCommand::Grammar(args) => grammar::run(args),
    }
}
