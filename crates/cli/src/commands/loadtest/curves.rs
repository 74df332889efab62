//! Curves of a plot: what was measured, and what another document says.

use std::path::Path;

use anyhow::{Context, ensure};
use palmette_serve_loadtest::{Curve, Point, RateReport};
use serde_json::Value;

/// The most curves that are drawn beside what was measured.
const MAX_CURVES: usize = 30;

/// Rates are those that were offered: what is drawn beside had other arrivals.
pub(super) fn measured(reports: &[RateReport]) -> Curve {
    let point = |report: &RateReport| {
        report.rate?;
        Some(Point {
            rate: report.offered as f64 / report.seconds,
            goodput: report.goodput_per_s,
            p99_ms: report.latency_ms.map(|latency| latency.p99),
        })
    };
    let points = reports.iter().filter_map(point).collect();
    Curve { name: "measured".to_owned(), points, is_dashed: false }
}

/// Reads what `palmette simulate --json` printed, a curve for each policy, or `palmette loadtest --json`.
pub(super) fn beside(path: &Path) -> anyhow::Result<Vec<Curve>> {
    let name = || format!("--beside {}", path.display());
    let text = std::fs::read_to_string(path).with_context(name)?;
    let document: Value = serde_json::from_str(&text).with_context(name)?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let curves = curves(&document, &file_name);
    ensure!(
        !curves.is_empty(),
        "{}: it has neither \"runs\" nor \"rates\" with goodput; give what `palmette simulate --json` or `palmette loadtest --json` printed",
        name()
    );
    ensure!(
        curves.len() <= MAX_CURVES,
        "{}: it has {} policies; at most {MAX_CURVES} are drawn",
        name(),
        curves.len()
    );
    Ok(curves)
}

fn curves(document: &Value, file_name: &str) -> Vec<Curve> {
    let list = |name: &str| document[name].as_array().into_iter().flatten();
    let simulated = list("runs").filter_map(|run| {
        let point = Point {
            rate: run["offered_rate"].as_f64()?,
            goodput: run["goodput"].as_f64()?,
            // Nobody was answered where it is 0.
            p99_ms: run["p99_ms"].as_f64().filter(|ms| *ms > 0.0),
        };
        Some((run["policy"].as_str().unwrap_or(file_name), point))
    });
    let measured = list("rates").filter_map(|rate| {
        let point = Point {
            rate: rate["offered"].as_f64()? / rate["seconds"].as_f64()?,
            goodput: rate["goodput_per_s"].as_f64()?,
            p99_ms: rate["latency_ms"]["p99"].as_f64(),
        };
        Some((file_name, point))
    });
    let mut curves: Vec<Curve> = Vec::new();
    for (name, point) in simulated.chain(measured) {
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => {
                let name = name.to_owned();
                curves.push(Curve { name, points: vec![point], is_dashed: true });
            }
        }
    }
    curves
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn curves_of_both_documents() {
        let run = |policy: &str, rate: f64, p99: f64| json!({"policy": policy, "offered_rate": rate, "goodput": rate / 2.0, "p99_ms": p99});
        let simulated =
            json!({"runs": [run("a", 1.0, 5.0), run("b", 1.0, 0.0), run("a", 2.0, 6.0)]});
        let found = curves(&simulated, "f");
        let names: Vec<&str> = found.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let point = |rate: f64, p99_ms| Point { rate, goodput: rate / 2.0, p99_ms };
        assert_eq!(found[0].points, [point(1.0, Some(5.0)), point(2.0, Some(6.0))]);
        assert_eq!(found[1].points, [point(1.0, None)]);
        let rate = json!({"offered": 30, "seconds": 2.0, "goodput_per_s": 7.5, "latency_ms": {"p99": 9.0}});
        let found = curves(&json!({"rates": [rate, {"rate": 1}]}), "f");
        assert_eq!((found.len(), found[0].name.as_str()), (1, "f"));
        assert_eq!(found[0].points, [point(15.0, Some(9.0))]);
        assert!(curves(&json!({"runs": [5], "rates": {}}), "f").is_empty());
    }
}
