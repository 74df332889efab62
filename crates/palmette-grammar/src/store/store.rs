//! Rows, built for each position of the lexer when it is first visited.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, RwLock};

use palmette_core::Vocabulary;

use super::{
    letter::Letter,
    rows::Rows,
    spelling::{SortedTokens, Speller},
    streamline::{Steps, Streamliner},
};
use crate::blocks::Blocks;
use crate::lexer::LexerState;
use crate::recognizer::{Branch, Position, Recognizer, RecognizerError};
use crate::{Budget, ParserScratch, Stacks};

/// A mask engine: the rows of every visited state of a recognizer's lexer. Threads share it; two that visit a state first at
/// the same time both build its rows, which are equal.
#[derive(Debug)]
pub struct MaskStore {
    recognizer: Arc<Recognizer>,
    vocabulary: Arc<Vocabulary>,
    tokens: SortedTokens,
    streamliner: Streamliner,
    max_bytes: usize,
    kept: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    rows: HashMap<LexerState, Arc<Rows>>,
    /// By age.
    order: VecDeque<LexerState>,
    bytes: usize,
}

/// What a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatistics {
    /// States of the lexer with rows.
    pub states: usize,
    /// Rows of all of them.
    pub rows: usize,
    /// Their memory.
    pub bytes: usize,
}

impl MaskStore {
    /// Nothing is built yet. Rows that would make all exceed `max_bytes` push out the oldest, which are built anew when they
    /// are asked for again; one position's rows are served even when they exceed it alone.
    pub fn new(
        recognizer: Arc<Recognizer>,
        vocabulary: Arc<Vocabulary>,
        steps: Steps,
        max_bytes: usize,
    ) -> Self {
        Self {
            tokens: SortedTokens::new(&vocabulary),
            streamliner: Streamliner::new(recognizer.grammar(), steps),
            recognizer,
            vocabulary,
            max_bytes,
            kept: RwLock::default(),
        }
    }

    /// Whether these are what it was made of.
    pub(crate) fn is_of(&self, recognizer: &Arc<Recognizer>, vocabulary: &Arc<Vocabulary>) -> bool {
        Arc::ptr_eq(&self.recognizer, recognizer) && Arc::ptr_eq(&self.vocabulary, vocabulary)
    }

    /// What is held now.
    pub fn statistics(&self) -> StoreStatistics {
        let kept = self.kept.read().expect("no panic while held");
        StoreStatistics {
            states: kept.rows.len(),
            rows: kept.rows.values().map(|rows| rows.num_rows()).sum(),
            bytes: kept.bytes,
        }
    }

    /// Sets the bits of the tokens with text that may follow; clears all others.
    ///
    /// Cost: that of the rows of the position's lexer states where they were not visited before; then one question to the
    /// parser a row, or less.
    ///
    /// # Errors
    /// When a limit is exceeded; the mask then denies all.
    ///
    /// # Panics
    /// When `mask` is too short for the vocabulary.
    pub fn fill_mask(
        &self,
        position: &Position,
        scratch: &mut ParserScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        self.fill_mask_within(position, scratch, mask, &mut Budget::unlimited())
    }

    /// [`fill_mask`](Self::fill_mask) that takes what new rows cost from `budget`: a unit for each node of the vocabulary's trie
    /// that is reached, and each of its branches; and a unit for each question to the parser.
    ///
    /// # Errors
    /// As [`fill_mask`](Self::fill_mask), and when the budget is used up.
    ///
    /// # Panics
    /// As [`fill_mask`](Self::fill_mask).
    pub fn fill_mask_within(
        &self,
        position: &Position,
        scratch: &mut ParserScratch,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        mask.fill(0);
        for branch in position.branches() {
            if let Err(error) = self.add_allowed(branch, scratch, mask, budget) {
                mask.fill(0);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Builds the rows that the mask of a position needs.
    ///
    /// # Errors
    /// As [`fill_mask_within`](Self::fill_mask_within).
    pub(crate) fn prepare(
        &self,
        position: &Position,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        position.branches().iter().try_for_each(|branch| self.rows(branch.lexer, budget).map(drop))
    }

    fn add_allowed(
        &self,
        branch: &Branch,
        scratch: &mut ParserScratch,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let (parser, layer) = (self.recognizer.parser(), self.recognizer.layer());
        let rows = self.rows(branch.lexer, budget)?;
        let lent = RefCell::new((scratch, budget));
        let accepts = |(stacks, blocks): &(Stacks, Blocks), letter: Letter| {
            let (scratch, budget) = &mut *lent.borrow_mut();
            budget.spend(1)?;
            Ok(layer.accepts(parser, (stacks, blocks), letter.terminal, scratch)?)
        };
        let step = |(stacks, blocks): &(Stacks, Blocks), letter: Letter| {
            let (scratch, budget) = &mut *lent.borrow_mut();
            budget.spend(1)?;
            let letter = Letter { line: branch.line.then(letter.line), ..letter };
            Ok(layer.step(parser, (stacks, blocks), letter, scratch)?)
        };
        let begin = (branch.stacks.clone(), branch.blocks.clone());
        rows.fill(begin, mask, accepts, step)
    }

    /// The rows of a lexer state.
    fn rows(
        &self,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<Rows>, RecognizerError> {
        if let Some(rows) = self.kept.read().expect("no panic while held").rows.get(&state) {
            return Ok(rows.clone());
        }
        let speller = Speller {
            vocabulary: &self.vocabulary,
            tokens: &self.tokens,
            ignored: self.recognizer.ignored(),
            indentation: self.recognizer.grammar().indentation(),
        };
        let spend = |units| Ok::<_, RecognizerError>(budget.spend(units)?);
        let (spellings, _) = speller.spell_within(self.recognizer.lexer(), state, spend)?;
        let spellings = self.streamliner.streamline(spellings);
        let rows = Arc::new(Rows::new(spellings, self.vocabulary.num_tokens()));
        self.keep(state, &rows);
        Ok(rows)
    }

    fn keep(&self, state: LexerState, rows: &Arc<Rows>) {
        let mut kept = self.kept.write().expect("no panic while held");
        if rows.bytes() > self.max_bytes || kept.rows.contains_key(&state) {
            return;
        }
        while kept.bytes + rows.bytes() > self.max_bytes {
            let oldest = kept.order.pop_front().expect("bytes are those of rows");
            let gone = kept.rows.remove(&oldest).expect("it is in the order");
            kept.bytes -= gone.bytes();
        }
        kept.bytes += rows.bytes();
        kept.order.push_back(state);
        kept.rows.insert(state, rows.clone());
    }
}
