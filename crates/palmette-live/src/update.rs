//! What a batch is made of, and what it did.

use palmette_catalog::Item;
use serde::Serialize;

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// Removes the item with this id, if there is one, and appends this one.
    Upsert(Item),
    /// Removes the item with this id.
    Delete(String),
}

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The generation that the batch made, and from which on its changes are seen.
    pub generation: u64,
    /// Upserts.
    pub upserted: u64,
    /// Deletes that removed an item.
    pub deleted: u64,
    /// Deletes of ids that no item had.
    pub unknown_deletes: u64,
}
