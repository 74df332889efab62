//! Cost of rules within a request: masks and selection with caps and boosts, beside a request
//! without rules.
//!
//! A catalog of random items (four levels of 256 codes, 1,000,000 items unless told otherwise) with
//! a brand and a price, and a small model of random weights, which finds all items alike: the case
//! in which most extensions contend. Run with
//!
//! ```text
//! cargo run --release -p palmette-bench --example rules -- [ITEMS] [WIDTH] [REPEAT]
//! ```
//!
//! `step`: masks and selection of all levels, without the model's passes. `whole`: the request. The
//! fastest, in milliseconds. `first`: the first request, which computes the boosts of all items;
//! they are kept for the view.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_decode::Stage;
use palmette_model::{Architecture, Model, ModelConfig};
use palmette_recommend::{History, PromptFormat, Recommender, Request, Rules, Worker};
use serde_json::{Map, json};

const LEVELS: usize = 4;
const CODES: u32 = 256;

const CASES: [(&str, &str); 6] = [
    ("no rules", "{}"),
    ("caps", r#"{"at_most": [{"attribute": "brand", "items": 2}], "at_most_per_semantic_id": 1}"#),
    (
        "boost of a brand",
        r#"{"boosts": [{"filter": {"must": {"match": {"brand": "brand 7"}}}, "add": 1.0}]}"#,
    ),
    ("boost by price", r#"{"boosts": [{"attribute": "price", "weight": -0.02}]}"#),
    (
        "both boosts, caps",
        r#"{"boosts": [{"filter": {"must": {"match": {"brand": "brand 7"}}}, "add": 1.0},
            {"attribute": "price", "weight": -0.02}],
            "at_most": [{"attribute": "brand", "items": 2}]}"#,
    ),
    (
        "tie-break, pins, diversity",
        r#"{"tie_break": {"attribute": "price"}, "must_include": ["5", "6"],
            "diversity": {"lambda": 0.7, "pool": 40}}"#,
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<usize> =
        std::env::args().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    let number = |place: usize, default| given.get(place).copied().unwrap_or(default);
    let (items, width, repeat) = (number(0, 1_000_000), number(1, 128), number(2, 30));
    let mut worker = Worker::new(Arc::new(recommender(items)?), 1);
    println!("{items} items, width {width}, fastest of {repeat}");
    println!("{:28}{:>8}{:>8}{:>8}{:>10}", "", "first", "whole", "step", "searches");
    for (name, rules) in CASES {
        let rules = Rules::parse(rules)?;
        let request = Request {
            beam_width: width,
            rules: Some(&rules),
            ..Request::new(History::Numbers(&[3, 14, 15]), 10)
        };
        let (first, _, searches) = timed(&mut worker, &request)?;
        let mut runs = Vec::new();
        for _ in 0..repeat {
            runs.push(timed(&mut worker, &request)?);
        }
        let whole = fastest(runs.iter().map(|run| run.0));
        let step = fastest(runs.iter().map(|run| run.1));
        println!("{name:28}{first:>8.2}{whole:>8.2}{step:>8.2}{searches:>10}");
    }
    Ok(())
}

/// Milliseconds of the whole request and of its masks and selections, and its searches.
fn timed(worker: &mut Worker, request: &Request<'_>) -> Result<(f64, f64, usize), Box<dyn Error>> {
    let start = Instant::now();
    let (mut last, mut step) = (start, 0.0);
    let answer = worker.recommend(request, &mut |stage| {
        let now = Instant::now();
        if matches!(stage, Stage::Mask | Stage::TopK) && last != start {
            step += (now - last).as_secs_f64() * 1e3;
        }
        last = now;
        ControlFlow::Continue(())
    })?;
    Ok((start.elapsed().as_secs_f64() * 1e3, step, answer.searches))
}

fn fastest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

fn recommender(items: usize) -> Result<Recommender, Box<dyn Error>> {
    let mut seed = 1_u64;
    let mut below = |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 32) * bound) >> 32
    };
    let mut item = |id: usize| {
        let mut attributes = Map::new();
        attributes.insert("brand".into(), json!(format!("brand {}", below(100))));
        attributes.insert("price".into(), json!(below(20_000) as f64 / 100.0));
        let codes = (0..LEVELS).map(|_| below(u64::from(CODES)) as u32).collect();
        Item { id: id.to_string(), codes, attributes }
    };
    let items: Vec<Item> = (0..items).map(&mut item).collect();
    let codes_per_level = Some(vec![CODES; LEVELS]);
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    let catalog = Arc::new(Catalog::build(items.into(), &options)?);
    let format = PromptFormat::for_catalog(&catalog, 10)?;
    let config = ModelConfig {
        vocab_size: format.vocab_size(),
        hidden_size: 64,
        intermediate_size: 128,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim: 16,
        max_position_embeddings: format.max_prompt_tokens() + LEVELS,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    };
    Ok(Recommender::new(Model::random(config, 1)?, catalog, format)?)
}
