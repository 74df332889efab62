//! `palmette eval`: a model on held-out items, next to its floors.

use std::path::PathBuf;
use std::slice;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_recommend::{History, Mode, Request};
use palmette_recommend_eval::{
    ColdStart, EvalOptions, Evaluation, Floor, ItemItem, KnownHistories, Popularity, Question,
    RankingMetrics, Skipped, Split, UnknownItems, ValidShare, evaluate, evaluate_floor,
    evenly_spread,
};
use serde_json::{Value, json};

use super::cold_start::{self, ColdStartArgs};
use super::histories::{HistoriesOptions, Notes, unknown_items};
use super::loading::{RecommenderArgs, WeightsArg, set_threads, with_widths};
use super::mode::{self, ModeArgs};
use super::overlap::{self, OverlapArgs};
use super::segments::{Segment, segments, segments_document, segments_text};
use super::spread::Spread;
use crate::output::{grouped, print, print_json, progress_bar, table};

/// Measure a model on held-out items, next to popularity and item-item filtering.
///
/// Leave-one-out: the model is asked for each user's last item (test) after all before it. HR@K is
/// the share of users whose item is among the first K, which is Recall@K here; NDCG@K weighs a hit
/// at place r by 1/log2(r + 1). The floors are counted on the same histories that the model is
/// asked with; where rows say the item that came next, a user's rows count as one history, of which
/// a question sees what came before it. They are left out where such rows name no user. Items of
/// the history are not recommended, by none of them, unless --include-seen.
///
/// Also: coverage@K, the share of the catalog among the first K of anyone asked; Gini@K, how
/// unevenly these fall on the catalog's items, 0 evenly and 1 all on one; new items, which none of
/// those histories has, among the first K and among the items asked for. Where items share semantic
/// IDs, a second row counts the first item with the right one's ID.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    recommender: RecommenderArgs,
    #[command(flatten)]
    mode: ModeArgs,
    /// Histories, oldest item first; - for JSON lines on standard input
    ///
    /// {user: [item, …]} as JSON (.json), JSON lines such as {"user": …, "items": [item, …]}
    /// (.jsonl), RecBole (.inter), CSV (.csv), tab-separated (.tsv), a user and its items a line
    /// (.txt), Parquet and Arrow. Rows with the item that came next beside the history, as
    /// MiniOneRec has them, are asked as they are; all others are split.
    #[arg(long, value_name = "FILE")]
    histories: PathBuf,
    #[command(flatten)]
    histories_options: HistoriesOptions,
    /// Items of histories that the catalog does not have: an error, or left out and counted (skip)
    ///
    /// They are left out before the split. A row whose next item is unknown is left out whole.
    #[arg(long, value_name = "error|skip", value_parser = unknown_items, default_value = "error")]
    unknown: UnknownItems,
    /// Item that is asked for: test (the last) or validation (the one before it)
    #[arg(long, value_name = "SPLIT", default_value = "test")]
    split: Split,
    /// Ask for items that the model has never seen: the newest SHARE of the items, by first
    /// appearance in the histories, as `palmette-train train --cold-start SHARE` holds them out
    ///
    /// Reports Recall@K over the users whose item is one of them, by the model alone, searching the
    /// whole catalog, guessing among the held-out items, and searching them alone. The histories
    /// must be those of training: an item's age is its place in them.
    #[arg(long, value_name = "SHARE")]
    cold_start: Option<f64>,
    /// Say what rounding costs: ask the model with its weights as they are too, and compare the
    /// answers; goes with --weights int8
    ///
    /// Reports the metrics of both, and how far their first K items agree, since two models may be
    /// right equally often and still recommend different items: `shared` is how much of the
    /// unrounded model's first K is among the rounded one's first K, the mean over users; `same
    /// order` is the share of users whose first K are the same items in the same order. The floors,
    /// and generation without the constraint, are left out.
    #[arg(long, conflicts_with = "cold_start")]
    overlap: bool,
    /// The Ks to report [default: 5,10; with --cold-start 1,5,10]
    #[arg(short, value_name = "KS", value_delimiter = ',')]
    k: Vec<usize>,
    /// Hypotheses kept at each level, at least the largest K
    #[arg(long, value_name = "N", default_value_t = 50)]
    beam_width: usize,
    /// A width for each level instead, such as 64,256,128,128: as many as semantic IDs have codes
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', conflicts_with = "beam_width")]
    widths: Option<Vec<usize>>,
    /// Ask only this many users, evenly spread over the file
    #[arg(long, value_name = "N")]
    users: Option<usize>,
    /// Recommend items of the history too
    #[arg(long)]
    include_seen: bool,
    /// Metrics of parts of the users too: history-length, or an attribute of the item that is asked
    /// for
    ///
    /// Text and booleans by value, the most frequent first; numbers of more than ten values in
    /// quarters; an item with a list of values is in the part of each.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["cold_start", "overlap"])]
    segment_by: Option<String>,
    /// Leave out generation without the constraint, which takes half of the time
    #[arg(long)]
    no_unconstrained: bool,
    /// Users asked about at the same time [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
    /// With --json, say for each question the right item's place in the answer, from 0: null where
    /// it is not among the largest K. For tests that pair two models' answers
    #[arg(long, requires = "json", conflicts_with_all = ["cold_start", "overlap"])]
    places: bool,
}

