//! Proven answers of a model on real histories: how many there are, what they cost, and whether they
//! are what scoring every item gives.
//!
//! Each user is asked about all items but the last, by mode `auto` and by mode `proven`, and some of
//! them, spread evenly, by a beam as wide as the catalog. A proven answer that differs from the
//! latter, or an item missed above its bound, ends the program with an error. Histories are JSON,
//! `{"user": ["item", …]}`. Run with
//!
//! ```text
//! cargo run --release -p palmette-recommend-eval --example proofs -- MODEL CATALOG HISTORIES [WIDTH] [USERS] [COMPARED]
//! ```
//!
//! WIDTH is 128, USERS all and COMPARED 0 unless told otherwise. Times are of one thread.
#![allow(clippy::print_stdout, reason = "a program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palmette_catalog::Catalog;
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_recommend::{
    History, ItemId, Mode, Prompts, Recommendations, Recommended, Recommender, Request, Worker,
};
use palmette_recommend_eval::evenly_spread;

const K: usize = 10;

/// Answers of one mode.
#[derive(Default)]
struct Tally {
    asked: usize,
    proven: usize,
    rows: usize,
    time: Duration,
    slowest: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [model, catalog, histories, rest @ ..] = &given[..] else {
        return Err("give MODEL CATALOG HISTORIES [WIDTH] [USERS] [COMPARED]".into());
    };
    let number = |place: usize, default| match rest.get(place) {
        None => Ok(default),
        Some(text) => text.parse::<usize>(),
    };
    let catalog = Arc::new(Catalog::open(Path::new(catalog))?);
    let num_items = catalog.num_items();
    let source = palmette_catalog_live::CatalogSource::from(catalog);
    let prompts = Prompts::read(Path::new(model), Some(&source.view()))?;
    let recommender = Recommender::new(Model::load(Path::new(model))?, source, prompts)?;
    let recommender = Arc::new(recommender);
    let view = recommender.view()?;
    let text = std::fs::read_to_string(histories)?;
    let users: BTreeMap<String, Vec<ItemId>> = serde_json::from_str(&text)?;
    let number_of = |id: &ItemId| view.view().find(&id.0);
    let histories: Vec<Vec<u64>> = users
        .values()
        .filter_map(|items| items.split_last())
        .map(|(_, before)| before.iter().filter_map(number_of).collect())
        .collect();
    let histories: Vec<&[u64]> = histories.iter().map(Vec::as_slice).collect();
    let (width, most) = (number(0, 128)?, number(1, histories.len())?);
    let histories = evenly_spread(&histories, most);
    let compared = evenly_spread(&(0..histories.len()).collect::<Vec<_>>(), number(2, 0)?);

    let proven = Mode::Proven(Mode::prove_width(width));
    let mut workers = [(); 3].map(|()| Worker::new(Arc::clone(&recommender), 1));
    let (mut by_default, mut asked_for) = (Tally::default(), Tally::default());
    let (mut every, mut missed, mut wrong) = (Tally::default(), 0, 0);
    for (place, history) in histories.iter().enumerate() {
        let request = Request {
            beam_width: width,
            view: Some(&view),
            ..Request::new(History::Numbers(history), K)
        };
        let [narrow, wider, whole] = &mut workers;
        let answer = by_default.ask(narrow, &request)?;
        let widened = asked_for.ask(wider, &Request { mode: proven, ..request })?;
        if answer.is_proven() {
            hold(answer.items == widened.items, "mode proven changes a proven answer", history)?;
        }
        if compared.binary_search(&place).is_err() {
            continue;
        }
        let beam_width = usize::try_from(num_items)?;
        let all = every.ask(whole, &Request { beam_width, mode: Mode::Beam, ..request })?;
        hold(all.is_proven(), "a beam as wide as the catalog is not proven", history)?;
        for answer in [&answer, &widened] {
            let Some(bound) = answer.missed_at_most else {
                hold(answer.items == all.items, "a proven answer is not that of all", history)?;
                continue;
            };
            wrong += usize::from(answer.items != all.items);
            let is_missed = |item: &&Recommended| !answer.items.contains(item);
            for item in all.items.iter().filter(is_missed) {
                hold(item.score <= bound, "an item above the bound is missed", history)?;
                missed += 1;
            }
        }
    }
    println!("{} users, {num_items} items, width {width}, k {K}", histories.len());
    by_default.print("auto");
    asked_for.print("proven");
    every.print("every item");
    println!("answers not proven and not those of every item: {wrong}, missing {missed} items");
    Ok(())
}

fn hold(holds: bool, what: &str, history: &[u64]) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what}: history {history:?}")) }
}

impl Tally {
    fn ask(
        &mut self,
        worker: &mut Worker,
        request: &Request<'_>,
    ) -> Result<Recommendations, Box<dyn Error>> {
        let start = Instant::now();
        let answer = worker.recommend(request, &mut run_on)?;
        let took = start.elapsed();
        self.asked += 1;
        self.proven += usize::from(answer.is_proven());
        self.rows += worker.rows_of_passes().iter().sum::<usize>();
        self.time += took;
        self.slowest = self.slowest.max(took);
        Ok(answer)
    }

    fn print(&self, name: &str) {
        let asked = self.asked.max(1);
        println!(
            "{name:12} {:>6} of {:>6} proven ({:.2}%), {:.2} ms and {} rows a user, slowest {:.1} ms",
            self.proven,
            self.asked,
            100.0 * self.proven as f64 / asked as f64,
            self.time.as_secs_f64() * 1e3 / asked as f64,
            self.rows / asked,
            self.slowest.as_secs_f64() * 1e3,
        );
    }
}
