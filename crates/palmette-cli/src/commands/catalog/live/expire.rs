//! `palmette catalog live expire`.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args;
use palmette_catalog::Filter;
use palmette_live::Applied;
use serde_json::json;

use super::open;
use crate::output::{grouped, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct ExpireArgs {
    /// Directory of the live catalog
    dir: PathBuf,
    /// The attribute, a timestamp, that says when an item goes
    #[arg(long, value_name = "ATTRIBUTE")]
    by: String,
    /// The moment to judge by, as RFC 3339 text or seconds since 1970 [default: now]
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ExpireArgs) -> anyhow::Result<()> {
    let now = moment(args.now.as_deref())?;
    let live = open(&args.dir)?;
    let Applied { generation, deleted, .. } = live.delete_where(&expired(&args.by, &now)?)?;
    if args.json {
        return print_json(&json!({"generation": generation, "expired": deleted}));
    }
    print(&format!("generation {generation}: {} items expired", grouped(deleted)))
}

/// The items whose attribute lies before a moment.
pub(super) fn expired(attribute: &str, now: &serde_json::Value) -> anyhow::Result<Filter> {
    let filter = json!({"must": [{"range": {attribute: {"lt": now}}}]});
    Filter::parse(&filter.to_string()).context("the filter of expired items")
}

/// A moment as a range of timestamps takes it: the text, or the seconds since 1970 of now.
pub(super) fn moment(given: Option<&str>) -> anyhow::Result<serde_json::Value> {
    match given {
        Some(text) => {
            Ok(text.parse::<i64>().map_or_else(|_| json!(text), |seconds| json!(seconds)))
        }
        None => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the system's clock")?;
            Ok(json!(now.as_secs()))
        }
    }
}
