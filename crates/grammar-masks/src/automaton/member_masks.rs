//! Masks of grammars with member sets: the automaton tells places, the sets tell tokens.
//!
//! A token is read as lexemes and members in some order. The automaton, which all bindings share,
//! covers each run without members and says where members may begin; a set says which tokens its
//! members consume whole and where in others one has ended; from there the automaton goes on. Ends
//! within tokens are few, so the stacks there are found by reading the bytes that lead to them.
//!
//! Cost: within a member, what [`MemberSet::effect`](palmette_core::MemberSet::effect) takes; where
//! members begin, a row that the binding keeps; for each end within tokens, a read of its bytes.

use std::sync::Arc;

use hashbrown::HashSet;
use palmette_core::{Binding, MemberId, mask};
use palmette_grammar_parser::recognizer::{
    Position, Recognizer, RecognizerError, RecognizerScratch,
};

use super::member_entry::MemberEntry;
use super::member_rows::MemberRows;
use super::{FoundMasks, MaskAutomaton, WhenFull};
use crate::Budget;

/// Fills masks of positions under a binding.
#[derive(Clone, Copy, Debug)]
pub struct MemberMasks<'a> {
    /// The automaton of the recognizer's grammar.
    pub automaton: &'a MaskAutomaton,
    /// The grammar.
    pub recognizer: &'a Recognizer,
    /// The rows of the positions' binding.
    pub rows: &'a MemberRows,
}

/// Memory that a thread lends to masks with members; what is in it between two calls does not
/// matter.
#[derive(Debug, Default)]
pub struct MemberScratch {
    found: FoundMasks,
    /// Nodes where a member has ended, to be gone on from.
    ends: Vec<(u32, MemberId)>,
    /// Nodes that were gone on from.
    ended: HashSet<u32>,
    /// Entries that were followed, few; kept alive, so that they are told apart by their addresses.
    entered: Vec<Arc<MemberEntry>>,
    bytes: Vec<u8>,
}

impl MemberScratch {
    fn clear(&mut self) {
        let Self { found, ends, ended, entered, bytes } = self;
        found.masks.clear();
        found.entries.clear();
        ends.clear();
        ended.clear();
        entered.clear();
        bytes.clear();
    }
}

impl MemberMasks<'_> {
    /// Sets the bits of the tokens with text that may follow, and clears all others; takes a unit
    /// of `budget` for each node of the vocabulary's trie that is visited.
    ///
    /// # Errors
    /// When a limit is exceeded or the budget is used up; the mask then denies all.
    ///
    /// # Panics
    /// When `mask` is not a row of the vocabulary, or the position is not bound.
    pub fn fill_mask_within(
        &self,
        position: &Position,
        scratch: (&mut MemberScratch, &mut RecognizerScratch),
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let binding = position.binding().expect("a position under a binding");
        let mut filling = Filling { of: *self, position, binding, mask, budget };
        scratch.0.clear();
        let filled = filling.fill(scratch.0, scratch.1);
        if filled.is_err() {
            mask.fill(0);
        }
        filled
    }
}

/// Extent of what is read below a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// All that goes on there.
    All,
    /// Lexemes and members that begin after those in progress.
    Next,
}

/// A mask that is being filled.
struct Filling<'a, 'm, 'b> {
    of: MemberMasks<'a>,
    position: &'a Position,
    binding: &'a Arc<Binding>,
    mask: &'m mut [u32],
    budget: &'m mut Budget<'b>,
}

