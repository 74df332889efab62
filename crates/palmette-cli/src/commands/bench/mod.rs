//! `palmette bench`: what things cost on this machine.

mod catalog;
mod grammar;
mod recommend;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Catalog(catalog::CatalogArgs),
    Grammar(grammar::GrammarArgs),
    Recommend(recommend::RecommendArgs),
}

pub(crate) fn run(command: &BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Catalog(args) => catalog::run(args),
        BenchCommand::Grammar(args) => grammar::run(args),
        BenchCommand::Recommend(args) => recommend::run(args),
    }
}
