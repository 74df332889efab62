//! `palmette catalog plan`.

use anyhow::ensure;
use clap::Args;
use palmette_catalog::{CatalogPlan, PlanOptions};

use super::stats::form_text;
use crate::output::{bytes, grouped, print, print_json, table};

const AFTER_HELP: &str = "\
Examples:
  palmette catalog plan --items 20000000 --levels 8 --vocab 2048
  palmette catalog plan --items 1000000 --levels 4 --vocab 4096,256,256,256 \\
      --id-bytes 10 --attribute-bytes 12

The first table has a line for each level: how many different prefixes end there, how many codes
follow a prefix of the level before on average, how the level is kept, and its bytes. Then:
  index, codes drawn evenly   what decoding reads, where every code is as likely as any other
  index, at most              the same for any items whose semantic IDs are all of one length
  peak of a build             memory that `palmette catalog build` needs
  STATIC's arrays             for comparison: what STATIC (arXiv 2602.22647) keeps in its place";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PlanArgs {
    /// Items in all
    #[arg(long, value_name = "N")]
    items: u64,
    /// Codes in each item's semantic ID
    #[arg(long, value_name = "L")]
    levels: usize,
    /// Number of codes in each level's codebook: one number for all levels, such as 256, or one for
    /// each, such as 4096,256,256
    #[arg(long, value_name = "SIZES", value_delimiter = ',', required = true)]
    vocab: Vec<u32>,
    /// First levels to keep as bit masks and a table, as in `palmette catalog build`
    /// [default: as many as cost at most a byte an item]
    #[arg(long, value_name = "D")]
    dense: Option<usize>,
    /// Bytes of an item's id, on average
    #[arg(long, value_name = "N", default_value_t = 8)]
    id_bytes: u64,
    /// Bytes of an item's attributes, on average: 1 to 4 for each attribute, and for texts that
    /// hardly two items share, such as titles, their length
    #[arg(long, value_name = "N", default_value_t = 0)]
    attribute_bytes: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PlanArgs) -> anyhow::Result<()> {
    ensure!(args.items > 0, "--items is 0; a plan is of at least one item");
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
    let per_item = |total: u64| total as f64 / args.items as f64;
    let rows: Vec<Vec<String>> = plan
        .index
        .levels
        .iter()
        .enumerate()
        .map(|(level, at)| {
            vec![
                level.to_string(),
                grouped(at.num_prefixes.round() as u64),
                format!("{:.2}", at.branching),
                form_text(at.form).to_owned(),
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
