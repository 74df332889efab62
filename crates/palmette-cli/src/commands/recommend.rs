//! `palmette recommend`: items that follow a history.

use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use palmette_recommend::{
    Candidates, History, Mode, Moment, Recommendations, Recommended, Request, Reranked, Rules,
    Verification, Worker,
};
use serde_json::{Value, json};

use super::items::{codes_text_of, item_json, name_text, scored_item_json};
use super::loading::{RecommenderArgs, filter, numbers, set_threads, with_widths};
use super::mode::{self, ModeArgs};
use crate::input;
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
    /// Keep to the rules in this file, one JSON document; - is standard input
    ///
    /// An object with any of these keys; all hold inside the search but the last, which ranks its
    /// results anew:
    ///   "at_most": [{"attribute": "brand", "items": 2}]
    ///   "at_most_per_semantic_id": 1
    ///   "boosts": [{"filter": FILTER, "add": 0.5}, {"attribute": "price", "weight": -0.01}]
    ///   "tie_break": {"attribute": "price", "order": "ascending"}
    ///   "must_include": ["P0001"], "must_exclude": ["P0002"]
    ///   "valid": {"from": "valid_from", "to": "valid_to", "now": "2026-11-25T12:00:00Z"}
    ///   "diversity": {"lambda": 0.7, "pool": 40}
    /// A "valid" without "now" means the moment of the call. docs/recommending.md explains each.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    rules: Option<PathBuf>,
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
    let rules = args.rules.as_deref().map(rules).transpose()?;
    let recommender = with_widths(args.recommender.load(mode)?, args.widths.as_deref())?;
    // All of one moment: what the history names, what the filter keeps, and the answer.
    let spelled = recommender.view()?;
    let view = spelled.view();
    let history = numbers(view, &args.history)?;
    let items = match &args.filter {
        Some(text) => Some(view.filter(&filter(text)?)?),
        None => None,
    };
    let request = Request {
        beam_width: args.beam_width,
        mode,
        items: items.as_ref().map_or(Candidates::All, Candidates::Set),
        include_seen: args.include_seen,
        rules: rules.as_ref(),
        view: Some(&spelled),
        ..Request::new(History::Numbers(&history), args.k)
    };
    let mut worker = Worker::new(Arc::new(recommender), threads);
    let (answer, timings) = timed(&mut worker, &request, args.repeat)?;

    let unread = history.len() - answer.history_used;
    if args.json {
        let of_history = history.iter().map(|&number| {
            let (catalog, rank) = view.place(number);
            item_json(catalog, rank)
        });
        let mut document = json!({
            "history": of_history.collect::<Vec<Value>>(),
            "history_used": answer.history_used,
            "mode": mode::name(mode),
            "beam_width": answer.beam_width,
            "probe_width": mode::probe_width(mode),
            "widths": args.widths,
            "items": items_json(&answer),
        });
        if rules.is_some() {
            add_rules(&mut document, &answer);
        }
        if let Some(generation) = view.generation() {
            document["generation"] = generation.into();
        }
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
        for &number in &history[unread..] {
            let (catalog, rank) = view.place(number);
            text += &format!("  {}\n", name_text(catalog, rank, 76));
        }
    }
    text += &items_text(&answer, rules.as_ref());
    if let Some(Reranked { by, pool }) = answer.reranked {
        text += &format!(
            "ranked anew for diversity: {} of the best {pool} results, lambda {}\n",
            answer.items.len(),
            by.lambda
        );
    }
    if answer.items.len() < args.k {
        let why = match mode {
            Mode::Draft(Verification::Keys | Verification::None) => {
                "were found: a free search may lose all others on the way"
            }
            _ if rules.is_some() => "may be recommended under the filter and the rules",
            _ => "may be recommended",
        };
        text += &format!("only {} items {why}\n", answer.items.len());
    }
    if args.timings {
        text += &timings_text(&timings);
    }
    print(&text)
}

/// The rules of a file, at this moment unless they name one.
fn rules(path: &Path) -> anyhow::Result<Rules> {
    let text = String::from_utf8(input::read(path).context("--rules")?);
    let name = || format!("--rules {}", path.display());
    let rules = Rules::parse(&text.with_context(name)?).with_context(name)?;
    let now = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?;
    Ok(rules.at(Moment::Seconds(now.as_secs_f64())))
}

/// Effects of rules, as programs read them.
fn add_rules(document: &mut Value, answer: &Recommendations) {
    document["searches"] = answer.searches.into();
    document["reranked"] = match answer.reranked {
        Some(Reranked { by, pool }) => {
            json!({"by": "maximal marginal relevance", "lambda": by.lambda, "pool": pool})
        }
        None => Value::Null,
    };
    let Some(items) = document["items"].as_array_mut() else { return };
    for (shown, item) in items.iter_mut().zip(&answer.items) {
        shown["boost"] = item.boost.into();
        shown["pinned"] = item.pinned.into();
    }
}

pub(crate) fn items_json(answer: &Recommendations) -> Vec<Value> {
    let item = |item: &Recommended| {
        let (catalog, rank) = answer.view.view().place(item.number);
        scored_item_json(catalog, rank, item.score)
    };
    answer.items.iter().map(item).collect()
}

fn items_text(answer: &Recommendations, rules: Option<&Rules>) -> String {
    let (boosts, pins) = rules
        .map_or((false, false), |rules| (!rules.boosts.is_empty(), !rules.must_include.is_empty()));
    let view = answer.view.view();
    let row = |(place, item): (usize, &Recommended)| {
        let (catalog, rank) = view.place(item.number);
        let mut row = vec![(place + 1).to_string(), format!("{:.3}", item.score)];
        row.extend(boosts.then(|| format!("{:+.3}", item.boost)));
        row.push(catalog.id(rank).to_owned());
        row.extend(pins.then(|| if item.pinned { "pinned" } else { "" }.to_owned()));
        row.push(codes_text_of(view, item.number));
        row.push(name_text(catalog, rank, 60));
        row
    };
    let rows: Vec<Vec<String>> = answer.items.iter().enumerate().map(row).collect();
    let mut head = vec![" ", " score"];
    head.extend(boosts.then_some(" boost"));
    head.push("id");
    head.extend(pins.then_some(" "));
    head.extend(["semantic ID", "title"]);
    table(&head, &rows)
}

pub(crate) fn timings_text(timings: &Timings) -> String {
    let Timings { prefill, decode, mask, top_k, total } = timings;
    format!(
        "prefill {prefill:.2} ms, decode {decode:.2} ms, mask {mask:.2} ms, top-k {top_k:.2} ms, total {total:.2} ms\n"
    )
}
