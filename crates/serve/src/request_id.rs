//! Request ids: taken from the client or made, and known to whatever answers the request.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;

pub(crate) const HEADER: &str = "x-request-id";
const MAX_LEN: usize = 64;

tokio::task_local! {
    /// The id of the request that this task answers.
    pub(crate) static CURRENT: String;
}

/// The id of the request that this task answers; empty outside of one.
pub(crate) fn current() -> String {
    CURRENT.try_with(String::clone).unwrap_or_default()
}

/// The client's id where it is one, up to 64 of `[A-Za-z0-9._-]`; else a new one.
pub(crate) fn of(headers: &HeaderMap) -> String {
    let is_sound = |id: &&str| {
        (1..=MAX_LEN).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let given = headers.get(HEADER).and_then(|id| id.to_str().ok());
    given.filter(is_sound).map_or_else(new, str::to_owned)
}

/// A new id: microseconds of the clock when the process began, and a count. Ids of one process
/// ascend.
pub(crate) fn new() -> String {
    static BEGAN: LazyLock<u64> = LazyLock::new(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:014x}-{:08x}", *BEGAN, COUNT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_taken_where_they_are_sound() {
        let of = |id: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, id.parse().unwrap());
            super::of(&headers)
        };
        assert_eq!(of("a.B_9-"), "a.B_9-");
        let long = "x".repeat(65);
        for id in ["", "a b", "a/b", "é", &long] {
            assert_ne!(of(id), id);
        }
        assert!(of("") < of(""), "ids ascend");
    }
}
