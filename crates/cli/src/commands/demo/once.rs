//! The demonstration in a terminal: a few histories and their answers.

use std::sync::Arc;

use anyhow::Context;
use palmette_catalog::Filter;
use palmette_catalog_live::CatalogView;
use palmette_demo::Demo;
use palmette_recommend::{Candidates, History, Recommendations, Request, Worker};
use serde_json::{Value, json};

use super::DemoArgs;
use crate::commands::items::{codes_text_of, name, name_text};
use crate::commands::loading::set_threads;
use crate::commands::recommend::{items_json, timings_text};
use crate::output::{grouped, print, print_json, table, visible};
use crate::timings::{Timings, timed};

/// One history of the demonstration with its answer.
pub(super) struct Example {
    history: Vec<u64>,
    answer: Recommendations,
    timings: Timings,
}

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let threads = set_threads(args.threads())?;
    let demo = Demo::load().context("the built-in model")?;
    let shown = shown(&demo, args, threads)?;
    if args.json {
        return print_json(&document(demo.view().view(), &shown));
    }
    print(&text(&demo, &shown, args.beam_width(), threads))
}

/// The sample histories with their answers.
pub(super) fn shown(demo: &Demo, args: &DemoArgs, threads: usize) -> anyhow::Result<Vec<Example>> {
    let view = demo.view().view();
    let mut worker = Worker::new(Arc::clone(demo.recommender()), threads);
    // Nobody wants to be shown what is sold out.
    let in_stock = Filter::parse(r#"{"must": {"range": {"stock": {"gt": 0}}}}"#)?;
    let items = view.filter(&in_stock)?;
    let mut shown = Vec::new();
    for history in demo.sample_histories() {
        let request = Request {
            beam_width: args.beam_width(),
            items: Candidates::Set(&items),
            view: Some(demo.view()),
            ..Request::new(History::Numbers(&history), args.k)
        };
        // The second of two runs: the first touches memory for the first time.
        let (answer, timings) =
            timed(&mut worker, &request, 1).and_then(|_| timed(&mut worker, &request, 1))?;
        shown.push(Example { history, answer, timings });
    }
    Ok(shown)
}

fn document(view: &CatalogView, shown: &[Example]) -> Value {
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
fn mean(shown: &[Example]) -> Timings {
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

fn text(demo: &Demo, shown: &[Example], beam_width: usize, threads: usize) -> String {
    let view = demo.view().view();
    let model = demo.recommender().engine();
    let mut text = format!(
        "A shop of {} items, a model of {} parameters, beam width {beam_width}, threads {threads}\n",
        grouped(view.num_items()),
        grouped(model.num_parameters() as u64),
    );
    text += &answers_text(demo, shown);
    text += "\nPer request, mean: ";
    text += &timings_text(&mean(shown));
    text
}

/// Histories and answers as tables.
pub(super) fn answers_text(demo: &Demo, shown: &[Example]) -> String {
    let view = demo.view().view();
    let mut text = String::new();
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
    text
}
