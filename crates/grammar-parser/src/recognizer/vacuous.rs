//! Vacuous competition: a proof that contextual lexing forbids no cutting of any text.
//!
//! Most grammars with free text end it by a character that it cannot hold. There a lexeme that is
//! followed by another one is the longest at its place whoever competes, so that the language is
//! that of [`Lexing::Any`](crate::Lexing::Any), whose masks are made of residuals that all grammars
//! share and which has no dead ends.
//!
//! The proof follows the residuals of each context's terminals side by side. It fails where two
//! terminals of different rank match one lexeme, and where a terminal that may come next begins
//! with a byte with which some lexeme could have gone on. What comes next is bounded from above, by
//! the parser's states into which a terminal leads.
//!
//! Cost: a lexer state for each set of residuals; given up, which proves nothing, after
//! [`MAX_STATES`].

use hashbrown::{HashMap, HashSet};
use palmette_grammar_regex::ByteSet;

use super::{ContextId, Contexts};
use crate::lexer::{Lexer, LexerState};
use crate::lr::{StateId, Tables};
use crate::{Budget, Interrupted, LexerError, Symbol, TerminalId, TerminalSet};

/// States of the lexer that are looked at.
const MAX_STATES: usize = 4_000;

/// True when competition is vacuous; `false` proves nothing. `free` is the lexer of the same
/// terminals without competition.
///
/// Members of sets may begin with any byte.
///
/// `ignored` are the terminals that may follow themselves: of those that match two of their texts
/// in a row as one, another cutting is no other sentence.
///
/// # Errors
/// When the work is interrupted.
pub(super) fn is_vacuous(
    (lexer, free): (&Lexer, &Lexer),
    tables: &Tables,
    (contexts, ignored, members): (&Contexts, &TerminalSet, &TerminalSet),
    budget: &mut Budget<'_>,
) -> Result<bool, Interrupted> {
    let mut proof = Proof {
        lexer,
        free,
        contexts,
        ignored,
        members,
        entered: Entered::new(tables),
        tables,
        first_bytes: HashMap::new(),
        seen: HashSet::new(),
    };
    for context in contexts.all() {
        match proof.holds_in(context, budget) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // A limit proves nothing; the lexer that competes may never come near it.
            Err(error) => return error.interrupted().map_or(Ok(false), Err),
        }
    }
    Ok(true)
}

/// The parser states that each symbol leads into.
pub(super) struct Entered(HashMap<Symbol, Vec<StateId>>);

impl Entered {
    pub(super) fn new(tables: &Tables) -> Self {
        let mut by_symbol = HashMap::<Symbol, Vec<StateId>>::new();
        for state in tables.states() {
            let shifts = tables.shifts(state).iter().map(|&(of, to)| (Symbol::Terminal(of), to));
            let gotos = tables.gotos(state).iter().map(|&(of, to)| (Symbol::Nonterminal(of), to));
            for (symbol, to) in shifts.chain(gotos) {
                by_symbol.entry(symbol).or_default().push(to);
            }
        }
        for states in by_symbol.values_mut() {
            states.sort_unstable();
            states.dedup();
        }
        Self(by_symbol)
    }

    /// An upper bound of the topmost states after a terminal.
    pub(super) fn after(&self, tables: &Tables, terminal: TerminalId) -> HashSet<StateId> {
        let (mut tops, mut seen) = (HashSet::new(), HashSet::new());
        let mut work = vec![Symbol::Terminal(terminal)];
        while let Some(symbol) = work.pop() {
            if !seen.insert(symbol) {
                continue;
            }
            for &state in self.0.get(&symbol).into_iter().flatten() {
                match tables.sole_reduction(state) {
                    Some(rule) => work.push(Symbol::Nonterminal(tables.rules().head(rule))),
                    None => drop(tops.insert(state)),
                }
            }
        }
        tops
    }
}

struct Proof<'a> {
    lexer: &'a Lexer,
    free: &'a Lexer,
    tables: &'a Tables,
    contexts: &'a Contexts,
    ignored: &'a TerminalSet,
    members: &'a TerminalSet,
    entered: Entered,
    /// First bytes of what may follow, by the terminal that ended.
    first_bytes: HashMap<TerminalId, ByteSet>,
    seen: HashSet<LexerState>,
}

impl Proof<'_> {
    /// True when no lexeme that begins in a context could have been longer, given what may follow.
    fn holds_in(
        &mut self,
        context: ContextId,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        let (lexer, free) = (self.lexer, self.free);
        let mut competing = self.contexts.terminals(context).clone();
        lexer.remove_free(&mut competing);
        let mut work = vec![free.restricted_to(free.start(), &competing)?];
        while let Some(state) = work.pop() {
            if !self.seen.insert(state) {
                continue;
            }
            if self.seen.len() > MAX_STATES {
                return Ok(false);
            }
            let steps = free.steps(state)?;
            budget.spend(1 + steps.len() as u64)?;
            let matched = free.matched(state)?;
            if lexer.has_losers(matched) || self.has_conditions(state)? {
                return Ok(false);
            }
            for terminal in matched.iter() {
                let first = self.first_bytes(terminal)?;
                if self.goes_on_with(state, first)? {
                    return Ok(false);
                }
            }
            work.extend(steps.into_iter().map(|(_, next)| next));
        }
        Ok(true)
    }

    /// True when an end asks something of the text that follows.
    fn has_conditions(&self, state: LexerState) -> Result<bool, LexerError> {
        let ends = self.free.ends(state)?;
        Ok(ends.iter().any(|end| end.next != self.free.start()))
    }

    fn goes_on_with(&self, state: LexerState, bytes: ByteSet) -> Result<bool, LexerError> {
        for byte in (0..=u8::MAX).filter(|&byte| bytes.contains(byte)) {
            if self.free.advance(state, byte)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The bytes with which what follows a terminal may begin.
    fn first_bytes(&mut self, after: TerminalId) -> Result<ByteSet, LexerError> {
        if let Some(known) = self.first_bytes.get(&after) {
            return Ok(*known);
        }
        let mut next = self.ignored.clone();
        let tops: Vec<StateId> = match self.ignored.contains(after) {
            true => self.tables.states().collect(),
            false => self.entered.after(self.tables, after).into_iter().collect(),
        };
        for top in tops {
            next.union_with(self.contexts.terminals(self.contexts.of(top)));
        }
        if self.ignored.contains(after) && self.lexer.is_closed(after)? {
            next.remove(after);
        }
        if next.intersects(self.members) {
            let mut all = ByteSet::default();
            (0..=u8::MAX).for_each(|byte| all.insert(byte));
            self.first_bytes.insert(after, all);
            return Ok(all);
        }
        let begin = self.free.restricted_to(self.free.start(), &next)?;
        let mut first = ByteSet::default();
        for byte in 0..=u8::MAX {
            if self.free.advance(begin, byte)?.is_some() {
                first.insert(byte);
            }
        }
        self.first_bytes.insert(after, first);
        Ok(first)
    }
}
