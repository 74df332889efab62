//! Outcome of a simulation: who was answered, when, and what work was for nothing.

use serde::Serialize;

/// Counts and times of a simulation.
///
/// Every request is counted once: `offered = in_time + late + dropped + refused`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Requests that arrived.
    pub offered: u64,
    /// Answered by their deadlines.
    pub in_time: u64,
    /// Started, and answered late or stopped at the deadline.
    pub late: u64,
    /// Admitted, and ended without having been started.
    pub dropped: u64,
    /// Refused at arrival.
    pub refused: u64,
    /// Requests a second that arrived.
    pub offered_rate: f64,
    /// Requests a second that were answered in time.
    pub goodput: f64,
    /// Median time from arrival to answer, of all that were answered, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the same.
    pub p99_ms: f64,
    /// 99.9th percentile of the same.
    pub p999_ms: f64,
    /// Share of the work that was done for requests that were not answered in time.
    pub wasted: f64,
    /// Share of the cores' time that they worked, from the first arrival to the last end.
    pub utilisation: f64,
}

impl Outcome {
    /// Share of the requests.
    #[must_use]
    pub fn share(&self, count: u64) -> f64 {
        if self.offered == 0 { 0.0 } else { count as f64 / self.offered as f64 }
    }
}

/// The smallest of sorted numbers that so large a share of them does not exceed; 0 where there are
/// none.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}
