//! `palmette recommend`: items that follow a history, or the history of each user.

mod fewer;
mod offline;
mod rules;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use palmette_catalog_live::CatalogView;
use palmette_document::{DocumentError, Faults, RawJson};
use palmette_model::draft::DraftHead;
use palmette_recommend::offline::Shard;
use palmette_recommend::{
    CheckedQuestion, ExplainItems, HistoryItem, Mode, ModeName, Moment, NamedItem, QuestionLimits,
    RecommendBody, RecommendQuestion, Recommendations, Recommended, Recommender, RequestEnvelope,
    Reranked, Rules, TracedBeam, UnknownItems, Verification, Worker,
};
use serde_json::{Value, json};

use super::histories::{HistoriesOptions, unknown_items};
use super::items::{codes_text_of, item_json, name_text, scored_item_json, spelled, tell_view};
use super::loading::{FieldArgs, RecommenderArgs, filter_text, named_items, set_threads};
use super::mode::{self, ModeArgs};
use crate::input::{self, is_stdin};
use crate::output::{print, print_json, table, visible};
use crate::timings::{Timings, timed};
use fewer::Fewer;
use rules::{add_rules, rules_text};

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
    /// By id, or by semantic ID: 3-1-7-2 or <a_3><b_1>…. Ids that hold commas, or blanks at their
    /// ends, are given as a JSON list, in which a semantic ID may be a list of codes: '["a,b", "
    /// c", [3, 1, 7, 2]]'.
    #[arg(long, value_name = "ITEMS")]
    history: Option<String>,
    /// Ask the question in this file, one JSON document as a body of POST /v1/recommend; - is
    /// standard input
    ///
    /// Options that are given beside it take the places of its members. Members for a server, such
    /// as deadline_ms, are named and change nothing here.
    #[arg(long, value_name = "FILE")]
    question: Option<PathBuf>,
    /// Answer every history of a file, on all cores; - for JSON lines on standard input; goes with --out
    ///
    /// JSON lines such as {"user": …, "items": [item, …]} (.jsonl), JSON (.json), RecBole (.inter),
    /// CSV (.csv), tab-separated (.tsv), a user and its items a line (.txt), Parquet and Arrow.
    /// Items are oldest first; by id or by semantic ID.
    #[arg(long, visible_alias = "batch", value_name = "FILE", conflicts_with_all = ["history", "timings", "repeat"], requires = "out")]
    histories: Option<PathBuf>,
    #[command(flatten)]
    histories_options: HistoriesOptions,
    /// File for the answers, a record a history, in their order: .jsonl, .parquet or .arrow
    ///
    /// A record has the user, ids of the items, scores and codes; one that could not be answered
    /// has the reason in `error`. The file appears when all are there; until then they are in
    /// FILE.partial. Where no history could be answered the file that is there stays, and the
    /// command fails.
    #[arg(long, value_name = "FILE", requires = "histories")]
    out: Option<PathBuf>,
    /// Write the file also where no history could be answered, or there are none
    #[arg(long, requires = "histories")]
    allow_empty: bool,
    /// Answer one of N parts of the histories, numbered from 0, into a file of its own:
    /// OUT-00003-of-00016.parquet
    ///
    /// Each history is in one part, and no answer depends on their number. Parts of a table are
    /// runs of rows, of which only the row groups are read; in other files history j is in part j
    /// mod N.
    #[arg(long, value_name = "I/N", requires = "histories")]
    shard: Option<Shard>,
    /// Go on with FILE.partial of a run that was interrupted; begins anew where there is none, and
    /// does nothing where all is done
    ///
    /// Refused where histories, model, catalog, rules or options are not those of the run.
    #[arg(long, requires = "histories")]
    resume: bool,
    /// Items of histories that the catalog never had: left out and told (skip), or an error
    /// [default: skip]
    ///
    /// With --histories an error is the record's, and the others are answered. A semantic ID that
    /// no item has is none of these: the model reads it all the same.
    #[arg(long, value_name = "error|skip", value_parser = unknown_items)]
    unknown: Option<UnknownItems>,
    /// Number of items to recommend [default: 10]
    #[arg(short, value_name = "K")]
    k: Option<usize>,
    /// Hypotheses kept at each level; wider is more thorough [default: 128]
    ///
    /// The search is as wide as K where that is more.
    #[arg(long, value_name = "N")]
    beam_width: Option<usize>,
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
    /// Leave these items out, such as P0001,P0002, or a JSON list of ids; ids that the catalog does
    /// not have exclude nothing
    #[arg(long, value_name = "IDS")]
    exclude: Option<String>,
    /// End the answer with a cursor of the items that come next, for --cursor
    #[arg(long, conflicts_with = "histories")]
    paged: bool,
    /// Go on after the items of earlier answers: the cursor that the last of them ended with, all
    /// else as it was
    #[arg(long, value_name = "TEXT", conflicts_with = "histories")]
    cursor: Option<String>,
    #[command(flatten)]
    fields: FieldArgs,
    /// Let the model write up to N tokens of reasoning before the item, as its prompt_template.json
    /// says
    #[arg(long, value_name = "N", help_heading = "Prompts")]
    think_tokens: Option<usize>,
    /// Draw the reasoning at this temperature; 0, the default, takes the most likely token at each
    /// place
    #[arg(long, value_name = "T", help_heading = "Prompts")]
    think_temperature: Option<f32>,
    /// Seed of what is drawn [default: 0]
    #[arg(long, value_name = "N", help_heading = "Prompts")]
    think_seed: Option<u64>,
    /// Let the model write text after each of the first N items
    #[arg(long, value_name = "N", conflicts_with = "histories", help_heading = "Prompts")]
    explain_items: Option<usize>,
    /// Limit on the tokens of the text after an item [default: 100]
    #[arg(long, value_name = "N", help_heading = "Prompts")]
    explain_tokens: Option<usize>,
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
  palmette recommend … --histories users.parquet --out tonight.parquet --resume
  palmette recommend … --histories users.parquet --out tonight.parquet --shard 3/16 --resume";

