//! Names of models, catalogs, targets and keys: their form, and lists of them for messages.

use std::collections::BTreeMap;

/// Error of a text that cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidName(pub(crate) String);

/// The longest name.
const MAX_NAME: usize = 64;

/// Refuses what is no name: it stands in paths, logs, metrics and files.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), InvalidName> {
    let is_sound = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !name.starts_with('.');
    match is_sound {
        true => Ok(()),
        false => Err(InvalidName(format!(
            "{name:?} is no name of a {what}: 1 to {MAX_NAME} of A-Z a-z 0-9 . _ -, not beginning with a dot"
        ))),
    }
}

/// Names for a message.
pub(crate) fn names<T>(of: &BTreeMap<String, T>) -> String {
    match of.len() {
        0 => "none".to_owned(),
        _ => of.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
    }
}
