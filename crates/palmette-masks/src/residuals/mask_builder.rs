//! Mask builder: tokens gathered as shared rows and single tokens, before they are words.

use std::sync::Arc;

use palmette_core::TokenId;

use super::token_set::TokenSet;
use crate::mask_pool::MaskRow;

/// Mask in the making: the sets and the single tokens that it was found as.
///
/// PERF: most masks are a set that is kept for other masks too, and some hundred tokens: to clear, write, hash and compare rows of
/// 25 KB took 40% of the time of a new mask whose residuals were known.
#[derive(Debug, Default)]
pub(crate) struct MaskBuilder {
    sets: Vec<NearRow>,
    /// Single tokens: a mask row.
    single: Vec<u32>,
    /// By place in a row, whether a word of a set or of the single tokens is other than in the rows of the sets.
    touched: Vec<u64>,
}

/// A mask row but for these words of it.
#[derive(Debug)]
struct NearRow {
    row: Arc<MaskRow>,
    differing: Arc<[(u32, u32)]>,
}

impl MaskBuilder {
    /// Takes all tokens out; masks have so many words.
    pub(super) fn clear(&mut self, num_words: usize) {
        if self.single.len() == num_words {
            for at in places(&self.touched) {
                self.single[at] = 0;
            }
        } else {
            self.single = vec![0; num_words];
            self.touched = vec![0; num_words.div_ceil(64)];
        }
        self.touched.fill(0);
        self.sets.clear();
    }

    /// True when nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.touched.iter().all(|&places| places == 0)
    }

    /// The words of a mask.
    pub(crate) fn num_words(&self) -> usize {
        self.single.len()
    }

    /// Adds a token.
    #[inline]
    pub(crate) fn insert(&mut self, token: TokenId) {
        let at = token.index() / 32;
        self.single[at] |= 1 << (token.index() % 32);
        self.touched[at / 64] |= 1 << (at % 64);
    }

    /// Adds the tokens of a set.
    pub(super) fn insert_all(&mut self, set: &TokenSet) {
        let (row, differing) = match set {
            TokenSet::Mask(row) => (row, Arc::default()),
            TokenSet::Near(row, differing) => (row, Arc::clone(differing)),
            // Unions of rows are rows of their own: one list is enough to tell masks by what they differ in from it.
            TokenSet::List(list) => match list.row() {
                Some(row) if self.sets.is_empty() => (row, Arc::default()),
                _ => {
                    list.tokens().iter().for_each(|&token| self.insert(token));
                    return;
                }
            },
        };
        let same = |other: &NearRow| {
            Arc::ptr_eq(&other.row, row)
                && (Arc::ptr_eq(&other.differing, &differing)
                    || other.differing.is_empty() && differing.is_empty())
        };
        if !self.sets.iter().any(same) {
            for &(at, _) in &*differing {
                self.touched[at as usize / 64] |= 1 << (at % 64);
            }
            self.sets.push(NearRow { row: Arc::clone(row), differing });
        }
    }

    /// Adds the tokens of a row.
    pub(super) fn insert_row(&mut self, row: &Arc<MaskRow>) {
        self.sets.push(NearRow { row: Arc::clone(row), differing: Arc::default() });
    }

    /// The rows of the sets, each once.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<MaskRow>> {
        let rows = || self.sets.iter().map(|set| &set.row);
        rows()
            .enumerate()
            .filter(move |&(at, row)| !rows().take(at).any(|other| Arc::ptr_eq(other, row)))
            .map(|(_, row)| row)
    }

    /// The words that may be others than the union of the rows has, with their places, ascending.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, u32)> {
        places(&self.touched).map(|at| {
            let words = self.sets.iter().map(|set| set.word(at));
            (at, words.fold(self.single[at], |word, other| word | other))
        })
    }
}

impl NearRow {
    fn word(&self, at: usize) -> u32 {
        match self.differing.binary_search_by_key(&(at as u32), |&(at, _)| at) {
            Ok(found) => self.differing[found].1,
            Err(_) => self.row.words()[at],
        }
    }
}

/// The places of the bits that are set, ascending.
fn places(bits: &[u64]) -> impl Iterator<Item = usize> {
    bits.iter().zip((0..).step_by(64)).flat_map(|(&word, first)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let at = (rest != 0).then(|| first + rest.trailing_zeros() as usize);
            rest &= rest.wrapping_sub(1);
            at
        })
    })
}

#[cfg(test)]
impl MaskBuilder {
    /// Rows, each with words that are others, and tokens.
    pub(crate) fn of(
        num_words: usize,
        rows: impl IntoIterator<Item = (Arc<MaskRow>, Vec<(u32, u32)>)>,
        tokens: impl IntoIterator<Item = TokenId>,
    ) -> Self {
        let mut made = Self::default();
        made.clear(num_words);
        for (row, differing) in rows {
            made.insert_all(&TokenSet::Near(row, differing.into()));
        }
        tokens.into_iter().for_each(|token| made.insert(token));
        made
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use palmette_core::mask;
    use proptest::prelude::*;

    use super::super::token_set::tests::{NUM_WORDS, list, tokens};
    use super::*;

    /// The mask: the union of the rows but for the words that are given.
    fn row_of(builder: &MaskBuilder) -> Vec<u32> {
        let mut row = vec![0; NUM_WORDS];
        for other in builder.rows() {
            row.iter_mut().zip(other.words()).for_each(|(word, other)| *word |= other);
        }
        builder.words().for_each(|(at, word)| row[at] = word);
        row
    }

    proptest! {
        /// However the sets are kept, in any order, asked for before or not, and whatever was gathered before.
        #[test]
        fn sets_and_tokens_are_united(
            sets in prop::collection::vec((tokens(90), tokens(4), tokens(4), 0..3_usize), 1..6),
            rounds in prop::collection::vec(
                (prop::collection::vec(any::<prop::sample::Index>(), 0..6), tokens(9)),
                1..4,
            ),
        ) {
            let kept = sets.iter().map(|(tokens, removed, added, asked)| {
                let set = TokenSet::new(list(tokens), NUM_WORDS);
                let set = set.changed(&list(removed), &list(added), NUM_WORDS);
                for _ in 0..*asked {
                    set.ask(NUM_WORDS);
                }
                (tokens.difference(removed).chain(added).copied().collect::<BTreeSet<_>>(), set)
            });
            let kept: Vec<_> = kept.collect();
            let mut builder = MaskBuilder::default();
            for (chosen, single) in rounds {
                builder.clear(NUM_WORDS);
                let mut expected = vec![0; NUM_WORDS];
                for index in chosen {
                    let (tokens, set) = index.get(&kept);
                    builder.insert_all(set);
                    tokens.iter().for_each(|&token| mask::insert(&mut expected, TokenId(token)));
                }
                for &token in &single {
                    builder.insert(TokenId(token));
                    mask::insert(&mut expected, TokenId(token));
                }
                prop_assert_eq!(row_of(&builder), expected);
            }
        }
    }
}
