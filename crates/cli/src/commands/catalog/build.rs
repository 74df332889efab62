//! `palmette catalog build`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use indicatif::ProgressBar;
use palmette_catalog::readers::{AttributeReport, ItemSink, SourceItems, SourceOptions};
use palmette_catalog::{
    BuildError, BuildOptions, BuildStage, Catalog, CatalogBuilder, ColumnKind, UnknownKind, nearest,
};
use palmette_catalog_live::LiveCatalog;
use serde_json::{Map, Value, json};

use super::conflict::Conflict;
use super::sources::{SourceArgs, Sources};
use super::stats::stats_text;
use crate::commands::loading::set_threads;
use crate::memory::peak_resident_bytes;
use crate::output::{
    bytes, grouped, is_same_file, make_parent, print, print_json, reading_bar, visible,
};

const AFTER_HELP: &str = "\
Examples:
  palmette catalog build items.parquet --out shop.palm
  palmette catalog build items.jsonl --out shop.palm --column published=timestamp
  palmette catalog build ids.json --attributes titles.json --out shop.palm
  palmette catalog build part-*.jsonl.gz --id-column asin --codes-column c0,c1,c2 --out shop.palm
  produce | palmette catalog build - --format jsonl --out shop.palm";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// Catalog to write, such as shop.palm; a file of that name is replaced
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// More attributes, in a file that is read as those of items are, or {"item id": {"title": …,
    /// …}, …} as JSON; all items are then in memory at once
    #[arg(long, value_name = "FILE")]
    attributes: Option<PathBuf>,
    /// Kind of an attribute, such as published=timestamp; once for each. Kinds: keyword, number,
    /// boolean, timestamp, keywords (lists of text), json (anything) [default: as the values look;
    /// timestamps only where a table says so]
    #[arg(long, value_name = "NAME=KIND", value_parser = column)]
    column: Vec<(String, ColumnKind)>,
    /// Refuse attributes that hold values of several kinds, such as numbers and text; without it
    /// they are kept as json, which is reported
    #[arg(long)]
    strict_columns: bool,
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
    /// Replace a catalog that is there even where the files hold no items
    #[arg(long)]
    allow_empty: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// `name=kind`.
pub(super) fn column(text: &str) -> Result<(String, ColumnKind), String> {
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
    for source in args.sources.paths().iter().chain(&args.attributes) {
        ensure!(
            !is_same_file(source, &args.out),
            "--out {} is the file {}, which would be lost; name another file",
            args.out.display(),
            source.display()
        );
    }
    let bar = reading_bar(args.sources.bytes(), args.json);
    bar.set_message("reading items");
    let mut builder = CatalogBuilder::new(options(args)).map_err(|e| at_fault(e, None))?;
    let source_options = args.sources.options(&args.column, args.attributes.is_some())?;
    let (sources, report) = match &args.attributes {
        None => (args.sources.read(&source_options, &mut builder, &bar)?, None),
        Some(path) => {
            let (sources, report) = merge(args, &source_options, path, &mut builder, &bar)?;
            (sources, Some((path, report)))
        }
    };
    let conflicts: Vec<Conflict> =
        builder.conflicts().map(|conflict| Conflict::new(conflict, &sources)).collect();
    if args.strict_columns
        && let Some(conflict) = conflicts.first()
    {
        bail!("{conflict}; declare it, --column {}=KIND, or give one kind", conflict.name());
    }
    let catalog = finish(builder, &sources, &bar)?;
    check_left_out(&source_options, &sources, report.as_ref().map(|(_, report)| report), &catalog)?;
    bar.set_message("writing");
    replace(&args.out, &catalog, args.allow_empty)?;
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
            "conflicts": conflicts.iter().map(Conflict::to_json).collect::<Vec<_>>(),
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
    for conflict in &conflicts {
        eprintln!(
            "note: {conflict}; it is kept as json and filters cannot compare it; --column {}=KIND declares it, \
             --strict-columns refuses it",
            conflict.name()
        );
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

/// Writes a catalog; one without items takes no other's place unless that is asked for.
pub(super) fn replace(out: &Path, catalog: &Catalog, allow_empty: bool) -> anyhow::Result<()> {
    if catalog.num_items() == 0 {
        ensure!(
            allow_empty || !out.exists(),
            "there are no items, and {} would be replaced; --allow-empty asks for that",
            out.display()
        );
        eprintln!("note: there are no items; {} is an empty catalog", out.display());
    }
    // Its segments lie there under names that nothing else may take.
    let dir = out.parent().filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new("."));
    ensure!(
        !LiveCatalog::is_in(dir),
        "--out {}: {} is the directory of a live catalog, whose files are its own; name a file elsewhere",
        out.display(),
        dir.display()
    );
    make_parent(out)?;
    Ok(catalog.save(out)?)
}

/// Reads all items, adds the attributes of a second file, and hands them to the builder.
fn merge(
    args: &BuildArgs,
    options: &SourceOptions,
    attributes: &Path,
    builder: &mut CatalogBuilder,
    bar: &ProgressBar,
) -> anyhow::Result<(Sources, AttributeReport)> {
    let mut gathered = Gathered::default();
    let sources = args.sources.read(options, &mut gathered, bar)?;
    bar.set_message("reading attributes");
    let report = args.sources.read_attributes(attributes, options, &mut gathered.items, bar)?;
    builder.timestamps(&gathered.timestamps);
    builder.timestamps(&report.timestamps);
    let SourceItems { items, lines, .. } = gathered.items;
    builder.push_all(items, &lines).map_err(|e| at_fault(e, Some(&sources)))?;
    Ok((sources, report))
}

/// Items in memory, and the attributes that their source says are points in time.
#[derive(Default)]
struct Gathered {
    items: SourceItems,
    timestamps: Vec<String>,
}

impl ItemSink for Gathered {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        self.items.push(line, id, codes, attributes)
    }

    fn timestamps(&mut self, names: &[String]) {
        self.timestamps.extend_from_slice(names);
    }
}