pub(crate) fn run(args: &RecommendArgs) -> anyhow::Result<()> {
    let paths = [&args.question, &args.rules, &args.histories].into_iter().flatten();
    ensure!(
        paths.filter(|path| is_stdin(path)).count() < 2,
        "standard input can be read once: give a file for all but one of --question, --rules and --histories"
    );
    match (&args.histories, &args.out) {
        (Some(histories), Some(out)) => offline::run(args, histories, out),
        (None, None) => {
            args.histories_options.check_unused()?;
            answer_one(args)
        }
        (_, Some(out)) => bail!(
            "--out {} goes with --histories; the answer to one --history is printed: leave out --out, or redirect it",
            out.display()
        ),
        (Some(_), None) => bail!("give --out with --histories"),
    }
}

/// A question with what answers it: all of one moment.
struct MomentQuestion {
    recommender: Arc<Recommender>,
    question: CheckedQuestion,
    threads: usize,
    /// Moment of rules that ask for one and name none, in seconds since 1970.
    now: f64,
}

impl MomentQuestion {
    /// `now`: the moment of a resumed run.
    fn new(
        args: &RecommendArgs,
        given: &RecommendBody,
        question: RecommendQuestion,
        now: Option<f64>,
    ) -> anyhow::Result<Self> {
        let threads = set_threads(args.threads)?;
        let mut recommender = args.recommender.clone();
        if let (None, Some(generation)) = (&recommender.view.generation, &given.envelope.generation)
        {
            recommender.view.generation = Some(generation.to_string());
        }
        // Where there is no head, the question's check says so, in the words of every surface.
        let drafts = question.mode == ModeName::Draft
            && args.recommender.model.join(DraftHead::FILE_NAME).exists();
        let mode = if drafts { Mode::Draft(Verification::default()) } else { Mode::Auto };
        let recommender = Arc::new(recommender.load(mode)?);
        let clock = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?;
        let now = now.unwrap_or(clock.as_secs_f64());
        let (view, limits) = (recommender.view()?, QuestionLimits::default());
        let checked = question.check(&recommender, &view, &limits, Some(Moment::Seconds(now)));
        let question = checked.map_err(|faults| told(args, faults))?;
        Ok(Self { recommender, question, threads, now })
    }

