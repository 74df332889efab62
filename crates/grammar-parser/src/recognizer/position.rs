//! Positions: all readings of a text so far.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use palmette_core::{Binding, ScopeMemory};

use super::lexeme_tokens::LexemeTokens;
use super::member_place::{MemberPlace, Trail};
use crate::blocks::{Blocks, Line};
use crate::glr::Stacks;
use crate::lexer::LexerState;
use crate::names::Names;

/// Every way to read a text so far; never none. Immutable: a clone is one count more.
///
/// Invariant: branches are in ascending order of all but their stacks, and differ in it.
#[derive(Clone)]
pub struct Position {
    shared: Arc<Shared>,
}

struct Shared {
    branches: Branches,
    /// The sets of the grammar's slots.
    binding: Option<Arc<Binding>>,
    /// True when the text so far is in the language, once that was asked.
    accepting: OnceLock<bool>,
}

/// Branches of a position: mostly one, which then is no further look-up away.
enum Branches {
    One(Branch),
    Many(Box<[Branch]>),
}

/// One way to cut a text into lexemes, with all ways to parse them.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Within the lexeme in progress.
    pub lexer: LexerState,
    /// Tokens of that lexeme, where it may become a terminal with a limit.
    pub tokens: LexemeTokens,
    /// Stacks after the lexemes before it.
    pub stacks: Stacks,
    /// The open blocks and brackets of a grammar with indentation.
    pub blocks: Blocks,
    /// Line in progress, at a line's end of such a grammar: how deep the next line begins, as far
    /// as it is read.
    pub line: Line,
    /// The open scopes of a grammar with distinct names.
    pub names: Names,
    /// The open scopes of members.
    pub scopes: ScopeMemory,
    /// The member in progress: the lexer then knows no terminal.
    pub member: Option<Arc<MemberPlace>>,
    /// Members of the text before, while they are traced.
    pub(super) trail: Option<Arc<Trail>>,
}

/// Key of a branch: all that tells it from others, but its stacks.
pub(super) type BranchKey<'a> = (
    (LexerState, Line, LexemeTokens),
    &'a Blocks,
    &'a Names,
    &'a ScopeMemory,
    Option<&'a MemberPlace>,
);

impl Branch {
    /// Branches that differ in nothing but their stacks have the same key.
    pub(super) fn key(&self) -> BranchKey<'_> {
        let place = (self.lexer, self.line, self.tokens);
        (place, &self.blocks, &self.names, &self.scopes, self.member.as_deref())
    }
}

impl Position {
    /// The position of these branches, which are taken out of the list.
    pub(super) fn new(branches: &mut Vec<Branch>, binding: Option<Arc<Binding>>) -> Self {
        debug_assert!(branches.is_sorted_by(|a, b| a.key() < b.key()));
        let branches = if branches.len() == 1
            && let Some(only) = branches.pop()
        {
            Branches::One(only)
        } else {
            Branches::Many(branches.drain(..).collect())
        };
        Self { shared: Arc::new(Shared { branches, binding, accepting: OnceLock::new() }) }
    }

    /// The branches, in ascending order of their lexer states, which differ unless the grammar has
    /// indentation or distinct names.
    #[doc(hidden)]
    #[inline]
    pub fn branches(&self) -> &[Branch] {
        match &self.shared.branches {
            Branches::One(branch) => std::slice::from_ref(branch),
            Branches::Many(branches) => branches,
        }
    }

    /// The sets of the grammar's slots; `None` where it has no slots.
    #[inline]
    pub fn binding(&self) -> Option<&Arc<Binding>> {
        self.shared.binding.as_ref()
    }

    /// True for positions under the same binding.
    fn is_bound_alike(&self, binding: Option<&Arc<Binding>>) -> bool {
        match (self.binding(), binding) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// True for the position of these branches under this binding.
    pub(super) fn is(&self, branches: &[Branch], binding: Option<&Arc<Binding>>) -> bool {
        self.is_bound_alike(binding) && self.branches() == branches
    }

    /// Memo of acceptance: is the text so far in the language?
    pub(super) fn accepting(&self) -> &OnceLock<bool> {
        &self.shared.accepting
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) || self.is(other.branches(), other.binding())
    }
}

impl Eq for Position {}

impl Hash for Position {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.branches().hash(state);
    }
}

impl Hash for Branch {
    /// Hash of all but the line, which seldom tells branches apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lexer.hash(state);
        self.tokens.hash(state);
        self.stacks.fingerprint().hash(state);
        self.blocks.hash(state);
        self.names.hash(state);
        self.scopes.hash(state);
        self.member.hash(state);
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.branches()).finish()
    }
}
