//! Updates as lines of JSON: an item to insert or replace, attributes to change, or an id to
//! delete.
//!
//! ```
//! use palmette_catalog_live::Update;
//!
//! let item = Update::from_json_line(r#"{"item_id": "P1", "codes": [1, 2], "price": 3}"#)?;
//! assert!(matches!(item, Update::Upsert(item) if item.attributes["price"] == 3));
//! let patch = Update::from_json_line(r#"{"item_id": "P1", "price": null}"#)?;
//! assert!(matches!(patch, Update::Patch { .. }));
//! assert_eq!(Update::from_json_line(r#"{"delete": "P1"}"#)?, Update::Delete("P1".into()));
//! # Ok::<(), palmette_catalog_live::LineError>(())
//! ```

use palmette_catalog::readers::{Format, Patch, parse_items, parse_patch};
use palmette_catalog_filter::{id_text, parse_unique};
use serde_json::Value;

use crate::update::Update;

/// A line that is no update. The message names the value and the rule; it does not say which line
/// it is.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LineError(Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("an update is a JSON object: {0}")]
    NotJson(serde_json::Error),
    #[error("an update is a JSON object, and this is none")]
    NotObject,
    #[error("a line with delete has nothing else: {{\"delete\": \"id\"}}")]
    MoreThanDelete,
    #[error("{0} is no id: delete takes text or a whole number")]
    NotId(Value),
    #[error("{0} is a column of tables; the codes of an update are a list, \"codes\": [3, 1, 7]")]
    CodeColumn(String),
    #[error("{0}")]
    Item(String),
}

impl Update {
    /// Reads an update: `{"delete": id}`, or an item as a catalog is built from. Without codes it
    /// is a patch of the item's attributes.
    ///
    /// # Errors
    /// When it is no JSON object, or breaks a rule of its kind.
    pub fn from_json_line(line: &str) -> Result<Self, LineError> {
        let value = parse_unique(line).map_err(|error| LineError(Kind::NotJson(error)))?;
        let Value::Object(object) = value else { return Err(LineError(Kind::NotObject)) };
        if let Some(id) = object.get("delete") {
            return match id_text(id).filter(|id| !id.is_empty()) {
                _ if object.len() > 1 => Err(LineError(Kind::MoreThanDelete)),
                Some(id) => Ok(Self::Delete(id)),
                None => Err(LineError(Kind::NotId(id.clone()))),
            };
        }
        let refused = |problem: String| LineError(Kind::Item(without_place(&problem).to_owned()));
        let patch = parse_patch(line).map_err(|problem| refused(problem.to_string()))?;
        if let Some(Patch { id, attributes }) = patch {
            // As an attribute it would leave the item where it is.
            if let Some(name) = attributes.keys().find(|name| is_code_column(name)) {
                return Err(LineError(Kind::CodeColumn(name.clone())));
            }
            return Ok(Self::Patch { id, attributes });
        }
        // The item is written as for a build, so it is read as for a build.
        let source = parse_items("item", line.as_bytes(), Format::JsonLines)
            .map_err(|error| refused(error.to_string()))?;
        let item = source.items.into_iter().next();
        item.map(Self::Upsert).ok_or_else(|| refused("the line holds no item".to_owned()))
    }
}

/// `code_0`, `code_1`, …, as columns of tables are called.
fn is_code_column(name: &str) -> bool {
    let digits = name.strip_prefix("code_").unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The reader sees one line only, so the place that it names means nothing.
fn without_place(message: &str) -> &str {
    let message = message.strip_prefix("item, ").unwrap_or(message);
    message.strip_prefix("line 1: ").unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(line: &str, words: &str) {
        let error = Update::from_json_line(line).unwrap_err().to_string();
        assert!(error.contains(words), "{line}: {error}");
    }

    #[test]
    fn lines_that_are_no_updates_say_why() {
        check_refused("", "a JSON object");
        check_refused("[1]", "a JSON object");
        check_refused("{} {}", "trailing");
        check_refused("{}", "item_id");
        check_refused(r#"{"delete": ""}"#, "no id");
        check_refused(r#"{"delete": 1.5}"#, "no id");
        check_refused(r#"{"delete": "a", "price": 1}"#, "nothing else");
        check_refused(r#"{"item_id": "a", "codes": [-1]}"#, "-1");
        check_refused(r#"{"item_id": "a", "code_0": 1, "code_1": 2}"#, "the codes of an update");
        check_refused(r#"{"item_id": "a", "codes": []}"#, "at least one code");
        check_refused(r#"{"item_id": "a", "price": 1, "price": 2}"#, "price");
        check_refused(r#"{"item_id": "a", "id": "b", "codes": [1]}"#, "mean the same");
    }

    #[test]
    fn ids_may_be_numbers() {
        assert_eq!(Update::from_json_line(r#"{"delete": 7}"#).unwrap(), Update::Delete("7".into()));
        assert_eq!(
            Update::from_json_line(r#"{"delete": 7.0}"#).unwrap(),
            Update::Delete("7".into())
        );
        let item = Update::from_json_line(r#"{"id": 7, "codes": "<a_1><b_2>"}"#).unwrap();
        assert!(matches!(&item, Update::Upsert(item) if item.id == "7" && item.codes == [1, 2]));
    }
}
