//! Token effects of all residuals of a grammar's terminals, computed ahead of time.
//!
//! Terminals have far fewer remainders than texts have positions, and a new one is what takes most of the time of a mask that takes
//! long.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashSet;
use palmette_parser::lexer::Lexer;

use super::lexemes::is_one_residual;
use super::{Lexemes, ResidualId, Residuals, Unread};
use crate::vocabulary::VocabularyTrie;
use crate::{Budget, Grammar, TerminalId};

/// Terminals of which residuals are to be made, and residuals to be looked at, those after fewer bytes first.
#[derive(Debug)]
pub struct ResidualWorklist {
    residuals: Arc<Residuals>,
    terminals: Range<u32>,
    seen: HashSet<ResidualId>,
    open: VecDeque<ResidualId>,
    /// Memory that residuals may take.
    max_bytes: usize,
}

impl ResidualWorklist {
    /// All terminals of a grammar, until residuals take so much memory.
    pub(crate) fn new(residuals: Arc<Residuals>, grammar: &Grammar, max_bytes: usize) -> Self {
        let terminals = 0..grammar.terminals().len() as u32;
        Self { residuals, terminals, seen: HashSet::new(), open: VecDeque::new(), max_bytes }
    }

    /// A terminal that is to be [added](Self::add).
    pub(crate) fn terminal(&self) -> Option<TerminalId> {
        self.terminals.clone().next().map(TerminalId)
    }

    /// Leaves out all terminals that were not added.
    pub(crate) fn leave_terminals(&mut self) {
        self.terminals = 0..0;
    }

    /// Adds what a terminal begins with; nothing where the lexemes have become numbers into other residuals, as they do once these
    /// take too much memory.
    ///
    /// # Errors
    /// When it is too large or the budget is used up; it is the next one still.
    pub(crate) fn add(
        &mut self,
        lexemes: &mut Lexemes,
        lexer: &Lexer,
        terminal: TerminalId,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        if Arc::ptr_eq(lexemes.residuals(), &self.residuals)
            && let Some(id) = lexemes.whole(lexer, terminal, budget)?
        {
            let lexeme = &lexemes.all()[id.index()];
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

    /// Looks at one more residual; tells whether there was one, and memory for it.
    ///
    /// # Errors
    /// When it is too large, which leaves it to be walked, or the budget is used up; it is the next one still.
    pub(crate) fn look(
        &mut self,
        trie: &VocabularyTrie,
        num_words: usize,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Unread> {
        let Some(&residual) = self.open.front() else { return Ok(false) };
        if self.residuals.memory_bytes() > self.max_bytes {
            return Ok(false);
        }
        self.look_at(residual, trie, num_words, budget)?;
        self.open.pop_front();
        Ok(true)
    }

    /// Leaves the terminal or residual out that the last call was to add or to look at.
    pub(crate) fn skip(&mut self) {
        if self.terminals.next().is_none() {
            self.open.pop_front();
        }
    }

    fn look_at(
        &mut self,
        residual: ResidualId,
        trie: &VocabularyTrie,
        num_words: usize,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        // So that it ends too where nothing else takes time.
        budget.spend(1)?;
        let residuals = Arc::clone(&self.residuals);
        // Masks are found for what goes on alike for the longest token.
        let alike = residuals.bounded_equivalent(residual, trie.max_depth() as u32, budget)?;
        if alike != residual {
            self.push(alike);
        }
        let front = residuals.front(residual, budget)?;
        if is_one_residual(&front) {
            residuals.effect(trie, num_words, residual, budget)?;
        }
        if !front.text.is_empty() {
            // Within a text nothing is asked of residuals.
            for part in front.blanks.into_iter().chain([front.rest]) {
                let part = residuals.intern(&mut residuals.growing(), part, budget)?;
                part.into_iter().for_each(|part| self.push(part));
            }
            return Ok(());
        }
        for &byte in residuals.classes(residual).representatives() {
            let next = residuals.advance(residual, byte, budget)?;
            next.into_iter().for_each(|next| self.push(next));
        }
        Ok(())
    }

    fn push(&mut self, residual: ResidualId) {
        if self.seen.insert(residual) {
            self.open.push_back(residual);
        }
    }
}
