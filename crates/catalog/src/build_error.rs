//! Error of building a catalog, by the item or the option at fault.

use palmette_catalog_filter::AttributeError;

use crate::index::{DenseError, MAX_CODE, MAX_LEVELS};

/// An item that cannot be in a catalog, or options that no catalog can keep to.
///
/// The message names the value and the rule, and for an item its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct BuildError {
    kind: BuildErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BuildErrorKind {
    #[error("line {line}: item {id:?} {rule}")]
    Item { line: u64, id: String, rule: String },
    #[error(
        "line {line}: item {id:?} stands twice, first in line {first_line}; ids must be unique"
    )]
    Twice { line: u64, id: String, first_line: u64 },
    #[error("{given} codebook sizes are given; a semantic ID has at most {MAX_LEVELS} codes")]
    TooManySizes { given: usize },
    #[error(
        "the codebook of level {level} has size {size}; sizes go from 1 to {}",
        MAX_CODE + 1
    )]
    BadSize { level: usize, size: u32 },
    #[error(transparent)]
    Dense(DenseError),
    #[error(transparent)]
    Columns(AttributeError),
}

impl From<BuildErrorKind> for BuildError {
    fn from(kind: BuildErrorKind) -> Self {
        Self { kind }
    }
}

impl BuildError {
    /// A sink's refusal of one item; `rule` completes "item `id` …".
    pub fn of_item(line: u64, id: impl Into<String>, rule: impl Into<String>) -> BuildError {
        BuildErrorKind::Item { line, id: id.into(), rule: rule.into() }.into()
    }

    /// Rule that the item breaks, as it follows "item `id`". `None` when no item is at fault.
    pub fn rule(&self) -> Option<&str> {
        match &self.kind {
            BuildErrorKind::Item { rule, .. } => Some(rule),
            _ => None,
        }
    }

    /// Line of the source the item came from; its number, from 1, when it came from no file.
    /// `None` when no item is at fault.
    pub fn line(&self) -> Option<u64> {
        match &self.kind {
            BuildErrorKind::Item { line, .. } | BuildErrorKind::Twice { line, .. } => Some(*line),
            _ => None,
        }
    }

    /// Line of the item that had the id first, where an id stands twice.
    pub fn first_line(&self) -> Option<u64> {
        match &self.kind {
            BuildErrorKind::Twice { first_line, .. } => Some(*first_line),
            _ => None,
        }
    }

    /// Moves the error of an item to `line`.
    pub fn on_line(mut self, line: u64) -> BuildError {
        if let BuildErrorKind::Item { line: old, .. } = &mut self.kind {
            *old = line;
        }
        self
    }

    /// The field of [`BuildOptions`](crate::BuildOptions) that is at fault. `None` when an item is.
    pub fn option(&self) -> Option<&'static str> {
        match &self.kind {
            BuildErrorKind::Item { .. } | BuildErrorKind::Twice { .. } => None,
            BuildErrorKind::TooManySizes { .. } | BuildErrorKind::BadSize { .. } => {
                Some("codes_per_level")
            }
            BuildErrorKind::Dense(_) => Some("dense_levels"),
            BuildErrorKind::Columns(_) => Some("columns"),
        }
    }

    /// The item's id. `None` when no item is at fault.
    pub fn id(&self) -> Option<&str> {
        match &self.kind {
            BuildErrorKind::Item { id, .. } | BuildErrorKind::Twice { id, .. } => Some(id),
            _ => None,
        }
    }
}
