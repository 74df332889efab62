//! Fields that are not read because their names were given.

use serde_json::{Map, Value};

/// Names of fields to leave out, and which of them a source has.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut {
    names: Vec<(String, bool)>,
}

impl LeftOut {
    pub(super) fn new(names: &[String]) -> LeftOut {
        LeftOut { names: names.iter().map(|name| (name.clone(), false)).collect() }
    }

    /// Takes the fields out of an item's.
    pub(super) fn take_from(&mut self, fields: &mut Map<String, Value>) {
        for (name, is_there) in &mut self.names {
            *is_there |= fields.shift_remove(name).is_some();
        }
    }

    /// Takes down which of the names are columns of a table.
    pub(super) fn look_among(&mut self, columns: &[String]) {
        for (name, is_there) in &mut self.names {
            *is_there |= columns.contains(name);
        }
    }

    /// The names that the source has.
    pub(super) fn present(self) -> Vec<String> {
        self.names.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }
}
