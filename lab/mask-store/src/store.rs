//! Mask store: rows, built for each position of the lexer when it is first visited.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palmette_core::mask;
use palmette_grammar_masks::PreparedVocabulary;
use palmette_grammar_parser::blocks::{Blocks, Letter};
use palmette_grammar_parser::glr::{ParserScratch, Stacks};
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::recognizer::{Branch, Position, Recognizer, RecognizerError};

use super::refusal::StoreRefusal;
use super::rows::Rows;
use super::spelling::{Speller, Spellings};
use super::steps::Steps;
use super::streamline::Streamliner;

/// A mask engine: the rows of every visited state of a recognizer's lexer.
#[derive(Debug)]
pub struct MaskStore {
    recognizer: Arc<Recognizer>,
    vocabulary: Arc<PreparedVocabulary>,
    streamliner: Streamliner,
    rows: Mutex<HashMap<LexerState, Arc<Rows>>>,
}

/// Size of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatistics {
    /// States of the lexer with rows.
    pub states: usize,
    /// Rows of all of them.
    pub rows: usize,
    /// Memory that these take.
    pub bytes: usize,
}

impl MaskStore {
    /// A store without rows.
    ///
    /// # Errors
    /// When its rows would not hold for the grammar: they say what tokens spell after a lexer
    /// state, whatever the parser's.
    pub fn new(
        recognizer: Arc<Recognizer>,
        vocabulary: &Arc<PreparedVocabulary>,
        steps: Steps,
    ) -> Result<Self, StoreRefusal> {
        if let Some(refusal) = StoreRefusal::of(&recognizer) {
            return Err(refusal);
        }
        Ok(Self {
            streamliner: Streamliner::new(recognizer.grammar(), steps),
            vocabulary: vocabulary.for_grammar(recognizer.grammar()),
            recognizer,
            rows: Mutex::default(),
        })
    }

    /// Size now.
    pub fn statistics(&self) -> StoreStatistics {
        let known = self.known();
        let rows = known.values().map(|rows| rows.num_rows()).sum();
        let bytes = known.values().map(|rows| rows.bytes()).sum();
        StoreStatistics { states: known.len(), rows, bytes }
    }

    /// Sets the bits of the tokens with text that may follow; clears all others.
    ///
    /// Cost: that of the rows of the position's lexer states where they were not visited before;
    /// then one question to the parser a row, or less.
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
            let added = self.add_allowed(branch, scratch, mask);
            added.inspect_err(|_| mask.fill(0))?;
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
        let scratch = std::cell::RefCell::new(scratch);
        let accepts = |(stacks, blocks): &(Stacks, Blocks), letter: Letter| {
            let scratch = &mut *scratch.borrow_mut();
            Ok(layer.accepts(parser, (stacks, blocks), letter.terminal, scratch)?)
        };
        let step = |(stacks, blocks): &(Stacks, Blocks), letter: Letter| {
            let letter = Letter { line: branch.line.then(letter.line), ..letter };
            Ok(layer.step(parser, (stacks, blocks), letter, &mut scratch.borrow_mut())?)
        };
        let begin = (branch.stacks.clone(), branch.blocks.clone());
        rows.add_accepted(begin, accepts, step, |token| mask::insert(mask, token))
    }

    /// The rows of a lexer state.
    fn rows(&self, state: LexerState) -> Result<Arc<Rows>, RecognizerError> {
        if let Some(rows) = self.known().get(&state) {
            return Ok(Arc::clone(rows));
        }
        let rows = Arc::new(Rows::new(self.streamliner.streamline(self.spell(state)?)));
        self.known().insert(state, Arc::clone(&rows));
        Ok(rows)
    }

    /// The rows of a lexer state as the tokens spell them.
    pub(super) fn spell(&self, state: LexerState) -> Result<Spellings, RecognizerError> {
        let speller = Speller {
            tokens: self.vocabulary.trie(),
            ignored: self.recognizer.ignored(),
            indentation: self.recognizer.grammar().indentation(),
        };
        let (spelled, _) = speller.spell(self.recognizer.lexer(), state)?;
        Ok(spelled)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<LexerState, Arc<Rows>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
