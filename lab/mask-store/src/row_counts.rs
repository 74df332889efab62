//! Numbers of rows after each step, over some states of a lexer.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_grammar_masks::PreparedVocabulary;
use palmette_grammar_parser::blocks::Letter;
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::recognizer::{Recognizer, RecognizerError};

use super::refusal::StoreRefusal;
use super::spelling::Spellings;
use super::steps::Steps;
use super::store::MaskStore;
use super::streamline::Streamliner;

/// Rows of some states, and how they fall on these.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCounts {
    /// Rows of all states.
    pub rows: usize,
    /// Rows that differ in their sequence or their tokens.
    pub distinct: usize,
    /// Rows of each state, ascending.
    pub of_states: Vec<usize>,
}

impl RowCounts {
    /// Counts of the rows of some states.
    pub fn new(states: &[Spellings]) -> Self {
        let mut of_states: Vec<usize> = states.iter().map(Spellings::len).collect();
        of_states.sort_unstable();
        let rows = of_states.iter().sum();
        let distinct: BTreeSet<(&[Letter], &[TokenId])> =
            states.iter().flatten().map(|(letters, tokens)| (&letters[..], &tokens[..])).collect();
        Self { rows, distinct: distinct.len(), of_states }
    }

    /// Counts after no step and after each of the first steps, for the states of a recognizer's
    /// lexer.
    ///
    /// Cost: a walk over the vocabulary for each state, and what the steps take.
    ///
    /// # Errors
    /// When the store does not read the grammar, or a limit of the lexer is exceeded.
    pub fn by_step(
        recognizer: &Arc<Recognizer>,
        vocabulary: &Arc<PreparedVocabulary>,
        states: &BTreeSet<LexerState>,
    ) -> Result<Vec<Self>, RowCountError> {
        let plain = MaskStore::new(Arc::clone(recognizer), vocabulary, Steps::NONE)?;
        let spelled: Result<Vec<Spellings>, _> =
            states.iter().map(|&state| plain.spell(state)).collect();
        let spelled = spelled?;
        let after = |count| {
            let streamliner = Streamliner::new(recognizer.grammar(), Steps::first(count));
            let rows = spelled.iter().map(|rows| streamliner.streamline(rows.clone()));
            Self::new(&rows.collect::<Vec<_>>())
        };
        Ok((0..=Steps::MAX).map(after).collect())
    }

    /// Half of the states have no more; 0 without states.
    pub fn p50(&self) -> usize {
        self.of_states.get(self.of_states.len() / 2).copied().unwrap_or(0)
    }

    /// The mean over the states; 0 without any.
    pub fn mean(&self) -> f64 {
        self.rows as f64 / self.of_states.len().max(1) as f64
    }

    /// The most of a state.
    pub fn max(&self) -> usize {
        self.of_states.last().copied().unwrap_or(0)
    }
}

/// Failure to count rows.
#[derive(Debug, thiserror::Error)]
pub enum RowCountError {
    /// The store does not read the grammar.
    #[error(transparent)]
    Refused(#[from] StoreRefusal),
    /// A limit is exceeded.
    #[error(transparent)]
    Limit(#[from] RecognizerError),
}
