//! History: the text before a lexeme, as far as terminals look at it.
//!
//! A lookbehind or word boundary at the beginning of a lexeme asks about the text before, as with
//! lark. Its expression carries the derivative of what it looks for by that text, so a history is
//! the expressions of the terminals that look back, brought forward byte by byte. There are
//! finitely many, since derivatives are. A state of the lexer has one, from which the next lexeme
//! begins.

use hashbrown::HashMap;
use palmette_grammar_regex::expressions::{ExprId, Expressions, Unpicked};

use super::{LexerError, determinise::Live};
use crate::{Budget, TerminalId};

/// A text before a lexeme; the default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct HistoryId(u32);

/// All histories that were met.
#[derive(Debug, Default)]
pub(super) struct Histories {
    /// The terminals that look back, ascending.
    terminals: Box<[TerminalId]>,
    /// Their expressions, by history.
    of: Vec<Box<[Unpicked]>>,
    ids: HashMap<Box<[Unpicked]>, HistoryId>,
    after: HashMap<(HistoryId, u8), HistoryId>,
}

impl Histories {
    /// Histories of the terminals that look back among all of them.
    pub(super) fn new(
        expressions: &mut Expressions,
        whole: &[(TerminalId, Unpicked)],
        budget: &mut Budget<'_>,
    ) -> Result<Self, LexerError> {
        let mut looking = Vec::new();
        for &(terminal, expr) in whole {
            if expressions.making(budget).depends_on_history(expr)? {
                looking.push((terminal, expr));
            }
        }
        let (terminals, start): (Vec<_>, Vec<_>) = looking.into_iter().unzip();
        let mut made = Self { terminals: terminals.into(), ..Self::default() };
        made.intern(start.into());
        Ok(made)
    }

    /// True when no terminal looks back, so that there is one history.
    pub(super) fn is_empty(&self) -> bool {
        self.terminals.is_empty()
    }

    /// The terminals that look back.
    pub(super) fn terminals(&self) -> impl Iterator<Item = TerminalId> + '_ {
        self.terminals.iter().copied()
    }

    /// Expressions of these terminals after a history.
    pub(super) fn expressions(&self, history: HistoryId) -> impl Iterator<Item = ExprId> + '_ {
        self.of.get(history.0 as usize).into_iter().flatten().map(|of| of.expr)
    }

    /// Expressions of all terminals after a history, where `whole` are those where a text begins.
    pub(super) fn whole(
        &self,
        expressions: &mut Expressions,
        whole: &[Live],
        history: HistoryId,
        budget: &mut Budget<'_>,
    ) -> Result<Box<[Live]>, LexerError> {
        let mut all: Box<[Live]> = whole.into();
        let own = self.of.get(history.0 as usize).into_iter().flatten();
        for (terminal, &of) in self.terminals.iter().zip(own) {
            if let Ok(at) = all.binary_search_by_key(terminal, |&(known, _)| known) {
                all[at].1 = expressions.making(budget).picked(of)?;
            }
        }
        Ok(all)
    }

    /// The history after one more byte.
    pub(super) fn after(
        &mut self,
        expressions: &mut Expressions,
        history: HistoryId,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<HistoryId, LexerError> {
        if self.is_empty() {
            return Ok(history);
        }
        if let Some(&known) = self.after.get(&(history, byte)) {
            return Ok(known);
        }
        let before = self.of[history.0 as usize].clone();
        let mut seen = Vec::with_capacity(before.len());
        for &of in &before {
            seen.push(expressions.making(budget).forwarded(of, byte)?);
        }
        let after = self.intern(seen.into());
        self.after.insert((history, byte), after);
        Ok(after)
    }

    fn intern(&mut self, seen: Box<[Unpicked]>) -> HistoryId {
        if let Some(&known) = self.ids.get(&seen) {
            return known;
        }
        let id = HistoryId(self.of.len() as u32);
        self.of.push(seen.clone());
        self.ids.insert(seen, id);
        id
    }
}
