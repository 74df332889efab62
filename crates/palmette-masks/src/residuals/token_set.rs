//! Token set of a token effect: a shared row, a row with patches, or a short list.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use palmette_core::{TokenId, mask};

use crate::mask_pool::MaskRow;

/// A set of tokens.
#[derive(Debug)]
pub(super) enum TokenSet {
    /// A mask row.
    Mask(Arc<MaskRow>),
    /// A mask row that another set has too, but for these words of it: their places, ascending, and what they are here.
    Near(Arc<MaskRow>, Arc<[(u32, u32)]>),
    /// Few tokens.
    List(TokenList),
}

/// Some tokens, and once they have been asked for again, a mask row of them unless they are very few.
#[derive(Debug)]
pub(super) struct TokenList {
    tokens: Box<[TokenId]>,
    was_asked: AtomicBool,
    row: OnceLock<Arc<MaskRow>>,
}

/// So few tokens are never kept as a row; tests have few.
const VERY_FEW: usize = if cfg!(test) { 8 } else { 128 };

impl TokenList {
    fn new(tokens: Vec<TokenId>) -> Self {
        Self { tokens: tokens.into(), was_asked: AtomicBool::new(false), row: OnceLock::new() }
    }

    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn without(&self, removed: &[TokenId]) -> Self {
        let mut removed = removed.to_vec();
        removed.sort_unstable();
        let is_left = |token: &&TokenId| removed.binary_search(token).is_err();
        Self::new(self.tokens.iter().filter(is_left).copied().collect())
    }

    /// A row of the tokens, if there is one.
    pub(super) fn row(&self) -> Option<&Arc<MaskRow>> {
        self.row.get()
    }
}

/// A set is kept as what it differs in from another where that is at most one token for so many words of a row.
const NEAR: usize = 16;

impl TokenSet {
    /// The set of these tokens, for a mask row of so many words.
    pub(super) fn new(tokens: Vec<TokenId>, num_words: usize) -> Self {
        if tokens.len() < num_words {
            return Self::List(TokenList::new(tokens));
        }
        let mut words = vec![0; num_words];
        tokens.iter().for_each(|&token| mask::insert(&mut words, token));
        Self::Mask(Arc::new(MaskRow::new(words.into())))
    }

    /// The set of a mask row.
    pub(super) fn of_words(words: &[u32]) -> Self {
        let mut count = 0;
        for some in words.chunks(64) {
            count += some.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            if count >= words.len() {
                return Self::Mask(Arc::new(MaskRow::new(words.into())));
            }
        }
        let mut tokens = Vec::with_capacity(count);
        for (&word, at) in words.iter().zip(0..) {
            let mut rest = word;
            while rest != 0 {
                tokens.push(TokenId(at * 32 + rest.trailing_zeros()));
                rest &= rest - 1;
            }
        }
        Self::List(TokenList::new(tokens))
    }

    /// The set without `removed`, and with `added` whether they are among these or not.
    pub(super) fn changed(&self, removed: &[TokenId], added: &[TokenId], num_words: usize) -> Self {
        let (row, known): (_, &[_]) = match self {
            Self::Mask(row) => (row, &[]),
            Self::Near(row, words) => (row, words),
            Self::List(list) if added.is_empty() => return Self::List(list.without(removed)),
            Self::List(_) => return self.changed_row(removed, added, num_words),
        };
        if removed.len() + added.len() > num_words / NEAR {
            return self.changed_row(removed, added, num_words);
        }
        let mut changes: Vec<(TokenId, bool)> =
            removed.iter().map(|&token| (token, false)).collect();
        changes.extend(added.iter().map(|&token| (token, true)));
        changes.sort_unstable();
        let mut words = Vec::with_capacity(known.len() + changes.len());
        let mut known = known.iter().copied().peekable();
        for of_word in changes.chunk_by(|(a, _), (b, _)| a.index() / 32 == b.index() / 32) {
            let at = (of_word[0].0.index() / 32) as u32;
            words.extend(std::iter::from_fn(|| known.next_if(|&(other, _)| other < at)));
            let mut word = known
                .next_if(|&(other, _)| other == at)
                .map_or(row.words()[at as usize], |(_, word)| word);
            for &(token, is_in) in of_word {
                let bit = 1 << (token.index() % 32);
                word = if is_in { word | bit } else { word & !bit };
            }
            words.push((at, word));
        }
        words.extend(known);
        Self::Near(Arc::clone(row), words.into())
    }