impl EvalArgs {
    fn ks(&self) -> Vec<usize> {
        match (self.k.as_slice(), self.cold_start) {
            ([], None) => vec![5, 10],
            ([], Some(_)) => vec![1, 5, 10],
            (ks, _) => ks.to_vec(),
        }
    }
}

pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let threads = set_threads(args.threads)?;
    let ks = args.ks();
    let max_k = ks.iter().copied().max().unwrap_or(0);
    ensure!(max_k > 0 && !ks.contains(&0), "-k must be at least 1");
    ensure!(args.users != Some(0), "--users is 0; at least 1 user must be asked");
    ensure!(
        !args.overlap || args.recommender.weights.rounds_to_int8(),
        "--overlap compares rounded weights with the same model's weights as they are: give --weights int8 with it"
    );
    let widths = args.widths.as_deref().unwrap_or(slice::from_ref(&args.beam_width));
    let mode = args.mode.mode(widths, max_k)?;
    let recommender = with_widths(args.recommender.load(mode)?, args.widths.as_deref())?;
    let (view, recommender) = (recommender.view()?, Arc::new(recommender));
    let asked =
        Request { mode, beam_width: args.beam_width, ..Request::new(History::Numbers(&[]), max_k) };
    let mode = recommender.mode_of(&asked);
    let items = view.view();
    let (histories, mut notes) = args.histories_options.read_all(&args.histories)?;
    let mut histories = histories.bind(&args.histories, items, args.unknown)?;
    notes.add(&args.histories, histories.drop_unread_fields(recommender.prompts()));
    notes.say(args.json);
    ensure!(
        !histories.are_questions || args.split == Split::Test,
        "{}: its rows say the item that is asked for; --split validation goes with whole histories",
        args.histories.display()
    );
    let all: Vec<Question<'_>> = histories.questions(args.split).collect();
    ensure!(
        !all.is_empty(),
        "{}: no history has the {} items that a question takes",
        args.histories.display(),
        Split::MIN_ITEMS
    );
    let options = EvalOptions {
        mode,
        // Of several widths the last is the number of results.
        beam_width: args
            .widths
            .as_ref()
            .and_then(|widths| widths.last().copied())
            .unwrap_or(args.beam_width),
        k: max_k,
        include_seen: args.include_seen,
        unconstrained: !args.no_unconstrained,
        threads,
    };
    if let Some(share) = args.cold_start {
        let cold = ColdStart::newest(&histories, items.num_numbers(), share)
            .with_context(|| format!("--cold-start with {}", args.histories.display()))?;
        let all = cold.questions(&histories, args.split);
        ensure!(
            !all.is_empty(),
            "{}: none of the {} newest items is one that a user is asked for; hold out a larger share",
            args.histories.display(),
            grouped(cold.num_items() as u64)
        );
        let questions = evenly_spread(&all, args.users.unwrap_or(all.len()));
        let of = ColdStartArgs {
            split: args.split,
            widths: args.widths.as_deref(),
            ks: &ks,
            notes: &notes,
            json: args.json,
        };
        return cold_start::run(&recommender, &view, &cold, share, &questions, &options, &of);
    }

    let places: Vec<usize> = (0..all.len()).collect();
    let places = evenly_spread(&places, args.users.unwrap_or(all.len()));
    let asked: Vec<Question<'_>> = places.iter().map(|&place| all[place]).collect();
    if args.overlap {
        let source = recommender.source().clone();
        let unrounded = args.recommender.load_over(source, mode, WeightsArg::F32)?;
        let unrounded = Arc::new(with_widths(unrounded, args.widths.as_deref())?);
        let of = OverlapArgs {
            split: args.split,
            widths: args.widths.as_deref(),
            weights: match args.recommender.weights {
                WeightsArg::Int8Bf16 => "int8-bf16",
                _ => "int8",
            },
            ks: &ks,
            notes: &notes,
            json: args.json,
        };
        return overlap::run(&unrounded, &recommender, &view, &asked, &options, &of);
    }
    let start = Instant::now();
    let bar = progress_bar(asked.len(), "users", args.json);
    let evaluation =
        evaluate(&recommender, &view, &asked, &options, |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();

    let known = KnownHistories::new(&histories, args.split);
    let own = |place: usize| known.as_ref().map_or(&[][..], |known| known.own(place));
    let with_own: Vec<_> = places.iter().map(|&place| (all[place], own(place))).collect();
    let measured = Measured {
        num_histories: histories.items.len(),
        num_questions: all.len(),
        skipped: histories.skipped,
        notes,
        no_floors: known.is_none().then_some(NO_FLOORS),
        spread: Spread::of(&evaluation, items, &with_own, known.as_ref(), &ks),
        segments: match &args.segment_by {
            Some(by) => segments(by, items, &asked, &evaluation.answers, max_k)?,
            None => Vec::new(),
        },
        seconds,
    };
    let mut rows = vec![("model", evaluation.metrics.clone())];
    if let Some(known) = &known {
        let seen = args.include_seen;
        let floor = Popularity::fit(known.histories(), items.numbers());
        rows.push((floor.name(), evaluate_floor(&floor, &with_own, max_k, seen, threads)));
        let floor = ItemItem::fit(known.histories(), items.num_numbers());
        rows.push((floor.name(), evaluate_floor(&floor, &with_own, max_k, seen, threads)));
    }
    if let (Mode::Draft(_), Some(metrics)) = (mode, &evaluation.unconstrained_metrics) {
        rows.insert(1, ("not verified", metrics.clone()));
    }
    if evaluation.shared_targets > 0 {
        rows.insert(1, ("model, by semantic ID", evaluation.id_metrics.clone()));
    }
    match args.json {
        true => print_json(&document(args, mode, &ks, &rows, &evaluation, &measured)),
        false => print(&text(args, &ks, &rows, &evaluation, &measured)),
    }
}

