//! What a text so far may be.

use std::fmt;
use std::sync::Arc;

use crate::Stacks;
use crate::lexer::LexerState;

/// Every way to read a text so far; never none. Immutable: a clone is one count more.
///
/// Invariant: branches are in ascending order of their lexer states, which differ.
#[derive(Clone, PartialEq)]
pub struct Position {
    branches: Arc<[Branch]>,
}

/// One way to cut a text into lexemes, with all ways to parse them.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Within the lexeme in progress.
    pub lexer: LexerState,
    /// After the lexemes before it.
    pub stacks: Stacks,
}

impl Position {
    /// The position of these branches.
    pub(super) fn new(branches: Vec<Branch>) -> Self {
        debug_assert!(branches.is_sorted_by(|a, b| a.lexer < b.lexer));
        Self { branches: branches.into() }
    }

    /// The branches, in ascending order of their lexer states, which differ.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&*self.branches).finish()
    }
}
