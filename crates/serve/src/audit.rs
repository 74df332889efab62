//! Audit: facts of a request for its line in the log. They are gathered while it is answered.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;

/// Facts of a request that are known only once it is being answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Name of the key.
    pub(crate) key: Option<String>,
    pub(crate) catalog: Option<String>,
    /// Alias of a target, or the pair of model and catalog.
    pub(crate) target: Option<String>,
    pub(crate) model: Option<String>,
}

pub(crate) type SharedFacts = Arc<Mutex<Facts>>;

tokio::task_local! {
    /// The facts of the request that this task answers.
    pub(crate) static FACTS: SharedFacts;
}

/// Adds to the facts of the request that this task answers; outside of one there is nothing to add
/// to.
pub(crate) fn note(add: impl FnOnce(&mut Facts)) {
    _ = FACTS.try_with(|facts| add(&mut facts.lock().unwrap_or_else(PoisonError::into_inner)));
}

/// The facts so far.
pub(crate) fn so_far(facts: &SharedFacts) -> Facts {
    facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The trace that a request is part of, as W3C's `traceparent` says it: `00-<32 digits>-<16
/// digits>-<2 digits>`.
pub(crate) fn trace_id(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all("traceparent").iter();
    // Two are none.
    let (text, None) = (given.next()?.to_str().ok()?, given.next()) else { return None };
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, len: usize| {
        text.len() == len && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_sound = is_hex(version, 2)
        && version != "ff"
        && is_hex(trace, 32)
        && is_hex(span, 16)
        && is_hex(flags, 2);
    // Later versions may have more.
    let is_whole = version != "00" || parts.next().is_none();
    let is_some = |text: &str| text.bytes().any(|byte| byte != b'0');
    (is_sound && is_whole && is_some(trace) && is_some(span)).then(|| trace.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_read_where_they_are_sound() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("traceparent", value.parse().unwrap());
            }
            trace_id(&headers)
        };
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let sound = format!("00-{trace}-00f067aa0ba902b7-01");
        assert_eq!(of(&[&sound]).as_deref(), Some(trace));
        assert_eq!(of(&[&format!("01-{trace}-00f067aa0ba902b7-01-more")]).as_deref(), Some(trace));
        for wrong in [
            String::new(),
            trace.to_owned(),
            format!("{sound}-more"),
            format!("ff-{trace}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            format!("00-{trace}-00f067aa0ba902b7"),
        ] {
            assert_eq!(of(&[&wrong]), None, "{wrong}");
        }
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[&sound, &sound]), None);
    }

    #[tokio::test]
    async fn facts_are_those_of_the_task() {
        note(|facts| facts.key = Some("nobody's".to_owned()));
        let facts = SharedFacts::default();
        let answered = async {
            note(|facts| facts.catalog = Some("shop".to_owned()));
            tokio::task::yield_now().await;
            note(|facts| facts.key = Some("web".to_owned()));
        };
        FACTS.scope(Arc::clone(&facts), answered).await;
        let wanted = Facts {
            key: Some("web".to_owned()),
            catalog: Some("shop".to_owned()),
            ..Facts::default()
        };
        assert_eq!(so_far(&facts), wanted);
    }
}
