//! Items of a history as the model reads them: by number, by semantic ID, or as they were when
//! they were deleted.

use palmette_catalog_live::CatalogView;
use serde::Serialize;

/// An item of a history that the model can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum HistoryItem {
    /// The number of an item of the view.
    Number(u64),
    /// A semantic ID. All items that have it count as seen; where none has it, the model reads it
    /// all the same.
    Codes(Vec<u32>),
    /// An item that was deleted: the model reads its codes, and no item counts as seen.
    Departed {
        /// The item's id.
        id: String,
        /// Semantic ID of the item when it was deleted.
        codes: Vec<u32>,
    },
}

impl HistoryItem {
    /// Semantic ID of the item.
    ///
    /// # Panics
    /// When the view has no such number.
    pub fn codes(&self, view: &CatalogView) -> Vec<u32> {
        match self {
            Self::Number(number) => view.codes(*number),
            Self::Codes(codes) | Self::Departed { codes, .. } => codes.clone(),
        }
    }
}
