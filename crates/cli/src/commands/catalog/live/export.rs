//! `palmette catalog live export`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::catalog::build::replace;
use crate::commands::catalog::stats::stats_text;
use crate::commands::loading::{ViewArgs, open_snapshot};
use crate::output::{print, print_json, progress_bar};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    #[command(flatten)]
    view: ViewArgs,
    /// Catalog to write
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Replace a catalog that is there even where the live one holds no items
    #[arg(long)]
    allow_empty: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let snapshot = open_snapshot(&args.dir, &args.view)?;
    let bar = progress_bar(snapshot.num_items() as usize, "items", args.json);
    let catalog = snapshot.to_catalog(|| bar.inc(1))?;
    replace(&args.out, &catalog, args.allow_empty)?;
    bar.finish_and_clear();
    if args.json { print_json(&catalog.stats()) } else { print(&stats_text(&catalog)) }
}