    fn view(&self) -> &CatalogView {
        self.question.view().view()
    }
}

/// Faults as an error that names the options they are of. A document's details name its members.
fn told(args: &RecommendArgs, faults: Faults) -> anyhow::Error {
    if args.question.is_some() {
        return faults.into();
    }
    let told = faults.iter().map(|fault| {
        let member = fault.pointer.split('/').nth(1).unwrap_or_default();
        let option = match member {
            "k" => "-k".to_owned(),
            "probe_width" => "--probe".to_owned(),
            "unknown_items" => "--unknown".to_owned(),
            "" => return fault.detail.clone(),
            member => format!("--{}", member.replace('_', "-")),
        };
        format!("{option}: {}", fault.detail)
    });
    anyhow!(told.collect::<Vec<_>>().join("; "))
}

/// The document of --question; without it, one that asks nothing.
fn given(args: &RecommendArgs) -> anyhow::Result<RecommendBody> {
    let Some(path) = &args.question else {
        let question = RecommendQuestion::new(Vec::<NamedItem>::new());
        return Ok(RecommendBody { envelope: RequestEnvelope::default(), question });
    };
    let text = input::read(path).context("--question")?;
    let body = RecommendBody::from_json(&text).map_err(|error| match &error {
        // Not all details name the place.
        DocumentError::Fault(fault) if !fault.pointer.is_empty() => {
            anyhow!("{} ({})", fault.detail, fault.pointer)
        }
        DocumentError::Fault(_) | DocumentError::NoJson(_) => error.into(),
    });
    let body = body.with_context(|| format!("--question {}", path.display()))?;
    let RequestEnvelope { target, generation: _, min_generation, deadline_ms, priority } =
        &body.envelope;
    let of_server = [
        ("target", target.is_some()),
        ("min_generation", min_generation.is_some()),
        ("deadline_ms", deadline_ms.is_some()),
        ("priority", priority.is_some()),
        ("min_beam_width", body.question.min_beam_width.is_some()),
    ];
    let named = of_server.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name);
    let named: Vec<&str> = named.collect();
    if !named.is_empty() {
        let names = named.join(", ");
        eprintln!("note: {}: {names}: for a server; nothing here depends on it", path.display());
    }
    Ok(body)
}

/// The question of a document and of the options beside it.
fn question(args: &RecommendArgs, given: &RecommendBody) -> anyhow::Result<RecommendQuestion> {
    let mut question = given.question.clone();
    if let Some(history) = &args.history {
        question.history = named_items(history)?;
    }
    question.k = args.k.unwrap_or(question.k);
    if args.beam_width.is_some() || args.widths.is_some() {
        (question.beam_width, question.widths) = (args.beam_width, args.widths.clone());
    }
    args.mode.fill(&mut question)?;
    if let Some(filter) = &args.filter {
        question.filter = Some(RawJson::from_text(&filter_text(filter)?.text)?);
    }
    if let Some(path) = &args.rules {
        question.rules = Some(rules_text(path)?);
    }
    if let Some(ids) = &args.exclude {
        let ids = named_items(ids).context("--exclude")?.into_iter().map(|item| match item {
            NamedItem::Id(id) => Ok(id.into()),
            codes @ NamedItem::Codes(_) => {
                bail!("--exclude {codes}: items are left out by id; --filter leaves out by what they are")
            }
        });
        question.exclude = ids.collect::<anyhow::Result<_>>()?;
    }
    question.exclude_seen &= !args.include_seen;
    question.unknown_items = args.unknown.unwrap_or(question.unknown_items);
    let fields = args.fields.fields()?;
    question.query = fields.query.or(question.query);
    if !fields.user.is_empty() {
        question.user = fields.user;
    }
    question.paged |= args.paged;
    question.cursor = args.cursor.clone().or(question.cursor);
    question.think_tokens = args.think_tokens.or(question.think_tokens);
    question.think_temperature = args.think_temperature.or(question.think_temperature);
    question.think_seed = args.think_seed.or(question.think_seed);
    let before = question.explain_items;
    let items = args.explain_items.or(before.map(|of| of.items));
    let tokens = args.explain_tokens.or(before.map(|of| of.max_tokens));
    question.explain_items = match (items, tokens) {
        (Some(items), tokens) => Some(ExplainItems {
            items,
            max_tokens: tokens.unwrap_or(ExplainItems::DEFAULT_MAX_TOKENS),
        }),
        (None, None) => None,
        (None, Some(_)) => {
            bail!("--explain-tokens is about text after items: give --explain-items with it")
        }
    };
    Ok(question)
}

