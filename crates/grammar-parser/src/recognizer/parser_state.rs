//! States between two lexemes: stacks, and what the layers beside the parser remember.

use palmette_core::ScopeMemory;

use super::Branch;
use super::lexeme_tokens::LexemeTokens;
use crate::blocks::{Blocks, Line};
use crate::glr::Stacks;
use crate::lexer::LexerState;
use crate::names::Names;

/// State of the parser and the layers beside it between two lexemes.
#[derive(Clone, Debug)]
pub(super) struct ParserState {
    pub(super) stacks: Stacks,
    pub(super) blocks: Blocks,
    pub(super) names: Names,
    pub(super) scopes: ScopeMemory,
}

impl ParserState {
    /// Stacks where nothing is remembered.
    pub(super) fn new(stacks: Stacks) -> Self {
        let (blocks, names, scopes) = Default::default();
        Self { stacks, blocks, names, scopes }
    }

    /// State before the lexeme in progress of a branch.
    pub(super) fn of(branch: &Branch) -> Self {
        let Branch { stacks, blocks, names, scopes, .. } = branch.clone();
        Self { stacks, blocks, names, scopes }
    }

    /// The branch in which a lexeme begins here, whose tokens are not counted yet.
    pub(super) fn into_branch(self, lexer: LexerState, line: Line) -> Branch {
        let Self { stacks, blocks, names, scopes } = self;
        let tokens = LexemeTokens::default();
        Branch { lexer, tokens, stacks, blocks, line, names, scopes, member: None, trail: None }
    }
}
