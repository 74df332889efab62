//! Timings of the stages of a recommendation.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::ensure;
use palmette_decode::Stage;
use palmette_recommend::{RecommendError, Recommendations, Request, Worker};
use serde::Serialize;

/// Milliseconds of each stage, medians over the counted runs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Timings {
    /// Reading the prompt.
    pub(crate) prefill: f64,
    /// All decode passes.
    pub(crate) decode: f64,
    /// Moving beams on and making their masks.
    pub(crate) mask: f64,
    /// Choosing the best extensions.
    pub(crate) top_k: f64,
    /// The whole request.
    pub(crate) total: f64,
}

/// Largest number of runs that medians are taken over.
const MAX_REPEAT: usize = 100_000;

/// Answers a request `repeat` times and times it; with more than one, one more run goes first and
/// is not counted.
pub(crate) fn timed(
    worker: &mut Worker,
    request: &Request<'_>,
    repeat: usize,
) -> anyhow::Result<(Recommendations, Timings)> {
    ensure!(
        (1..=MAX_REPEAT).contains(&repeat),
        "--repeat is {repeat}; it must be from 1 to {MAX_REPEAT}"
    );
    // Buffers are no part of a request.
    worker.prepare(request)?;
    let mut answer = None;
    let mut runs = Vec::with_capacity(repeat);
    let warm_up = usize::from(repeat > 1);
    for run in 0..repeat + warm_up {
        let (result, timings) = once(worker, request)?;
        if run >= warm_up {
            runs.push(timings);
        }
        answer = Some(result);
    }
    let median = |part: fn(&Timings) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
    };
    let timings = Timings {
        prefill: median(|t| t.prefill),
        decode: median(|t| t.decode),
        mask: median(|t| t.mask),
        top_k: median(|t| t.top_k),
        total: median(|t| t.total),
    };
    Ok((answer.expect("at least one run"), timings))
}

fn once(
    worker: &mut Worker,
    request: &Request<'_>,
) -> Result<(Recommendations, Timings), RecommendError> {
    let mut timings = Timings { prefill: 0.0, decode: 0.0, mask: 0.0, top_k: 0.0, total: 0.0 };
    let start = Instant::now();
    let mut last = start;
    let answer = worker.recommend(request, &mut |stage| {
        let now = Instant::now();
        let part = match stage {
            Stage::Prefill => &mut timings.prefill,
            Stage::Decode => &mut timings.decode,
            Stage::Mask => &mut timings.mask,
            Stage::TopK => &mut timings.top_k,
        };
        *part += (now - last).as_secs_f64() * 1e3;
        last = now;
        ControlFlow::Continue(())
    })?;
    timings.total = start.elapsed().as_secs_f64() * 1e3;
    Ok((answer, timings))
}
