//! What users did, in time order.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use palmette_live::CatalogView;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Histories as read: each user's items, oldest first, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histories {
    /// User and ids of the items.
    pub users: Vec<(String, Vec<String>)>,
}

/// Histories whose items are numbers of one view of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserHistories {
    /// Each user's id.
    pub users: Vec<String>,
    /// Each user's items, oldest first.
    pub items: Vec<Vec<u64>>,
}

/// Histories that cannot be used; the message names the file, the value and the rule.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct HistoryError {
    path: PathBuf,
    reason: String,
}

impl Histories {
    /// Reads `{user: [item, …]}` as JSON, or JSON lines of `{"user_id": …, "history": [item, …]}` for
    /// files named `.jsonl` or `.ndjson` (`user` and `items` are other names for the two). Users and
    /// items are texts or whole numbers. A byte order mark is passed over.
    ///
    /// # Errors
    /// When the file cannot be read, is not of that shape, or names a user twice.
    pub fn read(path: &Path) -> Result<Self, HistoryError> {
        let error = |reason| HistoryError { path: path.to_owned(), reason };
        let text =
            std::fs::read_to_string(path).map_err(|e| error(format!("cannot be read: {e}")))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let is_lines = path.extension().is_some_and(|extension| {
            ["jsonl", "ndjson"].iter().any(|lines| extension.eq_ignore_ascii_case(lines))
        });
        let users = if is_lines { parse_lines(text) } else { parse_object(text) };
        let users = users.map_err(error)?;
        let mut names = HashSet::new();
        if let Some((twice, _)) = users.iter().find(|(user, _)| !names.insert(user)) {
            return Err(error(format!("user {twice:?} stands twice; each user has one history")));
        }
        Ok(Self { users })
    }

    /// Finds every item in a view of a catalog.
    ///
    /// # Errors
    /// For the first item that the view does not have.
    pub fn bind(self, path: &Path, view: &CatalogView) -> Result<UserHistories, HistoryError> {
        let mut bound = UserHistories { users: Vec::new(), items: Vec::new() };
        for (user, ids) in self.users {
            let number = |id: &String| {
                view.find(id).ok_or_else(|| HistoryError {
                    path: path.to_owned(),
                    reason: format!("user {user:?} has item {id:?}, which the catalog lacks: build the catalog from all items that histories name"),
                })
            };
            bound.items.push(ids.iter().map(number).collect::<Result<_, _>>()?);
            bound.users.push(user);
        }
        Ok(bound)
    }
}

/// An id as people write it: a text or a whole number.
struct Id(String);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id: a text or a whole number")
            }

            fn visit_str<E>(self, text: &str) -> Result<Id, E> {
                Ok(Id(text.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Id, E> {
                Ok(Id(number.to_string()))
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}

type Users = Vec<(String, Vec<String>)>;

fn texts(ids: Vec<Id>) -> Vec<String> {
    ids.into_iter().map(|Id(id)| id).collect()
}

/// Keeps every entry in file order, a user named twice too, so that it can be reported.
fn parse_object(text: &str) -> Result<Users, String> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = Users;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object {user: [item, …]}")
        }

        fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Users, M::Error> {
            let mut users = Vec::new();
            while let Some((user, ids)) = map.next_entry::<String, Vec<Id>>()? {
                users.push((user, texts(ids)));
            }
            Ok(users)
        }
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    let users = parser.deserialize_map(Entries).and_then(|users| parser.end().map(|()| users));
    users.map_err(|e| format!("is not {{user: [item, …]}}: {e}"))
}

fn parse_lines(text: &str) -> Result<Users, String> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(alias = "user")]
        user_id: Id,
        #[serde(alias = "items")]
        history: Vec<Id>,
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let parsed: Line = serde_json::from_str(line).map_err(|e| {
                let at = number + 1;
                format!("line {at} is not {{\"user_id\": …, \"history\": [item, …]}}: {e}")
            })?;
            Ok((parsed.user_id.0, texts(parsed.history)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: Result<&[(&str, &[&str])], &str>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        match (Histories::read(&path), expected) {
            (Ok(got), Ok(want)) => {
                let got: Vec<(&str, Vec<&str>)> = got
                    .users
                    .iter()
                    .map(|(u, items)| (u.as_str(), items.iter().map(String::as_str).collect()))
                    .collect();
                let want: Vec<(&str, Vec<&str>)> =
                    want.iter().map(|(u, items)| (*u, items.to_vec())).collect();
                assert_eq!(got, want);
            }
            (Err(error), Err(word)) => {
                let message = error.to_string();
                assert!(message.contains(word) && message.contains(name), "{message}");
            }
            (got, want) => panic!("{got:?} where {want:?} was expected"),
        }
    }

    #[test]
    fn objects_and_lines() {
        check("a.json", r#"{"9": [3, "x"], "2": []}"#, Ok(&[("9", &["3", "x"]), ("2", &[])]));
        let lines = "{\"user_id\": 7, \"history\": [1]}\n\n{\"user\": \"u\", \"items\": [\"b\"]}\n";
        check("a.jsonl", lines, Ok(&[("7", &["1"]), ("u", &["b"])]));
        check("a.json", "{}", Ok(&[]));
        check("a.JSONL", "\u{feff}{\"user\": -1, \"items\": [-2]}", Ok(&[("-1", &["-2"])]));
    }

    #[test]
    fn bad_files_are_named() {
        check("a.json", "[1]", Err("is not {user: [item, …]}"));
        check("a.json", r#"{"1": [1.5]}"#, Err("floating point `1.5`, expected an id"));
        check("a.json", r#"{"1": [1]} x"#, Err("trailing"));
        check("a.json", r#"{"1": [1], "1": [2]}"#, Err("\"1\" stands twice"));
        check("a.jsonl", "{\"user_id\": 7, \"history\": [1]}\n{}", Err("line 2"));
    }
}
