//! Trie walk, the definition executed: every token's bytes through lexer and parser, shared
//! prefixes once.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use palmette_core::vocabulary_trie::Visit;
use palmette_core::{VocabularyTrie, mask};
use palmette_grammar_parser::blocks::{Blocks, Letter, Line};
use palmette_grammar_parser::glr::{ParserScratch, Stacks};
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::recognizer::{
    ContextId, ContextualStates, Position, Recognizer, RecognizerError,
};

use crate::{Budget, TerminalSet};

/// Fills masks by walking the vocabulary's trie: the definition of a mask, but that a prefix of
/// many tokens is read once and one that is dead takes its whole subtree with it. Nothing is kept
/// from mask to mask but what the lexer learns.
///
/// Cost: one lexer step a branch and live node of the trie; 400 thousand nodes for a vocabulary of
/// 200 thousand tokens where everything may follow.
#[derive(Clone, Copy, Debug)]
pub struct TrieWalk<'a> {
    /// The grammar.
    pub recognizer: &'a Recognizer,
    /// The tokens.
    pub trie: &'a VocabularyTrie,
}

/// Memory that a thread lends to a walk; what is in it between two calls does not matter.
#[derive(Debug, Default)]
pub struct WalkScratch {
    parser: ParserScratch,
    /// The stacks that branches refer to.
    stacks: Vec<StackEntry>,
    by_fingerprint: HashMap<u64, Vec<u32>>,
    /// Shifts by stacks and lexeme: the stacks after it, several where these begin lexemes in
    /// different contexts.
    shifts: HashMap<(u32, Letter), Arc<[u32]>>,
    contextual: ContextualStates,
    /// The branches of all nodes from the root to the current one: a range for each.
    branches: Vec<(LexerState, u32, Line)>,
    path: Vec<Range<usize>>,
}

/// Stacks of branches, with what follows from them.
#[derive(Debug)]
struct StackEntry {
    stacks: Stacks,
    blocks: Blocks,
    /// Context of all topmost states, where lexemes begin in contexts.
    context: Option<ContextId>,
    /// Terminals that may follow, ignored ones included.
    allowed: TerminalSet,
}

