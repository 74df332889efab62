//! Configuration: streams, batches, budgets and policy.

use serde::{Deserialize, Serialize};

use crate::job::Micros;

/// Numbers that the scheduler works with. The default is a CPU with one stream of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Batches that run at once, at least 1 and at most [`Config::MAX_STREAMS`].
    pub streams: u32,
    /// Threads of all streams together; a stream has `threads / streams` of them, at least one.
    pub threads: u32,
    /// Jobs of a batch at most: 1 on a CPU, where rows of different requests gain nothing from each
    /// other.
    pub batch_jobs: u32,
    /// Prompt tokens of a batch at most. A job that has more by itself is refused.
    pub batch_tokens: u32,
    /// Rows of a batch at most, by its jobs' widest passes. A job that has more by itself is
    /// refused.
    pub batch_rows: u32,
    /// Time that the oldest job of a batch that is not full may wait for others, where a stream is
    /// idle.
    pub quota: Micros,
    /// Planned bytes of all running jobs at most. A job that needs more by itself is refused.
    pub memory: u64,
    /// Share of the streams that bulk jobs may run on; it is at least one stream, for what was
    /// admitted must end.
    pub bulk_share: f32,
    /// Factor between a prediction and what is promised.
    pub margin: Margin,
    /// Refuse at arrival what would be late. Without it everything is queued, and dropped once it
    /// cannot be in time.
    pub admission: bool,
    /// Order of the queue.
    pub order: Order,
    /// Let the threads of idle streams join a job behind which nobody waits.
    pub join_idle: bool,
}

impl Config {
    /// The most streams that there can be.
    pub const MAX_STREAMS: u32 = 1024;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            streams: 1,
            threads: 1,
            batch_jobs: 1,
            batch_tokens: u32::MAX,
            batch_rows: u32::MAX,
            quota: Micros(0),
            memory: u64::MAX,
            bulk_share: 0.5,
            margin: Margin::default(),
            admission: true,
            order: Order::Deadline,
            join_idle: true,
        }
    }
}

/// Factor between a prediction and what is promised.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Margin {
    /// Always this one, at least 1.
    Fixed(f64),
    /// A quantile of actual over predicted time among the latest 1,000 batches, and never below a
    /// least one.
    Measured {
        /// The quantile, of 1.
        quantile: f64,
        /// The least factor.
        least: f64,
        /// The factor until 20 batches have ended.
        first: f64,
    },
}

impl Default for Margin {
    fn default() -> Self {
        Self::Measured { quantile: 0.95, least: 1.05, first: 1.25 }
    }
}

/// Order in which queued jobs start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Earliest deadline first; then arrival, then id.
    #[default]
    Deadline,
    /// Order of arrival; then by id.
    Arrival,
}
