//! The command line as a library: the program `palmette` calls [`run`], and so does any other that
//! brings the command along, such as the Python package. Thin layers over the library crates.
#![forbid(unsafe_code)]

mod commands;
mod features;
mod input;
mod memory;
mod output;
mod tables;
mod timings;

use std::any::TypeId;
use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use commands::{
    bench, catalog, demo, devices, eval, generate, grammar, key, lexicon, loadtest, model,
    recommend, serve, simulate, vocabulary,
};

/// Let a language model write only what is valid.
///
/// Items: a model spells items as short code sequences (semantic IDs); Palmette lets it spell only
/// those that are in the catalog, inside an exact beam search. Grammars: it lets a model write only
/// texts of a grammar, by saying at each step which tokens may follow.
#[derive(Debug, Parser)]
#[command(name = "palmette", version = features::version(), max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Start here:
  palmette demo                                 a built-in shop, served with a page to try it; no files
  palmette demo --once                          the same in the terminal
  palmette demo --export shop                   the same shop as files, to try the commands on
  palmette catalog build shop/items.jsonl --out shop.palm
  palmette recommend --model shop/model --catalog shop.palm --history P0001,P0002
  palmette generate --model smollm2 --ask 'Describe a tent as JSON.' --schema order.json

With --json, every command but completions prints one JSON document; where it fails, {\"error\": …}, and the exit
status is not 0. What this build has and what it leaves out is said by --version.";

/// A command with arguments of its own is described where they are: a text here would hide theirs.
#[derive(Debug, Subcommand)]
enum Command {
    /// Build and look into item catalogs
    #[command(subcommand, after_help = catalog::AFTER_HELP)]
    Catalog(catalog::CatalogCommand),
    /// Look into grammars, and ask which tokens may follow a text
    #[command(subcommand, after_help = grammar::AFTER_HELP)]
    Grammar(grammar::GrammarCommand),
    /// Build and look into lexicons: lists of values that a grammar may name
    #[command(subcommand, after_help = lexicon::AFTER_HELP)]
    Lexicon(lexicon::LexiconCommand),
    Vocabulary(vocabulary::VocabularyArgs),
    /// Look into models: how they read histories and spell items
    #[command(subcommand, after_help = model::AFTER_HELP)]
    Model(model::ModelCommand),
    Generate(Box<generate::GenerateArgs>),
    Recommend(Box<recommend::RecommendArgs>),
    Eval(eval::EvalArgs),
    Demo(Box<demo::DemoArgs>),
    Bench(bench::BenchArgs),
    Loadtest(Box<loadtest::LoadtestArgs>),
    Serve(Box<serve::ServeArgs>),
    Key(key::KeyArgs),
    Simulate(simulate::SimulateArgs),
    Devices(devices::DevicesArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs the command that these arguments make, the first of which is the program's name; returns
/// its exit status: 0, 1 where the command failed, 2 where the arguments make none.
///
/// Output goes to the standard streams of this process, whose handlers of signals may be replaced.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = with_negative_numbers(Cli::command()).try_get_matches_from(&args);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return refuse_arguments(&error, &args),
    };
    match run_command(&cli.command) {
        Ok(()) => 0,
        Err(error) => {
            let is_reported = error.downcast_ref::<output::Reported>().is_some();
            match asks_for_json(&matches) && !is_reported {
                true => output::print_json_error(&format!("{error:#}")),
                false => output::print_error(&format!("{error:#}")),
            }
            1
        }
    }
}

/// The command with options that take negative numbers as values and not as options, so that what
/// checks a value says its rule.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|of| of.get_name().to_owned()).collect();
    let command = command.mut_args(|argument| match argument.get_action().takes_values() {
        true => {
            let kind = argument.get_value_parser().type_id();
            let argument = argument.allow_negative_numbers(true);
            match argument.get_id().as_str() {
                "k" if kind == TypeId::of::<usize>() => argument.value_parser(at_least_one),
                _ if kind == TypeId::of::<usize>() => argument.value_parser(count),
                _ => argument,
            }
        }
        false => argument,
    });
    names
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, with_negative_numbers))
}

/// A number of things.
fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it is a whole number, 0 or more".to_owned())
}

/// A number of items that are asked for; what answers says that 0 are none.
fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "it is a whole number, at least 1".to_owned())
}

fn run_command(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Catalog(command) => catalog::run(command),
        Command::Grammar(command) => grammar::run(command),
        Command::Lexicon(command) => lexicon::run(command),
        Command::Vocabulary(args) => vocabulary::run(args),
        Command::Model(command) => model::run(command),
        Command::Generate(args) => generate::run(args),
        Command::Recommend(args) => recommend::run(args),
        Command::Eval(args) => eval::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Loadtest(args) => loadtest::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Key(args) => key::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "palmette", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}

/// Arguments that make no command, or a wish for help. Of the former, nothing has been parsed that
/// could say `--json`.
fn refuse_arguments(error: &clap::Error, args: &[OsString]) -> u8 {
    if error.use_stderr() && args.iter().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        output::print_json_error(text.trim_start_matches("error: ").trim_end());
    } else {
        // A terminal that has gone away is no error.
        let _ = error.print();
    }
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// True where the command, whatever it is, has `--json` and was given it.
fn asks_for_json(matches: &clap::ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, of_command)) => asks_for_json(of_command),
        None => matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or(false),
    }
}