    fn changed_row(&self, removed: &[TokenId], added: &[TokenId], num_words: usize) -> Self {
        let mut words = self.to_words(num_words);
        remove(&mut words, removed);
        added.iter().for_each(|&token| mask::insert(&mut words, token));
        Self::of_words(&words)
    }

    /// The set as a mask row of so many words.
    pub(super) fn to_words(&self, num_words: usize) -> Vec<u32> {
        match self {
            Self::Mask(row) => row.words().to_vec(),
            Self::Near(row, differing) => {
                let mut words = row.words().to_vec();
                differing.iter().for_each(|&(at, word)| words[at as usize] = word);
                words
            }
            Self::List(list) => {
                let mut words = vec![0; num_words];
                list.tokens.iter().for_each(|&token| mask::insert(&mut words, token));
                words
            }
        }
    }

    /// True when it is a list of few tokens.
    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// True when adding its tokens to others takes time.
    pub(super) fn is_large(&self) -> bool {
        match self {
            Self::Mask(_) => true,
            Self::Near(..) => false,
            Self::List(list) => list.tokens.len() >= VERY_FEW,
        }
    }

    /// Adds the tokens to a mask row.
    pub(super) fn insert_into(&self, words: &mut [u32]) {
        match self {
            Self::List(list) => list.tokens.iter().for_each(|&token| mask::insert(words, token)),
            _ => {
                let own = self.to_words(words.len());
                words.iter_mut().zip(own).for_each(|(word, own)| *word |= own);
            }
        }
    }

    /// Remembers that it is asked for; gives the memory that is taken for that. Of tokens that are asked for the second time a row is made:
    /// what goes on after blanks is asked for at many places, what goes on a part of a name at few.
    pub(super) fn ask(&self, num_words: usize) -> usize {
        let Self::List(list) = self else { return 0 };
        if list.row.get().is_some() || list.tokens.len() < VERY_FEW {
            return 0;
        }
        if !list.was_asked.swap(true, Ordering::Relaxed) {
            return 0;
        }
        let mut bytes = 0;
        list.row.get_or_init(|| {
            let row = MaskRow::new(self.to_words(num_words).into());
            bytes = row.memory_bytes();
            Arc::new(row)
        });
        bytes
    }

    /// The memory that it does not share, without what is taken when it is [asked](Self::ask) for.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Mask(row) => row.memory_bytes(),
            Self::Near(_, words) => size_of_val(&**words),
            Self::List(list) => size_of_val(&*list.tokens),
        }
    }
}

/// Takes tokens out of a mask row.
pub(super) fn remove(words: &mut [u32], tokens: &[TokenId]) {
    tokens.iter().for_each(|&token| mask::remove(words, token));
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    pub(in crate::residuals) const NUM_WORDS: usize = 96;

    pub(in crate::residuals) fn tokens(most: usize) -> impl Strategy<Value = BTreeSet<u32>> {
        prop::collection::btree_set(0..NUM_WORDS as u32 * 32, 0..most)
    }

    pub(in crate::residuals) fn list(tokens: &BTreeSet<u32>) -> Vec<TokenId> {
        tokens.iter().copied().map(TokenId).collect()
    }

    proptest! {
        /// However it is kept, and whatever it was made of.
        #[test]
        fn changed_sets_are_what_their_tokens_say(
            first in tokens(400),
            changes in prop::collection::vec((tokens(5), tokens(5)), 0..6),
            last in (tokens(80), tokens(80)),
        ) {
            let mut expected = first.clone();
            let mut set = TokenSet::new(list(&first), NUM_WORDS);
            for (removed, added) in changes.iter().chain([&last]) {
                expected.retain(|token| !removed.contains(token));
                expected.extend(added);
                set = set.changed(&list(removed), &list(added), NUM_WORDS);
                let whole = TokenSet::new(list(&expected), NUM_WORDS);
                prop_assert_eq!(set.to_words(NUM_WORDS), whole.to_words(NUM_WORDS));
            }
        }
    }
}
