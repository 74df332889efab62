//! `palmette recommend`: items that follow a history, or the history of each user.

mod fewer;
mod offline;
mod partial;
mod rules;

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::Args;
use palmette_eval::UnknownItems;
use palmette_live::{CatalogView, ViewItems};
use palmette_recommend::{
    Candidates, Explain, History, HistoryItem, Mode, NamedItem, PromptFields, Recommendations,
    Recommended, Recommender, Request, Reranked, Rules, SpelledView, Think, Worker,
};
use serde_json::{Value, json};

use super::histories::{HistoriesOptions, unknown_items};
use super::items::{codes_text_of, item_json, name_text, scored_item_json, spelled, tell_view};
use super::loading::{
    FieldArgs, RecommenderArgs, filter_text, named_items, set_threads, with_widths,
};
use super::mode::{self, ModeArgs};
use super::shard::Shard;
use crate::output::{print, print_json, table, visible};
use crate::timings::{Timings, timed};
use fewer::Fewer;
use rules::{GivenRules, add_rules, rules};

/// Recommend items that follow a history, or for every user of a file
///
/// The result is the exact beam search of the given width over the catalog: always items of the
/// catalog, and K of them while K may be recommended. Scores are sums of log-probabilities, the
/// model's or, with --mode draft, its draft head's.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RecommendArgs {
    #[command(flatten)]
    recommender: RecommenderArgs,
    #[command(flatten)]
    mode: ModeArgs,
    /// Items of the history, oldest first, such as 12,7,99; "" for a new user
    ///
    /// By id, or by semantic ID: 3-1-7-2 or <a_3><b_1>…. Ids that hold commas, or blanks at their ends, are given as a
    /// JSON list, in which a semantic ID may be a list of codes: '["a,b", " c", [3, 1, 7, 2]]'.
    #[arg(long, value_name = "ITEMS", required_unless_present = "histories")]
    history: Option<String>,
    /// Answer every history of a file, on all cores; - for JSON lines on standard input; goes with --out
    ///
    /// JSON lines such as {"user": …, "items": [item, …]} (.jsonl), JSON (.json), RecBole (.inter), CSV (.csv), tab-separated
    /// (.tsv), a user and its items a line (.txt), Parquet and Arrow. Items are oldest first; by id or by semantic ID.
    #[arg(long, visible_alias = "batch", value_name = "FILE", conflicts_with_all = ["history", "timings", "repeat"], requires = "out")]
    histories: Option<PathBuf>,
    #[command(flatten)]
    histories_options: HistoriesOptions,
    /// Where the answers go, a record a history, in their order: .jsonl, .parquet or .arrow
    ///
    /// A record has the user, ids of the items, scores and codes; one that could not be answered has the reason in `error`.
    /// The file appears when all are there; until then they are in FILE.partial. Where no history could be answered the file
    /// that is there stays, and the command fails.
    #[arg(long, value_name = "FILE", requires = "histories")]
    out: Option<PathBuf>,
    /// Write the file also where no history could be answered, or there are none
    #[arg(long, requires = "histories")]
    allow_empty: bool,
    /// Answer one of N parts of the histories, numbered from 0, into a file of its own: OUT-00003-of-00016.parquet
    ///
    /// Each history is in one part, and no answer depends on their number. Parts of a table are runs of rows, of which only
    /// the row groups are read; in other files history j is in part j mod N.
    #[arg(long, value_name = "I/N", requires = "histories")]
    shard: Option<Shard>,
    /// Go on with FILE.partial of a run that was interrupted; begins anew where there is none, and does nothing where all is done
    ///
    /// Refused where histories, model, catalog, rules or options are not those of the run.
    #[arg(long, requires = "histories")]
    resume: bool,
    /// Items of histories that the catalog does not have: an error, or left out and counted (skip)
    ///
    /// With --histories an error is the record's, and the others are answered. A semantic ID that no item has is none of
    /// these: the model reads it all the same.
    #[arg(long, value_name = "error|skip", value_parser = unknown_items, default_value = "error")]
    unknown: UnknownItems,
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
    #[command(flatten)]
    fields: FieldArgs,
    /// Let the model write up to N tokens of reasoning before the item, as its prompt_template.json says
    #[arg(long, value_name = "N", help_heading = "Prompts")]
    think: Option<usize>,
    /// Draw the reasoning at this temperature; 0 takes the most likely token at each place
    #[arg(
        long,
        value_name = "T",
        default_value_t = 0.0,
        requires = "think",
        help_heading = "Prompts"
    )]
    think_temperature: f32,
    /// Seed of what is drawn
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "think",
        help_heading = "Prompts"
    )]
    think_seed: u64,
    /// Let the model write text after each of the first N items
    #[arg(long, value_name = "N", conflicts_with = "histories", help_heading = "Prompts")]
    explain: Option<usize>,
    /// Most tokens of the text after an item
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        requires = "explain",
        help_heading = "Prompts"
    )]
    explain_tokens: usize,
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

