//! The columns of a source by what they hold, and what is read of a row.

use palmette_catalog::readers::parse_list_cell;
use palmette_recommend::{NamedItem, PromptFields};
use serde_json::{Map, Value};

use super::layout::{ColumnNames, DEFAULT_NAMES};
use super::options::HistoryOptions;
use super::record::{Event, HistoryRecord, Row};
use super::row_filter::RowFilter;
use super::time::{Time, TimeNotes, in_time_order};

/// The columns of a source, or the members of a line, by what they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryColumns {
    user: Option<String>,
    kind: Kind,
    fields: FieldColumns,
    filter: Option<Filtered>,
    /// Separator of lists: see [`HistoryOptions::list_separator`].
    list_separator: Option<String>,
    /// True where lists stand in cells of text.
    are_cells: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Histories {
        history: String,
        times: Option<String>,
        target: Option<String>,
    },
    Events {
        item: String,
        time: Option<String>,
    },
    /// A list of objects, each one thing that the user did.
    Nested {
        list: String,
        item: String,
        time: Option<String>,
    },
}

/// Columns of what a prompt has beside a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FieldColumns {
    query: Option<String>,
    /// A member of objects that may hold the user's fields, or the user's id.
    user: Option<String>,
}

/// A condition on rows, and the columns it may ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Filtered {
    filter: RowFilter,
    columns: Vec<String>,
}

impl HistoryColumns {
    /// Finds the columns by their names.
    ///
    /// A history a row has its items in `history`, `items`, `item_ids`, `history_item_id` or
    /// `item_id_list` (else `history_item_sid`), and may have `timestamps` of them, and the item
    /// after them in `item_id` or `target`. A row for each thing that a user did has `item_id`
    /// (`item`, `iid`) and may have `timestamp` (`time`). The user is in `user_id`, `user` or
    /// `uid`. Beside a whole history `query` may stand, a text, and in rows of objects `user` may
    /// be an object of the user's fields.
    ///
    /// # Errors
    /// A sentence that says which names are missing, or which two of one meaning are there.
    pub fn of(names: &[&str]) -> Result<Self, String> {
        HistoryOptions::default().columns(names)
    }

    /// Finds columns where options say some of them, and `known` names say the others.
    ///
    /// Rows of JSON may lack a member that an option names; a column of cells may not be missing.
    pub(crate) fn find(
        options: &HistoryOptions,
        names: &[&str],
        may_lack: bool,
    ) -> Result<Self, String> {
        let known = options.layout.map_or(&DEFAULT_NAMES, |layout| &layout.columns);
        let there = |given: &Option<String>| match given {
            Some(name) if may_lack || has(names, name) => Ok(Some(name.clone())),
            Some(name) => {
                Err(format!("there is no column {name:?}; there are {}", names.join(", ")))
            }
            None => Ok(None),
        };
        let mut fields = FieldColumns::default();
        if options.layout.is_none() {
            let there = |name: &str| names.contains(&name).then(|| name.to_owned());
            (fields.query, fields.user) = (there(QUERY), there(USER).filter(|_| may_lack));
        }
        let user = match there(&options.user_column)? {
            Some(user) => Some(user),
            None => {
                // Beside an id, an object called so holds fields.
                let is_id = |name: &&str| fields.user.as_deref() != Some(*name);
                let ids: Vec<&str> = known.user.iter().copied().filter(is_id).collect();
                one_of(names, &ids, known.is_strict)?.or_else(|| fields.user.clone())
            }
        };
        let given = ColumnOptions {
            item: there(&options.item_column)?,
            history: there(&options.history_column)?,
            time: there(&options.time_column)?,
            target: there(&options.target_column)?,
        };
        let kind = given.kind(names, known)?;
        if matches!(kind, Kind::Events { .. }) && user.is_none() {
            return Err(format!(
                "an item a row needs its user, called one of {}; there are {}: name it with --user-column",
                known.user.join(", "),
                names.join(", ")
            ));
        }
        let filter = options.rows.as_ref().map(|filter| -> Result<Filtered, String> {
            if !may_lack {
                filter.check_names(names)?;
            }
            let columns = names.iter().filter(|name| filter.may_ask(name));
            Ok(Filtered {
                filter: filter.clone(),
                columns: columns.map(|&name| name.into()).collect(),
            })
        });
        let list_separator = options.list_separator.clone();
        if matches!(kind, Kind::Events { .. }) {
            fields = FieldColumns::default();
        }
        let filter = filter.transpose()?;
        let columns = Self { user, kind, fields, filter, list_separator, are_cells: false };
        let is_twice = |name: &&str| names.iter().filter(|other| *other == name).count() > 1;
        match columns.names().into_iter().find(is_twice) {
            Some(name) => Err(format!("two columns are called {name:?}; keep one of them")),
            None => Ok(columns),
        }
    }

