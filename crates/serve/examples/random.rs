//! A model of random weights over a catalog of random items behind HTTP, to measure: neither time
//! nor memory depends on what they say.
//!
//! ```text
//! cargo run --release -p palmette-serve --example random -- [--items N] [--levels N] [--codes N] [--params 1m|10m|100m] [--history N]
//!     [--streams N] [--listen ADDRESS] [--dir DIR] [--record FILE] [--cache-mb N] [--prompt-cache-mb N]
//! ```
//!
//! Items are `0`, `1`, … with a `stock` from 0 to 9 and a `price`; the target is `items`, of the
//! live catalog `items` in DIR, which is made where there is none, in a temporary directory without
//! one. `--histories FILE` writes histories for `palmette loadtest`, of as many items as shops see:
//! few mostly, and up to the longest.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_live::{LiveCatalog, LiveOptions, Schema};
use palmette_model::{Architecture, Model, ModelConfig};
use palmette_recommend::PromptFormat;
use palmette_serve::{ServeConfig, Server};
use serde_json::{Map, json};
use tokio::net::TcpListener;

/// Numbers that look random, the same everywhere (Steele, Lea, Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

struct Options {
    items: u32,
    levels: usize,
    codes: u32,
    params: String,
    history: usize,
    streams: Option<u32>,
    listen: String,
    dir: Option<PathBuf>,
    record: Option<PathBuf>,
    histories: Option<PathBuf>,
    cache_mb: usize,
    prompt_cache_mb: usize,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        items: 100_000,
        levels: 3,
        codes: 256,
        params: "10m".to_owned(),
        history: 60,
        streams: None,
        listen: "127.0.0.1:0".to_owned(),
        dir: None,
        record: None,
        histories: None,
        cache_mb: 0,
        prompt_cache_mb: 0,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let value = given.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--items" => options.items = value.parse()?,
            "--levels" => options.levels = value.parse()?,
            "--codes" => options.codes = value.parse()?,
            "--params" => options.params = value,
            "--history" => options.history = value.parse()?,
            "--streams" => options.streams = Some(value.parse()?),
            "--listen" => options.listen = value,
            "--dir" => options.dir = Some(value.into()),
            "--record" => options.record = Some(value.into()),
            "--histories" => options.histories = Some(value.into()),
            "--cache-mb" => options.cache_mb = value.parse()?,
            "--prompt-cache-mb" => options.prompt_cache_mb = value.parse()?,
            other => return Err(format!("{other} is no option").into()),
        }
    }
    Ok(options)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let temporary = tempfile::tempdir()?;
    let dir = options.dir.clone().unwrap_or_else(|| temporary.path().join("items"));
    let began = Instant::now();
    if !dir.exists() {
        make(&dir, &options)?;
    }
    let live = LiveCatalog::open_with(&dir, LiveOptions::default())?;
    println!(
        "{} items opened after {:.3} s",
        live.snapshot().num_items(),
        began.elapsed().as_secs_f64()
    );
    if let Some(path) = &options.histories {
        write_histories(path, &options)?;
    }
    let mut config = ServeConfig {
        answer_cache: options.cache_mb << 20,
        default_deadline: Duration::from_secs(10),
        drain_delay: Duration::ZERO,
        record: options.record.clone(),
        ..ServeConfig::default()
    };
    if let Some(streams) = options.streams {
        config.schedule.streams = streams;
    }
    let server = Server::new(config)?;
    let (model, format) = model(&options)?;
    let model = model.with_prompt_memory(options.prompt_cache_mb << 20)?;
    server.add_model("random", model, format)?;
    server.add_catalog("items", live, Some(&dir))?;
    server.set_target("items", "random", "items")?;
    let listener = TcpListener::bind(&options.listen).await?;
    println!("ready after {:.3} s", began.elapsed().as_secs_f64());
    println!("listening on http://{}", listener.local_addr()?);
    server.serve(listener, async { _ = tokio::signal::ctrl_c().await }).await?;
    Ok(())
}

fn make(dir: &Path, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut random = Random(1);
    let item = |n: u32| {
        let codes =
            (0..options.levels).map(|_| random.below(options.codes.into()) as u32).collect();
        let (stock, price) = (n % 10, f64::from(n % 997) / 10.0);
        let attributes = Map::from_iter([
            ("stock".to_owned(), json!(stock)),
            ("price".to_owned(), json!(price)),
        ]);
        Item { id: n.to_string(), codes, attributes }
    };
    let items: Vec<Item> = (0..options.items).map(item).collect();
    let codes_per_level = Some(vec![options.codes; options.levels]);
    let build = BuildOptions { codes_per_level, ..BuildOptions::default() };
    let catalog = Catalog::build(items.into(), &build)?;
    let schema = Schema::of_catalog(&catalog);
    let live = LiveCatalog::create_with(dir, Some(catalog), Some(schema), LiveOptions::default())?;
    live.checkpoint()?;
    Ok(())
}

fn model(options: &Options) -> Result<(Model, PromptFormat), Box<dyn Error>> {
    let [hidden, inner, layers, heads, kv_heads, head_dim] = match options.params.as_str() {
        "1m" => [128, 384, 4, 4, 2, 32],
        "10m" => [384, 1024, 6, 6, 2, 64],
        "100m" => [768, 2048, 16, 12, 4, 64],
        other => return Err(format!("--params {other}: it is 1m, 10m or 100m").into()),
    };
    // A catalog of one item has the codebooks that the format is made for.
    let only = Item { id: "0".into(), codes: vec![0; options.levels], attributes: Map::new() };
    let codes_per_level = Some(vec![options.codes; options.levels]);
    let build = BuildOptions { codes_per_level, ..BuildOptions::default() };
    let catalog = Catalog::build(vec![only].into(), &build)?;
    let format = PromptFormat::for_catalog(&catalog, options.history)?;
    let format = PromptFormat { witnesses: Vec::new(), ..format };
    let config = ModelConfig {
        vocab_size: format.vocab_size(),
        hidden_size: hidden,
        intermediate_size: inner,
        num_hidden_layers: layers,
        num_attention_heads: heads,
        num_key_value_heads: kv_heads,
        head_dim,
        max_position_embeddings: format.max_prompt_tokens() + options.levels,
        rms_norm_eps: 1e-6,
        rope_theta: 1e6,
        tie_word_embeddings: true,
        architecture: Architecture::default(),
    };
    Ok((Model::random(config, 1)?, format))
}

/// Lengths as a power law: a median of a sixth of the longest.
fn write_histories(path: &Path, options: &Options) -> Result<(), Box<dyn Error>> {
    let mut random = Random(2);
    let mut text = String::new();
    for user in 0..2000 {
        let u = (random.below(1 << 20) as f64 + 1.0) / f64::from(1 << 20);
        let length = (options.history as f64 * (u * u * u).max(0.03)).ceil() as usize;
        let items: Vec<String> =
            (0..length).map(|_| random.below(options.items.into()).to_string()).collect();
        writeln!(text, "{}", json!({"user": user.to_string(), "items": items}))?;
    }
    std::fs::write(path, text)?;
    Ok(())
}
