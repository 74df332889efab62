//! Items of one source, all in memory, and the sinks that keep them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value};

use super::error::{Kind, Problem};
use super::sink::ItemSink;
use crate::build_error::BuildError;
use crate::item::Item;

/// The items of one source, in its order.
///
/// What a reader returns has distinct item IDs that are not empty, and at least one code an item,
/// none above [`MAX_CODE`](crate::index::MAX_CODE); lengths of semantic IDs may differ. Items put
/// together otherwise (`From<Vec<Item>>`) are not checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceItems {
    /// The items.
    pub items: Vec<Item>,
    /// `lines[i]` is the line, from 1, where `items[i]` starts: for later errors. Empty
    /// for items that came from no file.
    pub lines: Vec<u64>,
    /// The prefix of each level (`a` for codes spelled `<a_12>`), as many as the longest semantic
    /// ID has codes. Two levels may have the same. `None` where the source spells codes as plain
    /// numbers or has no items.
    pub level_prefixes: Option<Vec<String>>,
}

impl From<Vec<Item>> for SourceItems {
    fn from(items: Vec<Item>) -> SourceItems {
        SourceItems { items, lines: Vec::new(), level_prefixes: None }
    }
}

/// Keeps every item. IDs are not compared.
impl ItemSink for SourceItems {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        self.items.push(Item { id, codes: codes.to_vec(), attributes });
        self.lines.push(line);
        Ok(())
    }
}

/// Keeps every item and refuses an ID that it has seen.
#[derive(Default)]
pub(super) struct DistinctItems {
    pub(super) source: SourceItems,
    first_lines: HashMap<String, u64>,
    /// Refusal of the last item, in the words of the readers.
    pub(super) twice: Option<Problem>,
}

impl ItemSink for DistinctItems {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        match self.first_lines.entry(id) {
            Entry::Vacant(entry) => {
                let id = entry.key().clone();
                entry.insert(line);
                self.source.push(line, id, codes, attributes)
            }
            Entry::Occupied(entry) => {
                let (id, first_line) = (entry.key().clone(), *entry.get());
                let refusal = BuildError::of_item(line, id.as_str(), "appears twice");
                self.twice = Some(Problem::at(line, Kind::DuplicateId { id, first_line }));
                Err(refusal)
            }
        }
    }
}