    /// Columns of a document `{user: [item, …]}`.
    pub(crate) fn of_users() -> Self {
        let (history, times, target) = ("items".to_owned(), None, None);
        let kind = Kind::Histories { history, times, target };
        Self {
            user: Some("user".to_owned()),
            kind,
            fields: FieldColumns::default(),
            filter: None,
            list_separator: None,
            are_cells: false,
        }
    }

    /// Reads lists from cells of text.
    pub(crate) fn of_cells(self) -> Self {
        Self { are_cells: true, ..self }
    }

    /// The names of the columns that are read.
    pub fn names(&self) -> Vec<&str> {
        let of_kind = match &self.kind {
            Kind::Histories { history, times, target } => {
                [Some(history), times.as_ref(), target.as_ref()]
            }
            Kind::Events { item, time } => [Some(item), time.as_ref(), None],
            Kind::Nested { list, .. } => [Some(list), None, None],
        };
        let asked = self.filter.iter().flat_map(|filter| &filter.columns);
        let mut names: Vec<&str> = Vec::new();
        let fields = self.fields.query.iter().chain(&self.fields.user);
        let columns = self.user.iter().chain(of_kind.into_iter().flatten()).chain(fields);
        for name in columns.chain(asked) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// True for a column that a condition asks about and nothing else reads.
    pub(crate) fn is_only_asked(&self, name: &str) -> bool {
        self.filter.is_some() && !Self { filter: None, ..self.clone() }.names().contains(&name)
    }

    /// True where a row is one thing that a user did.
    pub fn is_events(&self) -> bool {
        matches!(self.kind, Kind::Events { .. })
    }

    /// True where a row is one thing that a user did, at no time that is read.
    pub(crate) fn is_untimed(&self) -> bool {
        matches!(self.kind, Kind::Events { time: None, .. })
    }

    /// True for the column of a list of items or times.
    pub(crate) fn is_list(&self, name: &str) -> bool {
        match &self.kind {
            Kind::Histories { history, times, .. } => {
                name == history || times.as_ref().is_some_and(|times| times == name)
            }
            Kind::Nested { list, .. } => name == list,
            Kind::Events { .. } => false,
        }
    }

    /// Members of the objects in a list that are not read, each with the name of the list.
    pub(crate) fn unread_members<'r>(
        &self,
        row: &'r Map<String, Value>,
    ) -> impl Iterator<Item = (&str, &'r str)> {
        let nested = match &self.kind {
            Kind::Nested { list, item, time } => Some((list, item, time)),
            _ => None,
        };
        nested.into_iter().flat_map(move |(list, item, time)| {
            let events = row.get(list).and_then(Value::as_array).into_iter().flatten();
            let names = events.filter_map(Value::as_object).flat_map(Map::keys);
            names
                .filter(move |&name| name != item && Some(name) != time.as_ref())
                .map(move |name| (list.as_str(), name.as_str()))
        })
    }

