//! Points in time as microseconds since 1970-01-01T00:00:00Z.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat};
use serde_json::Value;

/// 0000-01-01T00:00:00Z, the first moment that RFC 3339 can write.
const FIRST: i64 = -62_167_219_200_000_000;
/// The last microsecond of the year 9999.
const LAST: i64 = 253_402_300_799_999_999;

/// Accepted forms of a point in time, for messages.
pub(crate) const FORMS: &str = "a date (2026-11-21) or date and time (2026-11-21T09:30:00Z, without \
    a zone UTC) or seconds, not milliseconds, since 1970, within the years 0 to 9999";

/// A point in time from text or seconds since 1970, to the nearest microsecond.
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

/// `2018-07-07` of 20180707; `None` of numbers whose digits are no date of the years 1900 to 2099.
///
/// Numbers whose digits write a date: as seconds since 1970 they lie in 1970, which is hardly ever
/// meant.
pub fn date_of_digits(number: f64) -> Option<String> {
    if number.fract() != 0.0 || !(19_000_101.0..=20_991_231.0).contains(&number) {
        return None;
    }
    let number = number as u32;
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    let date = NaiveDate::from_ymd_opt(year as i32, month, day)?;
    Some(date.format("%Y-%m-%d").to_string())
}

/// A point in time from text, to the nearest microsecond: what [`parse_instant`] takes.
pub(crate) fn from_text(text: &str) -> Option<i64> {
    let (seconds, nanoseconds) = parse_instant(text)?;
    rounded(seconds, nanoseconds)
}

/// A point in time from text, exact: seconds since 1970-01-01T00:00:00Z, and nanoseconds after
/// these.
///
/// A date stands for its midnight in UTC. Date and time are as ISO 8601 writes them, with `T` or a
/// blank between, and in UTC where they have no zone; the zone may stand after a blank, as
/// databases (`… UTC`) and Go (`… +0000 UTC`) write it.
pub fn parse_instant(text: &str) -> Option<(i64, u32)> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some((time.timestamp(), time.timestamp_subsec_nanos()));
    }
    // `%Y` and `%m` alone would take numbers of other lengths and signs.
    let is_date = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let (date, time) = text.split_at_checked("0000-00-00".len())?;
    if !date.bytes().enumerate().all(is_date) {
        return None;
    }
    if time.is_empty() {
        let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
        return Some((date.and_time(NaiveTime::MIN).and_utc().timestamp(), 0));
    }
    let (clock, offset) = clock_and_offset(time.strip_prefix(['T', ' '])?)?;
    let text = format!("{date}T{clock}{offset}");
    if let Ok(time) = DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f%z") {
        return Some((time.timestamp(), time.timestamp_subsec_nanos()));
    }
    let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    let time = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok())?;
    Some((time.and_utc().timestamp(), time.and_utc().timestamp_subsec_nanos()))
}

/// The time of day and an offset that stands apart from it; none for UTC.
fn clock_and_offset(time: &str) -> Option<(&str, &str)> {
    let mut words = time.split(' ');
    let clock = words.next().filter(|clock| !clock.is_empty())?;
    let offset = match (words.next(), words.next()) {
        (None | Some("UTC" | "GMT" | "Z"), None) => "",
        // The name says again what the offset has said.
        (Some(offset), _) if offset.starts_with(['+', '-']) => offset,
        _ => return None,
    };
    words.next().is_none().then_some((clock, offset))
}

fn rounded(seconds: i64, nanoseconds: u32) -> Option<i64> {
    valid(seconds.checked_mul(1_000_000)? + (i64::from(nanoseconds) + 500) / 1000)
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
        check(json!("2026-11-21T09:30:00"), Some("2026-11-21T09:30:00Z"));
        check(json!("2026-11-21 09:30:00.25"), Some("2026-11-21T09:30:00.250Z"));
        check(json!("2026-11-21 09:30"), Some("2026-11-21T09:30:00Z"));
        check(json!("2026-11-21 09:30:00+02:00"), Some("2026-11-21T07:30:00Z"));
        check(json!("2026-11-21T09:30:00.5-0130"), Some("2026-11-21T11:00:00.500Z"));
        check(json!("2026-11-21 09:30:00 UTC"), Some("2026-11-21T09:30:00Z"));
        check(json!("2026-11-21 09:30 GMT"), Some("2026-11-21T09:30:00Z"));
        check(json!("2026-11-21 09:30:00 +02:00"), Some("2026-11-21T07:30:00Z"));
        check(json!("2026-11-21 09:30:00.25 +0800 CST"), Some("2026-11-21T01:30:00.250Z"));
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
    fn dates_of_digits() {
        assert_eq!(date_of_digits(20_180_707.0).as_deref(), Some("2018-07-07"));
        assert_eq!(date_of_digits(20_000_229.0).as_deref(), Some("2000-02-29"));
        for number in [20_261_301.0, 20_260_229.0, 20_180_700.0, 18_991_231.0, 2018.0, 2e7 + 0.5] {
            assert_eq!(date_of_digits(number), None, "{number}");
        }
    }

    #[test]
    fn instants_are_exact() {
        let instant = |text: &str| parse_instant(text).unwrap();
        assert_eq!(instant("1970-01-01T00:00:01.123456789Z"), (1, 123_456_789));
        assert_eq!(instant("1970-01-01 00:00:01.123456788 +0000 UTC"), (1, 123_456_788));
        assert_eq!(instant("1969-12-31T23:59:59.5"), (-1, 500_000_000));
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "today",
            "2026",
            "2026-11",
            "2026-13-01",
            "2026-1-1",
            "+2026-1-01",
            "2026-11-21T",
            "2026-11-21x09:30",
            "2026-11-21T25:00",
            "2026-11-21  09:30",
            "20261121T093000",
            "2026-11-21T09:30:00 Europe/Berlin",
            "2026-11-21 09:30:00Z +0000",
            "2026-11-21 09:30:00 +0000 UTC x",
            "2026-11-21 09:30:00 CST",
            "2026-11-2é",
        ] {
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
