//! The look-up of token embeddings: row `token` of `[V, D]`.

/// Copies each token's row to `y`: `[N, D]`.
///
/// # Panics
/// When a token is not below V.
pub(crate) fn forward(y: &mut [f32], tokens: &[u32], table: &[f32], width: usize) {
    for (y, &token) in y.chunks_mut(width).zip(tokens) {
        y.copy_from_slice(&table[token as usize * width..][..width]);
    }
}

/// Adds each row of `d_y` to its token's row of `d_table`.
pub(crate) fn backward(d_table: &mut [f32], d_y: &[f32], tokens: &[u32], width: usize) {
    for (d_y, &token) in d_y.chunks(width).zip(tokens) {
        let d_row = &mut d_table[token as usize * width..][..width];
        d_row.iter_mut().zip(d_y).for_each(|(out, d)| *out += d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_token_collects_all_its_gradients() {
        let table = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let tokens = [2, 0, 2];
        let mut y = [0.0; 6];
        forward(&mut y, &tokens, &table, 2);
        assert_eq!(y, [5.0, 6.0, 1.0, 2.0, 5.0, 6.0]);
        let mut d_table = [0.5; 6];
        backward(&mut d_table, &[1.0, 2.0, 10.0, 20.0, 100.0, 200.0], &tokens, 2);
        assert_eq!(d_table, [10.5, 20.5, 0.5, 0.5, 101.5, 202.5]);
    }
}
