//! A position of a grammar constraint, with the way to it.

use std::fmt;

use palmette_core::RollbackError;
use palmette_grammar_parser::recognizer::Position;

use super::history::History;

/// The commits so far: the position that they lead to, and the positions on the way there, which
/// forks share. A clone is two counts more; taking commits back is a look-up.
///
/// Equal when the positions are, whatever led to them.
#[derive(Clone)]
pub struct GrammarState {
    now: Place,
    before: History,
}

/// Position that a text so far leads to.
#[derive(Clone, PartialEq)]
pub(super) struct Place {
    /// `None` only before the first token of the empty language.
    position: Option<Position>,
    /// True when an end token was committed.
    ended: bool,
}

impl GrammarState {
    /// A state before the first commit.
    pub(super) fn new(position: Option<Position>) -> Self {
        Self { now: Place { position, ended: false }, before: History::new() }
    }

    /// The position of lexer and parser; `None` when the language is empty.
    pub fn position(&self) -> Option<&Position> {
        self.now.position.as_ref()
    }

    /// True when an end token was committed.
    pub fn ended(&self) -> bool {
        self.now.ended
    }

    /// Number of commits that can be taken back.
    pub fn num_commits(&self) -> usize {
        self.before.len()
    }

    pub(super) fn push(&mut self, position: Position, ended: bool) {
        let next = Place { position: Some(position), ended };
        self.before.push(std::mem::replace(&mut self.now, next));
    }

    pub(super) fn pop(&mut self, asked: usize) -> Result<(), RollbackError> {
        let committed = self.num_commits();
        if asked > committed {
            return Err(RollbackError { asked, committed });
        }
        if let Some(place) = self.before.pop(asked) {
            self.now = place;
        }
        Ok(())
    }
}

impl PartialEq for GrammarState {
    fn eq(&self, other: &Self) -> bool {
        self.now == other.now
    }
}

impl fmt::Debug for GrammarState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarState")
            .field("num_commits", &self.num_commits())
            .field("ended", &self.ended())
            .field("position", &self.position())
            .finish()
    }
}
