//! Scans of an array for the first or last number that is at most a bound.

use palmette_mapped::Pod;

/// Numbers at once. PERF: the compiler makes one comparison of sixteen bytes, without instructions
/// that not every processor has.
const LANES: usize = 16;

/// Numbers that arrays are scanned for.
pub(crate) trait Number: Pod + Ord {
    /// The largest.
    const MAX: Self;

    /// The number; `None` where it is larger than the largest.
    fn from_usize(number: usize) -> Option<Self>;

    fn to_usize(self) -> usize;

    /// Place of the first number that is at most `bound`.
    fn first_at_most(numbers: &[Self], bound: Self) -> Option<usize>;

    /// Place of the last number that is at most `bound`.
    fn last_at_most(numbers: &[Self], bound: Self) -> Option<usize>;

    /// The smallest number; the largest there can be where there is none.
    fn min_of(numbers: &[Self]) -> Self {
        numbers.iter().copied().min().unwrap_or(Self::MAX)
    }
}

impl Number for u8 {
    const MAX: Self = Self::MAX;

    fn from_usize(number: usize) -> Option<Self> {
        number.try_into().ok()
    }

    fn to_usize(self) -> usize {
        self.into()
    }

    #[inline]
    fn first_at_most(numbers: &[u8], bound: u8) -> Option<usize> {
        let (chunks, rest) = numbers.as_chunks::<LANES>();
        for (at, chunk) in chunks.iter().enumerate() {
            let hits = hits(chunk, bound);
            if hits != 0 {
                return Some(at * LANES + hits.trailing_zeros() as usize / 8);
            }
        }
        let at = rest.iter().position(|&number| number <= bound)?;
        Some(chunks.len() * LANES + at)
    }

    #[inline]
    fn last_at_most(numbers: &[u8], bound: u8) -> Option<usize> {
        let (rest, chunks) = numbers.as_rchunks::<LANES>();
        for (at, chunk) in chunks.iter().enumerate().rev() {
            let hits = hits(chunk, bound);
            if hits != 0 {
                return Some(rest.len() + at * LANES + 15 - hits.leading_zeros() as usize / 8);
            }
        }
        rest.iter().rposition(|&number| number <= bound)
    }
}

impl Number for u16 {
    const MAX: Self = Self::MAX;

    fn from_usize(number: usize) -> Option<Self> {
        number.try_into().ok()
    }

    fn to_usize(self) -> usize {
        self.into()
    }

    fn first_at_most(numbers: &[Self], bound: Self) -> Option<usize> {
        numbers.iter().position(|&number| number <= bound)
    }

    fn last_at_most(numbers: &[Self], bound: Self) -> Option<usize> {
        numbers.iter().rposition(|&number| number <= bound)
    }
}

impl Number for u32 {
    const MAX: Self = Self::MAX;

    fn from_usize(number: usize) -> Option<Self> {
        number.try_into().ok()
    }

    fn to_usize(self) -> usize {
        self as usize
    }

    fn first_at_most(numbers: &[Self], bound: Self) -> Option<usize> {
        numbers.iter().position(|&number| number <= bound)
    }

    fn last_at_most(numbers: &[Self], bound: Self) -> Option<usize> {
        numbers.iter().rposition(|&number| number <= bound)
    }
}

/// Byte `i` has bits set where `chunk[i]` is at most `bound`.
#[inline(always)]
fn hits(chunk: &[u8; LANES], bound: u8) -> u128 {
    let mut hits = [0; LANES];
    for i in 0..LANES {
        hits[i] = if chunk[i] <= bound { u8::MAX } else { 0 };
    }
    u128::from_le_bytes(hits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn scans_equal_looking_at_each(numbers in prop::collection::vec(0_u8.., 0..70), bound in 0_u8..) {
            let is_hit = |&number: &u8| number <= bound;
            prop_assert_eq!(u8::first_at_most(&numbers, bound), numbers.iter().position(is_hit));
            prop_assert_eq!(u8::last_at_most(&numbers, bound), numbers.iter().rposition(is_hit));
            prop_assert_eq!(u8::min_of(&numbers), numbers.iter().copied().min().unwrap_or(255));
        }
    }
}
