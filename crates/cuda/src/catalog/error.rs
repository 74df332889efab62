//! Errors of catalogs on a device, each with its cause and the way out.

use crate::DeviceError;

/// Failure to put a catalog on a device.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// An item has fewer codes than there are levels.
    #[error(
        "item {id:?} has {codes} codes of {levels}; on a device all items have as many; \
         --device cpu searches others"
    )]
    ShorterItem {
        /// The item's id.
        id: String,
        /// Number of its codes.
        codes: usize,
        /// Number of levels.
        levels: usize,
    },
    /// The catalog has more levels than are searched.
    #[error("a catalog of {catalog} levels for a search of {searched}")]
    OtherLevels {
        /// Levels of the catalog.
        catalog: usize,
        /// Levels of the search.
        searched: usize,
    },
    /// A code has no column.
    #[error("code {code} at level {level}, which has {codes} codes")]
    UnknownCode {
        /// The level.
        level: usize,
        /// The code.
        code: u32,
        /// Number of codes of the level.
        codes: u32,
    },
    /// Tables that no address counts.
    #[error("{items} items are more than tables on a device hold")]
    TooLarge {
        /// Items of the segment.
        items: u64,
    },
    /// Tables that what else is on the device leaves no room for.
    #[error(
        "tables of {needed} bytes of device memory, of which the model, its pages and its requests \
         leave {room}: a smaller --device-memory makes pages fewer, a smaller --device-requests \
         requests"
    )]
    NoRoom {
        /// Bytes that are to be uploaded.
        needed: u64,
        /// Bytes that nobody has or is promised.
        room: u64,
    },
    /// A file has other prefixes than it says.
    #[error("the catalog's index is damaged: its prefixes are other than it says; build it again")]
    Damaged,
    /// A search that the kernels do not run.
    #[error("{what}: {got}; the kernels search {rule}")]
    Unsupported {
        /// Part of it that they do not.
        what: &'static str,
        /// Number of that.
        got: usize,
        /// Rule that they keep.
        rule: &'static str,
    },
    /// The logits of a row are no distribution.
    #[error("the logits of a row of level {level} are no distribution")]
    BadLogits {
        /// The level.
        level: usize,
    },
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
