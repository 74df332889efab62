//! Bodies of requests, from histories and options.

use std::ops::ControlFlow;

use anyhow::{Context, anyhow, ensure};
use palmette_recommend::NamedItem;
use palmette_recommend_eval::UnknownItems;
use palmette_serve_loadtest::Body;
use serde_json::{Map, Value, json};

use super::BodyArgs;
use crate::commands::histories::Notes;
use crate::commands::loading::filter_text;

/// The most bytes of all bodies: they are held in memory, so that none is made while the clock
/// runs.
const MAX_BYTES: usize = 1 << 30;

/// A body for each history, and what is to be said of their file.
pub(super) fn bodies(args: &BodyArgs) -> anyhow::Result<(Vec<Body>, Notes)> {
    let common = common(args)?;
    let (mut bodies, mut bytes) = (Vec::new(), 0);
    let mut failed = Ok(());
    let notes = args.histories_options.read(&args.histories, &mut |record, _| {
        let body = record.map_err(|bad| anyhow!("{}: {bad}", args.histories.display()));
        let body = body.and_then(|record| {
            let mut body = common.clone();
            body.insert("history".to_owned(), record.items.iter().map(item).collect());
            Ok(serde_json::to_vec(&body)?)
        });
        match body {
            Ok(body) if bytes + body.len() <= MAX_BYTES => {
                bytes += body.len();
                bodies.push(Body::from(body));
                return ControlFlow::Continue(());
            }
            Ok(_) => {
                failed = Err(anyhow!(
                    "{}: requests about the first {} histories have {MAX_BYTES} bytes, the most that is held; give a file of fewer",
                    args.histories.display(),
                    bodies.len()
                ));
            }
            Err(error) => failed = Err(error),
        }
        ControlFlow::Break(())
    })?;
    failed.map(|()| (bodies, notes))
}

/// The members that all bodies have.
fn common(args: &BodyArgs) -> anyhow::Result<Map<String, Value>> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    if let Some(target) = &args.target {
        put("target", json!(target));
    }
    put("k", json!(args.k));
    put("beam_width", json!(args.beam_width));
    if let Some(filter) = &args.filter {
        // Read as the server will, so that a wrong one is said here.
        let text = filter_text(filter)?.text;
        put("filter", serde_json::from_str(&text).context("--filter")?);
    }
    if let Some(deadline_ms) = args.deadline_ms {
        put("deadline_ms", json!(deadline_ms));
    }
    if let Some(unknown) = args.unknown {
        let name = if unknown == UnknownItems::Skip { "skip" } else { "error" };
        put("unknown_items", json!(name));
    }
    if let Some(text) = &args.with {
        let more: Map<String, Value> = serde_json::from_str(text)
            .with_context(|| format!("--with {text}: it must be a JSON object"))?;
        for (name, value) in more {
            ensure!(
                name != "history" && !body.contains_key(&name),
                "--with has {name:?}, which another option says"
            );
            body.insert(name, value);
        }
    }
    Ok(body)
}

fn item(item: &NamedItem) -> Value {
    match item {
        NamedItem::Id(id) => json!(id),
        NamedItem::Codes(codes) => json!({"codes": codes}),
    }
}
