//! The parser and what it is asked.

use std::sync::Arc;

use palmette_grammar_regex::Budget;

use super::deterministic::{Cursor, Outcome};
use super::level::{Level, ReductionChoice};
use super::node::Node;
use super::stacks::Stacks;
use crate::lr::{StateId, TableError, TableLimits, Tables};
use crate::{Grammar, TerminalId, TerminalSet};

/// A generalized LR parser over sequences of terminals.
///
/// Frozen; shared between threads by reference or `Arc`. Sentences are those of the rules: ignored
/// terminals are the caller's to leave out.
#[derive(Debug)]
pub struct Parser {
    tables: Tables,
    start: Stacks,
    max_links: usize,
}

/// Limits on the size of a parser and its stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParserLimits {
    /// The tables.
    pub tables: TableLimits,
    /// Links between stack nodes that one question may have to look at: a measure of ambiguity. One
    /// that is looked at again counts again, so this bounds the time, at some tens of nanoseconds
    /// each.
    pub max_links: usize,
}

impl Default for ParserLimits {
    fn default() -> Self {
        Self { tables: TableLimits::default(), max_links: 1 << 20 }
    }
}

/// The stacks at one place in the text became too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the text so far can be parsed in too many ways: more than {limit} links between stack entries to look at for one \
     terminal (limit `max_links`)"
)]
pub struct LimitError {
    limit: usize,
}

impl LimitError {
    /// An error that names the limit.
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// [`ParserLimits::max_links`].
    pub fn limit(&self) -> usize {
        self.limit
    }
}

/// Memory that a thread lends to the parser; what is in it between two calls does not matter.
#[derive(Debug, Default)]
pub struct ParserScratch {
    pushed: Vec<StateId>,
    level: Level,
}

impl ParserScratch {
    /// Empty.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Parser {
    /// The parser of a grammar: reduces it and builds the tables. The empty language is legal: its
    /// parser accepts nothing.
    ///
    /// # Errors
    /// When the tables exceed their limits.
    pub fn new(grammar: &Grammar, limits: &ParserLimits) -> Result<Self, TableError> {
        Self::with_budget(grammar, limits, &mut Budget::unlimited())
    }

