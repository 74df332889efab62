//! Attributes whose values are of several kinds, in reports.

use std::fmt;
use std::path::PathBuf;

use palmette_catalog::{ColumnConflict, KindConflict};
use serde_json::{Value, json};

use super::sources::Sources;
use crate::commands::items::shortened;
use crate::output::visible;

/// An attribute's first value of another kind, and the places of both values.
pub(super) struct Conflict {
    conflict: ColumnConflict,
    place: (PathBuf, u64),
    first_place: (PathBuf, u64),
}

impl Conflict {
    pub(super) fn new(conflict: KindConflict, sources: &Sources) -> Conflict {
        let place = |line| {
            let (path, line) = sources.place(line);
            (path.to_owned(), line)
        };
        Conflict {
            place: place(conflict.line),
            first_place: place(conflict.first_line),
            conflict: conflict.conflict,
        }
    }

    /// The attribute, as people read it.
    pub(super) fn name(&self) -> String {
        visible(&self.conflict.name)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "attribute": self.conflict.name,
            "file": self.place.0,
            "line": self.place.1,
            "value": self.conflict.value,
            "kind": self.conflict.kind,
            "first_file": self.first_place.0,
            "first_line": self.first_place.1,
            "first_value": self.conflict.first_value,
            "first_kind": self.conflict.first_kind,
        })
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Value| visible(&shortened(&value.to_string(), 60));
        let ColumnConflict { value, kind, first_value, first_kind, .. } = &self.conflict;
        let ((path, line), (first_path, first_line)) = (&self.place, &self.first_place);
        write!(
            f,
            "{}, line {line}: attribute {:?} is {}",
            path.display(),
            self.name(),
            shown(value)
        )?;
        write!(f, " ({kind}), and {} ({first_kind}) in ", shown(first_value))?;
        if path != first_path {
            write!(f, "{}, ", first_path.display())?;
        }
        write!(f, "line {first_line}")
    }
}