    /// Reads a row; `None` for one that is to be left out.
    ///
    /// # Errors
    /// The user as far as it could be read, and a sentence about what is wrong.
    pub(crate) fn read(
        &self,
        mut row: Map<String, Value>,
        notes: &mut TimeNotes,
    ) -> Result<Option<Row>, (Option<String>, String)> {
        // A condition on the objects of a list is theirs.
        let is_nested = matches!(self.kind, Kind::Nested { .. });
        if let Some(Filtered { filter, .. }) = self.filter.as_ref().filter(|_| !is_nested)
            && !filter.matches(&row)
        {
            return Ok(None);
        }
        let fields = self.fields(&mut row).map_err(|reason| (None, reason))?;
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
                let time = time.as_deref().and_then(&mut take);
                let time = time.map(|value| Time::read(&value, notes)).transpose();
                Ok(Some(Row::Event(Event {
                    item: item_of(value).map_err(of_user)?,
                    time: time.map_err(of_user)?,
                    user: user.clone().ok_or_else(|| of_user("the user is missing".to_owned()))?,
                })))
            }
            Kind::Histories { history, times, target } => {
                let value =
                    take(history).ok_or_else(|| of_user(format!("`{history}` is missing")))?;
                let list = self.list(history, value).map_err(of_user)?;
                let items: Result<Vec<NamedItem>, String> = list.into_iter().map(item_of).collect();
                let mut items = items.map_err(of_user)?;
                if let Some((name, value)) =
                    times.as_deref().and_then(|name| Some((name, take(name)?)))
                {
                    let value = self.list(name, value).map_err(of_user)?.into();
                    items = in_time_order(items, &value, notes).map_err(of_user)?;
                }
                let target = target.as_deref().and_then(&mut take).map(item_of).transpose();
                let target = target.map_err(of_user)?;
                Ok(Some(Row::History(HistoryRecord { user, items, target, fields })))
            }
            Kind::Nested { list, item, time } => {
                let value = take(list).ok_or_else(|| of_user(format!("`{list}` is missing")))?;
                let events = self.list(list, value).map_err(of_user)?;
                let nested = Nested { list, item, time: time.as_deref(), columns: self };
                let items = nested.items(events, &row, notes).map_err(of_user)?;
                Ok(Some(Row::History(HistoryRecord { user, items, target: None, fields })))
            }
        }
    }
}

impl HistoryColumns {
    /// Takes what a prompt has beside the history out of a row.
    fn fields(&self, row: &mut Map<String, Value>) -> Result<PromptFields, String> {
        let mut fields = PromptFields::default();
        match self.fields.query.as_deref().and_then(|name| row.remove(name)) {
            None | Some(Value::Null) => {}
            Some(Value::String(query)) => fields.query = Some(query),
            Some(other) => return Err(format!("query {}: a query is a text", shortened(&other))),
        }
        let Some(name) = &self.fields.user else { return Ok(fields) };
        match row.get_mut(name).map(Value::take) {
            Some(Value::Object(user)) => fields.user = user,
            Some(id) if self.user.as_ref() == Some(name) => _ = row.insert(name.clone(), id),
            None | Some(Value::Null) => {}
            Some(other) => {
                return Err(format!(
                    "`{}` and `{name}` mean one thing, unless `{name}` is an object of the user's fields, and it is {}; leave one out, or \
                     name the column (--user-column)",
                    self.user.as_deref().unwrap_or_default(),
                    shortened(&other)
                ));
            }
        }
        Ok(fields)
    }

    /// A list, also one that a text holds: in brackets, or with the separator that was given.
    fn list(&self, name: &str, value: Value) -> Result<Vec<Value>, String> {
        let separator = self.list_separator.as_deref();
        match value {
            Value::Array(list) => Ok(list),
            Value::String(text)
                if self.are_cells || separator.is_some() || text.trim_start().starts_with('[') =>
            {
                parse_list_cell(&text, separator).map_err(|reason| format!("`{name}`: {reason}"))
            }
            Value::String(text) => Err(format!(
                "`{name}` is no list of items, but the text {}; say what parts its items (--list-separator)",
                shortened(&text.into())
            )),
            other => Err(format!("`{name}` is no list of items, but {}", shortened(&other))),
        }
    }
}

