//! What masks need, found out before they are asked for.

use std::sync::PoisonError;

use super::slices::MAX_PIECE_BYTES;
use super::{FoundMasks, MaskAutomaton, WhenFull};
use crate::masks::pieces::{Ahead, PiecesAhead, StacksAhead, Unread};
use crate::recognizer::{Position, Recognizer, RecognizerError};
use crate::{Budget, Interrupted};

impl MaskAutomaton {
    /// Finds out what the mask of a position needs; tells whether that was not known. What is known stays: where there is no
    /// room for more, that is an error.
    ///
    /// # Errors
    /// As [`fill_mask_within`](Self::fill_mask_within), and when the memory is full.
    pub(crate) fn prepare(
        &self,
        recognizer: &Recognizer,
        position: &Position,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let mut asked = 0;
        self.read(recognizer, budget, WhenFull::Stop, |memo| {
            asked += 1;
            memo.find(position, &mut FoundMasks::default())
        })?;
        Ok(asked > 1)
    }

    /// All that may be left of the grammar's terminals, nothing of which was looked at yet, until that takes `max_bytes` more than before;
    /// `None` where lexemes compete, whose masks are walked.
    pub(crate) fn pieces_ahead(
        &self,
        recognizer: &Recognizer,
        max_bytes: usize,
    ) -> Option<PiecesAhead> {
        let lexer = recognizer.lexer();
        let independent = lexer.remainders(lexer.start(), |left| left.independent);
        let pieces = self.vocabulary.pieces();
        let most = pieces.memory_bytes().saturating_add(max_bytes).min(MAX_PIECE_BYTES);
        independent.then(|| PiecesAhead::new(pieces, recognizer.grammar(), most))
    }

    /// Finds out what tokens do to one piece more, which grammars over the vocabulary share; tells whether there was one, and memory for it.
    ///
    /// # Errors
    /// When the budget is used up.
    pub(crate) fn prepare_piece(
        &self,
        recognizer: &Recognizer,
        ahead: &mut PiecesAhead,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Interrupted> {
        let mut tries = 0;
        loop {
            let found = match ahead.terminal() {
                Some(terminal) => {
                    budget.let_others_pass();
                    let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
                    if memo.all_bytes() > self.max_bytes / 4 {
                        // The rest is for masks.
                        ahead.leave_terminals();
                        continue;
                    }
                    let lexemes = memo.lexemes(&self.vocabulary);
                    ahead.add(lexemes, recognizer.lexer(), terminal, budget).map(|()| true)
                }
                None => ahead.look(self.vocabulary.trie(), self.vocabulary.num_words(), budget),
            };
            match found {
                Err(Unread::Interrupted(why)) if !budget.gives_up(why, &mut tries)? => {}
                // It is walked, or found out, whenever it is met.
                Err(_) => {
                    ahead.skip();
                    return Ok(true);
                }
                Ok(more) => return Ok(more),
            }
        }
    }

    /// What all stacks say of tokens, nothing of which was looked at yet; `None` where lexemes compete.
    pub(crate) fn stacks_ahead(&self, recognizer: &Recognizer) -> Option<StacksAhead> {
        let lexer = recognizer.lexer();
        let independent = lexer.remainders(lexer.start(), |left| left.independent);
        independent.then(|| StacksAhead::new(recognizer.parser().tables()))
    }

    /// Finds out one of them; tells whether there was one to which at most `most` steps lead, and memory for it: what is known of masks
    /// may take `max_bytes`.
    ///
    /// # Errors
    /// When the budget is used up.
    pub(crate) fn prepare_stack(
        &self,
        recognizer: &Recognizer,
        ahead: &mut StacksAhead,
        which: Ahead,
        most: u32,
        max_bytes: usize,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Interrupted> {
        if ahead.steps(which).is_none_or(|next| next > most) {
            return Ok(false);
        }
        let mut tries = 0;
        loop {
            budget.let_others_pass();
            let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
            if memo.all_bytes() > max_bytes.min(self.max_bytes / 2) {
                return Ok(false);
            }
            let looked = memo.look_at_stack(recognizer, &self.vocabulary, which, ahead, budget);
            drop(memo);
            match looked {
                Err(Unread::Interrupted(why)) if !budget.gives_up(why, &mut tries)? => {}
                Err(_) => {
                    ahead.skip(which);
                    return Ok(true);
                }
                Ok(()) => return Ok(true),
            }
        }
    }

    /// Adds the lexemes in progress at a position that was prepared to what is to be looked at.
    pub(crate) fn add_ahead(&self, position: &Position, ahead: &mut StacksAhead) {
        self.memo.read().unwrap_or_else(PoisonError::into_inner).add_ahead(position, ahead);
    }
}
