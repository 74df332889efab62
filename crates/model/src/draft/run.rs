//! A search's rows through the head, level by level.

use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::exp;
use pulp::{Arch, Simd, WithSimd};

use super::head::{DraftHead, Move};
use crate::blocks::{MAX_BLOCK_ROWS, block_rows, for_each_block, worthwhile_threads};
use crate::kernels::{RowsMut, RowsRef, multiply};
use crate::session::{Session, SessionError};

/// The states of a search's rows, and the logits of a level: buffers made once and reused.
///
/// Rows are beams, as a [`LogitsSource`](palmette_decode::LogitsSource) has them. A row's bits
/// depend neither on the rows beside it nor on the threads. Memory: `4 B (3 D + codes)` bytes, B
/// rows, and the states of a prompt.
#[derive(Debug)]
pub struct DraftRun {
    head: Arc<DraftHead>,
    max_beams: usize,
    threads: usize,
    /// h₀ and, where the form has placeholders, h₁ … h_L: `[1 + L, D]`
    hidden: Vec<f32>,
    /// s of each row: `[B, D]`
    states: Vec<f32>,
    /// States of the level before.
    earlier: Vec<f32>,
    /// x of `W x`: `[B, D]`
    inputs: Vec<f32>,
    /// `[B, codes]`
    logits: Vec<f32>,
    /// The level of the latest logits.
    level: usize,
    rows: usize,
}

impl DraftRun {
    /// Buffers for searches of at most `max_beams` rows, on at most `threads` rayon workers.
    pub fn new(head: &Arc<DraftHead>, max_beams: usize, threads: usize) -> Self {
        let (d, rows) = (head.width, max_beams.max(1));
        let codes = head.shape.levels.iter().map(|&(_, codes)| codes).max().unwrap_or(0);
        Self {
            head: Arc::clone(head),
            max_beams: rows,
            threads: threads.max(1),
            hidden: vec![0.0; (1 + head.num_placeholders()) * d],
            states: vec![0.0; rows * d],
            earlier: vec![0.0; rows * d],
            inputs: vec![0.0; rows * d],
            logits: vec![0.0; rows * codes as usize],
            level: 0,
            rows: 0,
        }
    }

    /// The logits of the first level's codes, `[codes]`, after the session's prompt: its one pass.
    ///
    /// # Errors
    /// As [`Session::draft_states`].
    ///
    /// # Panics
    /// When the head was made for a model of another width.
    pub fn begin(&mut self, session: &mut Session) -> Result<&[f32], SessionError> {
        session.draft_states(&self.head, &mut self.hidden)?;
        let d = self.head.width;
        self.states[..d].copy_from_slice(&self.hidden[..d]);
        (self.level, self.rows) = (0, 1);
        Ok(self.compute(&[], &[]))
    }

    /// The logits of the next level's codes, `[rows, codes]`: row `b` continues row `parents[b]` of
    /// the call before with `tokens[b]`.
    ///
    /// # Panics
    /// When there are more rows than planned for, no further level, a parent that is no row, or a
    /// token that is no code of the level.
    pub fn advance(&mut self, parents: &[u32], tokens: &[TokenId]) -> &[f32] {
        assert_eq!(parents.len(), tokens.len(), "one parent a row");
        assert!(tokens.len() <= self.max_beams, "{} rows of {}", tokens.len(), self.max_beams);
        assert!(self.level + 1 < self.head.heads.len(), "there are no more levels");
        assert!(parents.iter().all(|&parent| (parent as usize) < self.rows), "a parent is a row");
        std::mem::swap(&mut self.states, &mut self.earlier);
        self.level += 1;
        self.rows = tokens.len();
        self.compute(parents, tokens)
    }

    /// The latest logits: what [`begin`](Self::begin) or [`advance`](Self::advance) gave.
    pub fn logits(&self) -> &[f32] {
        let codes = self.head.shape.levels[self.level].1 as usize;
        &self.logits[..self.rows * codes]
    }

