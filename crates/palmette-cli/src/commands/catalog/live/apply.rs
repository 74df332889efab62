//! `palmette catalog live apply`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use indicatif::ProgressBar;
use palmette_live::{Applied, LiveCatalog, LiveError, LiveOptions, SyncPolicy, Update};
use serde_json::json;

use super::updates::Updates;
use crate::output::{grouped, print, print_json, reading_bar};

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// File of updates, or - for the standard input
    updates: PathBuf,
    /// Lines of a batch
    #[arg(long, value_name = "N", default_value_t = 1000)]
    batch: usize,
    /// Print a line for each acknowledged batch: its generation and the last line that it holds
    #[arg(long)]
    progress: bool,
    /// Let the system choose when batches reach the disk: faster; they outlive a crash of the program
    /// and not a power failure
    #[arg(long)]
    no_sync: bool,
    /// Print one JSON document instead of text
    #[arg(long, conflicts_with = "progress")]
    json: bool,
}

pub(super) fn run(args: &ApplyArgs) -> anyhow::Result<()> {
    let most = 1 << 20;
    ensure!((1..=most).contains(&args.batch), "--batch is {}; it must be 1 to {most}", args.batch);
    let start = Instant::now();
    let sync = if args.no_sync { SyncPolicy::Never } else { SyncPolicy::EveryBatch };
    let live = LiveCatalog::open(&args.dir, LiveOptions { sync, ..LiveOptions::default() })?;
    let (name, bar, reader): (String, ProgressBar, Box<dyn BufRead>) =
        if args.updates.as_os_str() == "-" {
            ("standard input".to_owned(), ProgressBar::hidden(), Box::new(std::io::stdin().lock()))
        } else {
            let name = args.updates.display().to_string();
            let file = File::open(&args.updates).with_context(|| name.clone())?;
            let size = file.metadata().map_or(0, |meta| meta.len());
            let bar = reading_bar(size, args.json || args.progress);
            bar.set_message("applying");
            let reader = BufReader::new(bar.wrap_read(file));
            (name, bar, Box::new(reader))
        };
    let applied = apply_all(args, &live, &name, reader)?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    let num_items = live.snapshot().num_items();
    let Applied { generation, upserted, deleted, unknown_deletes } = applied;
    if args.json {
        return print_json(&json!({
            "generation": generation,
            "items": num_items,
            "upserted": upserted,
            "deleted": deleted,
            "unknown_deletes": unknown_deletes,
            "seconds": seconds,
        }));
    }
    if unknown_deletes > 0 {
        eprintln!("note: {} deletes named ids that no item has", grouped(unknown_deletes));
    }
    print(&format!(
        "generation {generation}: {} items; {} upserted, {} deleted in {seconds:.1} s",
        grouped(num_items),
        grouped(upserted),
        grouped(deleted)
    ))
}

fn apply_all(
    args: &ApplyArgs,
    live: &LiveCatalog,
    name: &str,
    reader: impl BufRead,
) -> anyhow::Result<Applied> {
    let mut updates = Updates::new(name, reader);
    let mut sum = Applied { generation: live.snapshot().generation(), ..Applied::default() };
    let (mut batch, mut lines): (Vec<Update>, Vec<u64>) = (Vec::new(), Vec::new());
    loop {
        let next = updates.next()?;
        let at_end = next.is_none();
        if let Some((line, update)) = next {
            lines.push(line);
            batch.push(update);
        }
        if batch.len() == args.batch || at_end && !batch.is_empty() {
            let applied = live.apply(&batch).map_err(|e| of_line(e, name, &lines))?;
            sum.generation = applied.generation;
            sum.upserted += applied.upserted;
            sum.deleted += applied.deleted;
            sum.unknown_deletes += applied.unknown_deletes;
            if args.progress {
                print(&format!("{} {}", applied.generation, lines[lines.len() - 1]))?;
            }
            (batch, lines) = (Vec::new(), Vec::new());
        }
        if at_end {
            return Ok(sum);
        }
    }
}

/// Says in which line the update stands that was refused.
fn of_line(error: LiveError, name: &str, lines: &[u64]) -> anyhow::Error {
    let line = error.update_index().and_then(|index| lines.get(index));
    match line {
        Some(line) => anyhow::Error::from(error).context(format!("{name}, line {line}")),
        None => error.into(),
    }
}