/// Findings beside the metrics.
struct Measured {
    num_histories: usize,
    /// Histories that ask something.
    num_questions: usize,
    skipped: Skipped,
    notes: Notes,
    spread: Spread,
    segments: Vec<Segment>,
    /// The reason why no floors were counted.
    no_floors: Option<&'static str>,
    seconds: f64,
}

/// Rows that overlap, and nothing to tell whose they are.
const NO_FLOORS: &str = "the rows say the item that came next and name no user, so that one's history may hold another's answer; name the column of users (--user-column)";

/// Names, and what was measured of each.
pub(crate) type Rows<'a> = [(&'a str, RankingMetrics)];

/// Metrics at each K as a JSON object.
pub(crate) fn metrics_document(ks: &[usize], metrics: &RankingMetrics) -> Value {
    let at = ks.iter().flat_map(|&k| {
        let at = metrics.at(k);
        [
            (format!("hit_rate@{k}"), json!(at.hit_rate)),
            (format!("recall@{k}"), json!(at.hit_rate)),
            (format!("ndcg@{k}"), json!(at.ndcg)),
        ]
    });
    Value::Object(at.collect())
}

/// Metrics at each K as a table.
pub(crate) fn metrics_table(ks: &[usize], rows: &Rows<'_>) -> String {
    let mut headings = vec![String::new()];
    for k in ks {
        headings.extend([format!(" HR@{k}"), format!(" NDCG@{k}")]);
    }
    let cells = |(name, metrics): &(&str, RankingMetrics)| {
        let numbers = ks.iter().flat_map(|&k| {
            let at = metrics.at(k);
            [format!("{:.4}", at.hit_rate), format!("{:.4}", at.ndcg)]
        });
        std::iter::once((*name).to_owned()).chain(numbers).collect()
    };
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    table(&headings, &rows)
}