    fn compute(&mut self, parents: &[u32], tokens: &[TokenId]) -> &[f32] {
        let (head, level, rows, d) = (&*self.head, self.level, self.rows, self.head.width);
        let codes = head.shape.levels[level].1 as usize;
        let operations = (head.operations_of_row(level) as usize).saturating_mul(rows);
        let threads = worthwhile_threads(operations, self.threads);
        let block = block_rows(rows.max(1), threads).min(MAX_BLOCK_ROWS);
        let placeholder =
            head.form.has_placeholders().then(|| &self.hidden[(level + 1) * d..][..d]);
        let from = level.checked_sub(1).map(|before| (before, &self.earlier[..]));
        let (prompt, form) = (&self.hidden[..d], head.form);
        let blocks = self.states[..rows * d]
            .chunks_mut(block * d)
            .zip(self.inputs[..rows * d].chunks_mut(block * d))
            .zip(self.logits[..rows * codes].chunks_mut(block * codes))
            .enumerate();
        for_each_block(
            &mut vec![(); threads],
            blocks,
            |(), (place, ((states, inputs), logits))| {
                let count = states.len() / d;
                if form.has_state() {
                    if let Some((before, earlier)) = from {
                        let at = place * block..place * block + count;
                        let chosen = (&parents[at.clone()], &tokens[at]);
                        let first_token = head.shape.levels[before].0;
                        move_states(
                            &head.moves[before],
                            first_token,
                            chosen,
                            earlier,
                            states,
                            inputs,
                        );
                    }
                    inputs.copy_from_slice(states);
                    if let Some(placeholder) = placeholder {
                        for row in inputs.chunks_exact_mut(d) {
                            row.iter_mut().zip(placeholder).for_each(|(x, h)| *x += h);
                        }
                    }
                } else {
                    let same = placeholder.unwrap_or(prompt);
                    inputs.chunks_exact_mut(d).for_each(|row| row.copy_from_slice(same));
                }
                let x = RowsRef { data: inputs, rows: count, stride: d };
                multiply(RowsMut { data: logits, stride: codes }, x, head.heads[level].view());
            },
        );
        &self.logits[..rows * codes]
    }
}

/// The states of a block of rows after what they chose. `gathered` is scratch of the block's shape.
fn move_states(
    by: &Move,
    first_token: u32,
    (parents, tokens): (&[u32], &[TokenId]),
    earlier: &[f32],
    states: &mut [f32],
    gathered: &mut [f32],
) {
    let d = states.len() / parents.len();
    let before = |parent: u32| &earlier[parent as usize * d..][..d];
    let choice = |token: TokenId| &by.codes[(token.0 - first_token) as usize * d..][..d];
    let Some(matrix) = &by.state else {
        for ((state, &parent), &token) in states.chunks_exact_mut(d).zip(parents).zip(tokens) {
            let parts = before(parent).iter().zip(choice(token));
            state.iter_mut().zip(parts).for_each(|(out, (s, e))| *out = s + e);
        }
        return;
    };
    for (row, &parent) in gathered.chunks_exact_mut(d).zip(parents) {
        row.copy_from_slice(before(parent));
    }
    let x = RowsRef { data: gathered, rows: parents.len(), stride: d };
    multiply(RowsMut { data: states, stride: d }, x, matrix.view());
    for (state, &token) in states.chunks_exact_mut(d).zip(tokens) {
        Arch::new().dispatch(AddAndSquash { state, added: choice(token) });
    }
}

/// `state = tanh(state + added)`
struct AddAndSquash<'a> {
    state: &'a mut [f32],
    added: &'a [f32],
}

impl WithSimd for AddAndSquash<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (out, added) in self.state.iter_mut().zip(self.added) {
            *out = tanh(*out + added);
        }
    }
}

/// `tanh x`, by `1 − 2 / (e^2x + 1)`: exact to 1e-7 of 1, which is what a state is made of.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    // Beyond ±44 e^2x would be 0 or infinite; both give ±1, as they should.
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}
