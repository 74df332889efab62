//! `palmette catalog live export`.

use std::path::PathBuf;

use clap::Args;
use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, CatalogBuilder};

use super::open;
use crate::commands::catalog::stats::stats_text;
use crate::output::{make_parent, print, print_json, progress_bar};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// Catalog to write
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let live = open(&args.dir)?;
    let snapshot = live.snapshot();
    let schema = snapshot.schema();
    let mut builder = CatalogBuilder::new(BuildOptions {
        codes_per_level: schema.codes_per_level.clone(),
        num_levels: schema.num_levels,
        dense_levels: None,
        columns: schema.columns.clone(),
    })?;
    let bar = progress_bar(snapshot.num_items() as usize, "items", args.json);
    for (number, at) in (1..).zip(snapshot.items()) {
        let item = snapshot.item(at);
        builder.push(number, item.id, &item.codes, item.attributes)?;
        bar.inc(1);
    }
    let catalog = builder.finish(schema.level_prefixes.clone(), |_| ())?;
    make_parent(&args.out)?;
    catalog.write(&args.out)?;
    bar.finish_and_clear();
    if args.json { print_json(&catalog.stats()) } else { print(&stats_text(&catalog)) }
}
