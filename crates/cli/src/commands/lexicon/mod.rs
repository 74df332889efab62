//! `palmette lexicon`: build, info, check.

mod build;
mod check;
mod info;
mod values;

use clap::Subcommand;

pub(crate) use values::ListedValues;

/// One command after the other, for those who come here first.
pub(crate) const AFTER_HELP: &str = "\
A lexicon is a file with many values: names, codes, ids, titles. A grammar names it where a text may
have one of them, and is compiled once whatever the values are; ten million take a few bytes each.

  palmette lexicon build companies.txt --out companies.palm      one value in each line
  palmette lexicon info companies.palm
  palmette lexicon check companies.palm --value 'Acme Tools'
  palmette grammar check answer.json --catalog companies=companies.palm --text out.json

where answer.json has, for instance, {\"type\": \"string\", \"x-catalog\": \"companies\"}. What has
attributes to filter by is a catalog: `palmette catalog build`.";

#[derive(Debug, Subcommand)]
pub(crate) enum LexiconCommand {
    Build(build::BuildArgs),
    Info(info::InfoArgs),
    Check(check::CheckArgs),
}

pub(crate) fn run(command: &LexiconCommand) -> anyhow::Result<()> {
    match command {
        LexiconCommand::Build(args) => build::run(args),
        LexiconCommand::Info(args) => info::run(args),
        LexiconCommand::Check(args) => check::run(args),
    }
}
