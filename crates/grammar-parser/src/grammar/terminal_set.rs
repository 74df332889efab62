//! Sets of terminals.

use super::{Grammar, TerminalId};

const WORD_BITS: usize = u64::BITS as usize;

/// A set of terminals as a bitset.
///
/// Sized once for the terminals of a grammar; two sets are equal when they are sized for as many
/// terminals and hold the same ones. All operations are O(terminals / 64) but
/// [`insert`](Self::insert), [`remove`](Self::remove) and [`contains`](Self::contains), which are
/// O(1).
///
/// Invariant: bits at and beyond `num_terminals` are zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TerminalSet {
    words: Box<[u64]>,
    num_terminals: u32,
}

impl TerminalSet {
    /// The empty set of a grammar with this many terminals.
    pub fn new(num_terminals: usize) -> Self {
        let words = vec![0; num_terminals.div_ceil(WORD_BITS)].into();
        Self { words, num_terminals: num_terminals as u32 }
    }

    /// Number of terminals that the set is sized for.
    pub fn num_terminals(&self) -> usize {
        self.num_terminals as usize
    }

    /// Puts a terminal in; tells whether it was not in yet.
    ///
    /// # Panics
    /// When the set is not sized for the terminal.
    pub fn insert(&mut self, terminal: TerminalId) -> bool {
        let (word, bit) = self.place(terminal);
        let added = self.words[word] & bit == 0;
        self.words[word] |= bit;
        added
    }

    /// Takes a terminal out; tells whether it was in.
    ///
    /// # Panics
    /// When the set is not sized for the terminal.
    pub fn remove(&mut self, terminal: TerminalId) -> bool {
        let (word, bit) = self.place(terminal);
        let removed = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        removed
    }

    /// Takes all terminals out.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// True when the terminal is in; `false` for one the set is not sized for.
    #[inline]
    pub fn contains(&self, terminal: TerminalId) -> bool {
        let word = self.words.get(terminal.index() / WORD_BITS);
        word.is_some_and(|word| word >> (terminal.index() % WORD_BITS) & 1 == 1)
    }

    /// True when no terminal is in.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Number of terminals in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The terminals, in ascending order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = TerminalId> {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(TerminalId((at * WORD_BITS) as u32 + bit))
            })
        })
    }

    /// Puts the terminals of `other` in; tells whether one was not in yet.
    ///
    /// # Panics
    /// When the sets are sized differently.
    pub fn union_with(&mut self, other: &Self) -> bool {
        assert_eq!(self.num_terminals, other.num_terminals, "sets of different grammars");
        let mut grown = false;
        for (word, &added) in self.words.iter_mut().zip(&other.words) {
            grown |= added & !*word != 0;
            *word |= added;
        }
        grown
    }

    /// True when some terminal is in both.
    ///
    /// # Panics
    /// When the sets are sized differently.
    #[inline]
    pub fn intersects(&self, other: &Self) -> bool {
        assert_eq!(self.num_terminals, other.num_terminals, "sets of different grammars");
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// The word and the bit of a terminal.
    fn place(&self, terminal: TerminalId) -> (usize, u64) {
        let index = terminal.index();
        assert!(index < self.num_terminals(), "{terminal:?} of {} terminals", self.num_terminals);
        (index / WORD_BITS, 1 << (index % WORD_BITS))
    }
}

impl std::fmt::Debug for TerminalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(|terminal| terminal.0)).finish()
    }
}

/// The set of a grammar's ignored terminals.
pub fn ignored_terminals(grammar: &Grammar) -> TerminalSet {
    let mut ignored = TerminalSet::new(grammar.terminals().len());
    for &terminal in grammar.ignored() {
        ignored.insert(terminal);
    }
    ignored
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn agrees_with_a_plain_set() {
        let ids = [0, 1, 63, 64, 127, 129].map(TerminalId);
        let (mut set, mut plain) = (TerminalSet::new(130), BTreeSet::new());
        assert!(set.is_empty());
        for id in ids.into_iter().rev().chain(ids) {
            assert_eq!(set.insert(id), plain.insert(id));
            assert_eq!(set.len(), plain.len());
        }
        assert!(set.iter().eq(plain.iter().copied()));
        assert!(set.remove(ids[3]) && !set.remove(ids[3]) && !set.contains(ids[3]));
        assert!(!set.contains(TerminalId(130)) && !set.contains(TerminalId(5000)));
    }

    #[test]
    fn unions_and_intersections() {
        let of = |ids: &[u32]| {
            let mut set = TerminalSet::new(100);
            for &id in ids {
                set.insert(TerminalId(id));
            }
            set
        };
        let (mut low, high) = (of(&[1, 70]), of(&[70, 99]));
        assert!(low.intersects(&high) && !low.intersects(&of(&[2, 99])));
        assert!(low.union_with(&high) && !low.union_with(&high));
        assert_eq!(low, of(&[1, 70, 99]));
        assert_eq!(format!("{low:?}"), "{1, 70, 99}");
    }
}
