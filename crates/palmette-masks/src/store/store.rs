//! Mask store: rows, built for each position of the lexer when it is first visited, and a memo of their answers.
//!
//! A mask is found by asking the rows of one stack, read from the top as deep as the answers need. It then holds for all
//! stacks that begin with what was read, and is kept for them.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, RwLock};

use palmette_parser::blocks::{Blocks, Letter};
use palmette_parser::glr::{ParserScratch, Stacks};
use palmette_parser::lexer::LexerState;
use palmette_parser::recognizer::{Branch, Position, Recognizer, RecognizerError};

use super::{
    answers::{AnswerId, Answers, Unanswered},
    parts::{PartMaker, Parts},
    rows::Rows,
    spelling::Speller,
    stack_reader::{StackReader, Ways},
    streamline::{Steps, Streamliner},
};
use crate::vocabulary::IndexedVocabulary;
use crate::{Budget, Interrupted, LimitError};

/// A mask engine: the rows of every visited state of a recognizer's lexer. Threads share it; two that visit a state first at
/// the same time both build its rows, which are equal.
#[derive(Debug)]
pub struct MaskStore {
    recognizer: Arc<Recognizer>,
    vocabulary: IndexedVocabulary,
    streamliner: Arc<Streamliner>,
    max_bytes: usize,
    kept: RwLock<Kept>,
    /// Parts that rows are put together from.
    parts: Parts,
    answers: RwLock<Answers>,
}

/// Answers take at most this much memory; then all are dropped.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Number of a branch's stacks up to which each is asked by itself; where there are more, all are asked at once and nothing is kept.
const MAX_STACKS: usize = 32;

#[derive(Debug, Default)]
struct Kept {
    rows: HashMap<LexerState, Arc<Rows>>,
    /// Lexer states by age.
    order: VecDeque<LexerState>,
    bytes: usize,
}

/// Size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatistics {
    /// States of the lexer with rows.
    pub states: usize,
    /// Rows of all of them.
    pub rows: usize,
    /// Their memory.
    pub bytes: usize,
    /// That of the masks that were found with them.
    pub answer_bytes: usize,
}

impl MaskStore {
    /// A store without rows. Rows that would make all exceed `max_bytes` push out the oldest, which are built anew when they
    /// are asked for again; one position's rows are served even when they exceed it alone. What rows are put together from counts
    /// too: where it exceeds half of `max_bytes`, all is forgotten.
    ///
    /// # Panics
    /// When it does not [read](Self::reads) the recognizer's grammar.
    pub fn new(
        recognizer: Arc<Recognizer>,
        vocabulary: impl Into<IndexedVocabulary>,
        steps: Steps,
        max_bytes: usize,
    ) -> Self {
        assert!(Self::reads(&recognizer), "rows of a lexer state hold for every parser state");
        Self {
            streamliner: Arc::new(Streamliner::new(recognizer.grammar(), steps)),
            recognizer,
            vocabulary: vocabulary.into(),
            max_bytes,
            kept: RwLock::default(),
            parts: Parts::default(),
            answers: RwLock::default(),
        }
    }

    /// True when its rows hold for a grammar: they say what tokens spell after a lexer state, whatever the parser's, so lexemes may not
    /// depend on that.
    pub fn reads(recognizer: &Recognizer) -> bool {
        recognizer.contexts().is_none()
    }

    /// True when these are what it was made of.
    pub fn is_of(
        &self,
        recognizer: &Arc<Recognizer>,
        vocabulary: impl Into<IndexedVocabulary>,
    ) -> bool {
        Arc::ptr_eq(&self.recognizer, recognizer) && self.vocabulary.is(&vocabulary.into())
    }

    /// An empty store of the same that may take as much.
    pub fn emptied(&self, max_bytes: usize) -> Self {
        let streamliner = self.streamliner.clone();
        let (recognizer, vocabulary) = (self.recognizer.clone(), self.vocabulary.clone());
        let (kept, parts, answers) = Default::default();
        Self { recognizer, vocabulary, streamliner, max_bytes, kept, parts, answers }
    }

