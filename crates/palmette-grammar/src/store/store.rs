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
use crate::lexer::{LexerError, LexerState};
use crate::recognizer::{Branch, Position, Recognizer, RecognizerError};
use crate::{ParserScratch, Stacks};

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
        mask.fill(0);
        for branch in position.branches() {
            if let Err(error) = self.add_allowed(branch, scratch, mask) {
                mask.fill(0);
                return Err(error);
            }
        }
        Ok(())
    }

    fn add_allowed(
        &self,
        branch: &Branch,
        scratch: &mut ParserScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        let (parser, layer) = (self.recognizer.parser(), self.recognizer.layer());
        let rows = self.rows(branch.lexer)?;
        let scratch = RefCell::new(scratch);
        let accepts = |(stacks, blocks): &(Stacks, Blocks), letter: Letter| {
            layer.accepts(parser, (stacks, blocks), letter.terminal, &mut scratch.borrow_mut())
        };
        let step = |(stacks, blocks): &(Stacks, Blocks), letter: Letter| {
            let letter = Letter { line: branch.line.then(letter.line), ..letter };
            layer.step(parser, (stacks, blocks), letter, &mut scratch.borrow_mut())
        };
        let begin = (branch.stacks.clone(), branch.blocks.clone());
        Ok(rows.fill(begin, mask, accepts, step)?)
    }

    /// The rows of a lexer state.
    fn rows(&self, state: LexerState) -> Result<Arc<Rows>, LexerError> {
        if let Some(rows) = self.kept.read().expect("no panic while held").rows.get(&state) {
            return Ok(rows.clone());
        }
        let speller = Speller {
            vocabulary: &self.vocabulary,
            tokens: &self.tokens,
            ignored: self.recognizer.ignored(),
            indentation: self.recognizer.grammar().indentation(),
        };
        let (spellings, _) = speller.spell(self.recognizer.lexer(), state)?;
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
