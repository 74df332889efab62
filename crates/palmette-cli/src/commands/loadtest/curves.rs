//! Curves of a plot: what was measured, and what another document says.

use std::path::Path;

use anyhow::{Context, ensure};
use palmette_loadtest::{Curve, Point, RateReport};
use serde_json::Value;

pub(super) fn measured(reports: &[RateReport]) -> Curve {
    let point = |report: &RateReport| {
        let p99_ms = report.latency_ms.map(|latency| latency.p99);
        Some(Point { rate: report.rate?, goodput: report.goodput_per_s, p99_ms })
    };
    let points = reports.iter().filter_map(point).collect();
    Curve { name: "measured".to_owned(), points, is_dashed: false }
}

/// Reads `rates: [{rate, goodput_per_s, latency_ms: {p99}}, …]`, which both commands write.
pub(super) fn beside(path: &Path) -> anyhow::Result<Curve> {
    let name = || format!("--beside {}", path.display());
    let text = std::fs::read_to_string(path).with_context(name)?;
    let document: Value = serde_json::from_str(&text).with_context(name)?;
    let points = points(&document);
    ensure!(
        !points.is_empty(),
        "{}: no \"rates\" with \"rate\" and \"goodput_per_s\" are in it; give what `palmette simulate --json` or `palmette loadtest --json` printed",
        name()
    );
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Curve { name: file_name, points, is_dashed: true })
}

fn points(document: &Value) -> Vec<Point> {
    let rates = document["rates"].as_array();
    let point = |rate: &Value| {
        Some(Point {
            rate: rate["rate"].as_f64()?,
            goodput: rate["goodput_per_s"].as_f64()?,
            p99_ms: rate["latency_ms"]["p99"].as_f64(),
        })
    };
    rates.into_iter().flatten().filter_map(point).collect()
}
