//! STATIC's layout, written plainly (arXiv 2602.22647 §4.2, §4.3, A.1).
//!
//! The first levels are dense: a mask row for every prefix that could be, and a table from every
//! such prefix to its state. Below, each state has a row of (code, next state) pairs, stored next
//! to each other, and its place in the array of row starts: 12 bytes a state in all. We differ in
//! two things: a row's own length is read rather than the level's longest, which a processor
//! without a fixed loop length has no reason to do, and a sparse row becomes bits of a mask rather
//! than scores.

use super::keys::{KeyLayout, SortedKeys};
use super::{Engine, allow};
use crate::generate::Shape;

/// Dense levels, then compressed sparse rows.
///
/// State `s` owns `children[row_start[s]..row_start[s + 1]]`, ascending by code. States are
/// numbered level by level, in the order of their prefixes, from those behind the dense levels on;
/// whole rows are states without children.
#[derive(Clone, Debug)]
pub struct CsrTrie {
    levels: usize,
    vocab: u32,
    words_per_row: usize,
    /// For each dense level, `[vocab ^ level, words_per_row]` words.
    dense_masks: Vec<Vec<u32>>,
    /// The state of each prefix of as many codes as there are dense levels, by its number in base
    /// `vocab`; [`NO_STATE`] where there is none.
    dense_states: Vec<u32>,
    row_start: Vec<u32>,
    /// Code and next state.
    children: Vec<[u32; 2]>,
}

const NO_STATE: u32 = u32::MAX;

/// Limit on entries of the table of dense states: two levels of 8192 codes.
const MAX_DENSE_STATES: u64 = 1 << 26;

/// Dense levels: 2, as the paper has it, where there are so many and their table is not too large.
fn num_dense(layout: &KeyLayout) -> usize {
    let two_fit = u64::from(layout.vocab).pow(2) <= MAX_DENSE_STATES;
    if layout.levels >= 2 && two_fit { 2 } else { 1 }
}

/// A position: within the dense levels the number of the prefix in base `vocab`, below them a
/// state.
#[derive(Clone, Copy, Debug)]
pub struct CsrState {
    level: u32,
    at: u32,
}

impl CsrTrie {
    fn children(&self, state: u32) -> &[[u32; 2]] {
        let start = self.row_start[state as usize] as usize;
        &self.children[start..self.row_start[state as usize + 1] as usize]
    }

    fn dense_row(&self, state: &CsrState) -> &[u32] {
        let first = state.at as usize * self.words_per_row;
        &self.dense_masks[state.level as usize][first..first + self.words_per_row]
    }

    /// The state behind `code`, which the dense row of `state` allows.
    fn next_dense(&self, state: &CsrState, code: u32) -> CsrState {
        let prefix = state.at * self.vocab + code;
        let level = state.level + 1;
        let last = level as usize == self.dense_masks.len();
        CsrState { level, at: if last { self.dense_states[prefix as usize] } else { prefix } }
    }

    fn is_dense(&self, state: &CsrState) -> bool {
        (state.level as usize) < self.dense_masks.len()
    }
}

impl Engine for CsrTrie {
    const NAME: &'static str = "csr_trie";
    const EXACT: bool = true;
    type Builder = SortedKeys;
    type State = CsrState;

    fn obstacle(shape: &Shape) -> Option<String> {
        KeyLayout::obstacle(shape).or_else(|| {
            let states = shape.items as u64 * shape.levels as u64;
            (states >= u64::from(NO_STATE))
                .then(|| format!("up to {states} states; its numbers go to {NO_STATE}"))
        })
    }

    fn peak_bytes(shape: &Shape) -> u64 {
        let layout = KeyLayout::new(shape);
        let dense = u64::from(shape.vocab).pow(num_dense(&layout) as u32);
        let sparse_levels = shape.levels as u64 + 1 - num_dense(&layout) as u64;
        SortedKeys::peak_bytes(shape) + dense * 5 + 12 * sparse_levels * shape.items as u64
    }

    fn builder(shape: &Shape) -> SortedKeys {
        SortedKeys::with_capacity_for(shape)
    }

    fn push(builder: &mut SortedKeys, codes: &[u32]) {
        builder.push(codes);
    }

