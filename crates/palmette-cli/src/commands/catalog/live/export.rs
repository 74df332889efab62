//! `palmette catalog live export`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::catalog::stats::stats_text;
use crate::commands::loading::{ViewArgs, open_snapshot};
use crate::output::{make_parent, print, print_json, progress_bar};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    #[command(flatten)]
    view: ViewArgs,
    /// Catalog to write
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let snapshot = open_snapshot(&args.dir, &args.view)?;
    let bar = progress_bar(snapshot.num_items() as usize, "items", args.json);
    let catalog = snapshot.to_catalog(|| bar.inc(1))?;
    make_parent(&args.out)?;
    catalog.write(&args.out)?;
    bar.finish_and_clear();
    if args.json { print_json(&catalog.stats()) } else { print(&stats_text(&catalog)) }
}
