//! `palmette catalog filter`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use palmette_catalog::Item;
use serde_json::{Value, json};

use crate::commands::items::{codes_text_of, name_text, tell_view};
use crate::commands::loading::{ViewArgs, filter, open_view};
use crate::output::{grouped, print, print_json, table};

const AFTER_HELP: &str = "\
Examples:
  palmette catalog filter shop.palm '{\"must\": {\"match\": {\"category\": \"Camping\"}}}'
  palmette catalog filter shop.palm @filter.json --limit 3 --json
  palmette recommend --filter @filter.json …      recommend only items that match

`palmette catalog inspect` lists the attributes and their kinds. Ranges of timestamps take RFC 3339
text or seconds since 1970.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct FilterArgs {
    /// Catalog, made by `palmette catalog build`, or directory of a live one
    catalog: PathBuf,
    #[command(flatten)]
    view: ViewArgs,
    /// The filter as JSON in quotes, or @FILE for a file that holds it
    #[arg(value_name = "FILTER")]
    filter: String,
    /// List at most this many of the items; all are counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &FilterArgs) -> anyhow::Result<()> {
    let filter = filter(&args.filter)?;
    let view = open_view(&args.catalog, &args.view)?;
    let start = Instant::now();
    let items = view.filter(&filter)?;
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    let shown = view.in_order(&items, None).take(args.limit);
    if args.json {
        let shown: Vec<Value> = shown
            .map(|number| {
                let Item { id, codes, attributes } = view.item(number);
                json!({"id": id, "codes": codes, "attributes": attributes})
            })
            .collect();
        let mut document = json!({
            "filter": filter,
            "items": view.num_items(),
            "matching": items.len(),
            "compile_ms": milliseconds,
            "bytes": items.bytes(),
            "first": shown,
        });
        tell_view(&mut document, &view);
        return print_json(&document);
    }
    let rows: Vec<Vec<String>> = shown
        .map(|number| {
            let (catalog, rank) = view.place(number);
            let codes = codes_text_of(&view, number);
            vec![view.id(number).to_owned(), codes, name_text(catalog, rank, 60)]
        })
        .collect();
    let listed = match rows.as_slice() {
        [] => String::new(),
        rows => table(&["id", "semantic ID", "title"], rows),
    };
    let (matching, all) = (grouped(items.len()), grouped(view.num_items()));
    print(&format!("{listed}{matching} of {all} items match, found in {milliseconds:.2} ms"))
}
