//! `palmette recommend`: items that follow a history.

use std::slice;
use std::sync::Arc;

use clap::Args;
use palmette_catalog::Catalog;
use palmette_recommend::{Mode, Recommendations, Request, Verification, WorkerOptions};
use serde_json::{Value, json};

use super::items::{codes_text, item_json, name_text, scored_item_json};
use super::loading::{RecommenderArgs, filter, ranks, set_threads, with_widths};
use super::mode::{self, ModeArgs};
use crate::output::{print, print_json, table};
use crate::timings::{Timings, timed};

/// Recommend items that follow a history.
///
/// The result is the exact beam search of the given width over the catalog: always items of the
/// catalog, and K of them while K may be recommended. Scores are sums of log-probabilities, the
/// model's or, with --mode draft, its draft head's.
#[derive(Debug, Args)]
pub(crate) struct RecommendArgs {
    #[command(flatten)]
    recommender: RecommenderArgs,
    #[command(flatten)]
    mode: ModeArgs,
    /// Ids of the items in the history, oldest first, such as 12,7,99; "" for a new user
    ///
    /// Ids that hold commas, or blanks at their ends, are given as a JSON list: '["a,b", " c"]'.
    #[arg(long, value_name = "IDS")]
    history: String,
    /// How many items to recommend
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Hypotheses kept at each level; wider is more thorough
    ///
    /// The search is as wide as K where that is more.
    #[arg(long, value_name = "N", default_value_t = 128)]
    beam_width: usize,
    /// A width for each level instead, such as 64,256,128,128: as many as semantic IDs have codes
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', conflicts_with = "beam_width")]
    widths: Option<Vec<usize>>,
    /// Recommend only items that match this filter, as JSON or @FILE: see `palmette catalog filter --help`
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// Recommend items of the history too
    #[arg(long)]
    include_seen: bool,
    /// Threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print how long each stage took
    #[arg(long)]
    timings: bool,
    /// Answer this many times and report median timings; more than 1 adds a first uncounted run
    #[arg(long, value_name = "R", default_value_t = 1)]
    repeat: usize,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &RecommendArgs) -> anyhow::Result<()> {
    let threads = set_threads(args.threads)?;
    // How many levels there are is not known yet, nor needed.
    let widths = args.widths.as_deref().unwrap_or(slice::from_ref(&args.beam_width));
    let mode = args.mode.mode(widths, args.k)?;
    let recommender = with_widths(args.recommender.load(mode)?, args.widths.as_deref())?;
    let catalog = recommender.catalog();
    let history = ranks(catalog, &args.history)?;
    let options = WorkerOptions { beam_width: args.beam_width, threads };
    let mut worker = recommender.worker_in(mode, options)?;
    let items = match &args.filter {
        Some(text) => Some(Arc::new(catalog.item_set(&filter(text)?)?)),
        None => None,
    };
    let request = Request {
        history: &history,
        k: args.k,
        include_seen: args.include_seen,
        items: items.as_ref(),
    };
    let (answer, timings) = timed(&mut worker, &request, args.repeat)?;

    let unread = history.len() - answer.history_used;
    if args.json {
        let of_history: Vec<Value> = history.iter().map(|&r| item_json(catalog, r)).collect();
        let mut document = json!({
            "history": of_history,
            "history_used": answer.history_used,
            "mode": mode::name(mode),
            "beam_width": answer.beam_width,
            "probe_width": mode::probe_width(mode),
            "widths": args.widths,
            "items": items_json(catalog, &answer),
        });
        if args.timings {
            document["timings_ms"] = serde_json::to_value(timings)?;
        }
        return print_json(&document);
    }
    if unread > 0 {
        let most = answer.history_used;
        eprintln!("note: the model reads the last {most} items; {unread} older ones were left out");
    }
    let mut text = String::new();
    if !history.is_empty() {
        text += "after\n";
        for &rank in &history[unread..] {
            text += &format!("  {}\n", name_text(catalog, rank, 76));
        }
    }
    text += &items_text(catalog, &answer);
    if answer.items.len() < args.k {
        let why = match mode {
            Mode::Draft(Verification::Keys | Verification::None) => {
                "were found: a free search may lose all others on the way"
            }
            _ => "may be recommended",
        };
        text += &format!("only {} items {why}\n", answer.items.len());
    }
    if args.timings {
        text += &timings_text(&timings);
    }
    print(&text)
}

pub(crate) fn items_json(catalog: &Catalog, answer: &Recommendations) -> Vec<Value> {
    let item =
        |item: &palmette_recommend::Recommended| scored_item_json(catalog, item.rank, item.score);
    answer.items.iter().map(item).collect()
}

fn items_text(catalog: &Catalog, answer: &Recommendations) -> String {
    let row = |(place, item): (usize, &palmette_recommend::Recommended)| {
        vec![
            (place + 1).to_string(),
            format!("{:.3}", item.score),
            catalog.id(item.rank).to_owned(),
            codes_text(catalog, &catalog.codes(item.rank)),
            name_text(catalog, item.rank, 60),
        ]
    };
    let rows: Vec<Vec<String>> = answer.items.iter().enumerate().map(row).collect();
    table(&[" ", " score", "id", "semantic ID", "title"], &rows)
}

pub(crate) fn timings_text(timings: &Timings) -> String {
    let Timings { prefill, decode, mask, top_k, total } = timings;
    format!(
        "prefill {prefill:.2} ms, decode {decode:.2} ms, mask {mask:.2} ms, top-k {top_k:.2} ms, total {total:.2} ms\n"
    )
}
