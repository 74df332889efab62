//! `palmette grammar`: look into grammars, and ask them what may follow.

mod ahead;
mod catalogs;
mod check;
mod compile;
mod documents;
mod drawing;
mod loading;
mod mask;
mod open_catalogs;
mod reading;
mod refused_member;
mod schema_option;
mod stats;
mod store_rows;
mod syntax;

use clap::Subcommand;

pub(crate) use catalogs::CatalogArgs;
pub(crate) use open_catalogs::OpenCatalogs;
pub(crate) use reading::{ReadingArgs, SpaceArgs, resource, resources};
pub(crate) use syntax::Syntax;

#[derive(Debug, Subcommand)]
pub(crate) enum GrammarCommand {
    Check(check::CheckArgs),
    Compile(compile::CompileArgs),
    Mask(mask::MaskArgs),
    Stats(stats::StatsArgs),
}

pub(crate) const AFTER_HELP: &str = "\
How a grammar is written goes by the file's ending: .lark for Lark, .gbnf or .ebnf for llama.cpp's
EBNF, .json for a JSON Schema, .regex for a regular expression; --syntax says otherwise. A file that
ends in .pmg is one that `palmette grammar compile` wrote. `-` is standard input.

--vocab takes what `palmette vocabulary` describes.

Examples:
  palmette grammar check json.lark --text order.json
  generate-schema | palmette grammar check - --syntax json-schema --option draft=7
  palmette grammar mask schema.json --vocab o200k_base --prefix '{\"name\": \"'
  palmette grammar mask answer.json --catalog shop=shop.palm --filter shop='{\"match\": {\"brand\": \"Fernhollow\"}}'
  palmette grammar check quote.json --document doc=page1.txt --document doc=page2.txt --text answer.txt
  palmette grammar stats python.lark --start file_input
  palmette grammar stats python.lark --start file_input --vocab o200k_base --text a.py --store
  palmette grammar compile schema.json --vocab o200k_base --ahead -o schema.pmg";

pub(crate) fn run(command: &GrammarCommand) -> anyhow::Result<()> {
    match command {
        GrammarCommand::Check(args) => check::run(args),
        GrammarCommand::Compile(args) => compile::run(args),
        GrammarCommand::Mask(args) => mask::run(args),
        GrammarCommand::Stats(args) => stats::run(args),
    }
}
