//! Records of histories: rows with the columns or members of the field's tools.

use palmette_recommend::NamedItem;
use serde_json::{Map, Value};

/// One history as its source gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRecord {
    /// The user's id, where the source has one.
    pub user: Option<String>,
    /// The items, oldest first.
    pub items: Vec<NamedItem>,
    /// The item that came next, where the source is one of questions with their answers.
    pub target: Option<NamedItem>,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place} {at}: {reason}")]
pub struct BadRecord {
    /// `line`, `row` or `history`.
    pub(crate) place: &'static str,
    pub(crate) at: u64,
    /// The user's id, as far as it could be read.
    pub user: Option<String>,
    pub(crate) reason: String,
}

impl BadRecord {
    /// The reason, without the place.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Content of a row: a whole history, or one event of a user.
#[derive(Debug, PartialEq)]
pub(crate) enum Row {
    History(HistoryRecord),
    Event(Event),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) user: String,
    pub(crate) item: NamedItem,
    pub(crate) time: Option<Time>,
}

/// A point in time: a number in whatever unit, or RFC 3339 text in UTC without its `Z`.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(crate) enum Time {
    Number(f64),
    Text(String),
}

const USER: &[&str] = &["user_id", "user", "uid"];
const HISTORY: &[&str] = &["history", "items", "item_ids", "history_item_id", "item_id_list"];
/// Read where there are no ids.
const HISTORY_CODES: &str = "history_item_sid";
const TARGET_CODES: &str = "item_sid";
const ITEM: &[&str] = &["item_id", "item", "iid"];
const TARGET: &[&str] = &["item_id", "target"];
const TIME: &[&str] = &["timestamp", "time"];
const TIMES: &[&str] = &["timestamps", "times"];

/// The columns of a source, or the members of a line, by what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryColumns {
    user: Option<String>,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Histories { history: String, times: Option<String>, target: Option<String> },
    Events { item: String, time: Option<String> },
}

impl HistoryColumns {
    /// Finds the columns by their names.
    ///
    /// A history a row has its items in `history`, `items`, `item_ids`, `history_item_id` or `item_id_list` (else
    /// `history_item_sid`), and may have `timestamps` of them, and the item after them in `item_id` or `target`. A row
    /// for each thing that a user did has `item_id` (`item`, `iid`) and may have `timestamp` (`time`). The user is in
    /// `user_id`, `user` or `uid`.
    ///
    /// # Errors
    /// A sentence that says which names are missing, or which two of one meaning are there.
    pub fn of(names: &[&str]) -> Result<Self, String> {
        let find = |spellings: &[&str]| {
            spellings.iter().find(|name| names.contains(name)).map(|name| (*name).to_owned())
        };
        let user = one_of(names, USER)?;
        let by_ids = one_of(names, HISTORY)?.map(|history| (history, find(TARGET)));
        let by_codes = || Some((find(&[HISTORY_CODES])?, find(&[TARGET_CODES])));
        if let Some((history, target)) = by_ids.or_else(by_codes) {
            return Ok(Self {
                user,
                kind: Kind::Histories { history, times: find(TIMES), target },
            });
        }
        let Some(item) = one_of(names, ITEM)? else {
            return Err(format!(
                "nothing is called as a history is ({}), nor as an item is ({}); there are {}",
                HISTORY.join(", "),
                ITEM.join(", "),
                names.join(", ")
            ));
        };
        if user.is_none() {
            return Err(format!(
                "an item a row needs its user, called one of {}; there are {}",
                USER.join(", "),
                names.join(", ")
            ));
        }
        Ok(Self { user, kind: Kind::Events { item, time: find(TIME) } })
    }

    /// The names of the columns that are read.
    pub fn names(&self) -> Vec<&str> {
        let of_kind = match &self.kind {
            Kind::Histories { history, times, target } => {
                [Some(history), times.as_ref(), target.as_ref()]
            }
            Kind::Events { item, time } => [Some(item), time.as_ref(), None],
        };
        let names = self.user.iter().chain(of_kind.into_iter().flatten());
        names.map(String::as_str).collect()
    }

    /// True where a row is one thing that a user did.
    pub fn is_events(&self) -> bool {
        matches!(self.kind, Kind::Events { .. })
    }

