//! Mask rows that sets share with their changed copies.

use std::sync::Arc;

/// The mask rows of one level, in pieces of 2 to 4 KiB, or a row, that clones share until one
/// changes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedMasks {
    words_per_row: usize,
    /// A piece has two to the power of this many rows: finding one is a shift.
    piece_shift: u32,
    pieces: Vec<Arc<[u32]>>,
}

/// Words of a piece, where rows are not longer than that.
const PIECE_WORDS: usize = 1024;

impl SharedMasks {
    /// Takes a copy of the rows of a level.
    pub(super) fn new(masks: &[u32], words_per_row: usize) -> Self {
        let piece_shift = (PIECE_WORDS / words_per_row.max(1)).max(1).ilog2();
        let piece_words = (words_per_row << piece_shift).max(1);
        let pieces = masks.chunks(piece_words).map(Arc::from).collect();
        Self { words_per_row, piece_shift, pieces }
    }

    /// The row of a prefix; empty where there is none.
    #[inline]
    pub(super) fn row(&self, key: u32) -> &[u32] {
        let (piece, start) = self.place(key);
        let row =
            self.pieces.get(piece).and_then(|piece| piece.get(start..start + self.words_per_row));
        row.unwrap_or_default()
    }

    /// Takes a code out of the row of a prefix. Cost: a copy of the piece where it is shared.
    pub(super) fn clear(&mut self, key: u32, code: u32) {
        let (piece, start) = self.place(key);
        let Some(piece) = self.pieces.get_mut(piece) else { return };
        if let Some(word) = Arc::make_mut(piece).get_mut(start + code as usize / 32) {
            *word &= !(1 << (code % 32));
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| size_of_val(&**piece)).sum::<usize>()
            + size_of_val(&*self.pieces)
    }

    #[inline]
    fn place(&self, key: u32) -> (usize, usize) {
        let key = key as usize;
        let row = key & ((1 << self.piece_shift) - 1);
        (key >> self.piece_shift, row * self.words_per_row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_plain_rows_and_leaves_clones_alone(
            words_per_row in prop_oneof![1_usize..5, 300_usize..1500],
            num_rows in 0_usize..700,
            cleared in prop::collection::vec((0_u32..800, 0_u32..50_000), 0..50),
        ) {
            let num_rows = if words_per_row > 5 { num_rows % 8 } else { num_rows };
            let mut rows = vec![u32::MAX; words_per_row * num_rows];
            let original = SharedMasks::new(&rows, words_per_row);
            let mut changed = original.clone();
            for (key, code) in cleared {
                let code = code % (words_per_row as u32 * 32);
                changed.clear(key, code);
                if (key as usize) < num_rows {
                    rows[key as usize * words_per_row + code as usize / 32] &= !(1 << (code % 32));
                }
            }
            for key in 0..num_rows + 3 {
                let row = rows.get(key * words_per_row..(key + 1) * words_per_row);
                prop_assert_eq!(changed.row(key as u32), row.unwrap_or_default());
                let whole = original.row(key as u32);
                prop_assert!(whole.iter().all(|&word| word == u32::MAX));
                prop_assert_eq!(whole.len(), row.map_or(0, <[u32]>::len));
            }
            prop_assert_eq!(&changed, &SharedMasks::new(&rows, words_per_row));
        }
    }
}
