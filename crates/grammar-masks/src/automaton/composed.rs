//! Memo of masks by their suffix sets, and of the rows that they have in common.

use std::sync::Arc;

use hashbrown::HashMap;

use super::PreparedVocabulary;
use super::member_entry::MemberEntry;
use crate::Budget;
use crate::mask_pool::{MaskPool, PoolId, RowId};
use crate::residuals::{Lexemes, MaskFailure, MemberBegin, ResidualId, SuffixSetId};
use crate::tables::table_bytes;

/// Memo of masks by their suffix sets, with the grammar's lexemes as numbers into the residuals
/// that grammars share.
///
/// PERF: most new places have a mask that another one has, made of the same: gathering its tokens
/// to find that out took as long as finding its suffix set.
#[derive(Debug)]
pub(super) struct ComposedMasks {
    pub(super) lexemes: Lexemes,
    masks: HashMap<SuffixSetId, PoolId>,
    /// Rows by residuals, ascending: the tokens consumed whole by them, where there are any.
    consumed: HashMap<Box<[ResidualId]>, Option<RowId>>,
    /// Entries by beginnings of members.
    pub(super) entries: HashMap<MemberBegin, Arc<MemberEntry>>,
    bytes: usize,
}

impl ComposedMasks {
    /// An empty memo.
    pub(super) fn new(vocabulary: &PreparedVocabulary) -> Self {
        let lexemes = Lexemes::new(vocabulary.residuals());
        let (masks, consumed, entries) = Default::default();
        Self { lexemes, masks, consumed, entries, bytes: 0 }
    }

    /// About how much memory it takes, without the residuals.
    pub(super) fn memory_bytes(&self) -> usize {
        self.lexemes.bytes()
            + table_bytes::<(SuffixSetId, PoolId)>(self.masks.len())
            + table_bytes::<(Box<[ResidualId]>, RowId)>(self.consumed.len())
            + table_bytes::<(MemberBegin, MemberEntry)>(self.entries.len())
            + self.bytes
    }

    /// The mask of a suffix set, if it is known.
    pub(super) fn get(&self, suffix_set: SuffixSetId) -> Option<PoolId> {
        self.masks.get(&suffix_set).copied()
    }

    /// Remembers a mask.
    pub(super) fn insert(&mut self, suffix_set: SuffixSetId, mask: PoolId) {
        self.masks.insert(suffix_set, mask);
    }

    /// Remembers the entry of members that begin at a place.
    pub(super) fn insert_entry(&mut self, begin: MemberBegin, entry: MemberEntry) {
        self.bytes += size_of_val(&*entry.nodes);
        self.entries.insert(begin, Arc::new(entry));
    }

    /// The tokens consumed whole by some residuals, ascending; `None` where there are none.
    pub(super) fn consumed(
        &mut self,
        masks: &mut MaskPool,
        words: &mut Vec<u32>,
        vocabulary: &PreparedVocabulary,
        residuals: &[ResidualId],
        budget: &mut Budget<'_>,
    ) -> Result<Option<RowId>, MaskFailure> {
        if residuals.is_empty() {
            return Ok(None);
        }
        if let Some(&known) = self.consumed.get(residuals) {
            return Ok(known);
        }
        let (trie, num_words) = (vocabulary.trie(), vocabulary.num_words());
        let mut rows = Vec::new();
        for &residual in residuals {
            let row = self.lexemes.residuals().consumed(trie, num_words, residual, budget)?;
            rows.extend((!row.is_empty()).then_some(row));
        }
        let row = match *rows {
            [] => None,
            [only] => Some(masks.add_row(only.clone())),
            ref several => {
                words.clear();
                words.resize(num_words, 0);
                several.iter().for_each(|row| row.insert(words));
                let union = masks.encode(words);
                Some(masks.add_row(union))
            }
        };
        self.bytes += size_of_val(residuals);
        self.consumed.insert(residuals.into(), row);
        Ok(row)
    }
}