    /// True for the column of a list of items or times.
    pub(crate) fn is_list(&self, name: &str) -> bool {
        match &self.kind {
            Kind::Histories { history, times, .. } => {
                name == history || times.as_ref().is_some_and(|times| times == name)
            }
            Kind::Events { .. } => false,
        }
    }

    /// Reads a row.
    ///
    /// # Errors
    /// The user as far as it could be read, and a sentence about what is wrong.
    pub(crate) fn read(
        &self,
        mut row: Map<String, Value>,
    ) -> Result<Row, (Option<String>, String)> {
        let mut take = |name: &str| row.remove(name).filter(|value| !value.is_null());
        let user = match self.user.as_deref().and_then(&mut take) {
            None => None,
            Some(value) => match plain(&value) {
                Some(user) => Some(user),
                None => {
                    return Err((
                        None,
                        format!("user {value}: a user is a text or a whole number"),
                    ));
                }
            },
        };
        let of_user = |reason: String| (user.clone(), reason);
        match &self.kind {
            Kind::Events { item, time } => {
                let value = take(item).ok_or_else(|| of_user(format!("`{item}` is missing")))?;
                let time = time.as_deref().and_then(&mut take).map(|value| time_of(&value));
                Ok(Row::Event(Event {
                    item: item_of(value).map_err(of_user)?,
                    time: time.transpose().map_err(of_user)?,
                    user: user.clone().ok_or_else(|| of_user("the user is missing".to_owned()))?,
                }))
            }
            Kind::Histories { history, times, target } => {
                let value =
                    take(history).ok_or_else(|| of_user(format!("`{history}` is missing")))?;
                let Value::Array(list) = value else {
                    return Err(of_user(format!("`{history}` is no list of items, but {value}")));
                };
                let items: Result<Vec<NamedItem>, String> = list.into_iter().map(item_of).collect();
                let mut items = items.map_err(of_user)?;
                if let Some(value) = times.as_deref().and_then(&mut take) {
                    items = in_time_order(items, value).map_err(of_user)?;
                }
                let target = target.as_deref().and_then(&mut take).map(item_of).transpose();
                Ok(Row::History(HistoryRecord { items, target: target.map_err(of_user)?, user }))
            }
        }
    }
}

/// The one of these names that is there.
fn one_of(names: &[&str], spellings: &[&str]) -> Result<Option<String>, String> {
    let mut found = spellings.iter().filter(|name| names.contains(name));
    match (found.next(), found.next()) {
        (Some(one), Some(other)) => {
            Err(format!("`{one}` and `{other}` mean one thing; leave one out"))
        }
        (one, _) => Ok(one.map(|name| (*name).to_owned())),
    }
}

/// A text, or a whole number as one.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        _ => None,
    }
}

fn item_of(value: Value) -> Result<NamedItem, String> {
    let shown = shortened(&value);
    serde_json::from_value(value).map_err(|error| format!("item {shown}: {error}"))
}

fn shortened(value: &Value) -> String {
    const MOST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

fn time_of(value: &Value) -> Result<Time, String> {
    match value {
        Value::Number(number) => number.as_f64().filter(|time| !time.is_nan()).map(Time::Number),
        // Cells of text files.
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) if !number.is_nan() => Some(Time::Number(number)),
            _ if text.ends_with('Z') => Some(Time::Text(text.trim_end_matches('Z').to_owned())),
            _ => None,
        },
        _ => None,
    }
    .ok_or_else(|| {
        format!("timestamp {value}: it is a number, or text such as 2026-05-01T12:00:00Z")
    })
}

/// Items by their times; those of one time keep their order.
fn in_time_order(items: Vec<NamedItem>, times: Value) -> Result<Vec<NamedItem>, String> {
    let Value::Array(times) = times else {
        return Err(format!("the timestamps are no list, but {times}"));
    };
    if times.len() != items.len() {
        return Err(format!("{} items have {} timestamps; each has one", items.len(), times.len()));
    }
    let times: Vec<Time> = times.iter().map(time_of).collect::<Result<_, _>>()?;
    by_time(times.into_iter().map(Some).zip(items))
}

