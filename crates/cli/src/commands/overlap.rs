//! `palmette eval --overlap`: what rounding a model's weights changes in its answers.

use std::sync::Arc;
use std::time::Instant;

use palmette_recommend::{Recommender, SpelledView};
use palmette_recommend_eval::{EvalOptions, Overlap, Question, Split, overlap};
use serde_json::{Map, Value, json};

use super::eval::{metrics_document, metrics_table};
use super::histories::Notes;
use super::mode;
use crate::output::{grouped, print, print_json, progress_bar, table};

/// Settings of `eval --overlap`: the report.
#[derive(Debug)]
pub(crate) struct OverlapArgs<'a> {
    pub(crate) split: Split,
    /// Beam widths of the levels, where they are not the same.
    pub(crate) widths: Option<&'a [usize]>,
    /// The format that the model is rounded to.
    pub(crate) weights: &'static str,
    /// The Ks to report.
    pub(crate) ks: &'a [usize],
    /// Notes on the histories for whoever reads the report.
    pub(crate) notes: &'a Notes,
    pub(crate) json: bool,
}

pub(crate) fn run(
    unrounded: &Arc<Recommender>,
    rounded: &Arc<Recommender>,
    view: &Arc<SpelledView>,
    questions: &[Question<'_>],
    options: &EvalOptions,
    args: &OverlapArgs<'_>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let bar = progress_bar(questions.len(), "users", args.json);
    let overlap = overlap(unrounded, rounded, view, questions, options, |done| {
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    let seconds = start.elapsed().as_secs_f64();
    match args.json {
        true => print_json(&document(&overlap, options, args, seconds)),
        false => print(&text(&overlap, args, seconds)),
    }
}

fn document(
    overlap: &Overlap,
    options: &EvalOptions,
    args: &OverlapArgs<'_>,
    seconds: f64,
) -> Value {
    let at = args.ks.iter().flat_map(|&k| {
        let at = overlap.at(k);
        [
            (format!("shared@{k}"), json!(at.shared)),
            (format!("same_order@{k}"), json!(at.same_order)),
        ]
    });
    json!({
        "split": args.split,
        "notes": args.notes,
        "mode": mode::name(options.mode),
        "users": overlap.changed.questions(),
        "beam_width": overlap.beam_width,
        "probe_width": mode::probe_width(options.mode),
        "widths": args.widths,
        "metrics": {
            "f32": metrics_document(args.ks, &overlap.reference),
            args.weights: metrics_document(args.ks, &overlap.changed),
        },
        "overlap": at.collect::<Map<_, _>>(),
        "seconds": seconds,
    })
}

fn text(overlap: &Overlap, args: &OverlapArgs<'_>, seconds: f64) -> String {
    let rows = [("f32", overlap.reference.clone()), (args.weights, overlap.changed.clone())];
    let agreement: Vec<Vec<String>> = args
        .ks
        .iter()
        .map(|&k| {
            let at = overlap.at(k);
            let percent = |share: f64| format!("{:.2}%", 100.0 * share);
            vec![format!("first {k}"), percent(at.shared), percent(at.same_order)]
        })
        .collect();
    let mut text = metrics_table(args.ks, &rows);
    text += &table(&["", " shared", " same order"], &agreement);
    text += &format!(
        "{} users, beam width {}, {seconds:.0} s",
        grouped(overlap.changed.questions() as u64),
        overlap.beam_width
    );
    text
}
