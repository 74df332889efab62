//! Points in time that are given as numbers, which may be meant as something else.

use palmette_catalog_filter::date_of_digits;
use serde_json::{Number, Value};

/// The present year's timestamps lie far behind this one: a whole number below it is mostly none.
const YEAR_1971: f64 = 31_536_000.0;

/// Reader of points in time that may be given as numbers.
///
/// Digits that write a date are that date, and whole numbers that can hardly be seconds are taken
/// down.
#[derive(Clone, Debug, Default)]
pub struct Moments {
    doubts: Vec<Doubt>,
}

/// A whole number in the place of a point in time that may not be meant so.
#[derive(Clone, Debug)]
struct Doubt {
    name: String,
    is_date: bool,
    place: String,
    value: String,
    count: u64,
}

impl Moments {
    /// The value of the attribute `name` as it is kept; `place` is what the notes call where it
    /// stands.
    pub fn read(&mut self, name: &str, value: Value, place: impl FnOnce() -> String) -> Value {
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => {
                let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
                let text = text.trim();
                text.bytes().all(is_number).then(|| text.parse().ok()).flatten()
            }
            _ => None,
        };
        let Some(seconds) = number else { return value };
        let date = date_of_digits(seconds);
        if seconds.fract() == 0.0 && (date.is_some() || seconds < YEAR_1971) {
            self.doubt(name, date.is_some(), value.to_string(), place);
        }
        match (date, value) {
            (Some(date), _) => Value::from(date),
            (None, Value::String(_)) => number_of(seconds),
            (None, value) => value,
        }
    }

    fn doubt(&mut self, name: &str, is_date: bool, value: String, place: impl FnOnce() -> String) {
        let known =
            self.doubts.iter_mut().find(|doubt| doubt.name == name && doubt.is_date == is_date);
        match known {
            Some(doubt) => doubt.count += 1,
            None => {
                let (name, place) = (name.to_owned(), place());
                self.doubts.push(Doubt { name, is_date, place, value, count: 1 });
            }
        }
    }

    /// Notes about the source, when it is read.
    pub fn notes(self) -> impl Iterator<Item = String> {
        self.doubts.into_iter().map(|Doubt { name, is_date, place, value, count }| {
            let more = if count > 1 { format!(", and {} more are so", count - 1) } else { String::new() };
            match is_date {
                true => format!(
                    "{place}: the timestamp {name:?} is {value}, which is read as the date that its digits write{more}"
                ),
                false => format!(
                    "{place}: the timestamp {name:?} is {value}, which as seconds since 1970 lies before 1971{more}; \
                     give seconds, or dates such as 2026-11-21"
                ),
            }
        })
    }
}

/// A number, whole where it is.
fn number_of(seconds: f64) -> Value {
    let is_whole = seconds.fract() == 0.0 && seconds.abs() < 9e15;
    match is_whole {
        true => Value::from(seconds as i64),
        false => Number::from_f64(seconds).map_or(Value::Null, Value::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_that_are_hardly_times_are_said() {
        let mut moments = Moments::default();
        let mut read = |line: u64, value: Value| {
            moments.read("at", value, || format!("line {line} (item \"i\")"))
        };
        assert_eq!(read(1, json!("20180707")), json!("2018-07-07"));
        assert_eq!(read(2, json!(20260101)), json!("2026-01-01"));
        assert_eq!(read(3, json!(20261301)), json!(20261301));
        assert_eq!(read(4, json!(2018)), json!(2018));
        assert_eq!(read(5, json!("1667260800")), json!(1_667_260_800));
        assert_eq!(read(6, json!(1_667_260_800.5)), json!(1_667_260_800.5));
        assert_eq!(read(7, json!("2026-11-21")), json!("2026-11-21"));
        let notes: Vec<String> = moments.notes().collect();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with(
            "line 1 (item \"i\"): the timestamp \"at\" is \"20180707\", which is read as the date"
        ));
        assert!(notes[0].ends_with("and 1 more are so"), "{}", notes[0]);
        assert!(
            notes[1].contains("is 20261301, which as seconds since 1970 lies before 1971"),
            "{}",
            notes[1]
        );
    }
}
