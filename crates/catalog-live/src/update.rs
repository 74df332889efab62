//! Updates of a batch, and its outcome.

use palmette_catalog::Item;
use serde::Serialize;
use serde_json::{Map, Value};

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Removes the item with this id, if there is one, and appends this one.
    Upsert(Item),
    /// Changes attributes of the item with this id, which must be there; null takes one away.
    /// Applied again it changes nothing. The item keeps its place among those that share its codes.
    Patch {
        /// The item's id.
        id: String,
        /// The attributes that change.
        attributes: Map<String, Value>,
    },
    /// Removes the item with this id. Its codes stay known, for histories that have it.
    Delete(String),
}

impl Update {
    /// The id of the item that it is about.
    pub fn id(&self) -> &str {
        match self {
            Self::Upsert(item) => &item.id,
            Self::Patch { id, .. } | Self::Delete(id) => id,
        }
    }
}

/// An update that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedUpdate {
    /// Place in the batch, from 0.
    pub index: usize,
    /// The item's id, where it has one.
    pub id: Option<String>,
    /// The rule that it breaks, and the way out.
    pub rule: String,
}

/// Outcome of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The generation that the batch made, and from which on its changes are seen.
    pub generation: u64,
    /// Upserts.
    pub upserted: u64,
    /// Patches that changed an item.
    pub patched: u64,
    /// Patches that changed nothing.
    pub unchanged: u64,
    /// Deletes that removed an item.
    pub deleted: u64,
    /// Deletes of ids that no item had.
    pub unknown_deletes: u64,
}
