//! What a text so far may be.

use std::fmt;
use std::sync::Arc;

use crate::Stacks;
use crate::blocks::Blocks;
use crate::lexer::LexerState;
use crate::store::Line;

/// Every way to read a text so far; never none. Immutable: a clone is one count more.
///
/// Invariant: branches are in ascending order of all but their stacks, and differ in it.
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
    /// The open blocks and brackets of a grammar with indentation.
    pub blocks: Blocks,
    /// Of a line's end in progress of such a grammar: how deep the next line begins, as far as it is read.
    pub line: Line,
}

impl Branch {
    /// Branches that differ in nothing but their stacks have the same key.
    pub(super) fn key(&self) -> (LexerState, Line, &Blocks) {
        (self.lexer, self.line, &self.blocks)
    }
}

impl Position {
    /// The position of these branches.
    pub(super) fn new(branches: Vec<Branch>) -> Self {
        debug_assert!(branches.is_sorted_by(|a, b| a.key() < b.key()));
        Self { branches: branches.into() }
    }

    /// The branches, in ascending order of their lexer states, which differ unless the grammar has indentation.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&*self.branches).finish()
    }
}
