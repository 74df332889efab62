//! A position of a grammar constraint, with the way to it.

use std::fmt;
use std::sync::Arc;

use palmette_core::RollbackError;

use crate::recognizer::Position;

/// What has been committed so far: a chain of positions that forks share, so that a clone is one count more and taking a
/// commit back is one step along the chain.
///
/// Equal when the positions are, whatever led to them.
#[derive(Clone)]
pub struct GrammarState {
    last: Arc<Commit>,
}

struct Commit {
    /// `None` only before the first token of the empty language.
    position: Option<Position>,
    /// Whether an end token was committed.
    ended: bool,
    num_commits: usize,
    before: Option<Arc<Commit>>,
}

impl GrammarState {
    /// Nothing committed yet.
    pub(super) fn new(position: Option<Position>) -> Self {
        Self { last: Arc::new(Commit { position, ended: false, num_commits: 0, before: None }) }
    }

    /// Where lexer and parser are; `None` when the language is empty.
    pub fn position(&self) -> Option<&Position> {
        self.last.position.as_ref()
    }

    /// Whether an end token was committed.
    pub fn ended(&self) -> bool {
        self.last.ended
    }

    /// How many commits can be taken back.
    pub fn num_commits(&self) -> usize {
        self.last.num_commits
    }

    pub(super) fn push(&mut self, position: Position, ended: bool) {
        let before = Some(Arc::clone(&self.last));
        let num_commits = self.num_commits() + 1;
        self.last = Arc::new(Commit { position: Some(position), ended, num_commits, before });
    }

    pub(super) fn pop(&mut self, asked: usize) -> Result<(), RollbackError> {
        let committed = self.num_commits();
        if asked > committed {
            return Err(RollbackError { asked, committed });
        }
        for _ in 0..asked {
            let before = self.last.before.as_ref().expect("as many as are counted");
            self.last = Arc::clone(before);
        }
        Ok(())
    }
}

impl PartialEq for GrammarState {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.last, &other.last)
            || self.last.ended == other.last.ended && self.last.position == other.last.position
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

impl Drop for Commit {
    /// Without recursion: the chain is as long as the text.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut commit) = before.and_then(Arc::into_inner) {
            before = commit.before.take();
        }
    }
}
