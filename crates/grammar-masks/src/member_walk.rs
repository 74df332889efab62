//! Trie walk over positions, for grammars with member sets: sets tell tokens, the recognizer the
//! rest.
//!
//! Within a member, and where nothing else is in progress, the set says which tokens it consumes
//! and at which nodes one of its spellings has ended; below those nodes, and wherever an ordinary
//! lexeme is in progress, every byte is read by the recognizer.
//!
//! Cost: a step of the recognizer for each live node outside of members; within them what
//! [`MemberSet::effect`] takes.

use palmette_core::{MemberSet, VocabularyTrie, mask};
use palmette_grammar_parser::recognizer::{
    Position, Recognizer, RecognizerError, RecognizerScratch,
};

use crate::Budget;

/// Fills masks of grammars with slots by walking the vocabulary's trie.
#[derive(Clone, Copy, Debug)]
pub struct MemberWalk<'a> {
    /// The grammar.
    pub recognizer: &'a Recognizer,
    /// The tokens.
    pub trie: &'a VocabularyTrie,
}

impl MemberWalk<'_> {
    /// Sets the bits of the tokens with text that may follow, and clears all others; takes a unit
    /// of `budget` for each node.
    ///
    /// # Errors
    /// When a limit is exceeded or the budget is used up; the mask then denies all.
    ///
    /// # Panics
    /// When `mask` is too short for the vocabulary.
    pub fn fill_mask_within(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        mask.fill(0);
        let result = self.walk(vec![(0, position.clone())], scratch, mask, budget);
        if result.is_err() {
            mask.fill(0);
        }
        result
    }

    /// Finds the tokens below some nodes, each with the position there.
    fn walk(
        &self,
        mut open: Vec<(usize, Position)>,
        scratch: &mut RecognizerScratch,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let mut ends = Vec::new();
        while let Some((node, position)) = open.pop() {
            let Some(sets) = members_alone(&position) else {
                for child in self.trie.children(node) {
                    budget.spend(1)?;
                    let next = self.recognizer.advance(&position, child.byte, scratch)?;
                    self.reach(child.index, next, mask, &mut open);
                }
                continue;
            };
            ends.clear();
            for (set, cursor) in sets {
                let node = node as u32;
                set.effect(cursor, self.trie, node, mask, &mut ends, budget)?;
            }
            ends.sort_unstable();
            ends.dedup_by_key(|(node, _)| *node);
            for &(end, _) in &ends {
                let end = end as usize;
                let there = self.descend(node, end, &position, scratch)?;
                let Some(there) = there else { continue };
                self.begin_below(end, &there, scratch, mask, &mut open, budget)?;
            }
        }
        Ok(())
    }

    /// Reaches the children of a node by what begins after the lexemes in progress there.
    fn begin_below(
        &self,
        node: usize,
        position: &Position,
        scratch: &mut RecognizerScratch,
        mask: &mut [u32],
        open: &mut Vec<(usize, Position)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        for child in self.trie.children(node) {
            budget.spend(1)?;
            let next = self.recognizer.begin_next(position, child.byte, scratch)?;
            self.reach(child.index, next, mask, open);
        }
        Ok(())
    }

    /// Allows the tokens of a node whose position is live, and leaves those below it to be found.
    fn reach(
        &self,
        node: usize,
        position: Option<Position>,
        mask: &mut [u32],
        open: &mut Vec<(usize, Position)>,
    ) {
        let Some(position) = position else { return };
        for &token in self.trie.tokens_in(self.trie.own_ranks(node)) {
            mask::insert(mask, token);
        }
        if self.trie.end(node) > node + 1 {
            open.push((node, position));
        }
    }

    /// The position at a node below another one's.
    fn descend(
        &self,
        from: usize,
        to: usize,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        let mut bytes = Vec::new();
        self.trie.add_path(from, to, &mut bytes);
        self.recognizer.advance_all(position, &bytes, scratch)
    }
}

/// The sets and cursors of a position all of whose branches are within members.
fn members_alone(position: &Position) -> Option<Vec<(&dyn MemberSet, &palmette_core::Cursor)>> {
    let binding = position.binding()?;
    let places = position.branches().iter().map(|branch| {
        let place = branch.member.as_ref()?;
        Some((place.set(binding), &place.cursor))
    });
    places.collect()
}