fn answer_one(args: &RecommendArgs) -> anyhow::Result<()> {
    ensure!(
        args.history.is_some() || args.question.is_some(),
        "give --history, --question, or --histories with --out"
    );
    let given = given(args)?;
    let asked = MomentQuestion::new(args, &given, question(args, &given)?, None)?;
    let (view, checked) = (asked.view(), &asked.question);
    let history = checked.history();
    let left_out: Vec<&NamedItem> = checked.unknown().collect();
    let mut worker = Worker::new(Arc::clone(&asked.recommender), asked.threads);
    let (answer, timings) =
        checked.with_request(false, |request| timed(&mut worker, request, args.repeat))?;
    let fewer = Fewer::of(checked, &answer);

    let unread = history.len() - answer.history_used;
    let asked = checked.question();
    if args.json {
        let mut document = json!({
            "history": history.iter().map(|item| history_json(view, item)).collect::<Vec<Value>>(),
            "history_used": answer.history_used,
            "unknown": left_out,
            "mode": ModeName::from(answer.mode),
            "verify": answer.mode.verification(),
            "k": asked.k,
            "beam_width": answer.beam_width,
            "probe_width": mode::probe_width(answer.mode),
            "proven": answer.is_proven(),
            "missed_at_most": answer.missed_at_most,
            "widths": asked.widths,
            "items": items_json(&answer),
            "fewer": fewer,
        });
        keep_fields(&mut document, &asked.fields);
        if checked.is_paged() {
            document["cursor"] = checked.cursor_after(&answer).into();
        }
        if let Some(thought) = &answer.thought {
            document["thought"] = thought.as_str().into();
        }
        if asked.explain_items.is_some() {
            document["explanations"] = answer.explanations.as_slice().into();
        }
        if asked.trace {
            let beam = |beam: &TracedBeam| json!({"codes": beam.codes, "score": beam.score});
            let level = |beams: &Vec<TracedBeam>| beams.iter().map(beam).collect();
            document["levels"] = answer.levels.iter().map(level).collect::<Vec<Value>>().into();
        }
        if checked.rules().is_some() {
            add_rules(&mut document, &answer);
        }
        tell_view(&mut document, view);
        if args.timings {
            document["timings_ms"] = serde_json::to_value(timings)?;
        }
        return print_json(&document);
    }
    if asked.trace {
        eprintln!("note: trace: the beams of each level are in the answer of --json");
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
    text += &items_text(&answer, checked.rules());
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
    if let Some(bound) = answer.missed_at_most {
        let wider = match answer.mode {
            Mode::Auto | Mode::Beam | Mode::Probed(_) => "--mode proven searches",
            Mode::Proven(_) => "a larger --prove-width searches",
            Mode::Draft(_) => "a larger --beam-width searches",
        };
        text += &format!(
            "not proven: items that are missing score {bound:.3} at most; {wider} for them\n"
        );
    }
    if let Some(fewer) = fewer {
        text += &format!("{fewer}\n");
    }
    if let Some(cursor) = checked.cursor_after(&answer) {
        text += &format!("more: --cursor {cursor}\n");
    }
    if args.timings {
        text += &timings_text(&timings);
    }
    print(&text)
}

/// Leaves the attributes that were asked for, where some were.
fn keep_fields(document: &mut Value, fields: &[String]) {
    if fields.is_empty() || fields.iter().any(|name| name == "*") {
        return;
    }
    let Some(items) = document["items"].as_array_mut() else { return };
    for item in items {
        if let Some(attributes) = item["attributes"].as_object_mut() {
            attributes.retain(|name, _| fields.contains(name));
        }
    }
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