fn finish(
    builder: CatalogBuilder,
    sources: &Sources,
    bar: &ProgressBar,
) -> anyhow::Result<Catalog> {
    let stage = |stage| {
        bar.set_message(match stage {
            BuildStage::Sorting => "sorting",
            BuildStage::Indexing => "indexing",
            BuildStage::OrderingItems => "ordering ids and attributes",
        })
    };
    let prefixes = sources.summary.level_prefixes.clone();
    builder.finish(prefixes, stage).map_err(|e| at_fault(e, Some(sources)))
}

/// Refuses the name of a field to leave out that no file has.
fn check_left_out(
    options: &SourceOptions,
    sources: &Sources,
    report: Option<&AttributeReport>,
    catalog: &Catalog,
) -> anyhow::Result<()> {
    let of_attributes = report.map_or(&[][..], |report| &report.left_out);
    let present = || sources.summary.left_out.iter().chain(of_attributes);
    let absent = options.left_out.iter().find(|name| !present().any(|other| other == *name));
    let Some(name) = absent.filter(|_| catalog.num_items() > 0) else { return Ok(()) };
    let names = || catalog.columns().columns().map(|column| column.name);
    let near = nearest(name, names());
    let near = near.map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
    let names: Vec<_> = names().map(visible).collect();
    bail!(
        "--leave-out: no item has a field {name:?}{near}; the attributes are {}",
        names.join(", ")
    )
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
fn at_fault(error: BuildError, sources: Option<&Sources>) -> anyhow::Error {
    if let (Some(sources), Some(line), Some(id)) = (sources, error.line(), error.id()) {
        return of_item(&error, sources, line, id);
    }
    let at_fault = match error.option() {
        Some("codes_per_level") => "--codes-per-level",
        Some("dense_levels") => "--dense",
        Some("columns") => "--column",
        Some(option) => option,
        None => return error.into(),
    };
    anyhow::Error::from(error).context(at_fault)
}

fn of_item(error: &BuildError, sources: &Sources, line: u64, id: &str) -> anyhow::Error {
    let place = |line: u64| {
        let (path, line) = sources.place(line);
        format!("{}, line {line}", path.display())
    };
    match (error.first_line(), error.rule()) {
        (Some(first), _) => anyhow!(
            "{}: item {id:?} stands twice, first in {}; ids must be unique",
            place(line),
            place(first)
        ),
        (None, rule) => anyhow!("{}: item {id:?} {}", place(line), rule.unwrap_or_default()),
    }
}

/// Warns of declared attributes that no item has: mostly a name spelled wrong.
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
