//! Nodes of the stack automaton, built before masks ask for them.

use std::sync::{PoisonError, RwLockWriteGuard};

use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::{Position, Recognizer, RecognizerError};

use super::memo::Memo;
use super::prepared_vocabulary::MAX_RESIDUAL_BYTES;
use super::{FoundMasks, MaskAutomaton, WhenFull};
use crate::residuals::{ResidualWorklist, StackWorklist, Unread};
use crate::{Budget, Interrupted};

/// Outcome of precomputing a lexeme in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexemeAhead {
    /// All that it needs is known.
    Known,
    /// It is left to whoever asks, having given way to others again and again.
    Left,
    /// Masks of it are found by walking.
    Walked,
}

impl MaskAutomaton {
    /// Computes what the mask of a position needs; tells whether that was not known. What is known stays: where there is no
    /// room for more, that is an error.
    ///
    /// # Errors
    /// As [`fill_mask_within`](Self::fill_mask_within), and when the memory is full.
    pub fn prepare(
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

    /// All that may be left of the terminals of a grammar whose lexemes are [independent](Recognizer::is_independent), nothing of which was
    /// looked at yet, until that takes `max_bytes` more than before.
    pub fn residuals_ahead(&self, recognizer: &Recognizer, max_bytes: usize) -> ResidualWorklist {
        let residuals = self.vocabulary.residuals();
        let most = residuals.memory_bytes().saturating_add(max_bytes).min(MAX_RESIDUAL_BYTES);
        ResidualWorklist::new(residuals, recognizer.grammar(), most)
    }

    /// Computes one token effect more, which grammars over the vocabulary share; tells whether there was one, and memory for it.
    ///
    /// # Errors
    /// When the budget is used up.
    pub fn prepare_residual(
        &self,
        recognizer: &Recognizer,
        ahead: &mut ResidualWorklist,
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
                // It is walked, or computed, whenever it is met.
                Err(_) => {
                    ahead.skip();
                    return Ok(true);
                }
                Ok(more) => return Ok(more),
            }
        }
    }

    /// Worklist over the nodes that stacks lead to, empty.
    pub fn stacks_ahead(&self, recognizer: &Recognizer) -> StackWorklist {
        StackWorklist::new(recognizer.parser().tables())
    }

    /// Makes so many nodes more, or all there are; holds the memo meanwhile.
    ///
    /// # Errors
    /// When the budget is used up or the memory full.
    pub fn prepare_stacks(
        &self,
        recognizer: &Recognizer,
        ahead: &mut StackWorklist,
        number: usize,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        let (mut tries, mut left) = (0, number);
        while left > 0 && !ahead.is_empty() {
            let mut memo = self.take_hold(budget)?;
            while left > 0 {
                match memo.look_at_stack(recognizer, &self.vocabulary, ahead, budget) {
                    Ok(()) => {}
                    Err(Unread::Interrupted(why)) => {
                        drop(memo);
                        if budget.gives_up(why, &mut tries)? {
                            ahead.skip();
                        }
                        break;
                    }
                    Err(Unread::Unknown) => ahead.skip(),
                }
                left -= 1;
            }
        }
        Ok(())
    }

    /// Makes the node of a lexeme in progress on stacks with this topmost state, as far as that alone decides.
    ///
    /// # Errors
    /// When the budget is used up or the memory full.
    pub fn prepare_lexeme(
        &self,
        recognizer: &Recognizer,
        ahead: &mut StackWorklist,
        lexeme: (LexerState, StateId),
        budget: &mut Budget<'_>,
    ) -> Result<LexemeAhead, Interrupted> {
        let mut tries = 0;
        loop {
            let mut memo = self.take_hold(budget)?;
            let looked = memo.look_at_lexeme(recognizer, &self.vocabulary, lexeme, ahead, budget);
            drop(memo);
            match looked {
                Ok(()) => return Ok(LexemeAhead::Known),
                Err(Unread::Unknown) => return Ok(LexemeAhead::Walked),
                Err(Unread::Interrupted(why)) => {
                    if budget.gives_up(why, &mut tries)? {
                        return Ok(LexemeAhead::Left);
                    }
                }
            }
        }
    }

    /// Takes hold of the memo, to add to it once nobody else asks.
    fn take_hold(&self, budget: &Budget<'_>) -> Result<RwLockWriteGuard<'_, Memo>, Interrupted> {
        budget.let_others_pass();
        let memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        match memo.all_bytes() > self.max_bytes {
            true => Err(Interrupted::OutOfBytes { limit: self.max_bytes }),
            false => Ok(memo),
        }
    }
}
