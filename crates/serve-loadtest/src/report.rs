//! Report of one rate: counts, percentiles, and the driver's own share.

use serde::Serialize;

/// Outcomes of the requests of one rate.
///
/// `offered = sent + unsent`, and `sent` is the sum of all counts from `in_time` to `unfinished`.
#[derive(Clone, Debug, Serialize)]
pub struct RateReport {
    /// Requests a second that were to be offered; `None` where each waited for the one before.
    pub rate: Option<f64>,
    /// Seconds during which requests were offered, without the warm-up.
    pub seconds: f64,
    /// Arrivals in that time.
    pub offered: u64,
    /// Requests that got a connection.
    pub sent: u64,
    /// Requests that had none by the timeout, from their arrival.
    pub unsent: u64,
    /// Answered with items within the deadline, from the intended time; all that were answered if
    /// there is no deadline.
    pub in_time: u64,
    /// Answered with items later than that.
    pub late: u64,
    /// Refused: too many requests.
    pub status_429: u64,
    /// Refused: starting, draining, or behind.
    pub status_503: u64,
    /// The server itself missed the deadline.
    pub status_504: u64,
    /// Other statuses, answers without items, timeouts, broken connections.
    pub other_errors: u64,
    /// Requests without an answer when the run was broken off.
    pub unfinished: u64,
    /// First few different ones of the other errors.
    pub errors: Vec<NamedError>,
    /// From the intended time to the end of the answer, of those with items; `None` where there
    /// were none.
    pub latency_ms: Option<Percentiles>,
    /// Latencies of 429 and 503.
    pub refusal_ms: Option<Percentiles>,
    /// Answers in time for each second of `seconds`.
    pub goodput_per_s: f64,
    /// Answers with fewer items than were asked for.
    pub short: u64,
    /// Report of the driver.
    pub driver: DriverReport,
    /// True where the run was broken off.
    pub interrupted: bool,
}

/// Kind of error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedError {
    /// Sentence that names it, with the server's detail.
    pub error: String,
    /// Requests that ended so.
    pub count: u64,
}

/// Percentiles of a histogram, in milliseconds, to three significant digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// Lateness and cost of the driver: where these are large, the figures are its own.
#[derive(Clone, Debug, Serialize)]
pub struct DriverReport {
    /// Requests sent more than 1 ms after their intended time.
    pub late: u64,
    /// Requests that waited for a connection, all being busy; more `connections` would have sent
    /// them in time.
    pub waited_for_connection: u64,
    /// From the intended time to the moment of sending.
    pub delay_ms: Option<Percentiles>,
    /// Connections made; more than were ever used at once where the server closes them.
    pub connections_opened: u64,
    /// The most requests that were on their way at once.
    pub most_at_once: usize,
    /// Processor seconds of this process; `None` where the system does not tell.
    pub cpu_s: Option<f64>,
    /// Processor seconds for each second that passed: 1 is a whole core.
    pub cpu_share: Option<f64>,
}
