//! Minima of an array over blocks of 64, 64² and 64³ numbers: the next small one in a few looks.

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::scan::Number;

/// Numbers of a block, and minima of a block of the next level.
const BLOCK: usize = 64;
const LEVELS: usize = 3;

/// An array of numbers with the minima of its blocks.
///
/// Invariant: `minima[0][i]` is the smallest of `values[64 i..64 i + 64]`, and `minima[l + 1]` are
/// so the minima of `minima[l]`. Where a damaged file breaks it, answers are wrong and within their
/// bounds.
///
/// Cost: 1.6% more than the numbers; a search looks at one block of each level up and down,
/// whatever lies between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Minima<T: Number> {
    values: Array<T>,
    minima: [Array<T>; LEVELS],
}

/// Sections of [`Minima`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MinimaMeta {
    len: u64,
    values: u32,
    minima: [u32; LEVELS],
}

/// The slices of [`Minima`], looked up once for many questions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MinimaView<'a, T> {
    values: &'a [T],
    minima: [&'a [T]; LEVELS],
}

impl<T: Number> Minima<T> {
    pub(crate) fn new(values: Vec<T>) -> Self {
        let blocks = |of: &[T]| of.chunks(BLOCK).map(T::min_of).collect::<Vec<T>>();
        let first = blocks(&values);
        let second = blocks(&first);
        let third = blocks(&second);
        Self { values: values.into(), minima: [first.into(), second.into(), third.into()] }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    #[inline]
    pub(crate) fn view(&self) -> MinimaView<'_, T> {
        let [first, second, third] = &self.minima;
        MinimaView {
            values: self.values.as_slice(),
            minima: [first.as_slice(), second.as_slice(), third.as_slice()],
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.arrays().map(|array| array.as_bytes().len()).sum()
    }

    fn arrays(&self) -> impl Iterator<Item = &Array<T>> {
        std::iter::once(&self.values).chain(&self.minima)
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> MinimaMeta {
        MinimaMeta {
            len: self.len() as u64,
            values: out.add_array(&self.values),
            minima: self.minima.each_ref().map(|level| out.add_array(level)),
        }
    }

    pub(crate) fn load(meta: &MinimaMeta, sections: &SectionsIn) -> Result<Self, String> {
        let mut len = meta.len;
        let values = sections.array(meta.values, len)?;
        let mut level = |section| {
            len = len.div_ceil(BLOCK as u64);
            sections.array(section, len)
        };
        let [first, second, third] = meta.minima;
        Ok(Self { values, minima: [level(first)?, level(second)?, level(third)?] })
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let are_minima = |(of, minima): (&Array<T>, &Array<T>)| {
            of.chunks(BLOCK).map(T::min_of).eq(minima.iter().copied())
        };
        let is_sound = self.arrays().zip(&self.minima).all(are_minima);
        if is_sound { Ok(()) } else { Err("minima that are not those of their blocks".to_owned()) }
    }
}

impl<'a, T: Number> MinimaView<'a, T> {
    #[inline]
    pub(crate) fn values(&self) -> &'a [T] {
        self.values
    }

    /// The first place in `from..to` whose number is at most `bound`; `to` where there is none.
    #[inline]
    pub(crate) fn next_at_most(&self, from: usize, to: usize, bound: T) -> usize {
        let edge = ((from | (BLOCK - 1)) + 1).min(to);
        let Some(block) = self.values.get(from..edge) else { return to };
        match T::first_at_most(block, bound) {
            Some(at) => from + at,
            None if edge == to => to,
            None => self.next_in_blocks(edge / BLOCK, to, bound),
        }
    }

    /// [`next_at_most`](Self::next_at_most) from the beginning of a block.
    fn next_in_blocks(&self, block: usize, to: usize, bound: T) -> usize {
        let (mut at, mut width) = (block, BLOCK);
        for (level, minima) in self.minima.iter().enumerate() {
            let is_last = level + 1 == LEVELS;
            let stop = if is_last { minima.len() } else { at.next_multiple_of(BLOCK) };
            let stop = stop.min(minima.len());
            if let Some(found) = T::first_at_most(minima.get(at..stop).unwrap_or_default(), bound) {
                return self.first_below(level, at + found, bound).min(to);
            }
            if stop * width >= to {
                return to;
            }
            (at, width) = (stop / BLOCK, width * BLOCK);
        }
        to
    }

    /// The first place under entry `at` of the minima of a level.
    fn first_below(&self, level: usize, at: usize, bound: T) -> usize {
        self.minima[..level].iter().rev().chain([&self.values]).fold(at, |at, numbers| {
            let first = at * BLOCK;
            let block = &numbers[first.min(numbers.len())..(first + BLOCK).min(numbers.len())];
            // `None` only in a damaged file.
            first + T::first_at_most(block, bound).unwrap_or(0)
        })
    }

    /// The last place in `from..=at` whose number is at most `bound`; `from` where there is none.
    #[inline]
    pub(crate) fn prev_at_most(&self, from: usize, at: usize, bound: T) -> usize {
        let edge = (at & !(BLOCK - 1)).max(from);
        let Some(block) = self.values.get(edge..at + 1) else { return from };
        match T::last_at_most(block, bound) {
            Some(found) => edge + found,
            None if edge == from => from,
            None => self.prev_in_blocks(edge / BLOCK, from, bound),
        }
    }

    /// [`prev_at_most`](Self::prev_at_most) before the beginning of a block.
    fn prev_in_blocks(&self, block: usize, from: usize, bound: T) -> usize {
        let (mut end, mut width) = (block, BLOCK);
        for (level, minima) in self.minima.iter().enumerate() {
            let is_last = level + 1 == LEVELS;
            let stop = if is_last { 0 } else { end / BLOCK * BLOCK };
            if let Some(found) = T::last_at_most(minima.get(stop..end).unwrap_or_default(), bound) {
                return self.last_below(level, stop + found, bound).max(from);
            }
            if stop * width <= from {
                return from;
            }
            (end, width) = (stop / BLOCK, width * BLOCK);
        }
        from
    }

    /// The last place under entry `at` of the minima of a level.
    fn last_below(&self, level: usize, at: usize, bound: T) -> usize {
        self.minima[..level].iter().rev().chain([&self.values]).fold(at, |at, numbers| {
            let first = at * BLOCK;
            let block = &numbers[first.min(numbers.len())..(first + BLOCK).min(numbers.len())];
            first + T::last_at_most(block, bound).unwrap_or(0)
        })
    }

    /// The smallest number in `from..to`; the largest there can be where that is empty.
    #[inline]
    pub(crate) fn min_in(&self, from: usize, to: usize) -> T {
        if to.saturating_sub(from) <= BLOCK {
            return T::min_of(self.values.get(from..to).unwrap_or_default());
        }
        self.min_of_blocks(from, to)
    }

    fn min_of_blocks(&self, from: usize, to: usize) -> T {
        let (mut from, mut to, mut min) = (from, to, T::MAX);
        for (level, numbers) in [&self.values].into_iter().chain(&self.minima).enumerate() {
            let (first, last) = (from.next_multiple_of(BLOCK), to / BLOCK * BLOCK);
            let of = |from, to| T::min_of(numbers.get(from..to).unwrap_or_default());
            if level == LEVELS || first >= last {
                return min.min(of(from, to));
            }
            min = min.min(of(from, first)).min(of(last, to));
            (from, to) = (first / BLOCK, last / BLOCK);
        }
        min
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    /// A few small numbers among large ones, blocks of all sizes apart.
    fn numbers() -> impl Strategy<Value = Vec<u8>> {
        let len = prop_oneof![3 => 0_usize..200, 1 => 1_usize..600_000];
        let small = prop::collection::vec((any::<Index>(), 0_u8..4), 0..12);
        (len, small).prop_map(|(len, small)| {
            let mut numbers = vec![200; len];
            small
                .into_iter()
                .filter(|_| len > 0)
                .for_each(|(at, value)| numbers[at.index(len)] = value);
            numbers
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(120))]

        #[test]
        fn searches_equal_looking_at_each(
            numbers in numbers(),
            questions in prop::collection::vec((any::<Index>(), any::<Index>(), 0_u8..5), 1..40),
        ) {
            let minima = Minima::new(numbers.clone());
            prop_assert_eq!(minima.check(), Ok(()));
            let view = minima.view();
            for (one, other, bound) in questions {
                let (one, other) = (one.index(numbers.len() + 1), other.index(numbers.len() + 1));
                let (from, to) = (one.min(other), one.max(other));
                let is_hit = |&at: &usize| numbers[at] <= bound;
                let next = (from..to).find(is_hit).unwrap_or(to);
                prop_assert_eq!(view.next_at_most(from, to, bound), next);
                if from < to {
                    let prev = (from..to).rev().find(is_hit).unwrap_or(from);
                    prop_assert_eq!(view.prev_at_most(from, to - 1, bound), prev);
                }
                let min = numbers[from..to].iter().copied().min().unwrap_or(255);
                prop_assert_eq!(view.min_in(from, to), min);
            }
        }

        /// Minima that are not those of their blocks give answers within the bounds.
        #[test]
        fn damage_stays_within_the_bounds(
            numbers in prop::collection::vec(0_u8.., 1..5000),
            wrong in prop::collection::vec((0_usize..3, any::<Index>(), 0_u8..), 1..40),
            (one, other, bound) in (any::<Index>(), any::<Index>(), 0_u8..),
        ) {
            let len = numbers.len();
            let mut minima = Minima::new(numbers);
            for (level, at, value) in wrong {
                let mut values = minima.minima[level].to_vec();
                let at = at.index(values.len());
                values[at] = value;
                minima.minima[level] = values.into();
            }
            let (one, other) = (one.index(len), other.index(len));
            let (from, to) = (one.min(other), one.max(other));
            let view = minima.view();
            prop_assert!((from..=to).contains(&view.next_at_most(from, to, bound)));
            prop_assert!((from..=to).contains(&view.prev_at_most(from, to, bound)));
            view.min_in(from, to);
        }
    }
}