    fn build(mut builder: SortedKeys) -> Result<Self, String> {
        builder.sort();
        let SortedKeys { layout, keys } = &builder;
        let (levels, num_dense) = (layout.levels, num_dense(layout));

        // How many codes each key shares with the one before says which of its prefixes are new.
        let shared = |at: usize| match at {
            0 => None,
            _ => Some(layout.shared(keys[at - 1], keys[at])),
        };
        let is_new = |at: usize, len: usize| shared(at).is_none_or(|shared| shared < len);
        let mut num_prefixes = vec![0_usize; levels + 1];
        for at in 0..keys.len() {
            let first_new = shared(at).map_or(0, |shared| shared + 1);
            num_prefixes[first_new..].iter_mut().for_each(|count| *count += 1);
        }

        let words_per_row = layout.vocab.div_ceil(32) as usize;
        let prefix_number = |key: u128, len: usize| {
            (0..len).fold(0, |number, level| {
                number * layout.vocab as usize + layout.code(key, level) as usize
            })
        };
        let rows = |level: usize| (layout.vocab as usize).pow(level as u32);
        let mut dense_masks: Vec<Vec<u32>> =
            (0..num_dense).map(|level| vec![0; rows(level) * words_per_row]).collect();
        let mut dense_states = vec![NO_STATE; rows(num_dense)];
        let mut num_states = 0;
        for (at, &key) in keys.iter().enumerate() {
            if is_new(at, num_dense) {
                dense_states[prefix_number(key, num_dense)] = num_states;
                num_states += 1;
                for (level, masks) in dense_masks.iter_mut().enumerate() {
                    let row = &mut masks[prefix_number(key, level) * words_per_row..];
                    allow(row, layout.code(key, level));
                }
            }
        }

        let num_sparse: usize = num_prefixes[num_dense..].iter().sum();
        let num_children: usize = num_prefixes[num_dense + 1..].iter().sum();
        let mut row_start = Vec::with_capacity(num_sparse + 1);
        let mut children = Vec::with_capacity(num_children);
        for level in num_dense..levels {
            for (at, &key) in keys.iter().enumerate() {
                if is_new(at, level) {
                    row_start.push(children.len() as u32);
                }
                if is_new(at, level + 1) {
                    children.push([layout.code(key, level), num_states]);
                    num_states += 1;
                }
            }
        }
        row_start.resize(num_sparse + 1, children.len() as u32);
        let vocab = layout.vocab;
        Ok(Self { levels, vocab, words_per_row, dense_masks, dense_states, row_start, children })
    }

    fn bytes(&self) -> usize {
        let masks: usize = self.dense_masks.iter().map(|masks| size_of_val(masks.as_slice())).sum();
        masks
            + size_of_val(self.dense_states.as_slice())
            + size_of_val(self.row_start.as_slice())
            + size_of_val(self.children.as_slice())
    }

    fn start(&self) -> CsrState {
        CsrState { level: 0, at: 0 }
    }

    fn advance(&self, state: &CsrState, code: u32) -> Option<CsrState> {
        if code >= self.vocab {
            return None;
        }
        if self.is_dense(state) {
            let allowed = self.dense_row(state)[code as usize / 32] >> (code % 32) & 1 == 1;
            return allowed.then(|| self.next_dense(state, code));
        }
        let children = self.children(state.at);
        let at = children.binary_search_by_key(&code, |&[code, _]| code).ok()?;
        Some(CsrState { level: state.level + 1, at: children[at][1] })
    }

    fn contains(&self, codes: &[u32]) -> bool {
        let end = codes.iter().try_fold(self.start(), |state, &code| self.advance(&state, code));
        end.is_some_and(|state| state.level as usize == self.levels)
    }

    fn fill_masks(&self, states: &[CsrState], words_per_row: usize, out: &mut [u32]) {
        for (state, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            if self.is_dense(state) {
                let (words, rest) = row.split_at_mut(self.words_per_row);
                words.copy_from_slice(self.dense_row(state));
                rest.fill(0);
            } else {
                row.fill(0);
                for &[code, _] in self.children(state.at) {
                    allow(row, code);
                }
            }
        }
    }

    fn successors(&self, states: &[CsrState], mut visit: impl FnMut(u32, u32, CsrState)) {
        for (beam, state) in states.iter().enumerate() {
            if self.is_dense(state) {
                for (word, &bits) in self.dense_row(state).iter().enumerate() {
                    let mut rest = bits;
                    while rest != 0 {
                        let code = word as u32 * 32 + rest.trailing_zeros();
                        visit(beam as u32, code, self.next_dense(state, code));
                        rest &= rest - 1;
                    }
                }
            } else {
                for &[code, next] in self.children(state.at) {
                    visit(beam as u32, code, CsrState { level: state.level + 1, at: next });
                }
            }
        }
    }
}
