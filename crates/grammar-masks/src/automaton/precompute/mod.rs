//! Precompute: masks found before they are asked for, by one best-first worklist.
//!
//! A mask depends on the lexeme in progress and on states of the stack from its top, whatever the
//! text was. So [lexemes](worklist) are followed byte by byte, the likeliest first, once for each
//! state that may be on top of the stack; in between, what such a state leaves open is followed
//! down [all stacks](StackWorklist) that may be below, deferred reductions first. Where a text can
//! be read in several ways, or there are blocks, its positions are visited after that.
//!
//! In programming languages lexemes begin by the topmost state alone, or are the same everywhere.
//! Then no text is followed to find them: the states that may be [on top](tops) after a terminal
//! are bounded from above. With contexts what is found is all there is, and when nothing is left no
//! mask of any text is unknown. Blocks are as many as one likes, so lexemes are looked at in [a few
//! of their states](likely_layers).

mod likely;
mod likely_layers;
mod tops;
mod worklist;

use std::sync::{PoisonError, RwLockWriteGuard};

use palmette_grammar_parser::recognizer::{
    Position, Recognizer, RecognizerError, RecognizerScratch,
};

use super::memo::Memo;
use super::{FoundMasks, MaskAutomaton, WhenFull};
use crate::residuals::{MaskFailure, StackWorklist};
use crate::{Budget, Interrupted};
use likely_layers::likely_layers;
use worklist::{LexemeOnTop, Visit, Worklist};

/// Masks to be computed before they are asked for, the likeliest first.
#[derive(Debug)]
pub struct Precompute<'a> {
    automaton: &'a MaskAutomaton,
    recognizer: &'a Recognizer,
    worklist: Worklist,
    stacks: StackWorklist,
    scratch: RecognizerScratch,
    visited: usize,
    /// True when some lexeme was left to be found when it is asked for.
    is_partial: bool,
}

/// Nodes of stacks that are made after a visit: each takes little where it is asked for.
const AFTER_A_VISIT: usize = 4;
/// Fewer where each lexeme is met once for each state on top: there are tens of thousands.
const AFTER_A_TOP: usize = 1;
const AT_THE_END: usize = 16;

impl<'a> Precompute<'a> {
    /// A worklist before its first visit. Stacks before lexemes, and positions with the same
    /// lexemes in progress, are visited once where they agree in `stack_depth` states of each stack
    /// from its top.
    pub fn new(
        automaton: &'a MaskAutomaton,
        recognizer: &'a Recognizer,
        stack_depth: usize,
    ) -> Self {
        Self {
            automaton,
            recognizer,
            worklist: Worklist::new(recognizer, automaton.vocabulary.horizon(), stack_depth),
            stacks: StackWorklist::new(recognizer.parser().tables()),
            scratch: RecognizerScratch::default(),
            visited: 0,
            is_partial: false,
        }
    }

    /// True when no mask of any text is unknown, once there is nothing left to do; where texts are
    /// followed as examples of others, that is never known.
    pub fn is_complete(&self) -> bool {
        let recognizer = self.recognizer;
        // What texts remember parts lexemes that begin alike.
        let remembers = recognizer.names().is_active()
            || recognizer.scopes().is_active()
            || recognizer.token_limits().is_active();
        recognizer.contexts().is_some()
            && !remembers
            && self.worklist.len() == 0
            && self.stacks.is_empty()
            && !self.is_partial
            && !self.stacks.is_partial()
    }

    /// Number of lexemes and positions whose masks are known now.
    pub fn visited(&self) -> usize {
        self.visited
    }

    /// Number of what was found and not visited.
    pub fn open(&self) -> usize {
        self.worklist.len()
    }

    /// About how much memory the worklists take.
    pub fn bytes(&self) -> usize {
        self.worklist.bytes() + self.stacks.bytes()
    }

