//! From the codes of neighbouring ranks to a bit a rank.
//!
//! Written so that the compiler turns comparisons into vector instructions on any processor: 64
//! codes at a time become 64 bytes of 0 or 1, and eight such bytes become eight bits by one
//! multiplication.

use palmette_mapped::RankSet;

use super::code_set::CodeSet;
use crate::columns::codes::{Codes, for_each_width};

/// The bits of a chunk of ranks.
pub(super) type Words = [u64; RankSet::CHUNK_WORDS];

/// Ranks in a chunk.
const CHUNK_BITS: usize = RankSet::CHUNK_RANKS as usize;

/// Sets the bit in `hits` of each wanted rank in a chunk whose code is in `set`, and clears all
/// others. `wanted` has no bit set past the last rank.
pub(super) fn scan(codes: &Codes, chunk: usize, set: &CodeSet, wanted: &Words, hits: &mut Words) {
    let start = chunk * CHUNK_BITS;
    for_each_width!(codes, codes => {
        let codes = codes.as_slice();
        let codes = &codes[start.min(codes.len())..(start + CHUNK_BITS).min(codes.len())];
        match set {
            CodeSet::Runs(runs) => match runs[..] {
                [] => hits.fill(0),
                [run] => scan_words(codes, wanted, hits, |codes| run_word(codes, run)),
                _ => scan_words(codes, wanted, hits, |codes| {
                    runs.iter().fold(0, |word, &run| word | run_word(codes, run))
                }),
            },
            CodeSet::Bits(_) => scan_words(codes, wanted, hits, |codes| set_word(codes, set)),
        }
    });
}

/// A word for every 64 codes, where any of them is wanted.
#[inline(always)]
fn scan_words<T: Code>(
    codes: &[T],
    wanted: &Words,
    hits: &mut Words,
    word: impl Fn(&[T; 64]) -> u64,
) {
    let (whole, rest) = codes.as_chunks::<64>();
    let mut last = [T::default(); 64];
    last[..rest.len()].copy_from_slice(rest);
    hits[whole.len()..].fill(0);
    for (codes, (hits, &wanted)) in whole.iter().chain([&last]).zip(hits.iter_mut().zip(wanted)) {
        *hits = if wanted == 0 { 0 } else { word(codes) & wanted };
    }
}

/// Bit `i` says whether `codes[i]` lies in the run.
#[inline(always)]
fn run_word<T: Code>(codes: &[T; 64], (first, last): (u32, u32)) -> u64 {
    let (first, width) = (T::from_code(first), T::from_code(last - first));
    let mut hits = [0; 64];
    for i in 0..64 {
        hits[i] = u8::from(codes[i].minus(first) <= width);
    }
    pack(&hits)
}

/// Bit `i` says whether `codes[i]` is in the set.
#[inline(always)]
fn set_word<T: Code>(codes: &[T; 64], set: &CodeSet) -> u64 {
    let mut hits = [0; 64];
    for i in 0..64 {
        hits[i] = u8::from(set.contains(codes[i].into()));
    }
    pack(&hits)
}

/// Bit `i` says whether `hits[i]` is 1; it must be 0 or 1.
#[inline(always)]
fn pack(hits: &[u8; 64]) -> u64 {
    // Byte `i` of eight, times bit `56 - 7 i`, comes to lie at bit `56 + i`, and no two at one.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = hits.as_chunks::<8>();
    let mut word = 0;
    for (i, &eight) in eights.iter().enumerate() {
        word |= (u64::from_le_bytes(eight).wrapping_mul(GATHER) >> 56) << (8 * i);
    }
    word
}

/// A code of any width.
trait Code: Copy + Default + PartialOrd + Into<u32> {
    /// A code that is known to fit.
    fn from_code(code: u32) -> Self;

    /// The difference, wrapping around.
    fn minus(self, other: Self) -> Self;
}

macro_rules! impl_code {
    ($($width:ty),*) => {$(
        impl Code for $width {
            #[inline(always)]
            fn from_code(code: u32) -> Self {
                code as $width
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}
impl_code!(u8, u16, u32);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_asking_each_rank(
            ranks in prop::collection::vec((0_u32..40, any::<bool>()), 1..CHUNK_BITS + 200),
            wide in 0_usize..3,
            members in prop::collection::vec(1_u32..40, 0..30),
        ) {
            let num_values = [40, 300, 70_000][wide];
            let codes = Codes::compute(ranks.len(), num_values, |rank| ranks[rank].0);
            let mut members = members;
            members.sort_unstable();
            let set = CodeSet::from_ascending(members.iter().copied());
            for chunk in 0..ranks.len().div_ceil(CHUNK_BITS) {
                let bit = |rank: usize, is: &dyn Fn((u32, bool)) -> bool| {
                    ranks.get(chunk * CHUNK_BITS + rank).is_some_and(|&rank| is(rank))
                };
                let words = |is: &dyn Fn((u32, bool)) -> bool| -> Words {
                    std::array::from_fn(|word| {
                        (0..64).map(|b| u64::from(bit(word * 64 + b, is)) << b).sum()
                    })
                };
                let wanted = words(&|(_, wanted)| wanted);
                let expected = words(&|(code, wanted)| wanted && members.contains(&code));
                let mut hits = [!0; RankSet::CHUNK_WORDS];
                scan(&codes, chunk, &set, &wanted, &mut hits);
                prop_assert!(hits == expected);
            }
        }
    }
}
