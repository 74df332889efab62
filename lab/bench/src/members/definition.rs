//! Definition of a mask, remembered by place: every token byte by byte through the recogniser.

use std::collections::HashMap;

use palmette_core::{Constraint, mask};
use palmette_grammar::{GrammarConstraint, Position, RecognizerScratch};
use xxhash_rust::xxh3::xxh3_128;

/// Places that are remembered: about 300 MB of them.
const MAX_PLACES: usize = 1 << 20;

/// Masks by their definition: a token is allowed where its bytes lead from the place to another.
///
/// Members are read by [`MemberSet::advance`](palmette_core::MemberSet::advance) alone, a byte at a
/// time, and never by `effect`, which is what the engine asks. Prefixes of many tokens are read
/// once. Equal places have one mask, of which a fingerprint of 128 bits is remembered: a million
/// masks have but few places outside of members, and those within have few tokens.
pub(super) struct Definition<'c> {
    constraint: &'c GrammarConstraint,
    scratch: RecognizerScratch,
    row: Vec<u32>,
    open: Vec<(usize, Position)>,
    known: HashMap<Position, u128>,
    /// Masks that were found by reading every token.
    pub(super) num_found: usize,
}

impl<'c> Definition<'c> {
    pub(super) fn new(constraint: &'c GrammarConstraint) -> Self {
        Self {
            constraint,
            scratch: RecognizerScratch::default(),
            row: vec![0; mask::num_words(constraint.num_tokens())],
            open: Vec::new(),
            known: HashMap::new(),
            num_found: 0,
        }
    }

    /// The place before the first byte.
    pub(super) fn start(&self) -> Option<Position> {
        self.constraint.start().position().cloned()
    }

    /// The place after some bytes; `None` where they lead nowhere.
    pub(super) fn after(&mut self, place: &Position, bytes: &[u8]) -> Option<Position> {
        let recognizer = self.constraint.recognizer();
        bytes.iter().try_fold(place.clone(), |place, &byte| {
            recognizer.advance(&place, byte, &mut self.scratch).expect("no limit")
        })
    }

    /// Fingerprint of the mask of a place.
    pub(super) fn mask(&mut self, place: &Position) -> u128 {
        if let Some(&known) = self.known.get(place) {
            return known;
        }
        let recognizer = self.constraint.recognizer();
        let trie = self.constraint.prepared_vocabulary().trie();
        self.row.fill(0);
        self.open.push((0, place.clone()));
        while let Some((node, at)) = self.open.pop() {
            for child in trie.children(node) {
                let next = recognizer.advance(&at, child.byte, &mut self.scratch);
                let Some(next) = next.expect("no limit") else { continue };
                for &token in trie.tokens_in(trie.own_ranks(child.index)) {
                    mask::insert(&mut self.row, token);
                }
                self.open.push((child.index, next));
            }
        }
        if recognizer.is_accepting(place, &mut self.scratch).expect("no limit") {
            for &end in self.constraint.ends() {
                mask::insert(&mut self.row, end);
            }
        }
        let found = fingerprint(&self.row);
        if self.known.len() == MAX_PLACES {
            self.known.clear();
        }
        self.known.insert(place.clone(), found);
        self.num_found += 1;
        found
    }
}

/// Fingerprint of a mask.
pub(super) fn fingerprint(row: &[u32]) -> u128 {
    xxh3_128(bytemuck::cast_slice(row))
}
