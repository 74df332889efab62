//! `palmette catalog live expire`.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;
use palmette_catalog_live::Applied;
use palmette_recommend::Moment;
use serde_json::json;

use super::open;
use crate::output::{grouped, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct ExpireArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// The attribute, a timestamp, that says when an item goes: at that moment it is gone
    #[arg(long, value_name = "ATTRIBUTE")]
    by: String,
    /// The moment to judge by, as RFC 3339 text or seconds since 1970 [default: now]
    #[arg(long, value_name = "TIME")]
    now: Option<Moment>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExpireArgs) -> anyhow::Result<()> {
    let now = args.now.clone().map_or_else(now, Ok)?;
    let Applied { generation, deleted, .. } = open(&args.dir)?.expire(&args.by, &now)?;
    if args.json {
        return print_json(&json!({"generation": generation, "expired": deleted}));
    }
    print(&format!("generation {generation}: {} items expired", grouped(deleted)))
}

/// The present, by the system's clock.
pub(super) fn now() -> anyhow::Result<Moment> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the system's clock")?;
    Ok(Moment::Seconds(now.as_secs_f64()))
}
