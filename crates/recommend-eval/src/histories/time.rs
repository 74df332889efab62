//! Times of things that users did: numbers in whatever unit, and text.

use palmette_catalog_filter::parse_instant;
use palmette_recommend::NamedItem;
use serde_json::Value;

/// Billionths that times are counted in: exact for nanoseconds.
const SCALE: i128 = 1_000_000_000;
/// Seconds of the year 1970.
const SECONDS_OF_1970: i128 = 365 * 24 * 60 * 60;

/// A point in time; only those of one kind are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    /// A number in whatever unit, times [`SCALE`].
    Number(i128),
    /// Nanoseconds since 1970, of a text.
    Instant(i128),
}

/// Notes on the times of a source: those that may not be what they seem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeNotes {
    dates: Option<(u64, i128)>,
    early: Option<(u64, i128)>,
}

impl Time {
    /// Reads a time as a member or a cell gives it.
    ///
    /// # Errors
    /// A sentence when the value is no time.
    pub(crate) fn read(value: &Value, notes: &mut TimeNotes) -> Result<Self, String> {
        let time = match value {
            Value::Number(number) => decimal(&number.to_string()).map(Self::Number),
            Value::String(text) => {
                let text = text.trim();
                let instant = || {
                    let (seconds, nanoseconds) = parse_instant(text)?;
                    Some(Self::Instant(i128::from(seconds) * SCALE + i128::from(nanoseconds)))
                };
                decimal(text).map(Self::Number).or_else(instant)
            }
            _ => None,
        };
        if let Some(Self::Number(number)) = time {
            notes.add(number);
        }
        time.ok_or_else(|| {
            format!(
                "timestamp {value}: it is a number, a date such as 2026-05-01, or date and time such as 2026-05-01T12:00:00Z"
            )
        })
    }

    fn kind(time: Option<&Self>) -> u8 {
        match time {
            None => 0,
            Some(Self::Number(_)) => 1,
            Some(Self::Instant(_)) => 2,
        }
    }

    fn value(self) -> i128 {
        let (Self::Number(value) | Self::Instant(value)) = self;
        value
    }
}

