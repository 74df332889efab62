//! Report of a measurement: sizes, build and step times.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::machine::Machine;

/// Sizes, build and step times of one catalog.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Rows generated.
    pub items: usize,
    /// Distinct semantic IDs among them.
    pub distinct_ids: u64,
    /// Codes of every semantic ID.
    pub levels: usize,
    /// Size of every level's codebook.
    pub vocab: u32,
    /// Dense levels of the index.
    pub dense: usize,
    /// Beams of a step.
    pub beams: usize,
    /// Distribution of the codes.
    pub distribution: String,
    /// Seed of all draws.
    pub seed: u64,
    /// Steps timed for each figure.
    pub samples: usize,
    /// Share of the ranks that the filter of `filtered_step_us` keeps.
    pub filter_share: f64,
    /// Bytes of the index, by rows.
    pub bytes_per_item: f64,
    /// Bytes of the index.
    pub index_bytes: usize,
    /// Processor time of taking in, sorting and indexing the rows, all threads
    /// (`CLOCK_PROCESS_CPUTIME_ID`), without their generation.
    pub build_cpu_s: Option<f64>,
    /// Wall-clock time of the same build.
    pub build_wall_s: f64,
    /// Peak memory of the process until the end of the build (`VmHWM`).
    pub peak_bytes: Option<u64>,
    /// Mask rows, cold.
    pub step_us: ByLevel<Microseconds>,
    /// Mask rows, cold: only the steps that had their core for themselves.
    pub step_own_core_us: ByLevel<OwnCore>,
    /// A word of a line for each beam, at random from as many bytes as the index has, and nothing
    /// else, cold: what a step that finds nothing in a cache waits for at least.
    pub line_reads_us: Microseconds,
    /// Mask rows, the same step again at once.
    pub step_hot_us: ByLevel<Microseconds>,
    /// Mask rows that clear only what they set last, cold.
    pub kept_rows_us: ByLevel<Microseconds>,
    /// Codes and next states, cold.
    pub successors_us: ByLevel<Microseconds>,
    /// Codes and next states, cold: only the steps that had their core for themselves.
    pub successors_own_core_us: ByLevel<OwnCore>,
    /// Mask rows under a filter, cold; `None` where the filter keeps nothing.
    pub filtered_step_us: Option<ByLevel<Microseconds>>,
    /// Size of that filter's set.
    pub filter_set: Option<FilterSet>,
    /// Codes that may follow a beam, on average.
    pub branching: ByLevel<f64>,
    /// Read through before each cold step.
    pub sweep_bytes: usize,
    /// Machine of the measurement.
    pub machine: Machine,
    /// The other engines, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peers: Option<Vec<PeerReport>>,
}

/// Another engine over the same items, or why it was left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PeerReport {
    /// An engine that was measured.
    Measured {
        /// The engine.
        name: String,
        /// Bytes of its structure, by rows.
        bytes_per_item: f64,
        /// Processor time of its build, as [`Report::build_cpu_s`].
        build_cpu_s: Option<f64>,
        /// Mask rows, cold.
        step_us: ByLevel<Microseconds>,
        /// Mask rows, the same step again at once.
        step_hot_us: ByLevel<Microseconds>,
        /// Steps timed for each figure.
        samples: usize,
        /// True if it allows what some row continues with, and nothing else.
        exact: bool,
        /// Share that it allows of the codes no row continues with.
        #[serde(skip_serializing_if = "Option::is_none")]
        false_positive_rate: Option<f64>,
        /// Share that it forbids of the codes some row continues with.
        #[serde(skip_serializing_if = "Option::is_none")]
        false_negative_rate: Option<f64>,
    },
    /// An engine that was left out.
    Skipped {
        /// The engine.
        name: String,
        /// Reason for which it was left out.
        skipped: String,
    },
}

/// The spread of a number of timed steps, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Microseconds {
    /// Half of the steps took no longer.
    pub p50: f64,
    /// 99 of 100 steps took no longer.
    pub p99: f64,
    /// The fastest step.
    pub min: f64,
    /// The mean, as papers give it: steps that lost their core are in it.
    pub mean: f64,
    /// The standard deviation.
    pub sd: f64,
}

/// The steps that had their core for themselves ([`own_core`](crate::own_core)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OwnCore {
    /// Number of these steps.
    pub steps: usize,
    /// Times of these steps; `None` where there was none.
    #[serde(flatten)]
    pub times: Option<Microseconds>,
}

/// A set of items, made ready for steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FilterSet {
    /// Bytes of the set.
    pub bytes: usize,
    /// Milliseconds it took to make, its ranks being known.
    pub made_ms: f64,
}

impl Microseconds {
    /// Summary of one time or more, in nanoseconds, in any order. Nearest-rank percentiles.
    ///
    /// # Panics
    /// When there are none.
    pub(crate) fn of_nanoseconds(mut times: Vec<u64>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = (times.len() * percent).div_ceil(100).max(1) - 1;
            times[place] as f64 / 1000.0
        };
        let us: Vec<f64> = times.iter().map(|&time| time as f64 / 1000.0).collect();
        let mean_of = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / us.len() as f64;
        let mean = mean_of(&mut us.iter().copied());
        let sd = mean_of(&mut us.iter().map(|time| (time - mean).powi(2))).sqrt();
        Self { p50: at(50), p99: at(99), min: us[0], mean, sd }
    }
}

/// One value a level; in JSON an object with the levels as names.
#[derive(Clone, Debug, PartialEq)]
pub struct ByLevel<T>(pub Vec<T>);

impl<T: Serialize> Serialize for ByLevel<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (level, value) in self.0.iter().enumerate() {
            map.serialize_entry(&level.to_string(), value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times = (1..=200).rev().map(|t| t * 1000).collect();
        let Microseconds { p50, p99, min, mean, sd } = Microseconds::of_nanoseconds(times);
        assert_eq!((p50, p99, min, mean), (100.0, 198.0, 1.0, 100.5));
        assert!((sd - 57.734).abs() < 1e-3, "{sd}");
        let one = Microseconds::of_nanoseconds(vec![500]);
        assert_eq!(one, Microseconds { p50: 0.5, p99: 0.5, min: 0.5, mean: 0.5, sd: 0.0 });
    }
}
