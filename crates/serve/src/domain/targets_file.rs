//! The targets of a data directory: `targets.json`, read at the start and written when they are
//! switched.
//!
//! `{"default": "shop", "targets": {"shop": ["model", "catalog"]}}`; a file of older versions, or
//! one that was made by hand, may be the inner object alone.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::load_error::LoadError;
use super::registry::{Table, Target};

/// File of the targets in the data directory.
pub(crate) const NAME: &str = "targets.json";

/// Targets as they were when the last process wrote them.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedTargets {
    /// Alias of the target that requests ask for which name none.
    pub(crate) default: Option<String>,
    /// Model and catalog of each alias.
    pub(crate) targets: BTreeMap<String, (String, String)>,
}

impl SavedTargets {
    /// Reads the file of a data directory; nothing where there is none.
    pub(crate) fn read(data: &Path) -> Result<Self, LoadError> {
        let path = data.join(NAME);
        match std::fs::read(&path) {
            Ok(text) => Self::parse(&text).map_err(|error| system(&path, &error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(system(&path, &error)),
        }
    }

    fn parse(text: &[u8]) -> serde_json::Result<Self> {
        let value: Value = serde_json::from_slice(text)?;
        // An alias may be named so too, and is a list then.
        match value.get("targets").is_some_and(Value::is_object) {
            true => serde_json::from_value(value),
            false => Ok(Self { default: None, targets: serde_json::from_value(value)? }),
        }
    }

    /// The targets of a table.
    fn of(table: &Table) -> Self {
        let pair = |target: &Arc<Target>| (target.model.name.clone(), target.catalog.name.clone());
        let targets = table.targets.iter();
        Self {
            default: table.default_target.clone(),
            targets: targets.map(|(alias, target)| (alias.clone(), pair(target))).collect(),
        }
    }
}

/// Writes the targets of a table into a data directory, in place of those before.
pub(crate) fn write(data: &Path, table: &Table) -> Result<(), LoadError> {
    let path = data.join(NAME);
    let mut text = serde_json::to_vec_pretty(&SavedTargets::of(table))
        .map_err(|error| system(&path, &error))?;
    text.push(b'\n');
    palmette_mapped::write_atomically(&path, |file| std::io::Write::write_all(file, &text))
        .map_err(|error| system(&path, &error))
}

fn system(path: &Path, error: &dyn fmt::Display) -> LoadError {
    LoadError::System(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let saved = |default: Option<&str>, targets: &[&str]| SavedTargets {
            default: default.map(str::to_owned),
            targets: targets
                .iter()
                .map(|alias| ((*alias).to_owned(), ("m".to_owned(), "c".to_owned())))
                .collect(),
        };
        for (text, wanted) in [
            (r"{}", saved(None, &[])),
            (r#"{"a": ["m", "c"]}"#, saved(None, &["a"])),
            (r#"{"targets": ["m", "c"]}"#, saved(None, &["targets"])),
            (r#"{"targets": {}}"#, saved(None, &[])),
            (
                r#"{"default": "a", "targets": {"a": ["m", "c"], "b": ["m", "c"]}}"#,
                saved(Some("a"), &["a", "b"]),
            ),
        ] {
            assert_eq!(SavedTargets::parse(text.as_bytes()).unwrap(), wanted, "{text}");
        }
        for text in [
            "",
            "[]",
            r#"{"a": "m:c"}"#,
            r#"{"targets": {}, "defualt": "a"}"#,
            r#"{"default": "a"}"#,
        ] {
            assert!(SavedTargets::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
