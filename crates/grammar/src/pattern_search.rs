//! Search for a regular expression in bytes as they come.

use std::sync::Arc;

use palmette_grammar_parser::recognizer::{
    CompileError, Position, RecognizerError, RecognizerScratch,
};
use palmette_grammar_syntax::regex::{self, RegexOptions};

use crate::limits::CacheLimits;
use crate::source::SourceError;
use crate::{Budget, Recognizer};

/// Occurrences of an expression that have begun in a stream, for who ends a text at the first.
///
/// An occurrence is a part of the stream that the expression matches from beginning to end. Equal
/// positions are one, that which began first, so there are at most as many as the expression has
/// states, however long the stream is.
///
/// Cost of a byte: a step for each position that is open, and a comparison with the others.
#[derive(Debug)]
pub struct PatternSearch {
    recognizer: Arc<Recognizer>,
    scratch: RecognizerScratch,
    /// Positions of occurrences that may still be, each with its beginning; ascending by it.
    open: Vec<(usize, Position)>,
    num_read: usize,
}

/// Error of an expression that is not searched for.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// A text that is no expression.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An expression that exceeds a limit.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// An expression that matches the empty text.
    #[error(
        "the expression matches the empty text, which is everywhere; let it match one character or more"
    )]
    EmptyText,
}

impl PatternSearch {
    /// Reads the expression in the default dialect.
    ///
    /// # Errors
    /// When it is none, matches the empty text, which is everywhere, or exceeds a limit.
    pub fn new(pattern: &str, limits: &CacheLimits) -> Result<Self, PatternError> {
        let mut budget = Budget::new(limits.steps);
        let grammar = regex::parse_with_budget(pattern, &RegexOptions::default(), &mut budget);
        let grammar = Arc::new(grammar.map_err(SourceError::Regex)?);
        let recognizer = Recognizer::new(grammar, &limits.recognizer, &mut budget)?;
        let mut scratch = RecognizerScratch::default();
        if let Some(start) = recognizer.start()
            && recognizer.is_accepting(start, &mut scratch).map_err(CompileError::Start)?
        {
            return Err(PatternError::EmptyText);
        }
        Ok(Self { recognizer: Arc::new(recognizer), scratch, open: Vec::new(), num_read: 0 })
    }

    /// Reads a byte; gives the beginning of an occurrence that ends with it, the first of them, as
    /// the number of bytes before it.
    ///
    /// # Errors
    /// When a limit is exceeded; the search means nothing any more.
    pub fn push(&mut self, byte: u8) -> Result<Option<usize>, RecognizerError> {
        if let Some(start) = self.recognizer.start() {
            self.open.push((self.num_read, start.clone()));
        }
        self.num_read += 1;
        let (mut kept, mut found) = (0, None);
        for at in 0..self.open.len() {
            let (begin, position) = &self.open[at];
            let next = self.recognizer.advance(position, byte, &mut self.scratch)?;
            let Some(next) = next else { continue };
            if self.open[..kept].iter().any(|(_, other)| *other == next) {
                continue;
            }
            let begin = *begin;
            if found.is_none() && self.recognizer.is_accepting(&next, &mut self.scratch)? {
                found = Some(begin);
            }
            self.open[kept] = (begin, next);
            kept += 1;
        }
        self.open.truncate(kept);
        Ok(found)
    }

    /// Bytes that no occurrence can begin in any more: all before the first that may still be.
    pub fn num_decided(&self) -> usize {
        self.open.first().map_or(self.num_read, |&(begin, _)| begin)
    }
}

/// A search at the same place of the same stream.
impl Clone for PatternSearch {
    fn clone(&self) -> Self {
        let (recognizer, open) = (Arc::clone(&self.recognizer), self.open.clone());
        Self { recognizer, scratch: RecognizerScratch::default(), open, num_read: self.num_read }
    }
}
