//! The source of logits that a program brings to a search or to generation.

use palmette_core::TokenId;

/// Source of logits after a prompt, such as a model with its caches.
///
/// Rows are beams. The caller extends any earlier beam by one token, any number of times (beams
/// fork and die at every step); the source keeps what it needs to follow. A `&mut` reference to a
/// source is one.
pub trait LogitsSource {
    /// Failure of computing logits.
    type Error;

    /// V: logits per row.
    fn num_tokens(&self) -> usize;

    /// The logits after the prompt. Shape: `[V]`. May be asked for again: beams then begin anew,
    /// and a source that has kept what the prompt gave need not read it twice.
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

    /// The logits that the latest call gave, once more; before the first they mean nothing.
    ///
    /// # Errors
    /// When they cannot be had any more.
    fn logits(&mut self) -> Result<&[f32], Self::Error>;

    /// The logits after several more tokens of a single beam, row 0 of the previous call: a sampled
    /// token with the forced ones after it. Shape: `[V]`.
    ///
    /// A model reads them in one pass; this default takes one for each.
    ///
    /// # Errors
    /// As [`next_logits`](Self::next_logits).
    ///
    /// # Panics
    /// When there are no tokens.
    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], Self::Error> {
        append_one_by_one(self, tokens)
    }
}

/// [`append`](LogitsSource::append) by a pass for each token.
///
/// # Errors
/// As [`next_logits`](LogitsSource::next_logits).
///
/// # Panics
/// When there are no tokens.
pub fn append_one_by_one<'s, L: LogitsSource + ?Sized>(
    source: &'s mut L,
    tokens: &[TokenId],
) -> Result<&'s [f32], L::Error> {
    let (&last, before) = tokens.split_last().expect("at least one token");
    for &token in before {
        source.next_logits(&[0], &[token])?;
    }
    source.next_logits(&[0], &[last])
}

impl<L: LogitsSource + ?Sized> LogitsSource for &mut L {
    type Error = L::Error;

    fn num_tokens(&self) -> usize {
        (**self).num_tokens()
    }

    fn prompt_logits(&mut self) -> Result<&[f32], Self::Error> {
        (**self).prompt_logits()
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], Self::Error> {
        (**self).next_logits(parents, tokens)
    }

    fn logits(&mut self) -> Result<&[f32], Self::Error> {
        (**self).logits()
    }

    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], Self::Error> {
        (**self).append(tokens)
    }
}

impl<L: LogitsSource + ?Sized> LogitsSource for Box<L> {
    type Error = L::Error;

    fn num_tokens(&self) -> usize {
        (**self).num_tokens()
    }

    fn prompt_logits(&mut self) -> Result<&[f32], Self::Error> {
        (**self).prompt_logits()
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], Self::Error> {
        (**self).next_logits(parents, tokens)
    }

    fn logits(&mut self) -> Result<&[f32], Self::Error> {
        (**self).logits()
    }

    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], Self::Error> {
        (**self).append(tokens)
    }
}
