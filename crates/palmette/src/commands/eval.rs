//! `palmette eval`: a model on held-out items, next to its floors.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::ensure;
use clap::Args;
use palmette_eval::{
    EvalOptions, Evaluation, Floor, Histories, ItemItem, Popularity, Question, RankingMetrics,
    Split, ValidShare, evaluate, evaluate_floor, evenly_spread,
};
use palmette_recommend::Mode;
use serde_json::{Value, json};

use super::loading::{RecommenderArgs, set_threads};
use super::mode::{self, ModeArgs};
use crate::output::{grouped, print, print_json, progress_bar, table};

/// Measure a model on held-out items, next to popularity and item-item filtering.
///
/// Leave-one-out: the model is asked for each user's last item (test) after all before it. HR@K is
/// the share of users whose item is among the first K, which is Recall@K here; NDCG@K weighs a hit
/// at place r by 1/log2(r + 1). The floors are counted on the same histories that the model is
/// asked with. Items of the history are not recommended, by none of them, unless --include-seen.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    recommender: RecommenderArgs,
    #[command(flatten)]
    mode: ModeArgs,
    /// Histories, oldest item first: {user: [item, …]} as JSON, or JSON lines of
    /// {"user_id": …, "history": [item, …]}
    #[arg(long, value_name = "FILE")]
    histories: PathBuf,
    /// Which item is asked for: test (the last) or validation (the one before it)
    #[arg(long, value_name = "SPLIT", default_value = "test")]
    split: Split,
    /// The Ks to report
    #[arg(short, value_name = "KS", value_delimiter = ',', default_value = "5,10")]
    k: Vec<usize>,
    /// Hypotheses kept at each level, at least the largest K
    #[arg(long, value_name = "N", default_value_t = 50)]
    beam_width: usize,
    /// Ask only this many users, evenly spread over the file
    #[arg(long, value_name = "N")]
    users: Option<usize>,
    /// Recommend items of the history too
    #[arg(long)]
    include_seen: bool,
    /// Leave out generation without the constraint, which takes half of the time
    #[arg(long)]
    no_unconstrained: bool,
    /// Users asked about at the same time [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<()> {
    let threads = set_threads(args.threads)?;
    let max_k = args.k.iter().copied().max().unwrap_or(0);
    ensure!(max_k > 0 && !args.k.contains(&0), "-k must be at least 1");
    ensure!(args.users != Some(0), "--users is 0; at least 1 user must be asked");
    let mode = args.mode.mode()?;
    let recommender = args.recommender.load(mode)?;
    let histories =
        Histories::read(&args.histories)?.bind(&args.histories, recommender.catalog())?;
    let all: Vec<Question<'_>> =
        histories.items.iter().filter_map(|history| args.split.question(history)).collect();
    ensure!(
        !all.is_empty(),
        "{}: no history has the {} items that a question takes",
        args.histories.display(),
        Split::MIN_ITEMS
    );
    let asked = evenly_spread(&all, args.users.unwrap_or(all.len()));

    let options = EvalOptions {
        mode,
        beam_width: args.beam_width,
        k: max_k,
        include_seen: args.include_seen,
        unconstrained: !args.no_unconstrained,
        threads,
    };
    let start = Instant::now();
    let bar = progress_bar(asked.len(), "users", args.json);
    let evaluation =
        evaluate(&recommender, &asked, &options, |done| bar.set_position(done as u64))?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();

    let num_items = recommender.catalog().num_items();
    let known = all.iter().map(|question| question.history);
    let popularity = Popularity::fit(known.clone(), num_items);
    let item_item = ItemItem::fit(known, num_items);
    let mut rows = vec![
        ("model", evaluation.metrics.clone()),
        (popularity.name(), evaluate_floor(&popularity, &asked, max_k, args.include_seen, threads)),
        (item_item.name(), evaluate_floor(&item_item, &asked, max_k, args.include_seen, threads)),
    ];
    if let (Mode::Draft(_), Some(metrics)) = (mode, &evaluation.unconstrained_metrics) {
        rows.insert(1, ("not verified", metrics.clone()));
    }
    match args.json {
        true => print_json(&document(args, mode, &rows, &evaluation, seconds)),
        false => print(&text(args, &rows, &evaluation, seconds)),
    }
}

type Rows<'a> = [(&'a str, RankingMetrics)];

fn document(
    args: &EvalArgs,
    mode: Mode,
    rows: &Rows<'_>,
    evaluation: &Evaluation,
    seconds: f64,
) -> Value {
    let metrics = |metrics: &RankingMetrics| -> Value {
        let at = args.k.iter().flat_map(|&k| {
            let at = metrics.at(k);
            [
                (format!("hit_rate@{k}"), json!(at.hit_rate)),
                (format!("recall@{k}"), json!(at.hit_rate)),
                (format!("ndcg@{k}"), json!(at.ndcg)),
            ]
        });
        Value::Object(at.collect())
    };
    let valid = |share: ValidShare| json!({"valid": share.valid, "generated": share.generated, "share": share.share()});
    let named = rows.iter().map(|(name, row)| ((*name).to_owned(), metrics(row)));
    json!({
        "split": args.split,
        "mode": mode::name(mode),
        "users": evaluation.metrics.questions(),
        "beam_width": evaluation.beam_width,
        "metrics": named.collect::<serde_json::Map<_, _>>(),
        "valid": {
            "constrained": valid(evaluation.constrained),
            "unconstrained": evaluation.unconstrained.map(valid),
            "unconstrained_beam": evaluation.unconstrained_beam.map(valid),
        },
        "seconds": seconds,
    })
}

fn text(args: &EvalArgs, rows: &Rows<'_>, evaluation: &Evaluation, seconds: f64) -> String {
    let users = evaluation.metrics.questions();
    let mut headings = vec![String::new()];
    for k in &args.k {
        headings.extend([format!(" HR@{k}"), format!(" NDCG@{k}")]);
    }
    let cells = |(name, metrics): &(&str, RankingMetrics)| {
        let numbers = args.k.iter().flat_map(|&k| {
            let at = metrics.at(k);
            [format!("{:.4}", at.hit_rate), format!("{:.4}", at.ndcg)]
        });
        std::iter::once((*name).to_owned()).chain(numbers).collect()
    };
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let percent = |share: ValidShare| format!("{:.2}%", 100.0 * share.share());
    let mut text = table(&headings, &rows);
    text += &format!(
        "in the catalog: {} of {} generated semantic IDs\n",
        percent(evaluation.constrained),
        grouped(evaluation.constrained.generated as u64)
    );
    if let (Some(best), Some(beam)) = (evaluation.unconstrained, evaluation.unconstrained_beam) {
        text += &format!(
            "without the constraint: {} of the best {}, {} of the beam\n",
            percent(best),
            args.k.iter().max().unwrap_or(&0),
            percent(beam)
        );
    }
    if !args.no_unconstrained && evaluation.unconstrained.is_none() {
        text += "without the constraint: not measured, since the semantic IDs differ in length\n";
    }
    let rate = users as f64 / seconds.max(1e-9);
    text += &format!(
        "{} users, beam width {}, {seconds:.0} s ({rate:.0} users a second)",
        grouped(users as u64),
        evaluation.beam_width
    );
    text
}
