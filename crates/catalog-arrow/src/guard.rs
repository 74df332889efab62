//! Panics of the libraries below, as errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Kind;

/// Runs a call into `parquet` or `arrow`, which check most of what a file says but panic on some
/// damage, such as offsets beyond a buffer.
///
/// What `call` was working on is given up after a panic, so nothing half-changed is looked at.
pub(crate) fn guard<T, E: std::fmt::Display>(
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, Kind> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(|error| Kind::Damaged(error.to_string())),
        Err(panic) => {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Err(Kind::Damaged(message.unwrap_or("no more is known").to_owned()))
        }
    }
}
