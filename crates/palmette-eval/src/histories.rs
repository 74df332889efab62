//! What users did, in time order.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};

use palmette_catalog::Catalog;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Histories as read: each user's items, oldest first, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histories {
    /// User and ids of the items.
    pub users: Vec<(String, Vec<String>)>,
}

/// Histories whose items are ranks of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserHistories {
    /// Each user's id.
    pub users: Vec<String>,
    /// Each user's items, oldest first.
    pub items: Vec<Vec<u32>>,
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
    /// files named `.jsonl` or `.ndjson`. Users and items are texts or whole numbers.
    ///
    /// # Errors
    /// When the file cannot be read, is not of that shape, or names a user twice.
    pub fn read(path: &Path) -> Result<Self, HistoryError> {
        let error = |reason| HistoryError { path: path.to_owned(), reason };
        let text =
            std::fs::read_to_string(path).map_err(|e| error(format!("cannot be read: {e}")))?;
        let is_lines =
            path.extension().is_some_and(|extension| extension == "jsonl" || extension == "ndjson");
        let users = if is_lines { parse_lines(&text) } else { parse_object(&text) };
        let users = users.map_err(error)?;
        let mut names = HashSet::new();
        if let Some((twice, _)) = users.iter().find(|(user, _)| !names.insert(user)) {
            return Err(error(format!("user {twice:?} stands twice; each user has one history")));
        }
        Ok(Self { users })
    }

    /// Finds every item in a catalog.
    ///
    /// # Errors
    /// For the first item that the catalog does not have.
    pub fn bind(self, path: &Path, catalog: &Catalog) -> Result<UserHistories, HistoryError> {
        let mut bound = UserHistories { users: Vec::new(), items: Vec::new() };
        for (user, ids) in self.users {
            let rank = |id: &String| {
                catalog.rank_of(id).ok_or_else(|| HistoryError {
                    path: path.to_owned(),
                    reason: format!("user {user:?} has item {id:?}, which the catalog lacks"),
                })
            };
            bound.items.push(ids.iter().map(rank).collect::<Result<_, _>>()?);
            bound.users.push(user);
        }
        Ok(bound)
    }
}

impl UserHistories {
    /// Interactions in all.
    pub fn num_interactions(&self) -> usize {
        self.items.iter().map(Vec::len).sum()
    }
}

/// An id as people write it: a text or a whole number.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(u64),
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        match id {
            Id::Text(text) => text,
            Id::Number(number) => number.to_string(),
        }
    }
}

type Users = Vec<(String, Vec<String>)>;

fn texts(ids: Vec<Id>) -> Vec<String> {
    ids.into_iter().map(String::from).collect()
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
            Ok((parsed.user_id.into(), texts(parsed.history)))
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
    }

    #[test]
    fn bad_files_are_named() {
        check("a.json", "[1]", Err("is not {user: [item, …]}"));
        check("a.json", r#"{"1": [1.5]}"#, Err("line 1"));
        check("a.json", r#"{"1": [1]} x"#, Err("trailing"));
        check("a.json", r#"{"1": [1], "1": [2]}"#, Err("\"1\" stands twice"));
        check("a.jsonl", "{\"user_id\": 7, \"history\": [1]}\n{}", Err("line 2"));
    }
}
