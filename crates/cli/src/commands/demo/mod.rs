//! `palmette demo`: a built-in shop, served or shown.

mod once;
#[cfg(feature = "server")]
mod serving;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use palmette_demo::{Demo, Shop};
use serde_json::{Value, json};

use crate::output::{bytes, make_parent, print, print_json};

/// Serve a built-in shop, with a page to try it: no files, no network
///
/// The shop is invented: thousands of items with titles, departments, prices, stock and age, and
/// users with tastes who bought some. A small model, trained on their histories, ships inside this
/// program. Its stock changes while it is served.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Print a few answers and end, instead of serving
    #[arg(long)]
    once: bool,
    /// Number of items to recommend
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Address and port [default: 127.0.0.1:8080, or a free port where that is taken]
    #[cfg(feature = "server")]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once", value_parser = super::serve::address)]
    listen: Option<super::serve::ListenAddress>,
    /// Leave the stock as it is
    #[cfg(feature = "server")]
    #[arg(long, conflicts_with = "once")]
    still: bool,
    #[cfg(feature = "server")]
    #[command(flatten)]
    server: super::serve::ServeOptions,
    /// Hypotheses kept at each level
    #[cfg(not(feature = "server"))]
    #[arg(long, value_name = "N", default_value_t = 128)]
    beam_width: usize,
    /// Threads [default: one per core]
    #[cfg(not(feature = "server"))]
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

impl DemoArgs {
    fn beam_width(&self) -> usize {
        #[cfg(feature = "server")]
        return self.server.beam_width;
        #[cfg(not(feature = "server"))]
        return self.beam_width;
    }

    fn threads(&self) -> Option<usize> {
        #[cfg(feature = "server")]
        return self.server.threads;
        #[cfg(not(feature = "server"))]
        return self.threads;
    }
}

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if let Some(dir) = &args.export {
        return export(dir, args.json);
    }
    #[cfg(feature = "server")]
    if !args.once {
        return serving::run(args);
    }
    once::run(args)
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
