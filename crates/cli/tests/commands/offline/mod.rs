//! Recommendations for every history of a file.

mod evaluation;
mod resuming;
mod runs;

use serde_json::{Value, json};

use crate::shop::{Shop, with_recommender};

const NARROW: [&str; 4] = ["-k", "3", "--beam-width", "6"];

/// The first histories of the shop, one a line.
fn histories(count: usize) -> Vec<Value> {
    let text = std::fs::read_to_string(Shop::get().path("histories.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let all = all.as_object().unwrap().iter().take(count);
    all.map(|(user, items)| json!({"user": user, "items": items})).collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn records(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An unknown item is the error of its record.
#[cfg(feature = "tables")]
const STRICT: &[&str] = &["--unknown", "error"];

struct Run {
    dir: tempfile::TempDir,
    recommender: [String; 4],
}

impl Run {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, recommender: Shop::get().recommender() }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn args<'a>(&'a self, histories: &'a str, out: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        let files = ["--histories", histories, "--out", out];
        with_recommender("recommend", &self.recommender, &[&files, &NARROW[..], rest].concat())
    }
}
