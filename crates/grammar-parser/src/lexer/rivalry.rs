//! Rivalry between terminals: which of them can take a lexeme from another, by a longer one or by
//! rank.
//!
//! Where terminals compete, a lexeme stands only if none of its rivals matches more of the text,
//! and none of a higher rank the same. Most terminals have few rivals: an operator the ones that
//! begin with it, a name the keywords. Rivals that cannot decide anything are left out of a
//! [guarded](super::Lexer::guarded) expression, so that it is the same in all contexts that do not
//! differ in the others.
//!
//! Answers are for whole terminals and hold for what is left of them after any bytes. Each is found
//! once, by a search for a text of an intersection; one that passes its limit, or is about
//! lookarounds, is answered so that nothing is left out.

use hashbrown::HashMap;
use palmette_grammar_regex::ByteSet;
use palmette_grammar_regex::expressions::{Exceeded, ExprId, Expressions};

use super::LexerError;
use crate::{Budget, TerminalId};

/// Memo of pairs of terminals.
#[derive(Debug, Default)]
pub(super) struct Rivalry {
    first_bytes: HashMap<TerminalId, ByteSet>,
    outgrows: HashMap<(TerminalId, TerminalId), bool>,
    meets: HashMap<(TerminalId, TerminalId), bool>,
    covers: HashMap<(TerminalId, TerminalId), bool>,
}

/// A terminal with all that it matches.
type TerminalLanguage = (TerminalId, ExprId);

impl Rivalry {
    /// True when some lexeme of `rival` is one of `of` and more.
    pub(super) fn outgrows(
        &mut self,
        expressions: &mut Expressions,
        rival: TerminalLanguage,
        of: TerminalLanguage,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        if let Some(&known) = self.outgrows.get(&(rival.0, of.0)) {
            return Ok(known);
        }
        let found = self.may_meet(expressions, rival, of, budget)?
            && is_possible(expressions, rival, of, budget, |expressions, budget| {
                let mut making = expressions.making(budget);
                let more = making.concat(ExprId::ANY_BYTE, ExprId::ALL)?;
                let longer = making.concat(of.1, more)?;
                making.and([longer, rival.1])
            })?;
        self.outgrows.insert((rival.0, of.0), found);
        Ok(found)
    }

    /// True when two terminals have a lexeme in common.
    pub(super) fn meets(
        &mut self,
        expressions: &mut Expressions,
        one: TerminalLanguage,
        other: TerminalLanguage,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        let (one, other) = if one.0 < other.0 { (one, other) } else { (other, one) };
        if let Some(&known) = self.meets.get(&(one.0, other.0)) {
            return Ok(known);
        }
        let found = self.may_meet(expressions, one, other, budget)?
            && is_possible(expressions, one, other, budget, |expressions, budget| {
                expressions.making(budget).and([one.1, other.1])
            })?;
        self.meets.insert((one.0, other.0), found);
        Ok(found)
    }

    /// True when every lexeme of `of` is one of `wide` for sure.
    pub(super) fn covers(
        &mut self,
        expressions: &mut Expressions,
        wide: TerminalLanguage,
        of: TerminalLanguage,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        if let Some(&known) = self.covers.get(&(wide.0, of.0)) {
            return Ok(known);
        }
        let found = !is_possible(expressions, wide, of, budget, |expressions, budget| {
            let mut making = expressions.making(budget);
            let others = making.not(wide.1)?;
            making.and([of.1, others])
        })?;
        self.covers.insert((wide.0, of.0), found);
        Ok(found)
    }

    /// True when lexemes of both begin with the same byte.
    fn may_meet(
        &mut self,
        expressions: &mut Expressions,
        one: TerminalLanguage,
        other: TerminalLanguage,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        let one = self.first_bytes(expressions, one, budget)?;
        Ok(one.meets(&self.first_bytes(expressions, other, budget)?))
    }

    fn first_bytes(
        &mut self,
        expressions: &mut Expressions,
        (terminal, expr): TerminalLanguage,
        budget: &mut Budget<'_>,
    ) -> Result<ByteSet, LexerError> {
        if let Some(known) = self.first_bytes.get(&terminal) {
            return Ok(*known);
        }
        let found = expressions.first_bytes(expr, budget)?;
        self.first_bytes.insert(terminal, found);
        Ok(found)
    }
}

/// True when an expression of two terminals matches something, or that is not known.
fn is_possible(
    expressions: &mut Expressions,
    one: TerminalLanguage,
    other: TerminalLanguage,
    budget: &mut Budget<'_>,
    make: impl FnOnce(&mut Expressions, &mut Budget<'_>) -> Result<ExprId, Exceeded>,
) -> Result<bool, LexerError> {
    if !expressions.is_context_free(one.1) || !expressions.is_context_free(other.1) {
        return Ok(true);
    }
    let made = make(expressions, budget)?;
    match expressions.making(budget).matches_something(made) {
        Err(Exceeded::Visited(_)) => Ok(true),
        answer => Ok(answer?),
    }
}