    /// [`new`](Self::new) within a budget of work.
    ///
    /// # Errors
    /// When the tables exceed their limits, the budget is used up, or the compilation is cancelled.
    pub fn with_budget(
        grammar: &Grammar,
        limits: &ParserLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, TableError> {
        let tables = Tables::new(grammar, &limits.tables, budget)?;
        let start = begin(&tables);
        Ok(Self { tables, start, max_links: limits.max_links })
    }

    /// This parser with tables whose states are [split](Tables::split).
    pub(crate) fn with_tables(&self, tables: Tables) -> Self {
        let start = begin(&tables);
        Self { tables, start, max_links: self.max_links }
    }

    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The position before the first terminal.
    pub fn start(&self) -> Stacks {
        self.start.clone()
    }

    /// The position after `terminal`; `None` when it cannot follow.
    ///
    /// # Errors
    /// When there are too many stacks ([`ParserLimits::max_links`]).
    pub fn shift(
        &self,
        stacks: &Stacks,
        terminal: TerminalId,
        scratch: &mut ParserScratch,
    ) -> Result<Option<Stacks>, LimitError> {
        if let Some(head) = stacks.only_head() {
            let mut cursor = Cursor::new(head, &mut scratch.pushed);
            match cursor.reduce_before(&self.tables, terminal) {
                Outcome::Dead => return Ok(None),
                // Only asked with the end for a terminal is this an answer; the general way gives
                // none then.
                Outcome::Fork | Outcome::Accept => {}
                Outcome::Shift(target) => {
                    cursor.push(target);
                    if cursor.reduce_sole(&self.tables) {
                        return Ok(Some(Stacks::one(cursor.into_node())));
                    }
                }
            }
        }
        scratch.level.start(stacks.heads());
        scratch.level.reduce(
            &self.tables,
            ReductionChoice::Terminal(terminal),
            self.max_links,
            |_| false,
        )?;
        let heads = scratch.level.shift(&self.tables, terminal, self.max_links)?;
        Ok(Stacks::new(heads))
    }

    /// True when `terminal` may follow; cheaper than [`shift`](Self::shift).
    ///
    /// # Errors
    /// When there are too many stacks ([`ParserLimits::max_links`]).
    pub fn accepts(
        &self,
        stacks: &Stacks,
        terminal: TerminalId,
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        self.leads_to(stacks, terminal, scratch, |state| {
            self.tables.shift(state, terminal).is_some()
        })
    }

    /// True when one of `terminals` may follow.
    ///
    /// Cost: nothing but a few look-ups where the states on top tell, as they mostly do; otherwise
    /// [`accepts`](Self::accepts) for those that may come after a reduction.
    ///
    /// # Errors
    /// When there are too many stacks ([`ParserLimits::max_links`]).
    pub(crate) fn accepts_any(
        &self,
        stacks: &Stacks,
        terminals: &TerminalSet,
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        let mut reduces = false;
        for state in stacks.states() {
            if self.tables.shifts_any(state, terminals) {
                return Ok(true);
            }
            reduces |= self.tables.reductions(state).next().is_some();
        }
        if !reduces {
            return Ok(false);
        }
        for terminal in terminals.iter() {
            let mut reductions = stacks.states().flat_map(|state| self.tables.reductions(state));
            if reductions.any(|(_, after)| after.is_none_or(|set| set.contains(terminal)))
                && self.accepts(stacks, terminal, scratch)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True when the text may end here.
    ///
    /// # Errors
    /// When there are too many stacks ([`ParserLimits::max_links`]).
    pub fn accepts_end(
        &self,
        stacks: &Stacks,
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        self.leads_to(stacks, self.tables.end(), scratch, |state| self.tables.is_accepting(state))
    }

    /// Puts the terminals that may follow into `allowed`, which keeps what it has.
    ///
    /// # Errors
    /// When there are too many stacks ([`ParserLimits::max_links`]).
    ///
    /// # Panics
    /// When `allowed` is not sized for the grammar's terminals.
    pub fn allowed(
        &self,
        stacks: &Stacks,
        allowed: &mut TerminalSet,
        scratch: &mut ParserScratch,
    ) -> Result<(), LimitError> {
        // What an LR(0) automaton has on its stack begins a sentence, whatever was reduced without
        // looking ahead.
        scratch.level.start(stacks.heads());
        scratch.level.reduce(&self.tables, ReductionChoice::Any, self.max_links, |_| false)?;
        for state in scratch.level.states() {
            for &(terminal, _) in self.tables.shifts(state) {
                allowed.insert(terminal);
            }
        }
        Ok(())
    }

    /// The position of both: whatever may follow either may follow it. Shares what the two have in
    /// common.
    pub fn merge(&self, a: &Stacks, b: &Stacks) -> Stacks {
        a.union(b)
    }

    /// True when reductions before `terminal` lead to a state in which `found` holds.
    fn leads_to(
        &self,
        stacks: &Stacks,
        terminal: TerminalId,
        scratch: &mut ParserScratch,
        found: impl Fn(StateId) -> bool,
    ) -> Result<bool, LimitError> {
        if stacks.heads().iter().any(|head| found(head.state)) {
            return Ok(true);
        }
        if let Some(head) = stacks.only_head() {
            let mut cursor = Cursor::new(head, &mut scratch.pushed);
            match cursor.reduce_before(&self.tables, terminal) {
                Outcome::Dead => return Ok(false),
                Outcome::Shift(_) | Outcome::Accept => return Ok(true),
                Outcome::Fork => {}
            }
        }
        scratch.level.start(stacks.heads());
        scratch.level.reduce(
            &self.tables,
            ReductionChoice::Terminal(terminal),
            self.max_links,
            found,
        )
    }
}

/// The stack before the first terminal.
fn begin(tables: &Tables) -> Stacks {
    let bottom = Arc::new(Node::bottom());
    let mut pushed = Vec::new();
    let mut cursor = Cursor::new(&bottom, &mut pushed);
    let reduced = cursor.reduce_sole(tables);
    debug_assert!(reduced, "one stack does not split");
    Stacks::one(cursor.into_node())
}