const AFTER_HELP: &str = "\
Examples:
  palmette recommend --model shop/model --catalog shop.palm --history P0001,P0060 -k 5
  palmette recommend --model shop/model --catalog shop.palm --history 0-2-4-0 --json
  palmette recommend --model shop/model --catalog shop.palm --histories shop/histories.json --out tonight.jsonl
  palmette recommend … --histories users.parquet --out tonight.parquet --unknown skip --resume
  palmette recommend … --histories users.parquet --out tonight.parquet --shard 3/16 --resume";

pub(crate) fn run(args: &RecommendArgs) -> anyhow::Result<()> {
    match (&args.histories, &args.out, &args.history) {
        (Some(histories), Some(out), _) => offline::run(args, histories, out),
        (None, None, Some(history)) => {
            args.histories_options.check_unused()?;
            answer_one(args, history)
        }
        (_, Some(out), _) => bail!(
            "--out {} goes with --histories; the answer to one --history is printed: leave out --out, or redirect it",
            out.display()
        ),
        _ => bail!("give --history, or --histories with --out"),
    }
}

/// Parts that the requests of one command share: all of one moment.
struct Asked {
    recommender: Arc<Recommender>,
    view: Arc<SpelledView>,
    mode: Mode,
    threads: usize,
    filter_text: Option<String>,
    /// The items that match it.
    items: Option<ViewItems>,
    rules: Option<GivenRules>,
    fields: PromptFields,
}

impl Asked {
    /// `now`: the moment of a run that is gone on with.
    fn new(args: &RecommendArgs, now: Option<f64>) -> anyhow::Result<Self> {
        let threads = set_threads(args.threads)?;
        // How many levels there are is not known yet, nor needed.
        let widths = args.widths.as_deref().unwrap_or(slice::from_ref(&args.beam_width));
        let mode = args.mode.mode(widths, args.k)?;
        let rules = args.rules.as_deref().map(|path| rules(path, now)).transpose()?;
        let recommender = with_widths(args.recommender.load(mode)?, args.widths.as_deref())?;
        let view = recommender.view()?;
        let given = args.filter.as_deref().map(filter_text).transpose()?;
        let items = match &given {
            Some(given) => Some(view.view().filter(&given.filter)?),
            None => None,
        };
        let filter_text = given.map(|given| given.text);
        let recommender = Arc::new(recommender);
        let fields = args.fields.fields()?;
        Ok(Self { recommender, view, mode, threads, filter_text, items, rules, fields })
    }

    fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref().map(|given| &given.rules)
    }

    fn request<'a>(&'a self, args: &RecommendArgs, history: History<'a>) -> Request<'a> {
        Request {
            beam_width: args.beam_width,
            mode: self.mode,
            items: self.items.as_ref().map_or(Candidates::All, Candidates::Set),
            include_seen: args.include_seen,
            rules: self.rules(),
            fields: Some(&self.fields),
            think: args.think.map(|max_tokens| Think {
                temperature: args.think_temperature,
                seed: args.think_seed,
                ..Think::new(max_tokens)
            }),
            explain_items: args
                .explain
                .map(|items| Explain { items, max_tokens: args.explain_tokens }),
            view: Some(&self.view),
            ..Request::new(history, args.k)
        }
    }
}

