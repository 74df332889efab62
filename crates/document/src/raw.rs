//! Raw JSON: the text of a value that another reader takes apart.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The text of a JSON value, whose syntax is sound. Filters and rules have readers of their own,
/// which name places within them.
#[derive(Clone, Deserialize, Serialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// The text of a value.
    ///
    /// # Errors
    /// When it has a map whose keys are no texts.
    pub fn from_value(value: &impl Serialize) -> serde_json::Result<Self> {
        to_raw_value(value).map(Self)
    }

    /// Checks that a text is a JSON value.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_text(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str::<Box<RawValue>>(text).map(Self)
    }

    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}
