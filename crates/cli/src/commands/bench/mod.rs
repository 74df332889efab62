//! `palmette bench`: what things cost on this machine.

mod catalog;
mod grammar;
mod members;
mod recommend;

use clap::{Args, Subcommand};

/// Measure what catalogs, grammars and sets of strings cost on this machine
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Catalog(catalog::CatalogArgs),
    Grammar(Box<grammar::GrammarArgs>),
    Members(members::MembersArgs),
    Recommend(recommend::RecommendArgs),
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.command {
        BenchCommand::Catalog(args) => catalog::run(args),
        BenchCommand::Grammar(args) => grammar::run(args),
        BenchCommand::Members(args) => members::run(args),
        BenchCommand::Recommend(args) => recommend::run(args),
    }
}