fn answer_one(args: &RecommendArgs, history: &str) -> anyhow::Result<()> {
    let named = named_items(history)?;
    let asked = Asked::new(args, None)?;
    let view = asked.view.view();
    let (history, left_out) = asked
        .view
        .find_items(&named, args.unknown == UnknownItems::Skip)
        .map_err(|error| anyhow!("{error}; --unknown skip leaves out what is unknown"))?;
    let left_out: Vec<&NamedItem> = left_out.iter().map(|&place| &named[place]).collect();
    let request = asked.request(args, History::Items(&history));
    let mut worker = Worker::new(Arc::clone(&asked.recommender), asked.threads);
    let (answer, timings) = timed(&mut worker, &request, args.repeat)?;
    let fewer = Fewer::of(&asked, args, &history, answer.items.len());

    let unread = history.len() - answer.history_used;
    if args.json {
        let mut document = json!({
            "history": history.iter().map(|item| history_json(view, item)).collect::<Vec<Value>>(),
            "history_used": answer.history_used,
            "unknown": left_out.iter().map(|name| unknown_json(name)).collect::<Vec<Value>>(),
            "mode": mode::name(answer.mode),
            "k": args.k,
            "beam_width": answer.beam_width,
            "probe_width": mode::probe_width(answer.mode),
            "widths": args.widths,
            "items": items_json(&answer),
            "fewer": fewer,
        });
        if let Some(thought) = &answer.thought {
            document["thought"] = thought.as_str().into();
        }
        if args.explain.is_some() {
            document["explanations"] = answer.explanations.as_slice().into();
        }
        if asked.rules.is_some() {
            add_rules(&mut document, &answer);
        }
        tell_view(&mut document, view);
        if args.timings {
            document["timings_ms"] = serde_json::to_value(timings)?;
        }
        return print_json(&document);
    }
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|name| visible(&name.to_string())).collect();
        eprintln!("note: not in the catalog and left out of the history: {}", names.join(", "));
    }
    if unread > 0 {
        let most = answer.history_used;
        eprintln!("note: the model reads the last {most} items; {unread} older ones were left out");
    }
    let mut text = String::new();
    if !history.is_empty() {
        text += "after\n";
        for item in &history[unread..] {
            text += &format!("  {}\n", history_text(view, item));
        }
    }
    if let Some(thought) = &answer.thought {
        text += &format!("thought: {}\n", visible(thought.trim()));
    }
    text += &items_text(&answer, asked.rules());
    for (place, explanation) in answer.explanations.iter().enumerate() {
        text += &format!("{}: {}\n", place + 1, visible(explanation.trim()));
    }
    if let Some(Reranked { by, pool }) = answer.reranked {
        text += &format!(
            "ranked anew for diversity: {} of the best {pool} results, lambda {}\n",
            answer.items.len(),
            by.lambda
        );
    }
    if let Some(fewer) = fewer {
        text += &format!("{fewer}\n");
    }
    if args.timings {
        text += &timings_text(&timings);
    }
    print(&text)
}

fn history_json(view: &CatalogView, item: &HistoryItem) -> Value {
    match item {
        HistoryItem::Number(number) => {
            let (catalog, rank) = view.place(*number);
            item_json(catalog, rank)
        }
        HistoryItem::Codes(codes) => {
            let ids: Vec<&str> = view.find_codes(codes).iter().map(|&at| view.id(at)).collect();
            json!({"codes": codes, "items": ids})
        }
        HistoryItem::Departed { id, codes } => {
            json!({"id": id, "codes": codes, "departed": true})
        }
    }
}

fn history_text(view: &CatalogView, item: &HistoryItem) -> String {
    let name = |number: u64| {
        let (catalog, rank) = view.place(number);
        name_text(catalog, rank, 76)
    };
    match item {
        HistoryItem::Number(number) => name(*number),
        HistoryItem::Departed { id, .. } => format!("{}, which is gone", visible(id)),
        HistoryItem::Codes(codes) => {
            let spelled = spelled(view.level_prefixes(), codes);
            match view.find_codes(codes).as_slice() {
                [] => format!("{spelled}, which no item has now"),
                [only] => name(*only),
                [first, others @ ..] => {
                    format!("{spelled}: {} or {} others", name(*first), others.len())
                }
            }
        }
    }
}

fn unknown_json(name: &NamedItem) -> Value {
    match name {
        NamedItem::Id(id) => id.as_str().into(),
        NamedItem::Codes(codes) => codes.as_slice().into(),
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
