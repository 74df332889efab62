//! Token effects of all residuals of a grammar's terminals, computed ahead of time.
//!
//! Terminals have far fewer remainders than texts have positions, and a new one is what takes most of the time of a mask that takes
//! long.

use hashbrown::HashSet;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::lexemes::is_one_piece;
use super::{Lexemes, PieceId, Pieces, Unread};
use crate::lexer::Lexer;
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, Grammar, TerminalId};

/// Terminals of which pieces are to be made, and pieces to be looked at, those after fewer bytes first.
#[derive(Debug)]
pub(crate) struct PiecesAhead {
    pieces: Arc<Pieces>,
    terminals: Range<u32>,
    seen: HashSet<PieceId>,
    open: VecDeque<PieceId>,
    /// How much memory pieces may take.
    max_bytes: usize,
}

impl PiecesAhead {
    /// All terminals of a grammar, until pieces take so much memory.
    pub(in crate::masks) fn new(pieces: Arc<Pieces>, grammar: &Grammar, max_bytes: usize) -> Self {
        let terminals = 0..grammar.terminals().len() as u32;
        Self { pieces, terminals, seen: HashSet::new(), open: VecDeque::new(), max_bytes }
    }

    /// A terminal that is to be [added](Self::add).
    pub(in crate::masks) fn terminal(&self) -> Option<TerminalId> {
        self.terminals.clone().next().map(TerminalId)
    }

    /// Leaves out all terminals that were not added.
    pub(in crate::masks) fn leave_terminals(&mut self) {
        self.terminals = 0..0;
    }

    /// Adds what a terminal begins with; nothing where the lexemes have become numbers into other pieces, as they do once these
    /// take too much memory.
    ///
    /// # Errors
    /// When it is too large or the budget is used up; it is the next one still.
    pub(in crate::masks) fn add(
        &mut self,
        lexemes: &mut Lexemes,
        lexer: &Lexer,
        terminal: TerminalId,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        if Arc::ptr_eq(lexemes.pieces(), &self.pieces)
            && let Some(id) = lexemes.whole(lexer, terminal, budget)?
        {
            let lexeme = lexemes.all().get(id.index());
            match lexeme.whole {
                Some(whole) => self.push(whole),
                None => {
                    self.push(lexeme.rest);
                    lexeme.blanks.into_iter().for_each(|blanks| self.push(blanks));
                }
            }
        }
        self.terminals.next();
        Ok(())
    }

    /// Looks at one more piece; tells whether there was one, and memory for it.
    ///
    /// # Errors
    /// When it is too large, which leaves it to be walked, or the budget is used up; it is the next one still.
    pub(in crate::masks) fn look(
        &mut self,
        trie: &VocabularyTrie,
        num_words: usize,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Unread> {
        let Some(&piece) = self.open.front() else { return Ok(false) };
        if self.pieces.memory_bytes() > self.max_bytes {
            return Ok(false);
        }
        self.look_at(piece, trie, num_words, budget)?;
        self.open.pop_front();
        Ok(true)
    }

    /// Leaves the terminal or piece out that the last call was to add or to look at.
    pub(in crate::masks) fn skip(&mut self) {
        if self.terminals.next().is_none() {
            self.open.pop_front();
        }
    }

    fn look_at(
        &mut self,
        piece: PieceId,
        trie: &VocabularyTrie,
        num_words: usize,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        // So that it ends too where nothing else takes time.
        budget.spend(1)?;
        let pieces = Arc::clone(&self.pieces);
        // Masks are found for what goes on alike for the longest token.
        let alike = pieces.within(piece, trie.max_depth() as u32, budget)?;
        if alike != piece {
            self.push(alike);
        }
        let front = pieces.front(piece, budget)?;
        if is_one_piece(&front) {
            pieces.analysis(trie, num_words, piece, budget)?;
        }
        if !front.text.is_empty() {
            // Within a text nothing is asked of pieces.
            for part in front.blanks.into_iter().chain([front.rest]) {
                let part = pieces.intern(&mut pieces.growing(), part, budget)?;
                part.into_iter().for_each(|part| self.push(part));
            }
            return Ok(());
        }
        for &byte in pieces.classes(piece).representatives() {
            let next = pieces.advance(piece, byte, budget)?;
            next.into_iter().for_each(|next| self.push(next));
        }
        Ok(())
    }

    fn push(&mut self, piece: PieceId) {
        if self.seen.insert(piece) {
            self.open.push_back(piece);
        }
    }
}
