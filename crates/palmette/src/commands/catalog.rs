//! `palmette catalog`: build and inspect.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use palmette_catalog::readers::{self, AttributeReport, Format, SourceItems};
use palmette_catalog::{BuildOptions, Catalog, CatalogState};
use serde_json::{Value, json};

use super::items::{codes_text, item_json, name_text, shortened};
use super::loading::rank;
use crate::output::{bytes, grouped, make_parent, print, print_json, reading_bar, table, visible};

/// Most items that `inspect` lists for a prefix or a semantic ID.
const LISTED: u32 = 20;

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Build a catalog from a file of items
    ///
    /// Formats, told by the file's name or --format:
    ///   index-json  .json   {"0": ["<a_183>", "<b_7>"], …} or {"0": [183, 7], …}
    ///   info-text   .txt    <a_183><b_7> TAB title TAB id
    ///   jsonl       .jsonl  {"item_id": "P1", "codes": [183, 7], "title": …, more attributes}
    ///   csv         .csv    a header with item_id and codes, or code_0, code_1, …; more columns
    ///
    /// Items may come in any order, semantic IDs may differ in length, and several items may share
    /// one. A bad line is an error that names it; nothing is dropped.
    #[command(verbatim_doc_comment)]
    Build(BuildArgs),
    /// Show what is in a catalog: its levels, an item, or what follows a prefix
    Inspect(InspectArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// File of items
    items: PathBuf,
    /// Catalog to write
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Format of the items [default: by the file's name]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// More attributes: {"item id": {"title": …, …}, …} as JSON, or JSON lines with item_id
    #[arg(long, value_name = "FILE")]
    attributes: Option<PathBuf>,
    /// Codebook sizes, such as 256,256,256: a code that is not below its level's size is an error
    /// [default: as the items use them]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    codes_per_level: Option<Vec<u32>>,
    /// Refuse semantic IDs that do not have this many codes
    #[arg(long, value_name = "N")]
    levels: Option<usize>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Catalog, made by `palmette catalog build`
    catalog: PathBuf,
    /// Show this item
    #[arg(long, value_name = "ID", conflicts_with = "prefix")]
    item: Option<String>,
    /// Show what follows these codes, such as 183,7 or 183-7 or "<a_183><b_7>"; "" for the start
    #[arg(long, value_name = "CODES")]
    prefix: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &CatalogCommand) -> anyhow::Result<()> {
    match command {
        CatalogCommand::Build(args) => build(args),
        CatalogCommand::Inspect(args) => inspect(args),
    }
}

fn build(args: &BuildArgs) -> anyhow::Result<()> {
    let start = Instant::now();
    let Some(format) = args.format.or_else(|| Format::from_path(&args.items)) else {
        let known = Format::ALL.map(|format| format.to_string()).join(", ");
        bail!("{}: the name tells no format; say --format, one of {known}", args.items.display());
    };
    for source in [Some(&args.items), args.attributes.as_ref()].into_iter().flatten() {
        ensure!(
            !is_same_file(source, &args.out),
            "--out {} is the file {}, which would be lost; name another file",
            args.out.display(),
            source.display()
        );
    }
    let file_size = std::fs::metadata(&args.items).map_or(0, |meta| meta.len());
    let bar = reading_bar(file_size, args.json);
    bar.set_message("reading items");
    let mut source = match File::open(&args.items) {
        Ok(file) => readers::parse_items(&args.items, BufReader::new(bar.wrap_read(file)), format)?,
        // It cannot be read by the other way either, which knows how to say so.
        Err(_) => readers::read_items(&args.items, format)?,
    };
    bar.set_message("reading attributes");
    let report = match &args.attributes {
        Some(path) => Some((path, readers::read_attributes(path, &mut source)?)),
        None => None,
    };
    bar.set_message("sorting and indexing");
    let catalog = build_from(source, args)?;
    bar.set_message("writing");
    make_parent(&args.out)?;
    catalog.write(&args.out)?;
    bar.finish_and_clear();

    let file_bytes = std::fs::metadata(&args.out).map_or(0, |meta| meta.len() as usize);
    let seconds = start.elapsed().as_secs_f64();
    if args.json {
        return print_json(&json!({
            "out": args.out,
            "file_bytes": file_bytes,
            "seconds": seconds,
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
    print(&format!(
        "{}\n{}: {} in {seconds:.1} s",
        stats_text(&catalog),
        args.out.display(),
        bytes(file_bytes)
    ))
}

fn build_from(source: SourceItems, args: &BuildArgs) -> anyhow::Result<Catalog> {
    let options =
        BuildOptions { codes_per_level: args.codes_per_level.clone(), num_levels: args.levels };
    Catalog::build(source, &options).map_err(|error| {
        let at_fault = match error.line() {
            Some(_) => args.items.display().to_string(),
            None => "--codes-per-level".to_owned(),
        };
        anyhow::Error::from(error).context(at_fault)
    })
}

/// Whether both paths lead to one file that exists.
fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
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

fn inspect(args: &InspectArgs) -> anyhow::Result<()> {
    let catalog = Catalog::open(&args.catalog)?;
    match (&args.item, &args.prefix) {
        (Some(id), _) => inspect_item(&catalog, id, args.json),
        (None, Some(prefix)) => inspect_prefix(&catalog, prefix, args.json),
        (None, None) if args.json => print_json(&catalog.stats()),
        (None, None) => print(&stats_text(&catalog)),
    }
}

fn inspect_item(catalog: &Catalog, id: &str, as_json: bool) -> anyhow::Result<()> {
    let rank = rank(catalog, id)?;
    let codes = catalog.codes(rank);
    let sharing: Vec<u32> = catalog.find(&codes).filter(|&other| other != rank).collect();
    let attributes = catalog.attributes(rank);
    if as_json {
        let shared_with: Vec<&str> = sharing.iter().map(|&other| catalog.id(other)).collect();
        return print_json(&json!({
            "id": id,
            "rank": rank,
            "codes": codes,
            "attributes": attributes,
            "shared_with": shared_with,
        }));
    }
    let spelled = codes_text(catalog, &codes);
    let mut text = format!("item {}\nsemantic ID  {spelled}\nrank         {rank}\n", visible(id));
    for (key, value) in &attributes {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text += &format!("{:<12} {}\n", visible(key), visible(&shortened(&value, 200)));
    }
    if !sharing.is_empty() {
        let others: Vec<&str> =
            sharing.iter().take(LISTED as usize).map(|&other| catalog.id(other)).collect();
        text += &format!(
            "{} more items share the ID: {}\n",
            sharing.len(),
            visible(&others.join(", "))
        );
    }
    print(&text)
}

fn inspect_prefix(catalog: &Catalog, prefix: &str, as_json: bool) -> anyhow::Result<()> {
    let codes = prefix_codes(catalog, prefix)?;
    let mut state = catalog.start();
    for (level, &code) in codes.iter().enumerate() {
        state = catalog.child(&state, code).with_context(|| {
            let allowed = catalog.children(state.clone()).count();
            format!("no item continues with code {code} at level {level}; {allowed} other codes do")
        })?;
    }
    let children: Vec<(u32, CatalogState)> = catalog.children(state.clone()).collect();
    let here = catalog.items_at(&state);
    if as_json {
        let children: Vec<Value> = children
            .iter()
            .map(|(code, child)| json!({"code": code, "items": child.ranks().len()}))
            .collect();
        let items: Vec<Value> = here.map(|rank| item_json(catalog, rank)).collect();
        let below = state.ranks().len();
        let document =
            json!({"prefix": codes, "items_below": below, "items": items, "children": children});
        return print_json(&document);
    }
    let spelled = match codes.is_empty() {
        true => "the start".to_owned(),
        false => codes_text(catalog, &codes),
    };
    let below = grouped(state.ranks().len() as u64);
    let mut text = format!("{spelled}: {below} items, {} codes may follow\n", children.len());
    let shown = here.start..here.end.min(here.start + LISTED);
    for rank in shown.clone() {
        text +=
            &format!("  is item {}: {}\n", visible(catalog.id(rank)), name_text(catalog, rank, 70));
    }
    if shown.len() < here.len() {
        text += &format!("  and {} more\n", here.len() - shown.len());
    }
    if !children.is_empty() {
        let rows: Vec<Vec<String>> = children
            .iter()
            .map(|(code, child)| {
                let example = name_text(catalog, child.ranks().start, 60);
                let items = grouped(child.ranks().len() as u64);
                vec![code.to_string(), items, example]
            })
            .collect();
        text += &table(&[" code", " items", "the first of them"], &rows);
    }
    print(&text)
}

/// The codes of a prefix in any spelling that `inspect` prints; letters must be the catalog's.
fn prefix_codes(catalog: &Catalog, text: &str) -> anyhow::Result<Vec<u32>> {
    let codes = readers::parse_codes(text).context("--prefix")?;
    let spelled = codes_text(catalog, &codes);
    let given: String = text.chars().filter(|&c| c != ',' && !c.is_whitespace()).collect();
    // More codes than levels have no spelling; that no item has them says more.
    ensure!(
        !given.contains('<') || given == spelled || codes.len() > catalog.num_levels(),
        "--prefix: {text:?} is spelled {spelled} in this catalog"
    );
    Ok(codes)
}

fn stats_text(catalog: &Catalog) -> String {
    let stats = catalog.stats();
    let mut text = format!(
        "{} items, {} semantic IDs",
        grouped(u64::from(stats.num_items)),
        grouped(u64::from(stats.num_ids))
    );
    if stats.items_in_collisions > 0 {
        text += &format!(
            "; {} items share theirs with others, up to {} on one",
            grouped(u64::from(stats.items_in_collisions)),
            stats.largest_collision
        );
    }
    let lengths: Vec<String> = (0..stats.lengths.len())
        .filter(|&length| stats.lengths[length] > 0)
        .map(|length| format!("{} of {length} codes", grouped(u64::from(stats.lengths[length]))))
        .collect();
    if lengths.len() > 1 {
        text += &format!("\nlengths differ: {}", lengths.join(", "));
    }
    text += "\n";
    let rows: Vec<Vec<String>> = stats
        .levels
        .iter()
        .enumerate()
        .map(|(level, at)| {
            let spelled = at.prefix.as_ref().map_or_else(String::new, |p| format!(" <{p}_…>"));
            vec![
                format!("{level}{spelled}"),
                grouped(u64::from(at.codebook_size)),
                grouped(at.codes_used as u64),
                grouped(at.num_prefixes as u64),
                grouped(at.max_branching as u64),
            ]
        })
        .collect();
    if !rows.is_empty() {
        text +=
            &table(&["level", " codebook", " used", " prefixes", " most that follow one"], &rows);
    }
    let per_item = stats.index_bytes as f64 / f64::from(stats.num_items.max(1));
    text += &format!(
        "index {} ({per_item:.1} bytes an item), ids and attributes {}",
        bytes(stats.index_bytes),
        bytes(stats.item_bytes)
    );
    text
}