fn document(
    args: &EvalArgs,
    mode: Mode,
    ks: &[usize],
    rows: &Rows<'_>,
    evaluation: &Evaluation,
    measured: &Measured,
) -> Value {
    let valid = |share: ValidShare| json!({"valid": share.valid, "generated": share.generated, "share": share.share()});
    let named = rows.iter().map(|(name, row)| ((*name).to_owned(), metrics_document(ks, row)));
    let segmented = |by: &String| segments_document(by, &measured.segments, ks);
    let places = || evaluation.answers.iter().map(|answer| answer.place).collect::<Vec<_>>();
    json!({
        "split": args.split,
        "mode": mode::name(mode),
        "users": evaluation.metrics.questions(),
        "histories": measured.num_histories,
        "asking_nothing": measured.num_histories - measured.num_questions,
        "skipped": measured.skipped,
        "notes": measured.notes,
        "beam_width": evaluation.beam_width,
        "probe_width": mode::probe_width(mode),
        "widths": args.widths,
        "metrics": named.collect::<serde_json::Map<_, _>>(),
        "no_floors": measured.no_floors,
        "valid": {
            "constrained": valid(evaluation.constrained),
            "unconstrained": evaluation.unconstrained.map(valid),
            "unconstrained_beam": evaluation.unconstrained_beam.map(valid),
        },
        "spread": measured.spread.document(),
        "proven": evaluation.proven,
        "sharing_a_semantic_id": evaluation.shared_targets,
        "segmented": args.segment_by.as_ref().map(segmented),
        "places": args.places.then(places),
        "seconds": measured.seconds,
    })
}

fn text(
    args: &EvalArgs,
    ks: &[usize],
    rows: &Rows<'_>,
    evaluation: &Evaluation,
    measured: &Measured,
) -> String {
    let users = evaluation.metrics.questions();
    let percent = |share: ValidShare| format!("{:.2}%", 100.0 * share.share());
    let mut text = metrics_table(ks, rows);
    if let Some(reason) = measured.no_floors {
        text += &format!("no floors: {reason}\n");
    }
    text += &format!(
        "in the catalog: {} of {} generated semantic IDs\n",
        percent(evaluation.constrained),
        grouped(evaluation.constrained.generated as u64)
    );
    if let (Some(best), Some(beam)) = (evaluation.unconstrained, evaluation.unconstrained_beam) {
        text += &format!(
            "without the constraint: {} of the best {}, {} of the beam\n",
            percent(best),
            ks.iter().max().unwrap_or(&0),
            percent(beam)
        );
    }
    text += &format!(
        "proven to be those of scoring every item: {:.2}% of the answers\n",
        100.0 * evaluation.proven as f64 / users.max(1) as f64
    );
    text += &measured.spread.text();
    if evaluation.shared_targets > 0 {
        text += &format!(
            "{} of the items asked for share their semantic ID with others\n",
            grouped(evaluation.shared_targets as u64)
        );
    }
    if let Some(by) = &args.segment_by {
        text += &segments_text(by, &measured.segments, ks);
    }
    let Skipped { items, histories, questions } = measured.skipped;
    if items > 0 {
        let (items, histories) = (grouped(items as u64), grouped(histories as u64));
        text += &format!("left out as unknown: {items} items of {histories} histories\n");
    }
    if questions > 0 {
        text += &format!("left out as unknown: {} answers\n", grouped(questions as u64));
    }
    let nothing = measured.num_histories - measured.num_questions;
    if nothing > 0 {
        text += &format!(
            "{} histories of fewer than {} items ask nothing\n",
            grouped(nothing as u64),
            Split::MIN_ITEMS
        );
    }
    let seconds = measured.seconds;
    let rate = users as f64 / seconds.max(1e-9);
    text += &format!(
        "{} users, beam width {}, {seconds:.0} s ({rate:.0} users a second)",
        grouped(users as u64),
        evaluation.beam_width
    );
    text
}
