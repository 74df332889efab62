//! `palmette eval --cold-start`: how often items that a model has never seen are found.

use std::sync::Arc;
use std::time::Instant;

use palmette_recommend::{Recommender, SpelledView};
use palmette_recommend_eval::{
    ColdStart, ColdStartRecall, EvalOptions, Question, Split, cold_start_recall,
};
use serde_json::{Map, Value, json};

use super::histories::Notes;
use crate::output::{grouped, print, print_json, progress_bar, table};

/// Settings of `eval --cold-start`: the questions and the report.
#[derive(Debug)]
pub(crate) struct ColdStartArgs<'a> {
    pub(crate) split: Split,
    /// Beam widths of the levels, where they are not the same.
    pub(crate) widths: Option<&'a [usize]>,
    /// The Ks to report.
    pub(crate) ks: &'a [usize],
    /// Notes on the histories for whoever reads the report.
    pub(crate) notes: &'a Notes,
    pub(crate) json: bool,
}

pub(crate) fn run(
    recommender: &Arc<Recommender>,
    view: &Arc<SpelledView>,
    cold: &ColdStart,
    share: f64,
    questions: &[Question<'_>],
    options: &EvalOptions,
    args: &ColdStartArgs<'_>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let bar = progress_bar(questions.len(), "users", args.json);
    let recall = cold_start_recall(recommender, view, cold, questions, options, |done| {
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();

    let rows = rows(&recall, args.ks);
    if args.json {
        let recalls = |row: &Row| -> Map<String, Value> {
            let at = args.ks.iter().zip(&row.recalls);
            at.map(|(k, recall)| (format!("recall@{k}"), json!(recall))).collect()
        };
        let named: Map<String, Value> =
            rows.iter().map(|row| (row.name.to_owned(), recalls(row).into())).collect();
        return print_json(&json!({
            "cold_start": share,
            "cold_items": cold.num_items(),
            "items": cold.num_appearing(),
            "split": args.split,
            "notes": args.notes,
            "users": questions.len(),
            "beam_width": recall.beam_width,
            "widths": args.widths,
            "metrics": named,
            "seconds": seconds,
        }));
    }
    let mut headings = vec![String::new()];
    headings.extend(args.ks.iter().map(|k| format!(" Recall@{k}")));
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let cells = |row: &Row| {
        let recalls = row.recalls.iter().map(|recall| format!("{recall:.4}"));
        std::iter::once(row.name.to_owned()).chain(recalls).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut text = table(&headings, &rows);
    text += &format!(
        "{} users whose item is among the newest {} of {}, beam width {}, {seconds:.0} s",
        grouped(questions.len() as u64),
        grouped(cold.num_items() as u64),
        grouped(cold.num_appearing() as u64),
        recall.beam_width
    );
    print(&text)
}

/// One way of searching, and its recall at each K.
struct Row {
    name: &'static str,
    recalls: Vec<f64>,
}

fn rows(recall: &ColdStartRecall, ks: &[usize]) -> Vec<Row> {
    let measured = [
        ("unconstrained", recall.unconstrained.as_ref()),
        ("catalog", Some(&recall.catalog)),
        ("constrained", Some(&recall.constrained)),
    ];
    let row =
        |(name, metrics): (&'static str, Option<&palmette_recommend_eval::RankingMetrics>)| {
            let metrics = metrics?;
            Some(Row { name, recalls: ks.iter().map(|&k| metrics.at(k).hit_rate).collect() })
        };
    let mut rows: Vec<Row> = measured.into_iter().filter_map(row).collect();
    let recalls = ks.iter().map(|&k| recall.random.recall(k)).collect();
    rows.insert(rows.len() - 1, Row { name: "random", recalls });
    rows
}
