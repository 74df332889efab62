//! Sinks: receivers of items as they are read.

use serde_json::{Map, Value};

use crate::build_error::BuildError;

/// Takes items as a reader finds them.
///
/// What a reader pushes has an ID and at least one code, no code above
/// [`MAX_CODE`](crate::index::MAX_CODE), and one spelling of codes throughout. Whether IDs are
/// distinct is the sink's affair.
pub trait ItemSink {
    /// Takes the next item; `line` is where it starts in the source, from 1 (in tables, its row).
    ///
    /// # Errors
    /// When the sink cannot take this item. The reader then stops.
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError>;

    /// These attributes are points in time, given as RFC 3339 text. Called at most once, before any
    /// item.
    fn timestamps(&mut self, names: &[String]) {
        let _ = names;
    }
}

/// Summary of a reader when all items are pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadSummary {
    /// Number of items that were pushed.
    pub num_items: u64,
    /// Prefixes of codes: see [`SourceItems::level_prefixes`](super::SourceItems::level_prefixes).
    pub level_prefixes: Option<Vec<String>>,
    /// Names of [`SourceOptions::left_out`](super::SourceOptions::left_out) that the source has.
    pub left_out: Vec<String>,
    /// Notes on the source for its users, none of them an error.
    pub notes: Vec<String>,
}
