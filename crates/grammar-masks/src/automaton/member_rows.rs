//! Memo of rows: tokens that begin with members, by the places where these begin.
//!
//! Rows depend on the set and on the places alone, whatever stacks led there, so a binding keeps
//! them for all its texts.

use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;
use palmette_core::{Binding, Interrupted, MemberId, VocabularyTrie};

use super::member_entry::MemberEntry;
use crate::Budget;

/// Rows of a binding take at most this much memory; then they begin anew.
const MAX_BYTES: usize = 4 << 20;

/// Rows of one binding, by entries. Threads share them.
#[derive(Debug, Default)]
pub struct MemberRows {
    rows: RwLock<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    /// Rows by the address of the entry, which is kept alive beside its row.
    known: HashMap<usize, (Arc<MemberEntry>, Arc<MemberRow>)>,
    bytes: usize,
}

/// Row of an entry: what tokens do with the members that begin there.
#[derive(Debug)]
pub(super) struct MemberRow {
    /// Words of the tokens that a member consumes to their end, each with its place, ascending.
    words: Box<[(u32, u32)]>,
    /// Nodes of the vocabulary's trie where a member has ended with more of tokens to come.
    pub(super) ends: Box<[(u32, MemberId)]>,
}

impl MemberRow {
    fn new(
        entry: &MemberEntry,
        binding: &Binding,
        trie: &VocabularyTrie,
        num_words: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Self, Interrupted> {
        let (mut words, mut ends) = (vec![0; num_words], Vec::new());
        let set = binding.set(entry.slot);
        if let Some(start) = set.start() {
            for &node in &entry.nodes {
                set.effect(&start, trie, node, &mut words, &mut ends, budget)?;
            }
        }
        ends.sort_unstable();
        ends.dedup_by_key(|(node, _)| *node);
        let words = (0..).zip(words).filter(|(_, word)| *word != 0).collect();
        Ok(Self { words, ends: ends.into() })
    }

    /// Adds its tokens to a mask.
    pub(super) fn insert(&self, mask: &mut [u32]) {
        self.words.iter().for_each(|&(at, word)| mask[at as usize] |= word);
    }

    fn bytes(&self) -> usize {
        size_of::<(usize, Self)>() * 2 + size_of_val(&*self.words) + size_of_val(&*self.ends)
    }
}

impl MemberRows {
    /// About how much memory they take.
    pub fn bytes(&self) -> usize {
        self.rows.read().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// The row of an entry under the binding that these are of.
    pub(super) fn row(
        &self,
        entry: &Arc<MemberEntry>,
        binding: &Binding,
        (trie, num_words): (&VocabularyTrie, usize),
        budget: &mut Budget<'_>,
    ) -> Result<Arc<MemberRow>, Interrupted> {
        let address = Arc::as_ptr(entry).addr();
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = rows.known.get(&address) {
            return Ok(Arc::clone(known));
        }
        drop(rows);
        let row = Arc::new(MemberRow::new(entry, binding, trie, num_words, budget)?);
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        if rows.bytes > MAX_BYTES {
            *rows = Rows::default();
        }
        rows.bytes += row.bytes();
        rows.known.insert(address, (Arc::clone(entry), Arc::clone(&row)));
        Ok(row)
    }
}
