//! Time of the wall clock, which rules of recommendations and answers of text models name.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970, 0 before.
pub(crate) fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
