//! What is known of each item besides its semantic ID, in rank order.

use std::ops::Range;

use serde_json::{Map, Value};

/// Texts one after another, addressed by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextColumn {
    text: String,
    /// Where each text begins, and in the end the length; one more entry than texts.
    starts: Vec<u64>,
}

impl TextColumn {
    pub(crate) fn new<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Self {
        let (mut text, mut starts) = (String::new(), vec![0]);
        for entry in texts {
            text.push_str(entry.as_ref());
            starts.push(text.len() as u64);
        }
        Self { text, starts }
    }

    /// Puts a column together from its parts; `None` unless the starts ascend from 0 to the text's
    /// length and fall between characters.
    pub(crate) fn from_parts(text: String, starts: Vec<u64>) -> Option<Self> {
        let sound = starts.first() == Some(&0)
            && starts.last() == Some(&(text.len() as u64))
            && starts.is_sorted()
            && starts.iter().all(|&start| text.is_char_boundary(start as usize));
        sound.then_some(Self { text, starts })
    }

    pub(crate) fn parts(&self) -> (&str, &[u64]) {
        (&self.text, &self.starts)
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn get(&self, index: u32) -> &str {
        let Range { start, end } = self.starts[index as usize]..self.starts[index as usize + 1];
        &self.text[start as usize..end as usize]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.starts)
    }
}

/// Ids and attributes of all items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemTable {
    ids: TextColumn,
    /// A JSON object each.
    attributes: TextColumn,
    /// Ranks in order of their ids, for look-ups.
    ranks_by_id: Vec<u32>,
}

impl ItemTable {
    /// A table from its columns. `Err` names an id that stands twice.
    pub(crate) fn new(ids: TextColumn, attributes: TextColumn) -> Result<Self, String> {
        debug_assert_eq!(ids.len(), attributes.len());
        let mut ranks_by_id: Vec<u32> = (0..ids.len() as u32).collect();
        ranks_by_id.sort_unstable_by(|&a, &b| ids.get(a).cmp(ids.get(b)));
        let twice = ranks_by_id.windows(2).find(|pair| ids.get(pair[0]) == ids.get(pair[1]));
        match twice {
            Some(pair) => Err(ids.get(pair[0]).to_owned()),
            None => Ok(Self { ids, attributes, ranks_by_id }),
        }
    }

    pub(crate) fn id(&self, rank: u32) -> &str {
        self.ids.get(rank)
    }

    pub(crate) fn attributes(&self, rank: u32) -> Map<String, Value> {
        // Every constructor got text that had been parsed or written as an object.
        serde_json::from_str(self.attributes.get(rank)).unwrap_or_default()
    }

    pub(crate) fn rank_of(&self, id: &str) -> Option<u32> {
        let at = self.ranks_by_id.binary_search_by(|&rank| self.ids.get(rank).cmp(id)).ok()?;
        Some(self.ranks_by_id[at])
    }

    pub(crate) fn columns(&self) -> (&TextColumn, &TextColumn) {
        (&self.ids, &self.attributes)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ids.bytes() + self.attributes.bytes() + size_of_val(&*self.ranks_by_id)
    }
}
