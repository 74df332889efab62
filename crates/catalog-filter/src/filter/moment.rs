//! Points in time that items are judged by: what has come, and what is yet to come.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

use super::{Filter, FilterError};
use crate::columns::timestamp;

/// A point in time.
#[derive(Clone, Debug, PartialEq)]
pub enum Moment {
    /// An RFC 3339 date, or date and time.
    Text(String),
    /// Seconds since 1970.
    Seconds(f64),
}

impl Moment {
    fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(text.as_str()),
            Self::Seconds(seconds) => Value::from(*seconds),
        }
    }
}

/// Text that is no point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoMoment(String);

impl fmt::Display for NoMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no point in time; give {}", self.0, timestamp::FORMS)
    }
}

impl std::error::Error for NoMoment {}

impl FromStr for Moment {
    type Err = NoMoment;

    /// Seconds since 1970 where the text is a number, else a date or date and time.
    fn from_str(text: &str) -> Result<Self, NoMoment> {
        let number = text.parse::<f64>().ok();
        let moment = number.map_or_else(|| Self::Text(text.to_owned()), Self::Seconds);
        let is_date = |seconds: f64| timestamp::date_of_digits(seconds).is_some();
        match timestamp::from_json(&moment.to_json()) {
            Some(_) if !number.is_some_and(is_date) => Ok(moment),
            _ => Err(NoMoment(text.to_owned())),
        }
    }
}

/// The moment itself belongs to what has come: what is valid to noon is over at noon, and what is
/// valid from noon has begun.
impl Filter {
    /// The items that are over at a moment: their timestamp `to` is not after it.
    ///
    /// # Errors
    /// When the moment is not finite.
    pub fn over_at(to: &str, now: &Moment) -> Result<Self, FilterError> {
        Self::from_value(&is_over(to, now))
    }

    /// The items that are valid at a moment: `from` has come, `to` has not; an item without one is
    /// not limited by it.
    ///
    /// # Errors
    /// When the moment is not finite.
    pub fn valid_at(
        from: Option<&str>,
        to: Option<&str>,
        now: &Moment,
    ) -> Result<Self, FilterError> {
        let is_to_come = |from: &str| json!({"range": {from: {"gt": now.to_json()}}});
        let outside = from.map(is_to_come).into_iter().chain(to.map(|to| is_over(to, now)));
        Self::from_value(&json!({"must_not": outside.collect::<Vec<_>>()}))
    }
}

fn is_over(to: &str, now: &Moment) -> Value {
    json!({"range": {to: {"lte": now.to_json()}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_numbers_dates_and_times() {
        assert_eq!("12.5".parse::<Moment>(), Ok(Moment::Seconds(12.5)));
        assert_eq!("2026-11-21".parse::<Moment>(), Ok(Moment::Text("2026-11-21".to_owned())));
        for text in ["z", "", "NaN", "inf", "1e300", "2026-13-01", "20261121"] {
            let error = text.parse::<Moment>().unwrap_err().to_string();
            assert!(error.contains("is no point in time; give a date"), "{error}");
        }
    }
}
