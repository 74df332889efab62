//! Reading a document into a type, with the place of what is wrong.

use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::fault::{Fault, place};
use crate::json::{Text, Wrong};

/// A document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentError {
    /// No JSON at all.
    NoJson(String),
    /// JSON of another form.
    Fault(Fault),
}

impl std::fmt::Display for DocumentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoJson(reason) => write!(f, "it is no JSON: {reason}"),
            Self::Fault(fault) => f.write_str(&fault.detail),
        }
    }
}

impl std::error::Error for DocumentError {}

/// Reads a document.
///
/// # Errors
/// When it is no JSON, or a value is not one that the type takes.
pub fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, DocumentError> {
    // Editors of some systems put a mark before the text.
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text: &RawValue =
        serde_json::from_slice(bytes).map_err(|error| DocumentError::NoJson(error.to_string()))?;
    read_from(Text(text.get())).map_err(DocumentError::Fault)
}

/// Reads a typed value.
///
/// # Errors
/// For the first value that the type does not take.
pub fn read_from<'de, T: Deserialize<'de>>(
    json: impl Deserializer<'de, Error = Wrong>,
) -> Result<T, Fault> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let pointer = pointer(error.path());
        let detail = error.into_inner().of(&place(&pointer));
        Fault { pointer, detail }
    })
}

/// The JSON pointer of a path.
pub(crate) fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", escaped(key)),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => String::new(),
        })
        .collect()
}

/// A member's name as a part of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
