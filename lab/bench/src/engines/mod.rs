//! Structures that answer "which codes may follow this prefix?".
//!
//! One file each, kept small and plain; all are held to the same oracle. [`IndexEngine`] is the
//! catalog's own index; the others are what it is compared with, most of them the baselines of
//! STATIC (arXiv 2602.22647 §5.2):
//!
//! | engine | how it answers | answer |
//! |---|---|---|
//! | [`IndexEngine`] | ranges of ranks | exact |
//! | [`CsrTrie`] | dense first levels, then compressed sparse rows: STATIC's layout | exact |
//! | [`HashTrie`] | a hash map from each prefix to the codes that may follow | exact |
//! | [`PpvExact`] | a binary search for every code of the vocabulary | exact |
//! | [`PpvTop50`] | a binary search for the 50 best-scored codes | forbids valid codes |
//! | [`HashBitmap`] | one bit for every hashed prefix | allows invalid codes |
//! | [`MixedRadixSet`] | a hash set of whole IDs | allows everything before the last level |
//! | [`Unconstrained`] | not at all: every code of the vocabulary | allows everything |

mod csr_trie;
mod hash_bitmap;
mod hash_trie;
mod index;
mod keys;
mod mixed_radix_set;
mod ppv;
mod unconstrained;

pub use csr_trie::CsrTrie;
pub use hash_bitmap::HashBitmap;
pub use hash_trie::HashTrie;
pub use index::IndexEngine;
pub use keys::SortedKeys;
pub use mixed_radix_set::MixedRadixSet;
pub use ppv::{PpvExact, PpvTop50};
pub use unconstrained::Unconstrained;

use crate::generate::Shape;

/// A set of rows of one length that can say which codes continue a prefix.
pub trait Engine: Sized {
    /// The name in reports.
    const NAME: &'static str;
    /// True if a code is allowed exactly when some row continues so.
    const EXACT: bool;
    /// Builder that takes the rows, in any order and as often as they come.
    type Builder;
    /// State of a beam. Small.
    type State: Clone;

    /// Reason why this engine cannot hold rows of such a shape, if it cannot.
    fn obstacle(_shape: &Shape) -> Option<String> {
        None
    }

    /// About how many bytes building takes at its peak, the rows given to the builder included.
    fn peak_bytes(shape: &Shape) -> u64;

    /// A builder for rows of `shape`, which [`obstacle`](Self::obstacle) has nothing against.
    fn builder(shape: &Shape) -> Self::Builder;

    /// Takes one row; its codes are as many as the shape's levels and below its vocabulary.
    fn push(builder: &mut Self::Builder, codes: &[u32]);

    /// Indexes the rows.
    ///
    /// # Errors
    /// What the structure itself refuses, in its words.
    fn build(builder: Self::Builder) -> Result<Self, String>;

    /// Bytes the engine holds.
    fn bytes(&self) -> usize;

    /// The state before the first code.
    fn start(&self) -> Self::State;

    /// The state one code further, where the engine lets it follow.
    fn advance(&self, state: &Self::State, code: u32) -> Option<Self::State>;

    /// True if the engine takes these codes for a whole row.
    fn contains(&self, codes: &[u32]) -> bool;

    /// Writes the mask row of each state: every word of `out`, which is
    /// `[states, words_per_row]`; words past the vocabulary become 0.
    fn fill_masks(&self, states: &[Self::State], words_per_row: usize, out: &mut [u32]);

    /// Passes (beam, code, next state) for every code that may follow each state: ascending by
    /// beam, then code.
    fn successors(&self, states: &[Self::State], visit: impl FnMut(u32, u32, Self::State));
}

/// Sets the bit of one code.
#[inline]
fn allow(row: &mut [u32], code: u32) {
    row[code as usize / 32] |= 1 << (code % 32);
}

/// Sets the bits of all codes of a vocabulary, and clears those after them.
fn allow_all(row: &mut [u32], vocab: u32) {
    let (whole, rest) = (vocab as usize / 32, vocab % 32);
    row[..whole].fill(u32::MAX);
    row[whole..].fill(0);
    if rest > 0 {
        row[whole] = (1 << rest) - 1;
    }
}

/// Tries to advance over every code of the vocabulary. These are the successors of engines that
/// know no children.
fn try_all_codes<E: Engine>(
    engine: &E,
    vocab: u32,
    states: &[E::State],
    mut visit: impl FnMut(u32, u32, E::State),
) {
    for (beam, state) in states.iter().enumerate() {
        for code in 0..vocab {
            if let Some(next) = engine.advance(state, code) {
                visit(beam as u32, code, next);
            }
        }
    }
}
