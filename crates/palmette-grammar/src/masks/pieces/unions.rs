//! The tokens that stay within any of several pieces.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::{PieceId, Pieces};
use crate::masks::mask_row::MaskRow;

/// By pieces, ascending, the tokens that stay within any of them: a row, where they have been asked for more than once.
///
/// PERF: wherever any value may begin, the same strings, numbers and brackets may, after the same blanks: thousands of tokens, most of them
/// of several of these.
#[derive(Debug, Default)]
pub(super) struct Unions(Mutex<HashMap<Box<[PieceId]>, Asked>>);

/// A row once it was asked for again.
type Asked = Option<Arc<MaskRow>>;

impl Pieces {
    /// The tokens that stay within any of some pieces, of which what tokens do to them is known; `None` where that is asked for the first
    /// time.
    pub(super) fn union(&self, pieces: &[PieceId], num_words: usize) -> Option<Arc<MaskRow>> {
        let mut known = self.unions.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get_mut(pieces) {
            Some(Some(row)) => Some(Arc::clone(row)),
            Some(none) => {
                let mut words = vec![0; num_words];
                let analyses = pieces.iter().filter_map(|&piece| self.piece(piece).analysis.get());
                analyses.for_each(|analysis| analysis.stay.insert_into(&mut words));
                let row = Arc::new(MaskRow::new(words.into()));
                self.add_bytes(row.memory_bytes());
                *none = Some(Arc::clone(&row));
                Some(row)
            }
            None => {
                self.add_bytes(size_of_val(pieces) + size_of::<(Box<[PieceId]>, Asked)>());
                known.insert(pieces.into(), None);
                None
            }
        }
    }
}