/// Sorts by time, stably.
pub(crate) fn by_time(
    events: impl Iterator<Item = (Option<Time>, NamedItem)>,
) -> Result<Vec<NamedItem>, String> {
    let mut events: Vec<(Option<Time>, NamedItem)> = events.collect();
    let kind = |time: &Option<Time>| match time {
        None => 0,
        Some(Time::Number(_)) => 1,
        Some(Time::Text(_)) => 2,
    };
    let first = events.first().map_or(0, |(time, _)| kind(time));
    if events.iter().any(|(time, _)| kind(time) != first) {
        return Err("some timestamps are missing or of another kind; give all as numbers, or none"
            .to_owned());
    }
    events.sort_by(|(a, _), (b, _)| a.partial_cmp(b).expect("times of one kind, none NaN"));
    Ok(events.into_iter().map(|(_, item)| item).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(row: Value) -> Result<Row, String> {
        let Value::Object(row) = row else { panic!("a row is an object") };
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        let columns = HistoryColumns::of(&names)?;
        columns.read(row).map_err(|(user, reason)| format!("{user:?}: {reason}"))
    }

    #[track_caller]
    fn check(row: Value, user: Option<&str>, items: &[&str], target: Option<&str>) {
        let record = HistoryRecord {
            user: user.map(str::to_owned),
            items: items.iter().map(|&item| item.into()).collect(),
            target: target.map(NamedItem::from),
        };
        assert_eq!(read(row), Ok(Row::History(record)));
    }

    #[track_caller]
    fn check_refused(row: Value, words: &[&str]) {
        let message = read(row).unwrap_err();
        for word in words {
            assert!(message.contains(word), "{message} lacks {word}");
        }
    }

    #[test]
    fn histories_by_their_members() {
        check(json!({"user": 3, "items": [1, "b"], "age": 9}), Some("3"), &["1", "b"], None);
        check(
            json!({"uid": "u", "item_id_list": ["x"], "item_id": "y"}),
            Some("u"),
            &["x"],
            Some("y"),
        );
        check(json!({"history": []}), None, &[], None);
        check(json!({"user_id": null, "history": ["x"]}), None, &["x"], None);
        let both = json!({"history_item_id": [1], "item_id": 2, "history_item_sid": ["<a_1>"], "item_sid": "<a_2>"});
        check(both, None, &["1"], Some("2"));
        check(
            json!({"history_item_sid": ["<a_1><b_0>"], "item_sid": "<a_2><b_0>"}),
            None,
            &["<a_1><b_0>"],
            Some("<a_2><b_0>"),
        );
        check(
            json!({"history": ["c", "a", "b"], "timestamps": [3, 1, 1]}),
            None,
            &["a", "b", "c"],
            None,
        );
        let texts = json!({"history": ["b", "a"], "timestamps": ["2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z"]});
        check(texts, None, &["a", "b"], None);
    }

    #[test]
    fn things_done_one_a_row() {
        let event = Event { user: "7".into(), item: "x".into(), time: Some(Time::Number(2.5)) };
        assert_eq!(
            read(json!({"user_id": 7, "item_id": "x", "timestamp": "2.5"})),
            Ok(Row::Event(event))
        );
        let event = Event { user: "7".into(), item: "x".into(), time: None };
        assert_eq!(read(json!({"user": 7, "item": "x"})), Ok(Row::Event(event)));
    }

    #[test]
    fn rows_that_say_nothing_usable() {
        check_refused(
            json!({"a": 1}),
            &["nothing is called as a history", "item_id", "there are a"],
        );
        check_refused(json!({"item_id": 1}), &["needs its user"]);
        check_refused(
            json!({"user": 1, "user_id": 1, "items": []}),
            &["`user_id` and `user` mean one thing"],
        );
        check_refused(json!({"user": 1.5, "items": []}), &["user 1.5"]);
        check_refused(json!({"user": 1, "items": "a,b"}), &["Some(\"1\")", "`items` is no list"]);
        check_refused(json!({"user": 1, "items": [1.5]}), &["item 1.5", "its id"]);
        check_refused(json!({"user": 1, "items": [null]}), &["item null"]);
        check_refused(json!({"items": [1], "timestamps": [1, 2]}), &["1 items have 2 timestamps"]);
        check_refused(json!({"items": [1], "timestamps": ["noon"]}), &["\"noon\"", "2026-05-01"]);
        check_refused(
            json!({"items": [1, 2], "timestamps": [1, "2026-05-01T00:00:00Z"]}),
            &["of another kind"],
        );
        check_refused(json!({"user": 1, "item_id": null}), &["`item_id` is missing"]);
        check_refused(json!({"user": null, "item_id": 1}), &["the user is missing"]);
    }
}