/// Name of the column of queries.
const QUERY: &str = "query";

/// Name of the member that may hold the fields of a user.
const USER: &str = "user";

/// Names of columns from options.
struct ColumnOptions {
    item: Option<String>,
    history: Option<String>,
    time: Option<String>,
    target: Option<String>,
}

impl ColumnOptions {
    fn kind(self, names: &[&str], known: &ColumnNames) -> Result<Kind, String> {
        let Self { item, history, time, target } = self;
        let is_history = |name: &String| known.histories.iter().any(|of| of.history == name);
        // With the item that came next, or by its name, the column of items holds whole histories.
        let history = history.or_else(|| {
            let item = item.as_ref()?;
            (target.is_some() || is_history(item) || split(names, item).is_some())
                .then(|| item.clone())
        });
        let found = match (&history, &item) {
            (Some(history), _) => Some(history.clone()),
            (None, Some(_)) => None,
            (None, None) => {
                let spellings: Vec<&str> = known.histories.iter().map(|of| of.history).collect();
                // Codes are read where there are no ids, so they are no second name of one thing.
                let (codes, ids): (Vec<&str>, Vec<&str>) =
                    spellings.into_iter().partition(|name| name.ends_with("_sid"));
                match one_of(names, &ids, known.is_strict)? {
                    Some(history) => Some(history),
                    None => one_of(names, &codes, known.is_strict)?,
                }
            }
        };
        let Some(history) = found else {
            return Self { item, history: None, time, target }.events(names, known);
        };
        if let Some((list, member)) = split(names, &history) {
            let of = known.histories.iter().find(|of| of.history == history);
            let times = of.and_then(|of| of.times.first()).map(|times| (*times).to_owned());
            let time = time.or(times).map(|time| match time.strip_prefix(&format!("{list}.")) {
                Some(member) => member.to_owned(),
                None => time,
            });
            if target.is_some() {
                return Err("--target-column goes with a list of items, not of objects".to_owned());
            }
            return Ok(Kind::Nested { list: list.to_owned(), item: member.to_owned(), time });
        }
        let of = known.histories.iter().find(|of| of.history == history);
        let of = of.or(known.histories.first());
        let find = |spellings: &[&str]| {
            spellings.iter().find(|name| has(names, name)).map(|name| (*name).to_owned())
        };
        let times = time.or_else(|| of.and_then(|of| find(of.times)));
        let target = target.or_else(|| of.and_then(|of| find(of.target)));
        let target = target.filter(|target| *target != history);
        Ok(Kind::Histories { history, times, target })
    }

    fn events(self, names: &[&str], known: &ColumnNames) -> Result<Kind, String> {
        if let Some(target) = self.target {
            return Err(format!(
                "--target-column {target} goes with rows of whole histories: name their column with --history-column; there are {}",
                names.join(", ")
            ));
        }
        let item = match self.item {
            Some(item) => item,
            None => one_of(names, known.item, known.is_strict)?.ok_or_else(|| {
                let histories: Vec<&str> = known.histories.iter().map(|of| of.history).collect();
                format!(
                    "nothing is called as a history is ({}), nor as an item is ({}); there are {}: name them with --user-column, --item-column and --time-column, or the data set with --layout",
                    histories.join(", "),
                    known.item.join(", "),
                    names.join(", ")
                )
            })?,
        };
        let found = known.time.iter().find(|name| has(names, name)).map(|name| (*name).to_owned());
        Ok(Kind::Events { item, time: self.time.or(found) })
    }
}

/// True if a column is there, by name or as a member of a list's objects.
fn has(names: &[&str], name: &str) -> bool {
    names.contains(&name) || split(names, name).is_some()
}

/// A list of objects and one of their members, `events.aid`, where that is no column's name.
fn split<'n>(names: &[&str], name: &'n str) -> Option<(&'n str, &'n str)> {
    if names.contains(&name) {
        return None;
    }
    name.split_once('.').filter(|(list, _)| names.contains(list))
}

