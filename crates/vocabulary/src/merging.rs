//! Byte-pair merging: adjacent symbols become one, the best pair first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A text cut into symbols, linked to their neighbours. A symbol that was merged into its left
/// neighbour is empty.
struct Symbols {
    ranges: Vec<Range<usize>>,
    previous: Vec<usize>,
    next: Vec<usize>,
}

/// The index of no symbol.
const NONE: usize = usize::MAX;

/// Merges adjacent symbols until no merged pair has a priority: the lowest first, of equal ones the
/// leftmost.
///
/// `symbols` are adjacent ranges of the text, none of them empty. Cost: O(n log n) calls of
/// `priority`.
pub(crate) fn merge<P: Ord>(
    symbols: Vec<Range<usize>>,
    priority: impl Fn(Range<usize>) -> Option<P>,
) -> Vec<Range<usize>> {
    let num = symbols.len();
    let mut symbols = Symbols {
        ranges: symbols,
        previous: (0..num).map(|at| at.checked_sub(1).unwrap_or(NONE)).collect(),
        next: (1..=num).map(|at| if at < num { at } else { NONE }).collect(),
    };
    let mut queue = BinaryHeap::new();
    let offer = |queue: &mut BinaryHeap<_>, symbols: &Symbols, left: usize| {
        let Some(merged) = symbols.with_next(left) else { return };
        if let Some(priority) = priority(merged.clone()) {
            queue.push(Reverse((priority, left, merged.end)));
        }
    };
    (0..num).for_each(|left| offer(&mut queue, &symbols, left));
    while let Some(Reverse((_, left, end))) = queue.pop() {
        // A pair is out of date when one of the two was merged since.
        if symbols.with_next(left).is_none_or(|merged| merged.end != end) {
            continue;
        }
        symbols.merge_with_next(left);
        let previous = symbols.previous[left];
        for left in [previous, left] {
            if left != NONE {
                offer(&mut queue, &symbols, left);
            }
        }
    }
    symbols.ranges.retain(|range| !range.is_empty());
    symbols.ranges
}

impl Symbols {
    /// A symbol and its right neighbour as one.
    fn with_next(&self, left: usize) -> Option<Range<usize>> {
        let next = self.next[left];
        let is_pair = next != NONE && !self.ranges[left].is_empty();
        is_pair.then(|| self.ranges[left].start..self.ranges[next].end)
    }

    fn merge_with_next(&mut self, left: usize) {
        let right = self.next[left];
        self.ranges[left].end = self.ranges[right].end;
        self.ranges[right] = 0..0;
        self.next[left] = self.next[right];
        if self.next[right] != NONE {
            self.previous[self.next[right]] = left;
        }
        self.next[right] = NONE;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The definition: look through all pairs, merge the best, begin again.
    fn merge_slowly(text: &[u8], ranks: &HashMap<Vec<u8>, u32>) -> Vec<Range<usize>> {
        let mut symbols: Vec<_> = (0..text.len()).map(|at| at..at + 1).collect();
        loop {
            let pairs = symbols.windows(2).enumerate();
            let ranked = pairs.filter_map(|(at, pair)| {
                Some((*ranks.get(&text[pair[0].start..pair[1].end])?, at))
            });
            let Some((_, at)) = ranked.min() else { return symbols };
            symbols[at].end = symbols[at + 1].end;
            symbols.remove(at + 1);
        }
    }

    proptest! {
        #[test]
        fn merging_equals_the_definition(
            text in "[ab]{0,24}",
            ranks in proptest::collection::hash_map("[ab]{2,5}", 0u32..6, 0..16),
        ) {
            let (text, ranks) = (text.as_bytes(), ranks.into_iter());
            let ranks: HashMap<_, _> = ranks.map(|(pair, rank)| (pair.into_bytes(), rank)).collect();
            let symbols = (0..text.len()).map(|at| at..at + 1).collect();
            let merged = merge(symbols, |range| ranks.get(&text[range]).copied());
            prop_assert_eq!(merged, merge_slowly(text, &ranks));
        }
    }
}