/// A decimal number times [`SCALE`], digits beyond that cut off; `None` for what is no number or
/// too large.
fn decimal(text: &str) -> Option<i128> {
    let (text, exponent) = match text.split_once(['e', 'E']) {
        Some((text, exponent)) => (text, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut value: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let power = exponent.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let scale = 10_i128.checked_pow(power.unsigned_abs());
    let value = match (power >= 0, scale) {
        _ if value == 0 => 0,
        (true, scale) => value.checked_mul(scale?)?,
        (false, scale) => scale.map_or(0, |scale| value / scale),
    };
    Some(sign * value)
}

/// True if a whole number reads as a day or a day and time, such as 20260501.
fn is_date(number: i128) -> bool {
    let day = match number {
        19_000_101..=21_001_231 => number,
        19_000_101_000_000..=21_001_231_235_959 => {
            let (hour, minute, second) = (number / 10_000 % 100, number / 100 % 100, number % 100);
            if hour > 23 || minute > 59 || second > 59 {
                return false;
            }
            number / 1_000_000
        }
        _ => return false,
    };
    (1..=12).contains(&(day / 100 % 100)) && (1..=31).contains(&(day % 100))
}

impl TimeNotes {
    fn add(&mut self, number: i128) {
        if number % SCALE != 0 {
            return;
        }
        let number = number / SCALE;
        let place = match is_date(number) {
            true => &mut self.dates,
            false if (0..SECONDS_OF_1970).contains(&number) => &mut self.early,
            false => return,
        };
        place.get_or_insert((0, number)).0 += 1;
    }

    /// Sentences about numbers that may not be what they were taken for.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = String> {
        let dates = self.dates.map(|(count, example)| {
            format!(
                "{count} times such as {example} read as dates, YYYYMMDD: they are compared as numbers, and things of one date keep the order of the file"
            )
        });
        let early = self.early.map(|(count, example)| {
            format!(
                "{count} times such as {example} lie before 1971 if they count seconds; they are compared as numbers"
            )
        });
        dates.into_iter().chain(early)
    }
}

/// Items by their times; those of one time keep their order.
pub(crate) fn in_time_order(
    items: Vec<NamedItem>,
    times: &Value,
    notes: &mut TimeNotes,
) -> Result<Vec<NamedItem>, String> {
    let Value::Array(times) = times else {
        return Err(format!("the timestamps are no list, but {times}"));
    };
    if times.len() != items.len() {
        return Err(format!("{} items have {} timestamps; each has one", items.len(), times.len()));
    }
    let times: Vec<Time> =
        times.iter().map(|time| Time::read(time, notes)).collect::<Result<_, _>>()?;
    by_time(times.into_iter().map(Some).zip(items))
}

/// Sorts by time, stably.
pub(crate) fn by_time(
    events: impl Iterator<Item = (Option<Time>, NamedItem)>,
) -> Result<Vec<NamedItem>, String> {
    let mut events: Vec<(Option<Time>, NamedItem)> = events.collect();
    let first = events.first().map_or(0, |(time, _)| Time::kind(time.as_ref()));
    if events.iter().any(|(time, _)| Time::kind(time.as_ref()) != first) {
        return Err("some timestamps are missing or of another kind; give all as numbers, or none, or leave those rows out (--where '{\"exists\": \"timestamp\"}')"
            .to_owned());
    }
    events.sort_by_key(|(time, _)| time.map(Time::value));
    Ok(events.into_iter().map(|(_, item)| item).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: Value, expected: Option<Time>) {
        let read = Time::read(&value, &mut TimeNotes::default());
        assert_eq!(read.ok(), expected, "{value}");
    }

    #[test]
    fn numbers_are_exact() {
        let number = |billionths: i128| Some(Time::Number(billionths));
        check(json!("1659304800123456789"), number(1_659_304_800_123_456_789 * SCALE));
        check(json!(1_659_304_800_123_456_789_u64), number(1_659_304_800_123_456_789 * SCALE));
        check(json!("1593898068.378000001"), number(1_593_898_068_378_000_001));
        check(json!("1.684742e+12"), number(1_684_742_000_000 * SCALE));
        check(json!("2e1"), number(20 * SCALE));
        check(json!(2.5), number(2_500_000_000));
        check(json!("-.5"), number(-500_000_000));
        check(json!(" 7. "), number(7 * SCALE));
        check(json!("1e-30"), number(0));
        for none in ["", ".", "-", "1e", "e5", "1e400", "NaN", "inf", "1_000", "noon", "0x10"] {
            check(json!(none), None);
        }
        check(json!(true), None);
    }

    #[test]
    fn texts_are_those_of_catalogs() {
        let instant =
            |seconds: i128, nanoseconds: i128| Some(Time::Instant(seconds * SCALE + nanoseconds));
        for text in [
            "2018-07-07 22:09:11",
            "2018-07-07T22:09:11Z",
            "2018-07-08T00:09:11+02:00",
            "2018-07-07 22:09:11 +0000 UTC",
        ] {
            check(json!(text), instant(1_531_001_351, 0));
        }
        check(json!("2018-07-07"), instant(1_530_921_600, 0));
        check(json!("2018-07-07T22:09:11.123456789Z"), instant(1_531_001_351, 123_456_789));
        check(json!("2018-07-07T22:09:11.123456788Z"), instant(1_531_001_351, 123_456_788));
    }

    #[test]
    fn numbers_that_may_be_something_else_are_said() {
        let said = |times: &[&str]| {
            let mut notes = TimeNotes::default();
            for time in times {
                Time::read(&json!(time), &mut notes).unwrap();
            }
            notes.sentences().collect::<Vec<_>>().join("; ")
        };
        assert_eq!(said(&["1593898068", "1659304800025", "2020-01-01", "0.5", "-3"]), "");
        assert!(said(&["20180707", "20260101"]).starts_with("2 times such as 20180707 read as"));
        assert!(said(&["20180707221500"]).contains("read as dates"));
        assert!(said(&["3", "1593898068"]).starts_with("1 times such as 3 lie before 1971"));
        assert!(said(&["20189907"]).contains("before 1971"));
    }
}