/// Things that a user did, as a list of objects.
struct Nested<'a> {
    list: &'a str,
    item: &'a str,
    time: Option<&'a str>,
    columns: &'a HistoryColumns,
}

impl Nested<'_> {
    fn items(
        &self,
        events: Vec<Value>,
        row: &Map<String, Value>,
        notes: &mut TimeNotes,
    ) -> Result<Vec<NamedItem>, String> {
        let (mut items, mut times) = (Vec::new(), Vec::new());
        for event in events {
            let Value::Object(mut event) = event else {
                return Err(format!(
                    "`{}` holds {}, which is no object",
                    self.list,
                    shortened(&event)
                ));
            };
            if let Some(Filtered { filter, .. }) = &self.columns.filter {
                let mut whole = row.clone();
                whole.extend(event.iter().map(|(name, value)| (name.clone(), value.clone())));
                if !filter.matches(&whole) {
                    continue;
                }
            }
            let item = event.remove(self.item).filter(|item| !item.is_null());
            let missing = || format!("`{}.{}` is missing", self.list, self.item);
            items.push(item_of(item.ok_or_else(missing)?)?);
            times.push(self.time.and_then(|time| event.remove(time)).unwrap_or(Value::Null));
        }
        match times.iter().all(Value::is_null) {
            true => Ok(items),
            false => in_time_order(items, &times.into(), notes),
        }
    }
}

/// The one of these names that is there; the first, unless several are an error.
fn one_of(names: &[&str], spellings: &[&str], is_strict: bool) -> Result<Option<String>, String> {
    let mut found = spellings.iter().filter(|name| has(names, name));
    match (found.next(), found.next()) {
        (Some(one), Some(other)) if is_strict => Err(format!(
            "`{one}` and `{other}` mean one thing; leave one out, or name the column (--user-column, --item-column, --history-column)"
        )),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(row: Value) -> Result<Row, String> {
        let Value::Object(row) = row else { panic!("a row is an object") };
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        let columns = HistoryColumns::find(&HistoryOptions::default(), &names, true)?;
        let row = columns.read(row, &mut TimeNotes::default());
        row.map(Option::unwrap).map_err(|(user, reason)| format!("{user:?}: {reason}"))
    }

    #[track_caller]
    fn check(row: Value, user: Option<&str>, items: &[&str], target: Option<&str>) {
        let record = HistoryRecord {
            user: user.map(str::to_owned),
            items: items.iter().map(|&item| item.into()).collect(),
            target: target.map(NamedItem::from),
            fields: PromptFields::default(),
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
    fn fields_of_prompts_beside_histories() {
        let check = |row: Value, user: Option<&str>, query: Option<&str>, fields: Value| {
            let Ok(Row::History(record)) = read(row) else { panic!("no history") };
            assert_eq!((record.user.as_deref(), record.fields.query.as_deref()), (user, query));
            assert_eq!(Value::Object(record.fields.user), fields);
        };
        let row = json!({"user_id": 7, "user": {"age": 3}, "items": [1], "query": "tents"});
        check(row, Some("7"), Some("tents"), json!({"age": 3}));
        check(json!({"user": {"age": 3}, "items": [1]}), None, None, json!({"age": 3}));
        check(json!({"user": 7, "items": [1], "query": null}), Some("7"), None, json!({}));
        check(json!({"uid": 7, "user": null, "items": [1]}), Some("7"), None, json!({}));
        check_refused(json!({"user": 7, "items": [1], "query": 5}), &["query 5", "is a text"]);
        // A query of one event is none of a history.
        assert!(matches!(read(json!({"user": 7, "item": 1, "query": 5})), Ok(Row::Event(_))));
    }

    #[test]
    fn things_done_one_a_row() {
        let time = Some(Time::Number(2_500_000_000));
        let event = Event { user: "7".into(), item: "x".into(), time };
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
            &["`user_id` and `user` mean one thing", "and it is 1;"],
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