impl Filling<'_, '_, '_> {
    fn fill(
        &mut self,
        scratch: &mut MemberScratch,
        reading: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let MemberMasks { automaton, recognizer, .. } = self.of;
        let found = &mut scratch.found;
        automaton.read(recognizer, self.budget, WhenFull::Drop, |memo| {
            found.masks.clear();
            found.entries.clear();
            memo.find(recognizer, self.position, found)?;
            memo.copy(found, self.mask)
        })?;
        for branch in self.position.branches() {
            if let Some(place) = &branch.member {
                let (set, trie) = (place.set(self.binding), automaton.vocabulary.trie());
                let ends = &mut scratch.ends;
                set.effect(&place.cursor, trie, 0, self.mask, ends, self.budget)?;
            }
        }
        let longest = automaton.vocabulary.trie().max_depth();
        if !recognizer.is_roomy(self.position, longest) {
            return self.read_after_ends(scratch, reading);
        }
        loop {
            if let Some(entry) = scratch.found.entries.pop() {
                if !scratch.entered.iter().any(|known| Arc::ptr_eq(known, &entry)) {
                    scratch.entered.push(Arc::clone(&entry));
                    self.enter(&entry, scratch, reading)?;
                }
            } else if let Some((node, _)) = scratch.ends.pop() {
                if scratch.ended.insert(node) {
                    self.go_on_below(node, scratch, reading)?;
                }
            } else {
                return Ok(());
            }
        }
    }

    /// Adds the tokens within which members begin at an entry.
    fn enter(
        &mut self,
        entry: &Arc<MemberEntry>,
        scratch: &mut MemberScratch,
        reading: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let MemberMasks { automaton, recognizer, rows } = self.of;
        let trie = automaton.vocabulary.trie();
        // What was read of a name decides about names later on, and what was written in a scope
        // about its set, so with these only reading tells.
        let (names, scopes) = (recognizer.names(), recognizer.scopes());
        let depends = names.is_active() || scopes.is_scoped(recognizer.grammar(), entry.slot);
        if entry.at_all && !depends {
            let vocabulary = (trie, self.mask.len());
            let row = rows.row(entry, self.binding, vocabulary, self.budget)?;
            self.budget.spend(1 + entry.nodes.len() as u64)?;
            row.insert(self.mask);
            scratch.ends.extend_from_slice(&row.ends);
            return Ok(());
        }
        for &node in &entry.nodes {
            self.budget.spend(1)?;
            let Some(there) = self.read_to(node, &mut scratch.bytes, reading)? else { continue };
            let Some(begun) = recognizer.begin_members_after(&there, reading)? else { continue };
            for branch in begun.branches() {
                let Some(place) = &branch.member else { continue };
                let (set, ends) = (place.set(self.binding), &mut scratch.ends);
                set.effect(&place.cursor, trie, node, self.mask, ends, self.budget)?;
            }
        }
        Ok(())
    }

    /// Takes out the tokens that go on after the lexemes and members in progress, which the
    /// automaton knows without open scopes, and adds those that reading finds.
    fn read_after_ends(
        &mut self,
        scratch: &mut MemberScratch,
        reading: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let MemberMasks { automaton, recognizer, .. } = self.of;
        let trie = automaton.vocabulary.trie();
        let mut nodes: Vec<u32> = scratch.ends.drain(..).map(|(node, _)| node).collect();
        for branch in self.position.branches().iter().filter(|branch| branch.member.is_none()) {
            let ends = automaton.ends.find(recognizer, trie, branch.lexer, self.budget)?;
            nodes.extend_from_slice(&ends);
        }
        nodes.sort_unstable();
        let mut end = 0;
        for node in nodes {
            // What lies below the one before was read with it.
            if (node as usize) < end {
                continue;
            }
            end = trie.end(node as usize);
            let below = trie.own_ranks(node as usize).end..trie.ranks(node as usize).end;
            let tokens = trie.tokens_in(below).iter();
            tokens.for_each(|&token| mask::remove(self.mask, token));
            let there = self.read_to(node, &mut scratch.bytes, reading)?;
            if let Some(there) = there {
                self.read_below(node as usize, &there, Reading::All, reading)?;
            }
        }
        Ok(())
    }

    /// Adds the tokens that go on below a node where members have ended.
    fn go_on_below(
        &mut self,
        node: u32,
        scratch: &mut MemberScratch,
        reading: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let MemberMasks { automaton, recognizer, .. } = self.of;
        self.budget.spend(1)?;
        let Some(there) = self.read_to(node, &mut scratch.bytes, reading)? else { return Ok(()) };
        if recognizer.names().is_active() {
            return self.read_below(node as usize, &there, Reading::Next, reading);
        }
        let Some(after) = recognizer.after_members(&there, reading)? else { return Ok(()) };
        let found = &mut scratch.found;
        // Entries are added to those that wait.
        automaton.read(recognizer, self.budget, WhenFull::Drop, |memo| {
            if node != 0 {
                return memo.insert_below(node, &after, &mut found.entries, self.mask);
            }
            found.masks.clear();
            memo.find(recognizer, &after, found)?;
            let all = found.masks.iter();
            all.for_each(|&of| memo.masks.insert(of, &memo.suffix_sets, self.mask));
            Ok(())
        })
    }

    /// Adds the tokens below a node by reading them.
    fn read_below(
        &mut self,
        node: usize,
        position: &Position,
        of: Reading,
        reading: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let MemberMasks { automaton, recognizer, .. } = self.of;
        let trie = automaton.vocabulary.trie();
        let mut open = vec![(node, position.clone())];
        while let Some((above, position)) = open.pop() {
            for child in trie.children(above) {
                self.budget.spend(1)?;
                let next = match above == node && of == Reading::Next {
                    true => recognizer.begin_next(&position, child.byte, reading)?,
                    false => recognizer.advance(&position, child.byte, reading)?,
                };
                if let Some(next) = next {
                    let own = trie.own_ranks(child.index);
                    trie.tokens_in(own).iter().for_each(|&token| mask::insert(self.mask, token));
                    open.push((child.index, next));
                }
            }
        }
        Ok(())
    }

    /// The position at a node of the vocabulary's trie.
    fn read_to(
        &self,
        node: u32,
        bytes: &mut Vec<u8>,
        reading: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        if node == 0 {
            return Ok(Some(self.position.clone()));
        }
        bytes.clear();
        self.of.automaton.vocabulary.trie().add_path(0, node as usize, bytes);
        self.of.recognizer.advance_all(self.position, bytes, reading)
    }
}
