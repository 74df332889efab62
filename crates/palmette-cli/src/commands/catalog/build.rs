//! `palmette catalog build`.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::{bail, ensure};
use clap::Args;
use indicatif::ProgressBar;
use palmette_catalog::readers::{
    self, AttributeReport, Format, ItemSink, ReadSummary, SourceItems,
};
use palmette_catalog::{
    BuildError, BuildOptions, BuildStage, Catalog, CatalogBuilder, ColumnKind, UnknownKind,
};
use serde_json::json;

use super::stats::stats_text;
use crate::commands::loading::set_threads;
use crate::memory::peak_resident_bytes;
use crate::output::{bytes, grouped, make_parent, print, print_json, reading_bar, visible};
use crate::tables::{self, TableFormat};

const AFTER_HELP: &str = "\
Examples:
  palmette catalog build items.parquet --out shop.palm
  palmette catalog build items.jsonl --out shop.palm --column published=timestamp
  palmette catalog build ids.json --attributes titles.json --out shop.palm";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BuildArgs {
    /// File of items, in one of the formats above
    items: PathBuf,
    /// Catalog to write, such as shop.palm; a file of that name is replaced
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Format of the items [default: by the file's name or first bytes]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ItemFormat>,
    /// More attributes: {"item id": {"title": …, …}, …} as JSON, or JSON lines with item_id; all items
    /// are then in memory at once
    #[arg(long, value_name = "FILE")]
    attributes: Option<PathBuf>,
    /// Of what kind an attribute is, such as published=timestamp; once for each. Kinds: keyword,
    /// number, boolean, timestamp, keywords (lists of text), json (not filtered on)
    /// [default: as the values look; timestamps only where a table says so]
    #[arg(long, value_name = "NAME=KIND", value_parser = column)]
    column: Vec<(String, ColumnKind)>,
    /// Codebook sizes, such as 256,256,256: a code that is not below its level's size is an error
    /// [default: as the items use them]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    codes_per_level: Option<Vec<u32>>,
    /// Refuse semantic IDs that do not have this many codes [default: lengths may differ]
    #[arg(long, value_name = "N")]
    levels: Option<usize>,
    /// Keep the first D levels as bit masks, a row for each possible prefix, and a table: a step is
    /// fastest there, and each such level is many times larger than the one before
    /// [default: as many as cost at most a byte an item]
    #[arg(long, value_name = "D")]
    dense: Option<usize>,
    /// Threads that sort and index; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Any format that items are read from.
#[derive(Clone, Copy, Debug)]
enum ItemFormat {
    Text(Format),
    Table(TableFormat),
}

impl FromStr for ItemFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let table = name.parse().map(Self::Table);
        table
            .or_else(|_| name.parse().map(Self::Text))
            .map_err(|_| format!("unknown format {name:?}; the formats are {}", format_names()))
    }
}

impl fmt::Display for ItemFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(format) => format.fmt(f),
            Self::Table(format) => format.fmt(f),
        }
    }
}

fn format_names() -> String {
    let text = Format::ALL.map(|format| format.to_string());
    let tables = TableFormat::ALL.map(|format| format.to_string());
    [text.as_slice(), &tables].concat().join(", ")
}

/// `name=kind`.
fn column(text: &str) -> Result<(String, ColumnKind), String> {
    let (name, kind) = text.rsplit_once('=').ok_or("write NAME=KIND, such as price=number")?;
    if name.is_empty() {
        return Err(
            "no attribute is named before the =; write NAME=KIND, such as price=number".into()
        );
    }
    let kind = kind.parse().map_err(|e: UnknownKind| e.to_string())?;
    Ok((name.to_owned(), kind))
}

pub(super) fn build(args: &BuildArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    set_threads(args.threads)?;
    for source in [Some(&args.items), args.attributes.as_ref()].into_iter().flatten() {
        ensure!(
            !is_same_file(source, &args.out),
            "--out {} is the file {}, which would be lost; name another file",
            args.out.display(),
            source.display()
        );
    }
    ensure!(
        !args.items.is_dir(),
        "{} is a folder; give the file of items in it",
        args.items.display()
    );
    let file_size = std::fs::metadata(&args.items).map_or(0, |meta| meta.len());
    let format = format_of(args)?;
    let bar = reading_bar(file_size, args.json);
    bar.set_message("reading items");
    let (catalog, report) = match &args.attributes {
        None => (stream(args, format, &bar)?, None),
        Some(path) => {
            let (catalog, report) = merge(args, format, path, &bar)?;
            (catalog, Some((path, report)))
        }
    };
    bar.set_message("writing");
    make_parent(&args.out)?;
    catalog.write(&args.out)?;
    bar.finish_and_clear();

    let file_bytes = std::fs::metadata(&args.out).map_or(0, |meta| meta.len() as usize);
    let seconds = start.elapsed().as_secs_f64();
    let peak = peak_resident_bytes();
    if args.json {
        return print_json(&json!({
            "out": args.out,
            "file_bytes": file_bytes,
            "seconds": seconds,
            "peak_bytes": peak,
            "stats": catalog.stats(),
            "attributes": report.as_ref().map(|(_, report)| json!({
                "items_without": report.num_without_attributes,
                "unknown_ids": report.num_unknown,
                "replaced_values": report.num_replaced,
            })),
        }));
    }
    if let Some((path, report)) = &report {
        warn_of_attributes(path, report);
    }
    warn_of_columns(&catalog);
    print(&format!(
        "{}\n{}: {} in {seconds:.1} s{}",
        stats_text(&catalog),
        args.out.display(),
        bytes(file_bytes),
        peak.map_or_else(String::new, |peak| format!(
            ", at most {} of memory",
            bytes(peak as usize)
        ))
    ))
}

