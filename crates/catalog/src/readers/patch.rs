//! Patches: items of which only the id and some attributes are given.

use serde_json::{Map, Value};

use super::SourceOptions;
use super::error::{Kind, Problem};
use super::json::{Fields, id_from_json, take_field};

/// Attributes of an item that change.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// The item's id.
    pub id: String,
    /// Values by attribute, null for one that is taken away.
    pub attributes: Map<String, Value>,
}

/// Reads a JSON object without codes as a patch. `None` where it has codes.
///
/// # Errors
/// When it is no JSON object, names a field twice, or has no id; the line it names is the first.
pub fn parse_patch(text: &str) -> Result<Option<Patch>, Problem> {
    let Fields(mut object) = serde_json::from_str(text).map_err(|error| Problem::json(1, error))?;
    let options = SourceOptions::default();
    if options.codes_names().into_iter().any(|name| object.contains_key(name)) {
        return Ok(None);
    }
    let missing = |found: &[String]| Kind::missing_id(&options, found);
    let id = id_from_json(1, take_field(1, &mut object, &options.id_names(), missing)?)?;
    Ok(Some(Patch { id, attributes: object }))
}
