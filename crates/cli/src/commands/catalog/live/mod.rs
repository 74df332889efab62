//! `palmette catalog live`: catalogs that change.

mod apply;
mod dead_letters;
mod expire;
mod export;
mod updates;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use palmette_catalog::{Catalog, ColumnKind};
use palmette_catalog_live::{
    LiveCatalog, LiveOptions, LiveReader, LiveStatus, ReaderOptions, Schema,
};
use palmette_recommend::Prompts;
use serde_json::json;

use crate::commands::catalog::build::column;
use crate::output::{bytes, grouped, print, print_json, table, visible};

#[derive(Debug, Subcommand)]
pub(crate) enum LiveCommand {
    /// Make a live catalog in a directory, with the items of a catalog or with none
    Init(InitArgs),
    /// Apply updates: a JSON object a line, an item to insert or replace, or {"delete": "id"}
    ///
    /// An item is written as for `catalog build`; without codes, attributes of an item that is
    /// there change:
    ///   {"item_id": "P1", "codes": [183, 7], "title": …, more attributes}
    ///   {"item_id": "P1", "price": 19.9, "badge": null}
    ///   {"delete": "P2"}
    ///
    /// A deleted item is never recommended; its codes stay known, for histories that have it.
    ///
    /// Lines are applied in batches, each whole or not at all: when a batch is acknowledged (see
    /// --progress), it is on disk and outlives a crash. A bad line stops at its batch and is named;
    /// the batches before it stay applied. With --dead-letters it is put aside and the others are
    /// applied.
    #[command(verbatim_doc_comment)]
    Apply(apply::ApplyArgs),
    /// Show generation, items, segments, log and kept generations
    Status(DirArgs),
    /// Delete the items whose time has come, by an attribute that is a timestamp
    Expire(expire::ExpireArgs),
    /// Widen the codebooks: later items may have larger codes, as of a model that was trained anew
    Widen(WidenArgs),
    /// Keep the present generation, so that it can be gone back to
    Keep(KeepArgs),
    /// Let go of a kept generation
    Forget(GenerationArgs),
    /// Go back to a kept generation: publishes its contents as a new one
    Rollback(GenerationArgs),
    /// Merge all segments into one without tombstones, and put everything in files
    Merge(DirArgs),
    /// Write the present generation, or a kept one, as a catalog file
    Export(export::ExportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Directory to make
    dir: PathBuf,
    /// Catalog whose items it begins with; its codebook sizes and kinds of attributes then bind all
    /// later items
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Size of each level's codebook, as 256,256,256, where it is not the catalog's
    #[arg(long, value_name = "SIZES", value_delimiter = ',', conflicts_with = "model")]
    codes_per_level: Option<Vec<u32>>,
    /// Take the codebook sizes of this model, so that no item comes in that it cannot spell; IDs
    /// may be shorter where it has a token that ends them
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Kind of an attribute that items will have, such as valid_to=timestamp; once for each. Kinds:
    /// keyword, number, boolean, timestamp, keywords (lists of text), json (anything) [default:
    /// that of its first value, which is never a timestamp]
    #[arg(long, value_name = "NAME=KIND", value_parser = column)]
    column: Vec<(String, ColumnKind)>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DirArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// Name for it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WidenArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// Size of each level's codebook, none smaller than now; more levels may follow
    #[arg(long, value_name = "SIZES", value_delimiter = ',', required_unless_present = "model")]
    codes_per_level: Option<Vec<u32>>,
    /// Take the codebook sizes of this model
    #[arg(long, value_name = "DIR", conflicts_with = "codes_per_level")]
    model: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GenerationArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// A generation that `palmette catalog live status` lists as kept, by number or name
    generation: String,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &LiveCommand) -> anyhow::Result<()> {
    match command {
        LiveCommand::Init(args) => init(args),
        LiveCommand::Apply(args) => apply::run(args),
        LiveCommand::Status(args) => show(&reader(&args.dir)?.status(), args.json),
        LiveCommand::Expire(args) => expire::run(args),
        LiveCommand::Widen(args) => {
            let codebooks = codebooks(args.codes_per_level.as_deref(), args.model.as_deref())?;
            let sizes = codebooks.map(|codebooks| codebooks.sizes).unwrap_or_default();
            let generation = open(&args.dir)?.widen(&sizes)?;
            let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
            let text = format!("generation {generation}: codebooks of {}", sizes.join(", "));
            said(args.json, generation, &text)
        }
        LiveCommand::Keep(args) => {
            let generation = open(&args.dir)?.keep(args.name.as_deref())?;
            said(args.json, generation, &format!("generation {generation} is kept"))
        }
        LiveCommand::Forget(args) => {
            let live = open(&args.dir)?;
            let generation = live.kept_generation(&args.generation)?;
            live.forget(generation)?;
            said(args.json, generation, &format!("generation {generation} is not kept any more"))
        }
        LiveCommand::Rollback(args) => {
            let live = open(&args.dir)?;
            let generation = live.rollback(live.kept_generation(&args.generation)?)?;
            let text = format!("generation {generation} has what {} had", args.generation);
            said(args.json, generation, &text)
        }
        LiveCommand::Merge(args) => {
            let live = open(&args.dir)?;
            live.merge_all()?;
            live.checkpoint()?;
            show(&live.status(), args.json)
        }
        LiveCommand::Export(args) => export::run(args),
    }
}

fn init(args: &InitArgs) -> anyhow::Result<()> {
    let initial = args.from.as_deref().map(Catalog::open).transpose()?;
    let codebooks = codebooks(args.codes_per_level.as_deref(), args.model.as_deref())?;
    if initial.is_none() && codebooks.is_none() {
        eprintln!(
            "note: any codes are taken; --codes-per-level or --model bind them to what a model can spell"
        );
    }
    let mut schema = initial.as_ref().map(Schema::of_catalog).unwrap_or_default();
    if let Some(Codebooks { sizes, lengths }) = codebooks {
        schema.num_levels = match lengths {
            Lengths::AsCatalog => schema.num_levels,
            Lengths::Whole => Some(sizes.len()),
            Lengths::Any => None,
        };
        schema.codes_per_level = Some(sizes);
    }
    // First, so that a kind that is not the catalog's is refused.
    schema.declare_columns(&args.column)?;
    let live = LiveCatalog::create_with(&args.dir, initial, Some(schema), LiveOptions::default())?;
    show(&live.status(), args.json)
}

/// Codebook sizes, and how many codes an ID may have under them.
struct Codebooks {
    sizes: Vec<u32>,
    lengths: Lengths,
}

/// Number of codes of an ID.
enum Lengths {
    /// Lengths of the catalog that is given.
    AsCatalog,
    /// One for each level.
    Whole,
    /// Any up to one for each level.
    Any,
}

/// Codebook sizes as given, or those that a model spells: without a token that ends IDs it spells
/// whole ones alone.
fn codebooks(given: Option<&[u32]>, model: Option<&Path>) -> anyhow::Result<Option<Codebooks>> {
    let of_model = |model: &Path| {
        let prompts = Prompts::read(model, None)?;
        let format = prompts.format();
        let sizes = format.levels.iter().map(|level| level.num_codes()).collect();
        let lengths = if format.end_tokens.is_empty() { Lengths::Whole } else { Lengths::Any };
        anyhow::Ok(Codebooks { sizes, lengths })
    };
    match model {
        Some(model) => of_model(model).map(Some),
        None => {
            Ok(given.map(|sizes| Codebooks { sizes: sizes.to_vec(), lengths: Lengths::AsCatalog }))
        }
    }
}

/// A reader of the present generation, beside whichever process writes.
fn reader(dir: &Path) -> anyhow::Result<LiveReader> {
    Ok(LiveReader::open_with(dir, ReaderOptions { poll: None, ..ReaderOptions::default() })?)
}

fn open(dir: &Path) -> anyhow::Result<LiveCatalog> {
    Ok(LiveCatalog::open_with(dir, LiveOptions::default())?)
}

fn said(as_json: bool, generation: u64, text: &str) -> anyhow::Result<()> {
    if as_json { print_json(&json!({"generation": generation})) } else { print(text) }
}

fn show(status: &LiveStatus, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return print_json(status);
    }
    let mut text = format!(
        "generation {}: {} items, {} tombstones; log {}\n",
        status.generation,
        grouped(status.num_items),
        grouped(status.num_tombstones),
        bytes(status.wal_bytes as usize)
    );
    let rows: Vec<Vec<String>> = status
        .segments
        .iter()
        .enumerate()
        .map(|(place, segment)| {
            vec![
                place.to_string(),
                grouped(segment.num_items),
                grouped(segment.num_live),
                bytes(segment.bytes as usize),
                if segment.is_written { "file" } else { "memory and log" }.to_owned(),
            ]
        })
        .collect();
    if !rows.is_empty() {
        text += &table(&["segment", " items", " there", " bytes", "in"], &rows);
    }
    for kept in &status.kept {
        let name = kept.name.as_deref().map_or_else(String::new, |n| format!(" ({})", visible(n)));
        text += &format!("kept {}{name}: {} items\n", kept.generation, grouped(kept.num_items));
    }
    if status.torn_bytes > 0 {
        let torn = bytes(status.torn_bytes as usize);
        text += &format!("cut off {torn} of a batch that was not acknowledged\n");
    }
    if let Some(error) = &status.background_error {
        text += &format!("in the background: {}\n", visible(error));
    }
    print(&text)
}