impl TrieWalk<'_> {
    /// Sets the bits of the tokens with text that may follow; clears all others.
    ///
    /// # Errors
    /// When a limit is exceeded; the mask then denies all.
    ///
    /// # Panics
    /// When `mask` is too short for the vocabulary.
    pub fn fill_mask(
        &self,
        position: &Position,
        scratch: &mut WalkScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        self.fill_mask_within(position, scratch, mask, &mut Budget::unlimited())
    }

    /// [`fill_mask`](Self::fill_mask) that takes a unit of `budget` for each node of the trie and
    /// each of its branches.
    ///
    /// # Errors
    /// As [`fill_mask`](Self::fill_mask), and when the budget is used up.
    ///
    /// # Panics
    /// As [`fill_mask`](Self::fill_mask).
    pub fn fill_mask_within(
        &self,
        position: &Position,
        scratch: &mut WalkScratch,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        mask.fill(0);
        let result = self.walk(position, scratch, mask, budget);
        if result.is_err() {
            mask.fill(0);
        }
        result
    }

    fn walk(
        &self,
        position: &Position,
        scratch: &mut WalkScratch,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        scratch.reset();
        for branch in position.branches() {
            let stacks = self.know(branch.stacks.clone(), branch.blocks.clone(), scratch)?;
            scratch.branches.push((branch.lexer, stacks, branch.line));
        }
        let (trie, mut path) = (self.trie, std::mem::take(&mut scratch.path));
        let begun = 0..scratch.branches.len();
        let walked = trie.walk(1..trie.num_nodes(), begun, &mut path, |node, above| {
            budget.spend(1 + above.len() as u64)?;
            self.step(above.clone(), node.byte, scratch)?;
            if scratch.branches.len() == above.end {
                return Ok(Visit::Past);
            }
            for &token in trie.tokens_in(trie.own_ranks(node.index)) {
                mask::insert(mask, token);
            }
            Ok(Visit::Below(above.end..scratch.branches.len()))
        });
        scratch.path = path;
        walked.map(|_| ())
    }

    /// Adds the branches after `byte` of those at the node above, in place of those of other nodes
    /// below that.
    fn step(
        &self,
        above: Range<usize>,
        byte: u8,
        scratch: &mut WalkScratch,
    ) -> Result<(), RecognizerError> {
        let (lexer, layer) = (self.recognizer.lexer(), self.recognizer.layer());
        let fresh = layer.line_after(Line::OTHER, byte);
        let first = above.end;
        scratch.branches.truncate(first);
        for at in above {
            let (state, stacks, line) = scratch.branches[at];
            if let Some(next) = lexer.advance(state, byte)? {
                self.add(first, (next, stacks, layer.line_after(line, byte)), scratch);
            }
            for end in lexer.ends(state)? {
                for terminal in end.terminals.iter() {
                    let letter = layer.ended(terminal, line);
                    for &after in &*self.shift(stacks, letter, scratch)? {
                        let begin = self.begin(end.next, after, scratch)?;
                        if let Some(next) = lexer.advance(begin, byte)? {
                            self.add(first, (next, after, fresh), scratch);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a branch if something can complete it and it is not there yet, from `first` on.
    fn add(
        &self,
        first: usize,
        (state, stacks, line): (LexerState, u32, Line),
        scratch: &mut WalkScratch,
    ) {
        let possible = self.recognizer.lexer().viable_terminals(state);
        let branch = (state, stacks, self.recognizer.layer().line_of(possible, line));
        if possible.intersects(&scratch.stacks[stacks as usize].allowed)
            && !scratch.branches[first..].contains(&branch)
        {
            scratch.branches.push(branch);
        }
    }

    /// The state `next`, in which no byte of a lexeme was read, for lexemes that begin after some
    /// stacks.
    fn begin(
        &self,
        next: LexerState,
        stacks: u32,
        scratch: &mut WalkScratch,
    ) -> Result<LexerState, RecognizerError> {
        let (Some(contexts), Some(context)) =
            (self.recognizer.contexts(), scratch.stacks[stacks as usize].context)
        else {
            return Ok(next);
        };
        Ok(scratch.contextual.begin(self.recognizer.lexer(), contexts, next, context)?)
    }

    fn shift(
        &self,
        before: u32,
        letter: Letter,
        scratch: &mut WalkScratch,
    ) -> Result<Arc<[u32]>, RecognizerError> {
        if let Some(known) = scratch.shifts.get(&(before, letter)) {
            return Ok(Arc::clone(known));
        }
        let StackEntry { stacks, blocks, .. } = &scratch.stacks[before as usize];
        let parser = self.recognizer.parser();
        let layer = self.recognizer.layer();
        let mut after = Vec::new();
        let stepped = match self.recognizer.ignored().contains(letter.terminal) {
            true => Some((stacks.clone(), blocks.clone())),
            false => layer.step(parser, (stacks, blocks), letter, &mut scratch.parser)?,
        };
        // A lexeme in progress may be one for stacks in several contexts.
        if let Some((stacks, blocks)) = stepped {
            let context = |state| self.recognizer.contexts().map(|contexts| contexts.of(state));
            for (_, stacks) in stacks.by_top(context) {
                after.push(self.know(stacks, blocks.clone(), scratch)?);
            }
        }
        let after: Arc<[u32]> = after.into();
        scratch.shifts.insert((before, letter), Arc::clone(&after));
        Ok(after)
    }

    /// The number of these stacks and blocks.
    fn know(
        &self,
        stacks: Stacks,
        blocks: Blocks,
        scratch: &mut WalkScratch,
    ) -> Result<u32, RecognizerError> {
        let alike = scratch.by_fingerprint.entry(stacks.fingerprint()).or_default();
        let same = alike.iter().find(|&&known| {
            let known = &scratch.stacks[known as usize];
            known.stacks == stacks && known.blocks == blocks
        });
        if let Some(&known) = same {
            return Ok(known);
        }
        let number = scratch.stacks.len() as u32;
        alike.push(number);
        let mut allowed = self.recognizer.ignored().clone();
        self.recognizer.parser().allowed(&stacks, &mut allowed, &mut scratch.parser)?;
        self.recognizer.layer().add_dropped(&blocks, &mut allowed);
        let top = stacks.states().next();
        let context = self.recognizer.contexts().zip(top).map(|(contexts, top)| contexts.of(top));
        scratch.stacks.push(StackEntry { stacks, blocks, context, allowed });
        Ok(number)
    }
}

impl WalkScratch {
    fn reset(&mut self) {
        self.stacks.clear();
        self.by_fingerprint.clear();
        self.shifts.clear();
        self.contextual.clear();
        self.branches.clear();
    }
}
