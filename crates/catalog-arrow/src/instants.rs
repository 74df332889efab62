//! Points in time as text.

/// Unit of a count since the beginning of 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Day,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Day => "days",
            Unit::Second => "seconds",
            Unit::Millisecond => "milliseconds",
            Unit::Microsecond => "microseconds",
            Unit::Nanosecond => "nanoseconds",
        }
    }
}

/// `2026-05-01T12:00:00Z`, with as many digits of a second as `unit` tells apart unless they are
/// zero. `None` outside the years 0000 to 9999, for which RFC 3339 has no text.
pub(crate) fn rfc3339(value: i64, unit: Unit) -> Option<String> {
    let (per_second, num_digits) = match unit {
        Unit::Day | Unit::Second => (1, 0),
        Unit::Millisecond => (1_000, 3),
        Unit::Microsecond => (1_000_000, 6),
        Unit::Nanosecond => (1_000_000_000, 9),
    };
    let (seconds, fraction) = match unit {
        Unit::Day => (value.checked_mul(SECONDS_A_DAY)?, 0),
        _ => (value.div_euclid(per_second), value.rem_euclid(per_second)),
    };
    let (year, month, day) = date(seconds.div_euclid(SECONDS_A_DAY));
    if !(0..=9999).contains(&year) {
        return None;
    }
    let second = seconds.rem_euclid(SECONDS_A_DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match fraction {
        0 => String::new(),
        _ => format!(".{fraction:0num_digits$}"),
    };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// Year, month from 1 and day from 1, by the Gregorian calendar.
///
/// Counted in years that begin with March, so that a leap day is the last of its year: then 400
/// years have one length, and the days before a month follow one line, 153 days in 5 months.
fn date(days_since_1970: i64) -> (i64, i64, i64) {
    const DAYS_IN_400_YEARS: i64 = 146_097;
    const DAYS_FROM_0000_03_01: i64 = 719_468;
    let days = days_since_1970 + DAYS_FROM_0000_03_01;
    let (era, day) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    // Leap days before `day`: one in 4 years, none in the last of 100, one in the last of 400.
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * era + year + next_year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day from 0000-01-01 to 9999-12-31 follows the day before.
    #[test]
    fn dates_follow_one_another() {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (mut year, mut month, mut day) = (0, 1, 1);
        let mut days_since_1970 = -719_528;
        while year <= 9999 {
            assert_eq!(date(days_since_1970), (year, month, day));
            let last = match month {
                2 => 28 + i64::from(is_leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                _ if day == last => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            days_since_1970 += 1;
        }
        assert_eq!(date(0), (1970, 1, 1));
    }

    #[test]
    fn texts() {
        for (value, unit, expected) in [
            (0, Unit::Day, Some("1970-01-01T00:00:00Z")),
            (-1, Unit::Second, Some("1969-12-31T23:59:59Z")),
            (-1, Unit::Nanosecond, Some("1969-12-31T23:59:59.999999999Z")),
            (1_714_564_800_500, Unit::Millisecond, Some("2024-05-01T12:00:00.500Z")),
            (1_714_564_800_000_000, Unit::Microsecond, Some("2024-05-01T12:00:00Z")),
            (-62_167_219_200, Unit::Second, Some("0000-01-01T00:00:00Z")),
            (-62_167_219_201, Unit::Second, None),
            (253_402_300_799, Unit::Second, Some("9999-12-31T23:59:59Z")),
            (253_402_300_800, Unit::Second, None),
            (i64::MAX, Unit::Second, None),
            (i64::MIN, Unit::Day, None),
            (i64::MIN, Unit::Nanosecond, Some("1677-09-21T00:12:43.145224192Z")),
        ] {
            assert_eq!(rfc3339(value, unit).as_deref(), expected, "{value} {unit:?}");
        }
    }
}
