//! Scopes of members: parts of texts within which the members of a set have to do with each other.

use palmette_core::ScopeId;

use super::{Grammar, GrammarBuilder, TerminalId};
use crate::Span;

/// A part of texts within which the members of a set have to do with each other.
///
/// It begins and ends with terminals of its own, which no other scope has and which stand in one
/// rule's body each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberScope {
    /// The name of the set, as slots have it.
    pub name: String,
    /// Demand on the members.
    pub kind: ScopeKind,
    /// The terminal that begins it.
    pub open: TerminalId,
    /// The terminal that ends it.
    pub close: TerminalId,
    /// The place where it is asked for.
    pub span: Option<Span>,
}

/// Demand of a scope on its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ScopeKind {
    /// No item twice; where members are no ids and stand in no record, no value twice.
    Distinct {
        /// Bound on the items with equal values of one attribute.
        at_most: Option<GroupLimit>,
    },
    /// All members describe one item.
    Record,
}

/// A bound on the items with equal values of one attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupLimit {
    /// The attribute.
    pub attribute: String,
    /// The most items of a group.
    pub items: u32,
}

impl ScopeKind {
    /// True for a scope in which nothing comes twice.
    pub fn is_distinct(&self) -> bool {
        matches!(self, Self::Distinct { .. })
    }

    /// The word for it in messages.
    pub fn keyword(&self) -> &'static str {
        match self {
            Self::Distinct { .. } => "x-distinct",
            Self::Record => "x-record",
        }
    }
}

impl MemberScope {
    /// The scope as messages name it: `x-distinct "shop"`.
    pub fn label(&self) -> String {
        format!("{} {:?}", self.kind.keyword(), self.name)
    }
}

impl Grammar {
    /// The scopes of members, by id.
    pub fn scopes(&self) -> &[MemberScope] {
        &self.scopes
    }

    /// The grammar without the rules that begin one of these scopes.
    #[must_use]
    pub fn without_scopes(&self, scopes: &[ScopeId]) -> Self {
        let opens = |symbol: &super::Symbol| match *symbol {
            super::Symbol::Terminal(terminal) => {
                scopes.iter().any(|scope| self.scopes[scope.index()].open == terminal)
            }
            super::Symbol::Nonterminal(_) => false,
        };
        let mut kept = self.clone();
        kept.rules.retain(|rule| !rule.body.iter().any(opens));
        kept
    }
}

impl GrammarBuilder {
    /// Adds a scope.
    pub fn scope(&mut self, scope: MemberScope) -> ScopeId {
        self.scopes.push(scope);
        ScopeId(self.scopes.len() as u32 - 1)
    }

    /// Adds the scopes of a grammar, whose terminals are these here.
    pub fn scopes_of(
        &mut self,
        scopes: &[MemberScope],
        terminal: impl Fn(TerminalId) -> TerminalId,
    ) {
        for scope in scopes {
            let (open, close) = (terminal(scope.open), terminal(scope.close));
            self.scope(MemberScope { open, close, ..scope.clone() });
        }
    }
}