    /// Visits the likeliest entry and makes a few nodes of stacks; tells whether there was anything
    /// left to do.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, the budget is used up, or the memory of masks is
    /// full: what is known is not dropped.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<bool, RecognizerError> {
        let trie = self.automaton.vocabulary.trie();
        let next = self.worklist.next(self.recognizer, trie, &mut self.scratch, budget)?;
        let number = match &next {
            Some(visit) => {
                self.visited += usize::from(match visit {
                    Visit::Nothing => false,
                    Visit::Lexeme(lexeme) => self.visit_lexeme(*lexeme, budget)?,
                    Visit::Position(position) => self.visit_position(position, budget)?,
                });
                if self.worklist.is_by_tops() { AFTER_A_TOP } else { AFTER_A_VISIT }
            }
            None => AT_THE_END,
        };
        self.visit_stacks(number, budget)?;
        Ok(next.is_some()
            || !self.stacks.is_empty()
            || self.worklist.begin_positions(self.recognizer)?)
    }

    /// Makes the node of a lexeme in progress, as far as the topmost state alone decides; tells
    /// whether it is known now: it is not where masks are found by walking, or that had to give way
    /// again and again.
    fn visit_lexeme(
        &mut self,
        lexeme: LexemeOnTop,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Interrupted> {
        let (recognizer, vocabulary) = (self.recognizer, &self.automaton.vocabulary);
        let layers = likely_layers(recognizer, lexeme.0);
        let (mut tries, mut done) = (0, 0);
        loop {
            let Some(layer) = layers.get(done) else { return Ok(true) };
            let mut memo = self.automaton.take_hold(budget)?;
            let stacks = &mut self.stacks;
            let made = memo.look_at_lexeme(recognizer, vocabulary, lexeme, layer, stacks, budget);
            drop(memo);
            match made {
                Ok(()) => done += 1,
                Err(MaskFailure::BeyondLimits) => {
                    self.worklist.visit_positions();
                    self.is_partial = true;
                    return Ok(false);
                }
                Err(MaskFailure::Interrupted(why)) => {
                    if budget.gives_up(why, &mut tries)? {
                        self.is_partial = true;
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Makes so many nodes more of stacks, or all there are; holds the memo meanwhile.
    fn visit_stacks(&mut self, number: usize, budget: &mut Budget<'_>) -> Result<(), Interrupted> {
        let (recognizer, vocabulary) = (self.recognizer, &self.automaton.vocabulary);
        let (mut tries, mut left) = (0, number);
        while left > 0 && !self.stacks.is_empty() {
            let mut memo = self.automaton.take_hold(budget)?;
            while left > 0 {
                match memo.look_at_stack(recognizer, vocabulary, &mut self.stacks, budget) {
                    Ok(()) => {}
                    Err(MaskFailure::BeyondLimits) => self.stacks.skip(),
                    Err(MaskFailure::Interrupted(why)) => {
                        drop(memo);
                        if budget.gives_up(why, &mut tries)? {
                            self.stacks.skip();
                        }
                        break;
                    }
                }
                left -= 1;
            }
        }
        Ok(())
    }

    /// Computes the mask of a position; tells whether it is known now.
    fn visit_position(
        &mut self,
        position: &Position,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let mut tries = 0;
        loop {
            let found = self.automaton.read(self.recognizer, budget, WhenFull::LeaveRoom, |memo| {
                memo.find(self.recognizer, position, &mut FoundMasks::default())
            });
            match found {
                Ok(()) => return Ok(true),
                // It is found by walking whenever it is asked for.
                Err(RecognizerError::Interrupted(
                    Interrupted::TooManyWays { .. } | Interrupted::TooManyResiduals,
                )) => return Ok(false),
                Err(RecognizerError::Interrupted(why)) => {
                    if budget.gives_up(why, &mut tries)? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl MaskAutomaton {
    /// Takes hold of the memo, to add to it once nobody else asks.
    fn take_hold(&self, budget: &Budget<'_>) -> Result<RwLockWriteGuard<'_, Memo>, Interrupted> {
        budget.let_others_pass();
        let memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        let limit = WhenFull::LeaveRoom.limit(self.max_bytes);
        match memo.all_bytes() > limit {
            true => Err(Interrupted::OutOfBytes { limit }),
            false => Ok(memo),
        }
    }
}
