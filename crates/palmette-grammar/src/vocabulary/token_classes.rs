//! Classes of tokens that nothing tells apart.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use palmette_core::{TokenId, mask};

use super::VocabularyTrie;

/// A partition of the tokens with text: what decides about one token of a class decides about all of it.
///
/// Classes are numbered by their smallest token. Sets of tokens that respect the partition are sets of classes, a few words
/// instead of a bit for each token, until a mask is wanted: [`insert_into`](Self::insert_into).
///
/// Cost: 8 bytes a token, and a mask for each class of more than 1/32 of the tokens (there are at most 31).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClasses {
    /// `class_of[token]`, [`NO_CLASS`] for tokens without text.
    class_of: Vec<u32>,
    /// The tokens class by class, ascending in each: class `c` owns `members[start[c]..start[c + 1]]`.
    members: Vec<TokenId>,
    start: Vec<u32>,
    /// The masks of large classes, by class.
    masks: Vec<(u32, Box<[u32]>)>,
}

/// In place of the class of a token without text.
const NO_CLASS: u32 = u32::MAX;

impl TokenClasses {
    /// How many classes there are.
    pub fn num_classes(&self) -> usize {
        self.start.len() - 1
    }

    /// The class of a token; `None` for tokens without text.
    ///
    /// # Panics
    /// When the token is not in the vocabulary.
    pub fn class_of(&self, token: TokenId) -> Option<u32> {
        Some(self.class_of[token.index()]).filter(|&class| class != NO_CLASS)
    }

    /// The tokens of a class, ascending.
    ///
    /// # Panics
    /// When there is no such class.
    pub fn tokens(&self, class: u32) -> &[TokenId] {
        let class = class as usize;
        &self.members[self.start[class] as usize..self.start[class + 1] as usize]
    }

    /// Adds the tokens of all these classes to a mask row.
    ///
    /// Cost: O(tokens in them), or O(words of the row) for a large class.
    ///
    /// # Panics
    /// When there is no such class, or the row is shorter than the vocabulary.
    pub fn insert_into(&self, classes: impl IntoIterator<Item = u32>, words: &mut [u32]) {
        for class in classes {
            match self.masks.binary_search_by_key(&class, |(class, _)| *class) {
                Ok(index) => {
                    let own = &self.masks[index].1;
                    words[..own.len()].iter_mut().zip(own).for_each(|(word, own)| *word |= own);
                }
                Err(_) => {
                    self.tokens(class).iter().for_each(|&token| mask::insert(words, token));
                }
            }
        }
    }

    /// Memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.class_of.as_slice())
            + size_of_val(self.members.as_slice())
            + size_of_val(self.start.as_slice())
            + self.masks.iter().map(|(_, words)| size_of_val(&**words)).sum::<usize>()
    }

    /// Numbers the classes of `part_of[rank]`.
    fn new(trie: &VocabularyTrie, num_tokens: usize, part_of: &[u32]) -> Self {
        let mut class_of = vec![NO_CLASS; num_tokens];
        for (&token, &part) in trie.tokens().iter().zip(part_of) {
            class_of[token.index()] = part;
        }
        let mut class_of_part = HashMap::new();
        for class in class_of.iter_mut().filter(|class| **class != NO_CLASS) {
            let next = class_of_part.len() as u32;
            *class = *class_of_part.entry(*class).or_insert(next);
        }

        let num_classes = class_of_part.len();
        let mut start = vec![0; num_classes + 1];
        let with_class = || (0..).map(TokenId).zip(&class_of).filter(|(_, class)| **class != NO_CLASS);
        with_class().for_each(|(_, &class)| start[class as usize + 1] += 1);
        for class in 0..num_classes {
            start[class + 1] += start[class];
        }
        let mut next = start.clone();
        let mut members = vec![TokenId(0); trie.num_ranks()];
        for (token, &class) in with_class() {
            members[next[class as usize] as usize] = token;
            next[class as usize] += 1;
        }

        let mut classes = Self { class_of, members, start, masks: vec![] };
        // A mask row takes as many words as a class of this size takes ids.
        let large = mask::num_words(num_tokens);
        for class in 0..num_classes as u32 {
            if classes.tokens(class).len() > large {
                let mut words = vec![0; large].into_boxed_slice();
                classes.tokens(class).iter().for_each(|&token| mask::insert(&mut words, token));
                classes.masks.push((class, words));
            }
        }
        classes
    }
}

/// Classes in the making: at first all tokens with text are one, and each split sets apart those that it can tell apart.
///
/// Cost: 4 bytes a token; a split takes time in proportion to the tokens that it names.
#[derive(Clone, Debug)]
pub struct Refinement<'a> {
    trie: &'a VocabularyTrie,
    num_tokens: usize,
    /// `part_of[rank]`; parts are numbered as they are made, and some may be empty.
    part_of: Vec<u32>,
    num_parts: u32,
}

impl<'a> Refinement<'a> {
    /// One class of all tokens of the trie, which is that of a vocabulary of `num_tokens`.
    ///
    /// # Panics
    /// When the trie has a token past `num_tokens`.
    pub fn new(trie: &'a VocabularyTrie, num_tokens: usize) -> Self {
        assert!(
            trie.tokens().iter().all(|token| token.index() < num_tokens),
            "the trie has tokens past the {num_tokens} of the vocabulary"
        );
        Self { trie, num_tokens, part_of: vec![0; trie.num_ranks()], num_parts: 1 }
    }

    /// Sets tokens apart by a key: those under different keys, and those under any from those under none. `keyed` are
    /// ranges of ranks, no two overlapping.
    ///
    /// # Panics
    /// When a range is not within the ranks.
    pub fn split<K: Eq + Hash>(&mut self, keyed: impl IntoIterator<Item = (Range<u32>, K)>) {
        let mut part_of_key = HashMap::new();
        for (ranks, key) in keyed {
            let num_keys = part_of_key.len() as u32;
            let key = *part_of_key.entry(key).or_insert(num_keys);
            self.split_range(ranks, key);
        }
        self.finish_split();
    }
}
