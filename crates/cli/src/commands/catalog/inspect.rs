//! `palmette catalog inspect`.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_catalog::index::ItemSet;
use palmette_catalog::{Catalog, Item, readers};
use palmette_catalog_live::{CatalogView, Child, Prefix};
use serde_json::{Value, json};

use super::stats::stats_text;
use crate::commands::items::{codes_text, item_json, name_text, shortened, tell_view};
use crate::commands::loading::{ViewArgs, number, open_view};
use crate::output::{grouped, print, print_json, table, visible};

/// Largest number of items listed for a prefix or a semantic ID.
const LISTED: usize = 20;

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
    /// Catalog, made by `palmette catalog build`, or directory of a live one
    catalog: PathBuf,
    #[command(flatten)]
    view: ViewArgs,
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
    let view = open_view(&args.catalog, &args.view)?;
    match (&args.item, &args.prefix) {
        (Some(id), _) => inspect_item(&view, id, args.json),
        (None, Some(prefix)) => inspect_prefix(&view, prefix, args.json),
        (None, None) => inspect_all(&view, args.json),
    }
}

/// The table of a catalog; of a live one, of each segment.
fn inspect_all(view: &CatalogView, as_json: bool) -> anyhow::Result<()> {
    let there =
        |catalog: &Catalog, live: Option<&ItemSet>| live.map_or(catalog.num_items(), ItemSet::len);
    match (view.generation(), as_json) {
        (None, true) => {
            print_json(&view.parts().next().expect("a frozen catalog is one").0.stats())
        }
        (None, false) => {
            print(&stats_text(view.parts().next().expect("a frozen catalog is one").0))
        }
        (Some(_), true) => {
            let segment = |(catalog, live): (&Catalog, Option<&ItemSet>)| {
                let mut stats = serde_json::to_value(catalog.stats())?;
                stats["num_live"] = there(catalog, live).into();
                Ok(stats)
            };
            let segments = view.parts().map(segment).collect::<anyhow::Result<Vec<_>>>()?;
            let mut document = json!({"num_items": view.num_items(), "segments": segments});
            tell_view(&mut document, view);
            print_json(&document)
        }
        (Some(generation), false) => {
            let mut text =
                format!("generation {generation}: {} items\n", grouped(view.num_items()));
            for (place, (catalog, live)) in view.parts().enumerate() {
                let there = grouped(there(catalog, live));
                text += &format!("\nsegment {place}, {there} of its items are there\n");
                text += &format!("{}\n", stats_text(catalog));
            }
            print(text.trim_end())
        }
    }
}

fn inspect_item(view: &CatalogView, id: &str, as_json: bool) -> anyhow::Result<()> {
    let number = number(view, id)?;
    let Item { codes, attributes, .. } = view.item(number);
    let sharing: Vec<u64> =
        view.find_codes(&codes).into_iter().filter(|&other| other != number).collect();
    if as_json {
        let shared_with: Vec<&str> = sharing.iter().map(|&other| view.id(other)).collect();
        let mut document = json!({
            "id": id,
            "rank": number,
            "codes": codes,
            "attributes": attributes,
            "shared_with": shared_with,
        });
        tell_view(&mut document, view);
        return print_json(&document);
    }
    let spelled = codes_text(view, &codes);
    let mut text = format!("item {}\nsemantic ID  {spelled}\nrank         {number}\n", visible(id));
    for (key, value) in &attributes {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text += &format!("{:<12} {}\n", visible(key), visible(&shortened(&value, 200)));
    }
    if !sharing.is_empty() {
        let others: Vec<&str> = sharing.iter().take(LISTED).map(|&other| view.id(other)).collect();
        text += &format!(
            "{} more items share the ID: {}\n",
            sharing.len(),
            visible(&others.join(", "))
        );
    }
    print(&text)
}

fn inspect_prefix(view: &CatalogView, prefix: &str, as_json: bool) -> anyhow::Result<()> {
    let codes = prefix_codes(view, prefix)?;
    let found = view.prefix(&codes);
    if found.num_items == 0 && !codes.is_empty() {
        let known = (0..codes.len()).rfind(|&len| view.prefix(&codes[..len]).num_items > 0);
        let known = known.unwrap_or(0);
        let allowed = view.prefix(&codes[..known]).children.len();
        bail!(
            "no item continues with code {} at level {known}; {allowed} other codes do",
            codes[known]
        );
    }
    let Prefix { num_items, items, children } = found;
    let name = |number: u64, width: usize| {
        let (catalog, rank) = view.place(number);
        name_text(catalog, rank, width)
    };
    if as_json {
        let children: Vec<Value> = children
            .iter()
            .map(|child| json!({"code": child.code, "items": child.num_items}))
            .collect();
        let item = |&number: &u64| {
            let (catalog, rank) = view.place(number);
            item_json(catalog, rank)
        };
        let items: Vec<Value> = items.iter().map(item).collect();
        let mut document = json!({"prefix": codes, "items_below": num_items, "items": items, "children": children});
        tell_view(&mut document, view);
        return print_json(&document);
    }
    let spelled = match codes.is_empty() {
        true => "the start".to_owned(),
        false => codes_text(view, &codes),
    };
    let below = grouped(num_items);
    let mut text = format!("{spelled}: {below} items, {} codes may follow\n", children.len());
    for &number in items.iter().take(LISTED) {
        text += &format!("  is item {}: {}\n", visible(view.id(number)), name(number, 70));
    }
    if items.len() > LISTED {
        text += &format!("  and {} more\n", items.len() - LISTED);
    }
    if !children.is_empty() {
        let row = |child: &Child| {
            vec![child.code.to_string(), grouped(child.num_items), name(child.first, 60)]
        };
        let rows: Vec<Vec<String>> = children.iter().map(row).collect();
        text += &table(&[" code", " items", "the first of them"], &rows);
    }
    print(&text)
}

/// The codes of a prefix in any spelling that `inspect` prints; letters must be the catalog's.
fn prefix_codes(view: &CatalogView, text: &str) -> anyhow::Result<Vec<u32>> {
    let codes = readers::parse_codes(text).context("--prefix")?;
    let spelled = codes_text(view, &codes);
    let given: String = text.chars().filter(|&c| c != ',' && !c.is_whitespace()).collect();
    // More codes than levels have no spelling; that no item has them says more.
    ensure!(
        !given.contains('<') || given == spelled || codes.len() > view.num_levels(),
        "--prefix: {text:?} is spelled {spelled} in this catalog"
    );
    Ok(codes)
}
