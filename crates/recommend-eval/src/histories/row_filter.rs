//! Conditions on rows: which of them are read.

use std::fmt;
use std::str::FromStr;

use palmette_catalog_filter::Filter;
use serde_json::{Map, Number, Value, json};

/// A condition on the columns of a row.
///
/// Written as `NAME=VALUE`, with `!=`, `<`, `<=`, `>` or `>=` in place of `=`, and for the first
/// two with several values between commas; or as a [`Filter`] in JSON, whose attributes are
/// columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFilter {
    /// The text, as JSON: a column that it asks about is named there.
    text: String,
    filter: Filter,
    /// The column of a short condition.
    names: Vec<String>,
}

/// Signs of short conditions, those that begin as another last.
const SIGNS: [(&str, &str); 7] = [
    ("!=", "except"),
    (">=", "gte"),
    ("<=", "lte"),
    ("==", "any"),
    ("=", "any"),
    (">", "gt"),
    ("<", "lt"),
];

impl FromStr for RowFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            let filter = Filter::parse(text).map_err(|error| error.to_string())?;
            return Ok(Self { text: text.to_owned(), filter, names: Vec::new() });
        }
        let at = text.find(['!', '=', '<', '>']);
        let sign = at.and_then(|at| SIGNS.iter().find(|(sign, _)| text[at..].starts_with(sign)));
        let (Some(at), Some((sign, test))) = (at, sign) else {
            return Err(format!(
                "{text:?} is no condition; write NAME=VALUE (or !=, <, <=, >, >=), NAME=ONE,ANOTHER, or a filter in JSON"
            ));
        };
        let (name, value) = (text[..at].trim(), text[at + sign.len()..].trim());
        if name.is_empty() || value.is_empty() {
            return Err(format!(
                "{text:?}: a condition has a column's name before {sign} and a value after it"
            ));
        }
        // Cells are typed as they look, members as they are written: a value may be meant either
        // way.
        let values = || {
            let values = value.split(',').map(str::trim).flat_map(|value| {
                let typed = cell_value(value);
                let plain = Value::from(value);
                if typed == plain { vec![plain] } else { vec![typed, plain] }
            });
            values.collect::<Vec<Value>>()
        };
        let document = match *test {
            "any" => json!({"must": {"match": {name: values()}}}),
            "except" => json!({"must": {"match": {name: {"except": values()}}}}),
            bound => json!({"must": {"range": {name: {bound: cell_value(value)}}}}),
        };
        let text = document.to_string();
        let filter = Filter::parse(&text).map_err(|error| error.to_string())?;
        Ok(Self { text, filter, names: vec![name.to_owned()] })
    }
}

impl RowFilter {
    /// The condition that all of these hold; `None` of none.
    ///
    /// # Errors
    /// When they are too many for one filter.
    pub fn all(filters: &[Self]) -> Result<Option<Self>, String> {
        if let [] | [_] = filters {
            return Ok(filters.first().cloned());
        }
        let texts: Vec<&str> = filters.iter().map(|filter| filter.text.as_str()).collect();
        let text = format!("{{\"must\": [{}]}}", texts.join(", "));
        let filter = Filter::parse(&text).map_err(|error| error.to_string())?;
        let names = filters.iter().flat_map(|filter| filter.names.clone()).collect();
        Ok(Some(Self { text, filter, names }))
    }

    /// True if the condition may ask about this column. It is for all that the condition does ask
    /// about.
    pub(crate) fn may_ask(&self, column: &str) -> bool {
        let is_within = |name: &str| self.text.contains(name);
        is_within(column) || is_within(Value::from(column).to_string().trim_matches('"'))
    }

    /// # Errors
    /// A sentence about a column that is not there.
    pub(crate) fn check_names(&self, names: &[&str]) -> Result<(), String> {
        let is_there = |name: &str| {
            names.contains(&name)
                || name.split_once('.').is_some_and(|(column, _)| names.contains(&column))
        };
        match self.names.iter().find(|name| !is_there(name)) {
            // Members of nested objects are not named by the columns.
            Some(name) => {
                Err(format!("--where: there is no column {name:?}; there are {}", names.join(", ")))
            }
            None => Ok(()),
        }
    }

