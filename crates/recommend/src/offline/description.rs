//! Run descriptions: all that decides the answers of a run, by name.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::question::CheckedQuestion;

/// Members that decide a run's answers; equal descriptions have equal answers.
///
/// A resumed run must have the same, and one that is done need not be done again while its
/// description stays. Beside the question stand facts of the caller's, most of them
/// [fingerprints](super::fingerprint).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunDescription(Map<String, Value>);

impl RunDescription {
    /// The description of a question about histories of which the `facts` are told.
    ///
    /// Two names of facts are known here: `now`, a moment in seconds since 1970, and the member
    /// `generation` of `catalog`.
    pub fn new(facts: Map<String, Value>, question: &CheckedQuestion) -> Self {
        let members = serde_json::to_value(question.question());
        let Ok(Value::Object(members)) = members else {
            unreachable!("a question is a JSON object: {members:?}")
        };
        let mut all = facts;
        all.extend(members);
        Self(all)
    }

    /// The moment of rules that name none, in seconds since 1970; `None` where no answer depends on
    /// it.
    pub fn moment(&self) -> Option<f64> {
        self.0.get("now")?.as_f64()
    }

    /// Names of the members that are not equal in both.
    pub(super) fn differences<'a>(&'a self, earlier: &'a Self) -> Vec<&'a str> {
        let only_earlier = earlier.0.keys().filter(|name| !self.0.contains_key(*name));
        let names = self.0.keys().chain(only_earlier);
        let differ = names.filter(|name| self.0.get(*name) != earlier.0.get(*name));
        differ.map(String::as_str).collect()
    }

    /// The generation of the catalog, of one that changes.
    pub(super) fn generation(&self) -> Option<&Value> {
        self.0.get("catalog")?.get("generation")
    }
}
