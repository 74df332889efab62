//! Lists of words.

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::spans::{Spans, SpansMeta};
use super::texts::{Texts, TextsMeta};

/// Distinct lists of words, in the order of their words' numbers. 4 bytes a list and 4 a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lists {
    pub(super) words: Texts,
    /// The words of all lists, by number.
    pub(super) members: Array<u32>,
    pub(super) spans: Spans,
}

impl Lists {
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// All words, in ascending order.
    pub(crate) fn words(&self) -> &Texts {
        &self.words
    }

    /// The words of a list.
    pub(crate) fn get(&self, index: usize) -> impl Iterator<Item = &str> {
        self.members(index).iter().map(|&word| self.words.get(word as usize))
    }

    /// The numbers of the words of a list.
    pub(crate) fn members(&self, index: usize) -> &[u32] {
        self.members.as_slice().get(self.spans.get(index)).unwrap_or_default()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.bytes() + self.members.as_bytes().len() + self.spans.bytes()
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> ListsMeta {
        let (words, members) = (self.words.save(out), out.add_array(&self.members));
        let num_members = self.members.len() as u64;
        ListsMeta { words, num_members, members, spans: self.spans.save(out) }
    }

    pub(crate) fn load(meta: &ListsMeta, sections: &SectionsIn) -> Result<Self, String> {
        let words = Texts::load(&meta.words, sections)?;
        if words.len() > u32::MAX as usize {
            return Err(format!("{} words, more than there are numbers for", words.len()));
        }
        Ok(Self {
            words,
            members: sections.array(meta.members, meta.num_members)?,
            spans: Spans::load(&meta.spans, sections)?,
        })
    }

    /// Fails unless the lists strictly ascend and their words exist.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.words.check()?;
        self.spans.check(self.members.len())?;
        if self.members.iter().any(|&word| word as usize >= self.words.len()) {
            return Err("a list of words that there are not".to_owned());
        }
        if !(1..self.len()).all(|i| self.members(i - 1) < self.members(i)) {
            return Err("lists that do not ascend".to_owned());
        }
        Ok(())
    }
}

/// Serialised place of [`Lists`] in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ListsMeta {
    words: TextsMeta,
    num_members: u64,
    members: u32,
    spans: SpansMeta,
}
