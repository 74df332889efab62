//! Mask rows over a window of the vocabulary.
//!
//! A prefix of a semantic ID is followed by a code of one level: some thousand tokens in a row of a
//! vocabulary of hundreds of thousands. Rows of a step are as wide as those, so that clearing,
//! filling and sending them costs what the level costs and not what the vocabulary does: 256 rows
//! of 176,512 tokens are 5.6 MB, over a level of 8,192 codes 260 KB.
//!
//! Layout: row after row of `u32` words, as in [`mask`]; bit 0 of each is the
//! [first token](MaskWindow::first_token). A window begins and ends at whole words of the
//! vocabulary's rows, so that its words are theirs. Tokens outside of it are not allowed.

use std::ops::Range;

use crate::{TokenId, mask};

/// Mask rows over a window of a vocabulary, in a buffer that is made once and reused.
#[derive(Clone, Debug, Default)]
pub struct MaskWindow {
    /// Words of the vocabulary's rows that the window has.
    columns: Range<usize>,
    num_rows: usize,
    /// Buffer as large as was ever needed; `[num_rows, columns.len()]` of it mean something.
    words: Vec<u32>,
    /// Rows that there is room for over every window that was had.
    most_rows: usize,
}

impl MaskWindow {
    /// Without rows yet; a window that is had once has room for this many at its next use.
    pub fn with_rows(most_rows: usize) -> Self {
        Self { most_rows, ..Self::default() }
    }

    /// The words of the vocabulary's rows that hold `tokens`.
    pub fn columns_of(tokens: Range<usize>) -> Range<usize> {
        let first = tokens.start / mask::WORD_TOKENS;
        first..tokens.end.div_ceil(mask::WORD_TOKENS).max(first)
    }

    /// Makes it rows over the words that hold `tokens`. What they say means nothing until all are
    /// written.
    pub fn reset(&mut self, tokens: Range<usize>, num_rows: usize) {
        self.columns = Self::columns_of(tokens);
        self.num_rows = num_rows;
        let num_words = num_rows.max(self.most_rows) * self.columns.len();
        if self.words.len() < num_words {
            self.words.resize(num_words, 0);
        }
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Words of the vocabulary's rows that the window has.
    pub fn columns(&self) -> Range<usize> {
        self.columns.clone()
    }

    /// The token of each row's first bit.
    pub fn first_token(&self) -> u32 {
        (self.columns.start * mask::WORD_TOKENS) as u32
    }

    /// Words of all rows. Shape: `[num_rows, columns]`.
    pub fn words(&self) -> &[u32] {
        &self.words[..self.num_rows * self.columns.len()]
    }

    /// Words of all rows, to be written over.
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words[..self.num_rows * self.columns.len()]
    }

    /// One row's words.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.words()[row * self.columns.len()..][..self.columns.len()]
    }

    /// The allowed tokens of a row, ascending.
    pub fn allowed(&self, row: usize) -> impl Iterator<Item = TokenId> + '_ {
        let first = self.first_token();
        mask::iter(self.row(row)).map(move |token| TokenId(first + token.0))
    }

    /// Copies row `from` over row `to`.
    pub fn move_row(&mut self, from: usize, to: usize) {
        let width = self.columns.len();
        self.words_mut().copy_within(from * width..(from + 1) * width, to * width);
    }

    /// Lets go of all rows from `num_rows` on.
    pub fn truncate(&mut self, num_rows: usize) {
        self.num_rows = self.num_rows.min(num_rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_whole_words_of_the_vocabularys_rows() {
        let mut window = MaskWindow::default();
        for (tokens, columns) in
            [(0..40, 0..2), (33..64, 1..2), (31..33, 0..2), (64..64, 2..2), (70..70, 2..3)]
        {
            window.reset(tokens, 2);
            assert_eq!(window.columns(), columns);
            assert_eq!(window.words().len(), 2 * columns.len());
        }
    }

    #[test]
    fn rows_name_the_vocabularys_tokens() {
        let mut window = MaskWindow::default();
        window.reset(0..900, 3);
        window.words_mut().fill(u32::MAX);
        window.reset(70..130, 3);
        window.words_mut().fill(0);
        window.words_mut()[3 + 1] = 0b101;
        assert!(window.allowed(1).eq([TokenId(96), TokenId(98)]));
        assert_eq!(window.allowed(0).count() + window.allowed(2).count(), 0);
        window.move_row(1, 0);
        window.truncate(1);
        assert!(window.allowed(0).eq([TokenId(96), TokenId(98)]));
        assert_eq!((window.num_rows(), window.words().len()), (1, 3));
    }
}