    /// True if a row matches. Texts are typed as [`cell_value`] reads them.
    pub(crate) fn matches(&self, row: &Map<String, Value>) -> bool {
        self.filter.matches("", row, &|_| None)
    }
}

impl fmt::Display for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A cell as a condition compares it: a number where it is written as one and has no leading zeros,
/// a truth value, or text.
pub(crate) fn cell_value(cell: &str) -> Value {
    match cell {
        "true" => return true.into(),
        "false" => return false.into(),
        _ => {}
    }
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && (!digits.starts_with('0')
            || matches!(digits.as_bytes().get(1), None | Some(b'.' | b'e' | b'E')));
    let number = || {
        let whole = cell.parse::<i64>().ok().map(Number::from);
        whole.or_else(|| cell.parse::<f64>().ok().and_then(Number::from_f64))
    };
    match is_number.then(number).flatten() {
        Some(number) => number.into(),
        None => cell.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(condition: &str, row: &Value, expected: bool) {
        let filter: RowFilter = condition.parse().unwrap();
        assert_eq!(filter.matches(row.as_object().unwrap()), expected, "{condition} of {row}");
    }

    #[test]
    fn short_conditions() {
        let row = json!({"event": "view", "rating": 4.5, "n": "7", "flag": true, "code": "007"});
        for (condition, expected) in [
            ("event=view", true),
            ("event == view", true),
            ("event=cart,view", true),
            ("event!=view", false),
            ("event!=cart,buy", true),
            ("gone!=x", false),
            ("rating>=4", true),
            ("rating > 4.5", false),
            ("rating<=4.5", true),
            ("rating<4", false),
            ("n=7", true),
            ("flag=true", true),
            ("code=007", true),
            ("code=7", false),
        ] {
            check(condition, &row, expected);
        }
        check(r#"{"must_not": {"match": {"event": "cart"}}}"#, &row, true);
        check(r#" {"exists": "gone"}"#, &row, false);
    }

    #[test]
    fn conditions_are_put_together() {
        let filters: Vec<RowFilter> = ["event=view", r#"{"range": {"rating": {"gte": 4}}}"#]
            .map(|f| f.parse().unwrap())
            .to_vec();
        let all = RowFilter::all(&filters).unwrap().unwrap();
        let matches = |row: Value| all.matches(row.as_object().unwrap());
        assert!(matches(json!({"event": "view", "rating": 4})));
        assert!(!matches(json!({"event": "view", "rating": 3})));
        assert!(!matches(json!({"event": "cart", "rating": 4})));
        assert!(all.may_ask("event") && all.may_ask("rating") && !all.may_ask("user"));
        assert!(RowFilter::all(&[]).unwrap().is_none());
    }

    #[test]
    fn what_is_no_condition() {
        for (text, word) in [
            ("event", "NAME=VALUE"),
            ("!x", "NAME=VALUE"),
            ("=3", "a column's name"),
            ("a=", "a value"),
            ("{\"must\": 7}", "must"),
        ] {
            let error = text.parse::<RowFilter>().unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        let filter: RowFilter = "evnt=view".parse().unwrap();
        assert!(
            filter.check_names(&["event", "user"]).unwrap_err().contains("there are event, user")
        );
    }

    #[test]
    fn cells_look_like_what_they_are() {
        for (cell, value) in [
            ("4.0", json!(4.0)),
            ("-3", json!(-3)),
            ("0", json!(0)),
            ("0.5", json!(0.5)),
            ("1e-05", json!(1e-5)),
            ("true", json!(true)),
            ("007", json!("007")),
            ("+1", json!("+1")),
            ("", json!("")),
            ("1,5", json!("1,5")),
            ("2020-01-01", json!("2020-01-01")),
            ("-", json!("-")),
            ("True", json!("True")),
        ] {
            assert_eq!(cell_value(cell), value);
        }
    }
}
