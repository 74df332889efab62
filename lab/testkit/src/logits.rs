//! Logits without a model: a pure function of the prefix.

use palmette_core::TokenId;
use palmette_decode::{DecodeError, LogitsSource};

/// Logits that depend on nothing but a seed and the tokens so far.
#[derive(Clone, Copy, Debug)]
pub struct TableLogits {
    /// Chooses the table.
    pub seed: u64,
    /// V: logits per row.
    pub num_tokens: usize,
    /// Number of distinct values, evenly spaced in ±4; few values make many ties.
    pub grades: u32,
}

impl TableLogits {
    /// The row after `prefix`. Shape: `[V]`.
    pub fn row(&self, prefix: &[TokenId]) -> Vec<f32> {
        let hash = prefix.iter().fold(mix(self.seed), |h, t| mix(h ^ mix(u64::from(t.0) + 1)));
        let value = |token: u64| {
            let grade = mix(hash ^ mix(token + (1 << 40))) % u64::from(self.grades);
            grade as f32 * 8.0 / self.grades as f32 - 4.0
        };
        (0..self.num_tokens as u64).map(value).collect()
    }

    /// The table as a source for a search.
    pub fn source(self) -> TableSource {
        TableSource { table: self, sequences: Vec::new(), rows: Vec::new(), calls: 0 }
    }
}

/// A [`TableLogits`] that follows the beams of a search.
#[derive(Debug)]
pub struct TableSource {
    table: TableLogits,
    sequences: Vec<Vec<TokenId>>,
    rows: Vec<f32>,
    /// Number of calls for logits: decode passes and the prompt's.
    pub calls: usize,
}

impl LogitsSource for TableSource {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        self.table.num_tokens
    }

    fn prompt_logits(&mut self) -> Result<&[f32], DecodeError> {
        self.calls += 1;
        self.sequences = vec![Vec::new()];
        self.rows = self.table.row(&[]);
        Ok(&self.rows)
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], DecodeError> {
        self.calls += 1;
        self.sequences = parents
            .iter()
            .zip(tokens)
            .map(|(&parent, &token)| [&self.sequences[parent as usize][..], &[token]].concat())
            .collect();
        self.rows = self.sequences.iter().flat_map(|s| self.table.row(s)).collect();
        Ok(&self.rows)
    }

    fn logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.rows)
    }
}

/// A 64-bit finaliser: every input bit moves every output bit.
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