fn format_of(args: &BuildArgs) -> anyhow::Result<ItemFormat> {
    // A file that cannot be read is reported where it is read.
    let table = TableFormat::detect(&args.items).ok().flatten();
    let table = table.or_else(|| TableFormat::from_path(&args.items)).map(ItemFormat::Table);
    let text = || Format::from_path(&args.items).map(ItemFormat::Text);
    let Some(format) = args.format.or(table).or_else(text) else {
        let known = format_names();
        bail!("{}: the name tells no format; say --format, one of {known}", args.items.display());
    };
    Ok(format)
}

/// Reads items into a builder, one at a time.
fn stream(args: &BuildArgs, format: ItemFormat, bar: &ProgressBar) -> anyhow::Result<Catalog> {
    let mut builder = CatalogBuilder::new(options(args)).map_err(|e| at_fault(e, args))?;
    let summary = read(args, format, &mut builder, bar)?;
    let stage = |stage| {
        bar.set_message(match stage {
            BuildStage::Sorting => "sorting",
            BuildStage::Indexing => "indexing",
            BuildStage::OrderingItems => "ordering ids and attributes",
        })
    };
    builder.finish(summary.level_prefixes, stage).map_err(|e| at_fault(e, args))
}

/// Reads all items, then the attributes of a second file.
fn merge(
    args: &BuildArgs,
    format: ItemFormat,
    attributes: &Path,
    bar: &ProgressBar,
) -> anyhow::Result<(Catalog, AttributeReport)> {
    let mut source = SourceItems::default();
    let summary = read(args, format, &mut source, bar)?;
    source.level_prefixes = summary.level_prefixes;
    bar.set_message("reading attributes");
    let report = readers::read_attributes(attributes, &mut source)?;
    bar.set_message("sorting and indexing");
    let catalog = Catalog::build(source, &options(args)).map_err(|e| at_fault(e, args))?;
    Ok((catalog, report))
}

fn read(
    args: &BuildArgs,
    format: ItemFormat,
    sink: &mut impl ItemSink,
    bar: &ProgressBar,
) -> anyhow::Result<ReadSummary> {
    let path = &args.items;
    Ok(match format {
        ItemFormat::Text(format) => match File::open(path) {
            Ok(file) => {
                let reader = BufReader::with_capacity(1 << 20, bar.wrap_read(file));
                readers::parse_into(path, reader, format, sink)?
            }
            // It cannot be read by the other way either, which knows how to say so.
            Err(_) => readers::read_into(path, format, sink)?,
        },
        ItemFormat::Table(format) => {
            let bytes = bar.length().unwrap_or(0);
            let mut progress = |rows: u64, of: u64| {
                let share = rows as f64 / of.max(1) as f64;
                bar.set_position((bytes as f64 * share) as u64);
            };
            tables::read_into(path, format, None, sink, &mut progress)?
        }
    })
}

fn options(args: &BuildArgs) -> BuildOptions {
    BuildOptions {
        codes_per_level: args.codes_per_level.clone(),
        num_levels: args.levels,
        dense_levels: args.dense,
        dense_bytes: None,
        columns: args.column.clone(),
    }
}

/// Says which file or option an error is about.
fn at_fault(error: BuildError, args: &BuildArgs) -> anyhow::Error {
    let at_fault = match error.option() {
        None => args.items.display().to_string(),
        Some("codes_per_level") => "--codes-per-level".to_owned(),
        Some("dense_levels") => "--dense".to_owned(),
        Some("columns") => "--column".to_owned(),
        Some(option) => option.to_owned(),
    };
    anyhow::Error::from(error).context(at_fault)
}

/// Whether both paths lead to one file that exists.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// An attribute that is declared and that no item has is mostly a name spelled wrong.
fn warn_of_columns(catalog: &Catalog) {
    let (columns, num_items) = (catalog.columns().columns(), catalog.num_items());
    for column in columns.filter(|column| num_items > 0 && column.num_missing == num_items) {
        let name = visible(column.name);
        eprintln!("note: no item has the attribute {name:?}, which is kept as {}", column.kind);
    }
}

/// Attributes that found no item, items that found none, and values that gave way are usual but
/// worth saying.
fn warn_of_attributes(path: &Path, report: &AttributeReport) {
    let path = path.display();
    if report.num_without_attributes > 0 {
        let examples = visible(&report.without_attributes.join(", "));
        let count = grouped(report.num_without_attributes as u64);
        eprintln!("note: {path} has nothing on {count} items, such as {examples}");
    }
    if report.num_unknown > 0 {
        let examples = visible(&report.unknown.join(", "));
        let count = grouped(report.num_unknown as u64);
        eprintln!("note: {path} has {count} ids that no item has, such as {examples}");
    }
    if report.num_replaced > 0 {
        let count = grouped(report.num_replaced as u64);
        eprintln!("note: {path} replaced {count} values that the items had already");
    }
}
