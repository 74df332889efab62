//! A mask put together from pieces, with a parser's stack at hand.

use std::sync::Arc;

use super::gathered::Gathered;
use super::level::{Fixed, Growing, LevelMemory};
use super::{ComponentsId, Lexemes, PieceId, Pieces, Tails, Unread};
use crate::Budget;
use crate::glr::StackNode;
use crate::lexer::LexerState;
use crate::lr::StateId;
use crate::recognizer::Recognizer;
use crate::vocabulary::VocabularyTrie;

/// What a reading found, and memory for the next one.
#[derive(Debug, Default)]
pub(in crate::masks) struct ReadingMemory {
    spare: Vec<LevelMemory>,
    read: Vec<StateId>,
}

/// Puts masks together, of so many words.
#[derive(Debug)]
pub(in crate::masks) struct Reading<'a, 'b> {
    pub(in crate::masks) recognizer: &'a Recognizer,
    pub(in crate::masks) trie: &'a VocabularyTrie,
    pub(in crate::masks) num_words: usize,
    pub(in crate::masks) lexemes: &'a mut Lexemes,
    pub(in crate::masks) tails: &'a mut Tails,
    pub(in crate::masks) memory: &'a mut ReadingMemory,
    pub(in crate::masks) budget: &'a mut Budget<'b>,
}

impl Reading<'_, '_> {
    /// Finds of what the mask of a lexeme in progress is made, on the stack that begins with `states`, the last of which is that of
    /// `lowest`. It is right for all stacks that begin with as many states as [`ReadingMemory::read`] has.
    ///
    /// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that is walked.
    pub(in crate::masks) fn find(
        &mut self,
        lexer: LexerState,
        states: &[StateId],
        lowest: StackNode<'_>,
    ) -> Result<ComponentsId, Unread> {
        self.budget.spend(1)?;
        let pieces = Arc::clone(self.lexemes.pieces());
        let lexemes = Arc::clone(self.lexemes.all());
        let fixed = Fixed {
            recognizer: self.recognizer,
            trie: self.trie,
            num_words: self.num_words,
            pieces: &pieces,
            lexemes: &lexemes,
        };
        let ReadingMemory { spare, read } = &mut *self.memory;
        read.clear();
        read.extend_from_slice(states);
        let mut entry = Some(lowest);
        let mut growing =
            Growing { lexemes: self.lexemes, tails: self.tails, budget: self.budget, spare };
        let mut node = growing.first_mask(fixed, lexer, states[0])?;
        let mut at = 0;
        'read: loop {
            let missing = growing.tails.mask_nodes.get(node).missing;
            if missing == 0 {
                break;
            }
            for _ in 0..missing {
                at += 1;
                if at == read.len() {
                    entry = entry.and_then(|entry| entry.below().next());
                    let Some(below) = entry else { break 'read };
                    read.push(below.state());
                }
            }
            node = growing.next_mask(fixed, node, read[at])?;
        }
        Ok(growing.tails.mask_nodes.get(node).said.made_of)
    }
}

impl Pieces {
    /// Gathers the tokens that stay within some pieces, ascending; masks have so many words.
    pub(in crate::masks) fn gather(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        stayed: &[PieceId],
        gathered: &mut Gathered,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        gathered.clear(num_words);
        let mut large = Vec::new();
        for &piece in stayed {
            let stay = &self.analysis(trie, num_words, piece, budget)?.stay;
            if stay.is_large() {
                large.push(piece);
            } else {
                gathered.insert_all(stay);
            }
        }
        if large.len() > 1
            && let Some(union) = self.union(&large, num_words)
        {
            gathered.insert_row(&union);
            return Ok(());
        }
        for piece in large {
            let stay = &self.analysis(trie, num_words, piece, budget)?.stay;
            self.add_bytes(stay.ask(num_words));
            gathered.insert_all(stay);
        }
        Ok(())
    }
}

impl ReadingMemory {
    /// The states that the last reading has read, from the top.
    pub(in crate::masks) fn read(&self) -> &[StateId] {
        &self.read
    }
}
