//! `palmette serve`: recommendations over HTTP.

mod names;
mod options;
mod running;
mod text;
#[cfg(feature = "otel")]
mod traces;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_catalog_replica::ReplicaOptions;
use palmette_model::DeviceName;
use palmette_model::draft::DraftHead;
use palmette_serve::{ANY_ORIGIN, LogConfig, ModelLoadError, ModelLoader, Server};

use super::devices::{DeviceArgs, DeviceBatchArgs, PromptCacheArgs};
use super::loading::WeightsArg;
use names::NamedPath;
pub(crate) use options::{ListenAddress, ListenOptions, ServeOptions, address};
pub(crate) use running::{Listening, log, run_until_stopped};

/// Serve recommendations over HTTP, with a page to try them at /, and texts under grammars as
/// OpenAI's clients ask for them
///
/// A request is admitted when it arrives, by its predicted finish, or refused at once; what is
/// admitted is answered by its deadline. Items of a live catalog come and go while requests are
/// answered, each by one generation.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ServeArgs {
    /// Directory of a model, named by its last part unless NAME is given; may be given several
    /// times
    #[arg(long, value_name = "[NAME=]DIR")]
    model: Vec<NamedPath>,
    /// Catalog: a file, which never changes, or the directory of a live one, which this process
    /// then writes
    #[arg(long, value_name = "[NAME=]PATH")]
    catalog: Vec<NamedPath>,
    /// Lexicon of `palmette lexicon build`, whose values grammars of texts may name
    #[arg(long, value_name = "[NAME=]FILE")]
    lexicon: Vec<NamedPath>,
    /// A name for a model with a catalog, by which requests ask for them [default: where there is
    /// one of each, the catalog's name]
    #[arg(long, value_name = "ALIAS=MODEL:CATALOG")]
    target: Vec<String>,
    /// Follow live catalogs that another process writes; updates are refused here
    #[arg(long)]
    read_only: bool,
    /// Directory for models and catalogs that clients name or upload, and for targets: models/,
    /// catalogs/, targets.json
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Follow a log that other servers share: file://DIRECTORY, s3://BUCKET/PREFIX, gs://…, az://…
    /// or postgres://…. Models, catalogs and targets come from it, and changes go into it; what --model, --catalog
    /// and --target name is given to it where it has none of the name. Copies are kept below --data-dir
    #[arg(
        long,
        value_name = "URL",
        env = "PALMETTE_SHARED_LOG",
        requires = "data_dir",
        conflicts_with = "read_only"
    )]
    shared_log: Option<String>,
    /// Time behind that log after which this server is not ready
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = positive)]
    max_lag_seconds: f64,
    /// Entries of a catalog's log after which one of the servers writes a base, from which others
    /// begin
    #[arg(long, value_name = "N", default_value_t = 1000)]
    base_entries: u64,
    /// Form in which the models' weights are kept
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = WeightsArg::F32)]
    weights: WeightsArg,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    device_batch: DeviceBatchArgs,
    #[command(flatten)]
    prompt_cache: PromptCacheArgs,
    #[command(flatten)]
    text: text::TextArgs,
    #[command(flatten)]
    listen: ListenOptions,
    #[command(flatten)]
    options: ServeOptions,
    /// Take only requests with a key of this file, which `palmette key` makes; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Write what happens to the scheduler, and what it decides, to this file: `palmette simulate --replay`
    /// reads it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  palmette demo --export shop
  palmette catalog build shop/items.jsonl --out shop.palm
  palmette catalog live init shop/live --from shop.palm --model shop/model
  palmette serve --model shop/model --catalog shop=shop/live
  curl -s http://127.0.0.1:8080/v1/recommend --json '{\"history\": [\"P0001\", \"P0060\"], \"k\": 3}'
  palmette serve --text smol=SmolLM2-135M-Instruct
  curl -s http://127.0.0.1:8080/v1/chat/completions --json '{\"messages\": [{\"role\": \"user\", \"content\": \"Name a colour.\"}]}'
  palmette serve --model a=models/a --model b=models/b --catalog shop.palm --target old=a:shop --target new=b:shop

docs/http.md describes the interface; /openapi.json is the same for programs.
SIGTERM and Ctrl-C drain: what was admitted is answered; a second one ends at once.";

pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    ensure!(args.base_entries > 0, "--base-entries is 0; it must be at least 1");
    ensure!(
        args.data_dir.is_some()
            || !(args.model.is_empty() || args.catalog.is_empty())
            || (args.text.serves_some() && args.model.is_empty()),
        "give --model and --catalog, --text, or a --data-dir that has models and catalogs"
    );
    ensure!(
        args.keys.is_some() || !args.options.origins.iter().any(|origin| origin == ANY_ORIGIN),
        "--cors '*' without --keys would let any page in a browser that reaches this server do everything; name the origins, or give keys"
    );
    let _traces = running::log(&args.options)?;
    check_twice("--model", args.model.iter().map(|model| &model.name))?;
    let sets = args.catalog.iter().chain(&args.lexicon);
    check_twice("--catalog or --lexicon", sets.map(|set| &set.name))?;
    let targets = targets(args)?;
    check_twice("--text", args.text.names())?;
    check_twice("--target", targets.iter().map(|(alias, ..)| alias))?;
    let mut config = args.options.config()?;
    let device = args.device.served(&args.device_batch)?.with_prompt_cache(args.prompt_cache)?;
    if device.device != DeviceName::Cpu {
        args.options.use_device(&mut config.schedule, device.requests());
    }
    let (weights, of_texts) = (args.weights, device.clone());
    config.models = match device.device {
        DeviceName::Cpu => ModelLoader::on_processor(weights.format()?, device.prompt_memory()),
        DeviceName::Cuda(_) => ModelLoader::new(move |dir, prompts| {
            let drafts = dir.join(DraftHead::FILE_NAME).is_file();
            let loaded = device.load(dir, prompts, weights, drafts);
            loaded.map_err(|error| ModelLoadError::Device(format!("{error:#}")))
        }),
    };
    config.record.clone_from(&args.record);
    config.keys.clone_from(&args.keys);
    config.data_dir.clone_from(&args.data_dir);
    config.max_lag = Duration::from_secs_f64(args.max_lag_seconds);
    config.server_names.extend(args.listen.listen.name.clone());
    config.max_text_time = args.text.max_time()?;
    config.text_drain_grace = args.text.drain_grace()?;
    if let Some(dir) = &args.data_dir {
        std::fs::create_dir_all(dir).with_context(|| format!("{}", dir.display()))?;
    }
    let threads = config.schedule.threads as usize;
    let server = Server::new(config)?;
    for lexicon in &args.lexicon {
        server.open_lexicon(&lexicon.name, &lexicon.path)?;
    }
    if let Some(address) = &args.shared_log {
        let named = |of: &NamedPath| (of.name.clone(), of.path.clone());
        server.follow_log(LogConfig {
            address: address.clone(),
            models: args.model.iter().map(named).collect(),
            catalogs: args.catalog.iter().map(named).collect(),
            targets,
            replicas: ReplicaOptions { base_entries: args.base_entries, ..Default::default() },
        })?;
        return run_until_stopped(&server, &args.listen, |_| Ok(()));
    }
    for model in &args.model {
        server.load_model(&model.name, &model.path)?;
    }
    for catalog in &args.catalog {
        server.open_catalog(&catalog.name, &catalog.path, args.read_only)?;
    }
    server.load_data_dir(args.read_only)?;
    // A target may name what the data directory has.
    for (alias, model, catalog) in targets {
        server.set_target(&alias, &model, &catalog)?;
    }
    args.text.load_into(&server, (of_texts, args.weights), threads)?;
    server.restore_targets()?;
    run_until_stopped(&server, &args.listen, |_| Ok(()))
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    match seconds > 0.0 && seconds <= 86_400.0 {
        true => Ok(seconds),
        false => Err("it must be more than 0, and at most a day".to_owned()),
    }
}

/// Refuses a name that is given twice: the second would take the place of the first.
fn check_twice<'a>(option: &str, names: impl Iterator<Item = &'a String>) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        ensure!(
            seen.insert(name),
            "{option} gives the name {name:?} twice; give another, as NAME=…"
        );
    }
    Ok(())
}

/// Alias, model and catalog of each target.
fn targets(args: &ServeArgs) -> anyhow::Result<Vec<(String, String, String)>> {
    let given: Vec<_> = args.target.iter().map(|text| target(text)).collect::<Result<_, _>>()?;
    if !given.is_empty() {
        return Ok(given);
    }
    match (&args.model[..], &args.catalog[..]) {
        ([model], [catalog]) => {
            Ok(vec![(catalog.name.clone(), model.name.clone(), catalog.name.clone())])
        }
        _ if args.data_dir.is_some() => Ok(Vec::new()),
        // Texts name catalogs without a model of recommendations.
        ([], _) => Ok(Vec::new()),
        (models, catalogs) => bail!(
            "there are {} models and {} catalogs: say which go together with --target ALIAS=MODEL:CATALOG",
            models.len(),
            catalogs.len()
        ),
    }
}

fn target(text: &str) -> anyhow::Result<(String, String, String)> {
    let parts = text.split_once('=').and_then(|(alias, pair)| Some((alias, pair.split_once(':')?)));
    let (alias, (model, catalog)) = parts.with_context(|| {
        format!("--target {text}: it is ALIAS=MODEL:CATALOG, such as shop=a:items")
    })?;
    Ok((alias.to_owned(), model.to_owned(), catalog.to_owned()))
}
