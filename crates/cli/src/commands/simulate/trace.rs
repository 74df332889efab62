//! Requests from a file of JSON lines.

use std::path::Path;

use anyhow::{Context, ensure};
use palmette_serve_schedule::simulation::Arrival;
use palmette_serve_schedule::{Class, Micros, Shape};
use serde::Deserialize;

use super::arguments::{MAX_REQUESTS, SimulateArgs};
use super::json_lines::lines;

/// Line of a trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at_ms: f64,
    prompt_tokens: u32,
    deadline_ms: Option<f64>,
    beam: Option<u32>,
    passes: Option<u32>,
    rows: Option<u32>,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    class: Class,
}

/// The requests of a trace in order of arrival, at least one. Requests without a deadline have the
/// first of `--deadline-ms`.
pub(super) fn read(path: &Path, args: &SimulateArgs) -> anyhow::Result<Vec<Arrival>> {
    let lines = lines(path)?;
    ensure!(!lines.is_empty(), "{}: no requests", path.display());
    ensure!(
        lines.len() <= MAX_REQUESTS,
        "{}: {} requests; at most {MAX_REQUESTS}",
        path.display(),
        lines.len()
    );
    let mut arrivals = Vec::with_capacity(lines.len());
    for (number, line) in &lines {
        let arrival =
            arrival(line, args).with_context(|| format!("{}:{number}", path.display()))?;
        arrivals.push(arrival);
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    Ok(arrivals)
}

fn arrival(line: &str, args: &SimulateArgs) -> anyhow::Result<Arrival> {
    let line: Line = serde_json::from_str(line)?;
    let in_range = |name: &str, ms: f64, least: f64| {
        ensure!((least..=1e12).contains(&ms), "{name} {ms}: must be from {least} to 1e12");
        Ok(Micros::from_ms(ms))
    };
    let at = in_range("at_ms", line.at_ms, 0.0)?;
    let within = in_range("deadline_ms", line.deadline_ms.unwrap_or(args.deadline_ms[0]), 0.001)?;
    let passes = line.passes.unwrap_or(args.passes);
    let widest = line.beam.unwrap_or(args.beam);
    let rows = line.rows.unwrap_or(widest.saturating_mul(passes));
    let (prompt_tokens, bytes) = (line.prompt_tokens, line.bytes);
    let shape = Shape { prompt_tokens, passes, rows, widest, bytes, ..Shape::default() };
    Ok(Arrival { at, within, class: line.class, shape, noise: 1.0 })
}
