//! What a search asks for logits.

use palmette_core::TokenId;

/// Something that continues a prompt: a model with its caches, or a table in tests.
///
/// Rows are beams. The caller extends any earlier beam by one token, any number of times (beams
/// fork and die at every step); the source keeps what it needs to follow.
pub trait LogitsSource {
    /// What can go wrong while computing logits.
    type Error;

    /// V: logits per row.
    fn num_tokens(&self) -> usize;

    /// The logits after the prompt. Shape: `[V]`.
    ///
    /// # Errors
    /// When they cannot be computed.
    fn prompt_logits(&mut self) -> Result<&[f32], Self::Error>;

    /// The logits after one more token per beam: row `b` continues row `parents[b]` of the previous
    /// call (row 0 is the prompt's) with `tokens[b]`. Shape of the result: `[parents.len(), V]`.
    ///
    /// # Errors
    /// When they cannot be computed, for one that the sequence would become too long.
    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], Self::Error>;
}
