//! Distinct texts, numbered as they come.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::spans::SpansBuilder;

/// Distinct texts in the order in which they first came.
///
/// Memory: the texts, 4 bytes for where each begins, and a hash table of 5.7 to 11.4 bytes a text,
/// which finds texts by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interner {
    text: Vec<u8>,
    spans: SpansBuilder,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// The number of a text, which is new or was there.
    pub(crate) fn intern(&mut self, text: &[u8]) -> u32 {
        let Self { text: all, spans, table, hasher } = self;
        let hash = hasher.hash_one(text);
        if let Some(&number) = table.find(hash, |&number| &all[spans.get(number as usize)] == text)
        {
            return number;
        }
        let number = u32::try_from(spans.len()).expect("no more texts than rows");
        all.extend_from_slice(text);
        spans.push(text.len());
        table.insert_unique(hash, number, |&number| {
            hasher.hash_one(&all[spans.get(number as usize)])
        });
        number
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        &self.text[self.spans.get(number)]
    }

    /// Adds a text that is known to be new; it is not found afterwards.
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.spans.push(text.len());
    }

    /// The texts without what finds them.
    pub(crate) fn without_table(self) -> Self {
        Self { table: HashTable::new(), ..self }
    }
}
