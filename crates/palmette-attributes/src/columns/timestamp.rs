//! Points in time as microseconds since 1970-01-01T00:00:00Z.

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat};
use serde_json::Value;

/// 0000-01-01T00:00:00Z, the first moment that RFC 3339 can write.
const FIRST: i64 = -62_167_219_200_000_000;
/// The last microsecond of the year 9999.
const LAST: i64 = 253_402_300_799_999_999;

/// What is taken for a point in time, for messages.
pub(crate) const FORMS: &str = "an RFC 3339 date (2026-11-21) or date and time \
    (2026-11-21T09:30:00Z) or seconds since 1970, within the years 0 to 9999";

/// A point in time from RFC 3339 text or seconds since 1970, to the nearest microsecond.
pub(crate) fn from_json(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => from_text(text),
        Value::Number(number) => match number.as_i64() {
            Some(seconds) => valid(seconds.checked_mul(1_000_000)?),
            None => from_seconds(number.as_f64()?),
        },
        _ => None,
    }
}

/// A point in time from seconds since 1970.
pub(crate) fn from_seconds(seconds: f64) -> Option<i64> {
    // Apart, since the product of the whole would lose digits. What is far outside the range
    // saturates, and is outside too.
    let whole = (seconds.floor() as i64).checked_mul(1_000_000)?;
    valid(whole.checked_add((seconds.fract().rem_euclid(1.0) * 1e6).round() as i64)?)
}

/// A point in time from an RFC 3339 date, which stands for its midnight in UTC, or date and time.
pub(crate) fn from_text(text: &str) -> Option<i64> {
    let nanoseconds_later = |time: DateTime<_>| {
        let nanoseconds = i64::from(time.timestamp_subsec_nanos());
        valid(time.timestamp().checked_mul(1_000_000)? + (nanoseconds + 500) / 1000)
    };
    match DateTime::parse_from_rfc3339(text) {
        Ok(time) => nanoseconds_later(time),
        // `%Y` alone would take years of other lengths and signs.
        Err(_) if text.len() == "0000-00-00".len() && text.as_bytes()[0].is_ascii_digit() => {
            let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
            valid(date.and_time(NaiveTime::MIN).and_utc().timestamp_micros())
        }
        Err(_) => None,
    }
}

/// RFC 3339 in UTC, with as many digits of the second as it needs: none, 3 or 6. `None` outside the
/// years 0 to 9999, which only a damaged file holds.
pub(crate) fn to_text(microseconds: i64) -> Option<String> {
    let time = DateTime::from_timestamp_micros(valid(microseconds)?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

fn valid(microseconds: i64) -> Option<i64> {
    (FIRST..=LAST).contains(&microseconds).then_some(microseconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: Value, expected: Option<&str>) {
        let found = from_json(&value).map(|time| to_text(time).expect("a valid time"));
        assert_eq!(found.as_deref(), expected, "{value}");
    }

    #[test]
    fn reads_dates_times_and_seconds() {
        check(json!("2026-11-21"), Some("2026-11-21T00:00:00Z"));
        check(json!("2026-11-21T09:30:00Z"), Some("2026-11-21T09:30:00Z"));
        check(json!("2026-11-21T09:30:00.5+02:00"), Some("2026-11-21T07:30:00.500Z"));
        check(json!("2026-11-21T09:30:00.123456789Z"), Some("2026-11-21T09:30:00.123457Z"));
        check(json!(0), Some("1970-01-01T00:00:00Z"));
        check(json!(-1), Some("1969-12-31T23:59:59Z"));
        check(json!(253_402_300_799_i64), Some("9999-12-31T23:59:59Z"));
        check(json!(253_402_300_799.0), Some("9999-12-31T23:59:59Z"));
        check(json!(-0.25), Some("1969-12-31T23:59:59.750Z"));
        check(json!(1.25), Some("1970-01-01T00:00:01.250Z"));
        check(json!("0000-01-01"), Some("0000-01-01T00:00:00Z"));
        check(json!("9999-12-31T23:59:59.999999Z"), Some("9999-12-31T23:59:59.999999Z"));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "today", "2026-11-21T09:30:00", "2026-13-01", "2026-1-1", "+2026-1-01"] {
            check(json!(text), None);
        }
        check(json!("0000-01-01T00:00:00+01:00"), None);
        check(json!("9999-12-31T23:59:59.9999999Z"), None);
        check(json!(1e300), None);
        check(json!(u64::MAX), None);
        check(json!(i64::MIN), None);
        check(json!(true), None);
        assert_eq!(to_text(i64::MAX), None);
    }
}