    /// Size now.
    pub fn statistics(&self) -> StoreStatistics {
        let kept = self.kept.read().expect("no panic while held");
        StoreStatistics {
            states: kept.rows.len(),
            rows: kept.rows.values().map(|rows| rows.num_rows()).sum(),
            bytes: kept.bytes + self.parts.bytes(),
            answer_bytes: self.answers.read().expect("no panic while held").bytes(),
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
        let mut found = Vec::new();
        for branch in position.branches() {
            let filled = self.add_answers(branch, &mut found, mask, budget).and_then(|answered| {
                if answered { Ok(()) } else { self.add_allowed(branch, scratch, mask, budget) }
            });
            if let Err(error) = filled {
                mask.fill(0);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Adds the tokens of a branch, stack by stack; `false` when there are too many for that.
    fn add_answers(
        &self,
        branch: &Branch,
        found: &mut Vec<AnswerId>,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        for _ in 0..=MAX_STACKS {
            let unanswered = {
                let answers = self.answers.read().expect("no panic while held");
                match answers.find(branch, found) {
                    Ok(()) => {
                        for &id in &*found {
                            let known = answers.mask(id);
                            mask.iter_mut().zip(known).for_each(|(word, &known)| *word |= known);
                        }
                        return Ok(true);
                    }
                    Err(unanswered) => unanswered,
                }
            };
            if !self.answer(branch, unanswered, mask.len(), budget)? {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Asks the rows of one stack and keeps the answer; `false` when it can be parsed in too many ways.
    fn answer(
        &self,
        branch: &Branch,
        Unanswered { states, lowest }: Unanswered<'_>,
        num_words: usize,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let rows = self.rows(branch.lexer, budget)?;
        let (layer, tables) = (self.recognizer.layer(), self.recognizer.parser().tables());
        let reader = StackReader::new(tables, states, lowest);
        let begin = (reader.begin(), branch.blocks.clone());
        let lent = RefCell::new((reader, budget));
        let accepts = |(ways, blocks): &(Ways, Blocks), letter: Letter| {
            let (reader, budget) = &mut *lent.borrow_mut();
            budget.spend(1)?;
            Ok(layer.is_dropped(blocks, letter.terminal)
                || reader.accepts(ways, letter.terminal)?)
        };
        let step = |(ways, blocks): &(Ways, Blocks), letter: Letter| {
            let (reader, budget) = &mut *lent.borrow_mut();
            budget.spend(1)?;
            let letter = Letter { line: branch.line.then(letter.line), ..letter };
            let shift = |ways: &Ways, terminal| reader.shift(ways, terminal);
            Ok::<_, Unanswerable>(layer.step_by((ways, blocks), letter, shift)?)
        };
        let mut mask = vec![0; num_words];
        match rows.fill(begin, &mut mask, accepts, step) {
            Ok(()) => {}
            Err(Unanswerable::TooManyWays) => return Ok(false),
            Err(Unanswerable::Failed(error)) => return Err(error),
        }
        let read = lent.into_inner().0.into_read();
        let mut answers = self.answers.write().expect("no panic while held");
        if answers.bytes() > MAX_ANSWER_BYTES {
            *answers = Answers::default();
        }
        answers.insert(branch, &read, &mask);
        Ok(true)
    }

    /// Builds the rows that the mask of a position needs. Rows that are known stay: where there is no room for more, that is an
    /// error.
    ///
    /// # Errors
    /// As [`fill_mask_within`](Self::fill_mask_within), and when the memory is full.
    pub fn prepare(
        &self,
        position: &Position,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let mut is_new = false;
        for branch in position.branches() {
            if self.known_rows(branch.lexer).is_some() {
                continue;
            }
            is_new = true;
            let rows = self.new_rows(branch.lexer, budget)?;
            let is_full = self.statistics().bytes + rows.bytes() > self.max_bytes;
            if is_full || self.has_too_many_parts() {
                return Err(Interrupted::OutOfBytes { limit: self.max_bytes }.into());
            }
            self.keep(branch.lexer, &rows);
        }
        Ok(is_new)
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
        if let Some(rows) = self.known_rows(state) {
            return Ok(rows);
        }
        let rows = self.new_rows(state, budget)?;
        self.keep(state, &rows);
        Ok(rows)
    }

    fn known_rows(&self, state: LexerState) -> Option<Arc<Rows>> {
        self.kept.read().expect("no panic while held").rows.get(&state).cloned()
    }

    fn new_rows(
        &self,
        state: LexerState,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<Rows>, RecognizerError> {
        let speller = Speller {
            tokens: self.vocabulary.trie(),
            below: self.vocabulary.bytes_below(),
            ignored: self.recognizer.ignored(),
            indentation: self.recognizer.grammar().indentation(),
        };
        let maker = PartMaker {
            parts: &self.parts,
            speller,
            lexer: self.recognizer.lexer(),
            streamliner: &self.streamliner,
            num_words: self.vocabulary.num_words(),
        };
        Ok(Arc::new(maker.rows(state, |units| Ok::<_, RecognizerError>(budget.spend(units)?))?))
    }

    fn has_too_many_parts(&self) -> bool {
        self.parts.bytes() > self.max_bytes / 2
    }

    fn keep(&self, state: LexerState, rows: &Arc<Rows>) {
        let mut kept = self.kept.write().expect("no panic while held");
        let of_parts = self.parts.bytes();
        if self.has_too_many_parts() {
            // Rows share what parts hold, so neither can go without the other.
            self.parts.clear();
            *kept = Kept::default();
            return;
        }
        if of_parts + rows.bytes() > self.max_bytes || kept.rows.contains_key(&state) {
            return;
        }
        while kept.bytes + of_parts + rows.bytes() > self.max_bytes {
            let oldest = kept.order.pop_front().expect("bytes are those of rows");
            let gone = kept.rows.remove(&oldest).expect("it is in the order");
            kept.bytes -= gone.bytes();
        }
        kept.bytes += rows.bytes();
        kept.order.push_back(state);
        kept.rows.insert(state, rows.clone());
    }
}

/// Reason that rows cannot be asked of one stack.
enum Unanswerable {
    TooManyWays,
    Failed(RecognizerError),
}

impl From<LimitError> for Unanswerable {
    fn from(_: LimitError) -> Self {
        Self::TooManyWays
    }
}

impl From<Interrupted> for Unanswerable {
    fn from(error: Interrupted) -> Self {
        Self::Failed(error.into())
    }
}
