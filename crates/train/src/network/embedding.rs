//! The look-up of token embeddings: row `token` of `[V, D]`. Numbers from V on are the placeholders
//! of a draft head, rows of a table of their own, `[L, D]`.

use std::ops::Range;

/// The places of both tables in the flat arrays.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    pub(crate) tokens: Range<usize>,
    pub(crate) placeholders: Option<Range<usize>>,
}

impl Tables {
    /// The place of a token's row.
    fn row(&self, token: u32, width: usize) -> Range<usize> {
        let (token, vocab) = (token as usize, self.tokens.len() / width);
        let (table, row) = match (token.checked_sub(vocab), &self.placeholders) {
            (Some(row), Some(placeholders)) => (placeholders, row),
            _ => (&self.tokens, token),
        };
        let start = table.start + row * width;
        assert!(start + width <= table.end, "token {token} is not in the vocabulary of {vocab}");
        start..start + width
    }

    /// Copies each token's row to `y`: `[N, D]`.
    ///
    /// # Panics
    /// When a token is neither below V nor a placeholder's.
    pub(crate) fn forward(&self, y: &mut [f32], tokens: &[u32], weights: &[f32], width: usize) {
        for (y, &token) in y.chunks_mut(width).zip(tokens) {
            y.copy_from_slice(&weights[self.row(token, width)]);
        }
    }

    /// Adds each row of `d_y` to its token's row of `gradient`.
    pub(crate) fn backward(&self, gradient: &mut [f32], d_y: &[f32], tokens: &[u32], width: usize) {
        for (d_y, &token) in d_y.chunks(width).zip(tokens) {
            let d_row = &mut gradient[self.row(token, width)];
            d_row.iter_mut().zip(d_y).for_each(|(out, d)| *out += d);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_token_collects_all_its_gradients() {
        // Two tokens, a value of something else, one placeholder.
        let tables = Tables { tokens: 0..4, placeholders: Some(5..7) };
        let weights = [1.0, 2.0, 3.0, 4.0, 9.0, 5.0, 6.0];
        let tokens = [2, 0, 2];
        let mut y = [0.0; 6];
        tables.forward(&mut y, &tokens, &weights, 2);
        assert_eq!(y, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
        let mut gradient = [0.5; 7];
        tables.backward(&mut gradient, &[1.0, 2.0, 10.0, 20.0, 100.0, 200.0], &tokens, 2);
        assert_eq!(gradient, [10.5, 20.5, 0.5, 0.5, 0.5, 101.5, 202.5]);
    }

    #[test]
    #[should_panic(expected = "token 3 is not in the vocabulary of 2")]
    fn a_number_past_both_tables_is_refused() {
        let tables = Tables { tokens: 0..4, placeholders: Some(5..7) };
        tables.forward(&mut [0.0; 2], &[3], &[0.0; 9], 2);
    }
}
