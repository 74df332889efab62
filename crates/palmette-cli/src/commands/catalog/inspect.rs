//! `palmette catalog inspect`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_catalog::{Catalog, CatalogState, readers};
use serde_json::{Value, json};

use super::stats::stats_text;
use crate::commands::items::{codes_text, item_json, name_text, shortened};
use crate::commands::loading::{number, open_catalog};
use crate::output::{grouped, print, print_json, table, visible};

/// Most items listed for a prefix or a semantic ID.
const LISTED: u64 = 20;

const AFTER_HELP: &str = "\
The table has a line for each level, the place of a code in a semantic ID:
  codebook               codes there may be, as --codes-per-level gave it or as the items use them
  used                   codes that some item has there
  prefixes               different beginnings of semantic IDs that end at this level
  most that follow one   the most codes that continue one prefix of the level before
  kept, bytes            how the index holds the level, and what that takes: masks are a bit for
                         each possible code of each possible prefix, ranks where the items of such
                         a prefix begin; else codes are stored, one for each prefix or each item";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct InspectArgs {
    /// Catalog, made by `palmette catalog build`, or directory of a live one, whose segments are put together first
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

pub(super) fn inspect(args: &InspectArgs) -> anyhow::Result<()> {
    let catalog = open_catalog(&args.catalog)?;
    match (&args.item, &args.prefix) {
        (Some(id), _) => inspect_item(&catalog, id, args.json),
        (None, Some(prefix)) => inspect_prefix(&catalog, prefix, args.json),
        (None, None) if args.json => print_json(&catalog.stats()),
        (None, None) => print(&stats_text(&catalog)),
    }
}

fn inspect_item(catalog: &Catalog, id: &str, as_json: bool) -> anyhow::Result<()> {
    let rank = number(&Arc::new(catalog.clone()).into(), id)?;
    let codes = catalog.codes(rank);
    let sharing: Vec<u64> = catalog.find(&codes).filter(|&other| other != rank).collect();
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
            let allowed = catalog.children(&state).len();
            format!("no item continues with code {code} at level {level}; {allowed} other codes do")
        })?;
    }
    let children: Vec<(u32, CatalogState)> = catalog.children(&state);
    let here = catalog.items_at(&state);
    if as_json {
        let children: Vec<Value> = children
            .iter()
            .map(|(code, child)| json!({"code": code, "items": num_items(child)}))
            .collect();
        let items: Vec<Value> = here.map(|rank| item_json(catalog, rank)).collect();
        let below = num_items(&state);
        let document =
            json!({"prefix": codes, "items_below": below, "items": items, "children": children});
        return print_json(&document);
    }
    let spelled = match codes.is_empty() {
        true => "the start".to_owned(),
        false => codes_text(catalog, &codes),
    };
    let below = grouped(num_items(&state));
    let mut text = format!("{spelled}: {below} items, {} codes may follow\n", children.len());
    let shown = here.start..here.end.min(here.start + LISTED);
    for rank in shown.clone() {
        text +=
            &format!("  is item {}: {}\n", visible(catalog.id(rank)), name_text(catalog, rank, 70));
    }
    if shown.end < here.end {
        text += &format!("  and {} more\n", here.end - shown.end);
    }
    if !children.is_empty() {
        let rows: Vec<Vec<String>> = children
            .iter()
            .map(|(code, child)| {
                let example = name_text(catalog, child.ranks().start, 60);
                let items = grouped(num_items(child));
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

/// Items that begin with a prefix.
fn num_items(state: &CatalogState) -> u64 {
    let ranks = state.ranks();
    ranks.end - ranks.start
}
