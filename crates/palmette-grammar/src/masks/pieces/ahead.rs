//! What tokens do to all that may be left of a grammar's terminals, found out before it is asked for.
//!
//! Terminals have far fewer remainders than texts have positions, and a new one is what takes most of the time of a mask that takes
//! long.

use hashbrown::HashSet;
use std::collections::VecDeque;
use std::sync::Arc;

use super::lexemes::is_one_piece;
use super::{Lexemes, PieceId, Pieces, Unread};
use crate::lexer::Lexer;
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, Interrupted, TerminalId};

/// Pieces to be looked at, those after fewer bytes first.
#[derive(Debug)]
pub(in crate::masks) struct PiecesAhead {
    pieces: Arc<Pieces>,
    seen: HashSet<PieceId>,
    open: VecDeque<PieceId>,
}

impl PiecesAhead {
    /// None of these yet.
    pub(in crate::masks) fn new(pieces: Arc<Pieces>) -> Self {
        Self { pieces, seen: HashSet::new(), open: VecDeque::new() }
    }

    /// Adds what a terminal begins with; nothing where the lexemes have become numbers into other pieces, as they do once these
    /// take too much memory.
    pub(in crate::masks) fn add(
        &mut self,
        lexemes: &mut Lexemes,
        lexer: &Lexer,
        terminal: TerminalId,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        if !Arc::ptr_eq(lexemes.pieces(), &self.pieces) {
            return Ok(());
        }
        if let Some(id) = lexemes.whole(lexer, terminal, budget)? {
            let lexeme = lexemes.all().get(id.index());
            match lexeme.whole {
                Some(whole) => self.push(whole),
                None => {
                    self.push(lexeme.rest);
                    lexeme.blanks.into_iter().for_each(|blanks| self.push(blanks));
                }
            }
        }
        Ok(())
    }

    /// Looks at one more piece; tells whether there was one.
    ///
    /// # Errors
    /// When a piece is too large, which leaves it to be walked, or the budget is used up; work that was called off is begun again by the
    /// next call.
    pub(in crate::masks) fn look(
        &mut self,
        trie: &VocabularyTrie,
        num_words: usize,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Unread> {
        let Some(&piece) = self.open.front() else { return Ok(false) };
        let looked = self.look_at(piece, trie, num_words, budget);
        if !matches!(looked, Err(Unread::Interrupted(Interrupted::Cancelled))) {
            self.open.pop_front();
        }
        looked.map(|()| true)
    }

    /// Leaves the piece out that the last call was to look at.
    pub(in crate::masks) fn skip(&mut self) {
        self.open.pop_front();
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
