//! Absence of a constraint: mask rows that allow every code (STATIC §5.2, "unconstrained").
//!
//! Writing the rows is all there is to it: the floor under the other engines' steps.

use super::{Engine, allow_all, try_all_codes};
use crate::generate::Shape;

/// Every code of the vocabulary at every level; rows are not kept. Not exact.
#[derive(Clone, Debug)]
pub struct Unconstrained(Shape);

impl Engine for Unconstrained {
    const NAME: &'static str = "unconstrained";
    const EXACT: bool = false;
    type Builder = Self;
    /// Number of codes so far.
    type State = usize;

    fn peak_bytes(_shape: &Shape) -> u64 {
        0
    }

    fn builder(shape: &Shape) -> Self {
        Self(*shape)
    }

    fn push(_builder: &mut Self, _codes: &[u32]) {}

    fn build(builder: Self) -> Result<Self, String> {
        Ok(builder)
    }

    fn bytes(&self) -> usize {
        0
    }

    fn start(&self) -> usize {
        0
    }

    fn advance(&self, level: &usize, code: u32) -> Option<usize> {
        (*level < self.0.levels && code < self.0.vocab).then_some(level + 1)
    }

    fn contains(&self, codes: &[u32]) -> bool {
        let end = codes.iter().try_fold(0, |level, &code| self.advance(&level, code));
        end == Some(self.0.levels)
    }

    fn fill_masks(&self, states: &[usize], words_per_row: usize, out: &mut [u32]) {
        for (_, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            allow_all(row, self.0.vocab);
        }
    }

    fn successors(&self, states: &[usize], visit: impl FnMut(u32, u32, usize)) {
        try_all_codes(self, self.0.vocab, states, visit);
    }
}
