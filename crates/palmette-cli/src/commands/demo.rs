//! `palmette demo`: a built-in shop.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use palmette_catalog::Filter;
use palmette_demo::{Demo, Shop};
use palmette_live::CatalogView;
use palmette_recommend::{Candidates, History, Recommendations, Request, Worker};
use serde_json::{Value, json};

use super::items::{codes_text_of, name, name_text};
use super::loading::set_threads;
use super::mode;
use super::recommend::{items_json, timings_text};
use crate::output::{bytes, grouped, make_parent, print, print_json, table, visible};
use crate::timings::{Timings, timed};

/// Recommend from a built-in shop: no files, no network.
///
/// The shop is invented: thousands of items with titles, departments, prices, stock and age, and
/// users with tastes who bought some. A small model, trained on their histories, ships inside this
/// program.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How many items to recommend
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Hypotheses kept at each level
    #[arg(long, value_name = "N", default_value_t = 128)]
    beam_width: usize,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Write the shop as files into DIR, to try the other commands on: items.jsonl,
    /// histories.json and model/
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// One history of the demonstration with its answer.
struct Shown {
    history: Vec<u64>,
    answer: Recommendations,
    timings: Timings,
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if let Some(dir) = &args.export {
        return export(dir, args.json);
    }
    let threads = set_threads(args.threads)?;
    let demo = Demo::load().context("the built-in model")?;
    let view = demo.view().view();
    let mode = mode::beam(&[args.beam_width], args.k);
    let mut worker = Worker::new(Arc::clone(demo.recommender()), threads);
    // Nobody wants to be shown what is sold out.
    let in_stock = Filter::parse(r#"{"must": {"range": {"stock": {"gt": 0}}}}"#)?;
    let items = view.filter(&in_stock)?;
    let mut shown = Vec::new();
    for history in demo.sample_histories() {
        let request = Request {
            beam_width: args.beam_width,
            mode,
            items: Candidates::Set(&items),
            view: Some(demo.view()),
            ..Request::new(History::Numbers(&history), args.k)
        };
        // The second of two runs: the first touches memory for the first time.
        let (answer, timings) =
            timed(&mut worker, &request, 1).and_then(|_| timed(&mut worker, &request, 1))?;
        shown.push(Shown { history, answer, timings });
    }
    if args.json {
        return print_json(&document(view, &shown));
    }
    print(&text(&demo, &shown, args.beam_width, threads))
}

fn document(view: &CatalogView, shown: &[Shown]) -> Value {
    let recommendations: Vec<Value> = shown
        .iter()
        .map(|one| {
            let titles: Vec<String> = one.history.iter().map(|&n| name_in(view, n)).collect();
            json!({"history": titles, "items": items_json(&one.answer)})
        })
        .collect();
    json!({"recommendations": recommendations, "timings_ms": mean(shown)})
}

fn name_in(view: &CatalogView, number: u64) -> String {
    let (catalog, rank) = view.place(number);
    name(catalog, rank)
}

/// The mean over the histories.
fn mean(shown: &[Shown]) -> Timings {
    let over = |part: fn(&Timings) -> f64| {
        shown.iter().map(|one| part(&one.timings)).sum::<f64>() / shown.len().max(1) as f64
    };
    Timings {
        prefill: over(|t| t.prefill),
        decode: over(|t| t.decode),
        mask: over(|t| t.mask),
        top_k: over(|t| t.top_k),
        total: over(|t| t.total),
    }
}

fn text(demo: &Demo, shown: &[Shown], beam_width: usize, threads: usize) -> String {
    let view = demo.view().view();
    let model = demo.recommender().model();
    let mut text = format!(
        "A shop of {} items, a model of {} parameters, beam width {beam_width}, threads {threads}\n",
        grouped(view.num_items()),
        grouped(model.num_parameters() as u64),
    );
    for one in shown {
        text += "\nBought, oldest first\n";
        for &number in &one.history {
            text += &format!("  {}\n", visible(&name_in(view, number)));
        }
        text += &format!("Recommended in {:.1} ms\n", one.timings.total);
        let rows: Vec<Vec<String>> = one
            .answer
            .items
            .iter()
            .map(|item| {
                let (catalog, rank) = view.place(item.number);
                let attributes = catalog.attributes(rank);
                let number = |key: &str| attributes.get(key).and_then(Value::as_f64).unwrap_or(0.0);
                vec![
                    format!("{:.2}", item.score),
                    format!("{:.2}", number("price")),
                    format!("{}", number("stock")),
                    codes_text_of(view, item.number),
                    name_text(catalog, rank, 72),
                ]
            })
            .collect();
        text += &table(&[" score", " price", " stock", "semantic ID", "title"], &rows);
    }
    text += "\nPer request, mean: ";
    text += &timings_text(&mean(shown));
    text
}

fn export(dir: &Path, as_json: bool) -> anyhow::Result<()> {
    let shop = Shop::demo();
    let files = [
        ("items.jsonl", shop.items_jsonl().into_bytes()),
        ("histories.json", shop.histories_json().into_bytes()),
    ];
    let model = Demo::model_files().map(|(name, bytes)| (format!("model/{name}"), bytes.to_vec()));
    let files = files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).chain(model);
    let mut written = Vec::new();
    for (name, contents) in files {
        let path = dir.join(&name);
        make_parent(&path)?;
        std::fs::write(&path, &contents).with_context(|| format!("writing {}", path.display()))?;
        written.push((path, contents.len()));
    }
    if as_json {
        let files: Vec<Value> =
            written.iter().map(|(path, len)| json!({"path": path, "bytes": len})).collect();
        return print_json(&json!({"files": files}));
    }
    let lines = written.iter().map(|(path, len)| format!("{}: {}\n", path.display(), bytes(*len)));
    print(&lines.collect::<String>())
}
