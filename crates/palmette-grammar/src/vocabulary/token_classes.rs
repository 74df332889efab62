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
        let with_class =
            || (0..).map(TokenId).zip(&class_of).filter(|(_, class)| **class != NO_CLASS);
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
        let mut number_of = HashMap::new();
        let mut part_of_pair = HashMap::new();
        for (ranks, key) in keyed {
            let next = number_of.len() as u32;
            let key = *number_of.entry(key).or_insert(next);
            for part in &mut self.part_of[ranks.start as usize..ranks.end as usize] {
                *part = *part_of_pair.entry((*part, key)).or_insert_with(|| {
                    self.num_parts += 1;
                    self.num_parts - 1
                });
            }
        }
        if self.num_parts > u32::MAX / 2 {
            self.renumber();
        }
    }

    /// Sets tokens apart by the state in which an automaton is after reading them from `state` on, and those that it does not
    /// survive from the others. `step` is as in [`VocabularyTrie::run`]; where the automaton dies early, this is fast.
    ///
    /// # Errors
    /// Those of `step`; the partition is then as before.
    pub fn split_by_run<S: Clone + Eq + Hash, E>(
        &mut self,
        state: S,
        step: impl FnMut(&S, u8) -> Result<Option<S>, E>,
    ) -> Result<(), E> {
        let mut keyed = vec![];
        self.trie.run(state, step, |node, state| {
            let own = self.trie.own_ranks(node.index);
            if !own.is_empty() {
                keyed.push((own, state.clone()));
            }
        })?;
        self.split(keyed);
        Ok(())
    }

    /// The classes.
    pub fn finish(self) -> TokenClasses {
        TokenClasses::new(self.trie, self.num_tokens, &self.part_of)
    }

    /// Forgets the numbers of parts that have become empty.
    fn renumber(&mut self) {
        let mut number_of = HashMap::new();
        for part in &mut self.part_of {
            let next = number_of.len() as u32;
            *part = *number_of.entry(*part).or_insert(next);
        }
        self.num_parts = number_of.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use palmette_core::{TokenMask, Vocabulary};
    use proptest::prelude::*;

    use super::*;

    const NUM_STATES: usize = 5;

    /// A complete table of an automaton over the bytes a, b and c; `None` where it dies.
    type Table = [[Option<usize>; 3]; NUM_STATES];

    fn step(table: &Table) -> impl Fn(&usize, u8) -> Result<Option<usize>, ()> {
        |&state, byte| Ok(table[state][usize::from(byte - b'a')])
    }

    #[test]
    fn classes_are_numbered_by_their_smallest_token() {
        // One state that reads any number of a and one b after them: `a`, `aa` | `b`, `ab` | the rest dies.
        let texts = ["c", "ab", "", "a", "b", "aa", "ba", "b"];
        let vocabulary = Vocabulary::new(texts.map(Some), []).unwrap();
        let trie = VocabularyTrie::new(&vocabulary);
        let mut refinement = Refinement::new(&trie, vocabulary.num_tokens());
        refinement
            .split_by_run(0, |&state: &u32, byte| {
                Ok::<_, ()>(match (state, byte) {
                    (0, b'a') => Some(0),
                    (0, b'b') => Some(1),
                    _ => None,
                })
            })
            .unwrap();
        refinement.renumber();
        let classes = refinement.finish();
        assert_eq!(classes.num_classes(), 3);
        let class_of = (0..8).map(|token| classes.class_of(TokenId(token))).collect::<Vec<_>>();
        let [dead, ended, open] = [0, 1, 2].map(Some);
        assert_eq!(class_of, [dead, ended, None, open, ended, open, dead, ended]);
        assert_eq!(classes.tokens(1), [1, 4, 7].map(TokenId));
        let mut words = [0b100];
        classes.insert_into([1, 2], &mut words);
        assert_eq!(words, [0b1011_1110], "what was in the mask stays");
        assert_eq!(classes.memory_bytes(), 4 * (8 + 7 + 4) + 3 * 4);
    }

    #[test]
    fn a_failing_step_leaves_the_partition() {
        let vocabulary = Vocabulary::new(["a", "b"].map(Some), []).unwrap();
        let trie = VocabularyTrie::new(&vocabulary);
        let mut refinement = Refinement::new(&trie, 2);
        let step = |_: &u8, byte| if byte == b'a' { Ok(Some(byte)) } else { Err("b") };
        assert_eq!(refinement.split_by_run(0, step), Err("b"));
        assert_eq!(refinement.finish().num_classes(), 1);
    }

    proptest! {
        /// Two tokens are of one class exactly if they do the same to every state that was asked about.
        #[test]
        fn classes_are_those_of_brute_force(
            texts in prop::collection::vec("[abc]{0,6}", 0..120),
            table in prop::array::uniform5(prop::array::uniform3(prop::option::of(0..NUM_STATES))),
            asked in prop::collection::vec(0..NUM_STATES, 0..NUM_STATES),
            picked in prop::collection::vec(any::<bool>(), 120),
        ) {
            let vocabulary = Vocabulary::new(texts.iter().map(Some), []).unwrap();
            let trie = VocabularyTrie::new(&vocabulary);
            let mut refinement = Refinement::new(&trie, texts.len());
            for &state in &asked {
                refinement.split_by_run(state, step(&table)).unwrap();
            }
            let classes = refinement.finish();

            let effect = |text: &str| -> Vec<Option<usize>> {
                let read = |state: usize| text.bytes().try_fold(state, |state, byte| {
                    table[state][usize::from(byte - b'a')]
                });
                asked.iter().map(|&state| read(state)).collect()
            };
            let mut effects: Vec<Vec<Option<usize>>> = vec![];
            let mut mask = TokenMask::new(texts.len());
            for (text, token) in texts.iter().zip((0..).map(TokenId)) {
                if text.is_empty() {
                    prop_assert_eq!(classes.class_of(token), None);
                    continue;
                }
                let known = effects.iter().position(|known| *known == effect(text));
                let class = known.unwrap_or(effects.len());
                if known.is_none() {
                    effects.push(effect(text));
                }
                prop_assert_eq!(classes.class_of(token), Some(class as u32));
                prop_assert!(classes.tokens(class as u32).contains(&token));
                if picked[class] {
                    mask.insert(token);
                }
            }
            prop_assert_eq!(classes.num_classes(), effects.len());
            let sizes = (0..effects.len()).map(|class| classes.tokens(class as u32).len());
            prop_assert_eq!(sizes.sum::<usize>(), trie.num_ranks());
            let mut expanded = TokenMask::new(texts.len());
            let set = (0..effects.len() as u32).filter(|&class| picked[class as usize]);
            classes.insert_into(set, expanded.as_words_mut());
            prop_assert_eq!(expanded, mask);
        }
    }
}
