//! `palmette catalog plan`.

use anyhow::ensure;
use clap::Args;
use palmette_catalog::{CatalogPlan, PlanOptions};

use crate::output::{bytes, grouped, print, print_json, table};

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Items in all
    #[arg(long, value_name = "N")]
    items: u64,
    /// Codes in a semantic ID
    #[arg(long, value_name = "L")]
    levels: usize,
    /// Codes of each level's codebook: one number for all levels, or one for each, such as 4096,256,256
    #[arg(long, value_name = "SIZES", value_delimiter = ',', required = true)]
    vocab: Vec<u32>,
    /// Levels kept as masks and a table of ranks [default: as many as cost at most a byte an item]
    #[arg(long, value_name = "D")]
    dense: Option<usize>,
    /// Bytes of an item's id
    #[arg(long, value_name = "N", default_value_t = 8)]
    id_bytes: u64,
    /// Bytes of an item's attributes: 1 to 4 for each, and the texts that few items share
    #[arg(long, value_name = "N", default_value_t = 0)]
    attribute_bytes: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PlanArgs) -> anyhow::Result<()> {
    let given = args.vocab.len();
    ensure!(
        given == 1 || given == args.levels,
        "--vocab has {given} sizes for {} levels; give one for all, or one for each",
        args.levels
    );
    let plan = CatalogPlan::new(&PlanOptions {
        num_items: args.items,
        codes_per_level: args.vocab.iter().copied().cycle().take(args.levels).collect(),
        dense_levels: args.dense,
        id_bytes: args.id_bytes,
        attribute_bytes: args.attribute_bytes,
    })?;
    if args.json {
        return print_json(&plan);
    }
    let per_item = |total: u64| total as f64 / args.items.max(1) as f64;
    let rows: Vec<Vec<String>> = plan
        .index
        .levels
        .iter()
        .enumerate()
        .map(|(level, at)| {
            let form = match at.form {
                "dense" => "masks, ranks",
                "by_rank" => "a code an item",
                "listed" => "a code a prefix, listed",
                _ => "a code a prefix, marked",
            };
            vec![
                level.to_string(),
                grouped(at.num_prefixes.round() as u64),
                format!("{:.2}", at.branching),
                form.to_owned(),
                bytes(at.bytes as usize),
            ]
        })
        .collect();
    let total = |name: &str, total: u64| {
        format!(
            "{name:<34} {:>10}  {:>7.2} bytes an item\n",
            bytes(total as usize),
            per_item(total)
        )
    };
    let text = table(&["level", " prefixes", " follow one", "kept", " bytes"], &rows)
        + &total("index, codes drawn evenly", plan.index.bytes)
        + &total("index, at most (equal lengths)", plan.index.most_bytes)
        + &total("ids", plan.id_bytes)
        + &total("attributes", plan.attribute_bytes)
        + &total("catalog, in memory and as a file", plan.total_bytes)
        + &total("peak of a build", plan.build_peak_bytes)
        + &total("STATIC's arrays, upper bound", plan.static_bytes);
    print(&text)
}
