//! Dead ends by competition: terminals that nothing can follow.
//!
//! With [`Lexing::Contextual`](crate::Lexing::Contextual) a lexeme ends only where no rival goes on. Where all that the parser takes
//! next goes on so, as in `start: NAME "x"` with `NAME: /[a-z]+/`, no sentence has the terminal there, and a text is stuck after it. The
//! check is of one terminal and the next: it follows the residuals of the terminal in its context, and asks of each end whether some lexeme
//! may begin under its condition. What may come next is bounded from above, so that all that is found is stuck for sure.
//!
//! Cost: until the first end after which something may follow, mostly a few bytes; [`MAX_STATES`] at most for each terminal in a context.

use std::collections::{HashMap, HashSet};

use super::vacuous::Entered;
use super::{ContextId, Contexts, Recognizer};
use crate::lexer::LexerState;
use crate::lr::{Action, StateId, Tables};
use crate::{Budget, LexerError, TerminalId, TerminalSet};

/// Lexer states that are looked at for a terminal in a context; with more, it is taken for one that something follows.
const MAX_STATES: usize = 2_000;

/// A terminal that nothing can follow where some parser states take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadEnd {
    /// What the text is stuck after.
    pub terminal: TerminalId,
    /// What the parser would take next, each lexeme of which would have been a part of the terminal's, or of a rival's.
    pub followers: Vec<TerminalId>,
}

impl Recognizer {
    /// The terminals after which a text is stuck by contextual lexing, each once with what the parser would take then.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded, or the budget is used up.
    pub fn dead_ends(&self, budget: &mut Budget<'_>) -> Result<Vec<DeadEnd>, LexerError> {
        let Some(contexts) = self.contexts() else { return Ok(Vec::new()) };
        let tables = self.parser.tables();
        let mut search = Search { recognizer: self, contexts, tables, known: HashMap::new() };
        let entered = Entered::new(tables);
        let mut found: Vec<DeadEnd> = Vec::new();
        for state in tables.states() {
            for &(terminal, to) in tables.shifts(state) {
                budget.spend(1)?;
                let tops = search.tops(&entered, terminal, to);
                if tops.iter().any(|&top| search.may_end(top)) {
                    continue;
                }
                let followers = search.followers(&tops);
                let context = contexts.of(state);
                if search.is_followed(context, terminal, &followers, budget)? {
                    continue;
                }
                let seen = followers.iter().filter(|&next| !self.layer.ignored.contains(next));
                let dead_end = DeadEnd { terminal, followers: seen.collect() };
                if !found.contains(&dead_end) {
                    found.push(dead_end);
                }
            }
        }
        Ok(found)
    }
}

struct Search<'a> {
    recognizer: &'a Recognizer,
    contexts: &'a Contexts,
    tables: &'a Tables,
    known: HashMap<(ContextId, TerminalId, TerminalSet), bool>,
}

impl Search<'_> {
    /// The topmost states once a terminal was shifted to a state; more where reductions go on below what is known.
    fn tops(&self, entered: &Entered, terminal: TerminalId, to: StateId) -> Vec<StateId> {
        match self.tables.sole_reduction(to) {
            None => vec![to],
            Some(_) => entered.after(self.tables, terminal).into_iter().collect(),
        }
    }

    /// Whether a text may end there, as far as one state tells.
    fn may_end(&self, top: StateId) -> bool {
        !matches!(self.tables.action(top, self.tables.end()), Action::None)
    }

    fn followers(&self, tops: &[StateId]) -> TerminalSet {
        let mut followers = self.recognizer.layer.ignored.clone();
        for &top in tops {
            followers.union_with(self.contexts.terminals(self.contexts.of(top)));
        }
        followers
    }

    /// Whether some of the followers may begin after some end of a terminal's lexeme.
    fn is_followed(
        &mut self,
        context: ContextId,
        terminal: TerminalId,
        followers: &TerminalSet,
        budget: &mut Budget<'_>,
    ) -> Result<bool, LexerError> {
        let key = (context, terminal, followers.clone());
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let lexer = self.recognizer.lexer();
        let start = lexer.among(lexer.start(), self.contexts.terminals(context))?;
        let (mut seen, mut work): (HashSet<LexerState>, _) = (HashSet::from([start]), vec![start]);
        let mut is_followed = false;
        'search: while let Some(state) = work.pop() {
            budget.spend(1)?;
            for end in lexer.ends(state)?.iter().filter(|end| end.terminals.contains(terminal)) {
                let next = lexer.among(end.next, followers)?;
                if !lexer.possible(next).is_empty() {
                    is_followed = true;
                    break 'search;
                }
            }
            for (_, next) in lexer.steps(state)? {
                if lexer.possible(next).contains(terminal) && seen.insert(next) {
                    work.push(next);
                }
            }
            if seen.len() > MAX_STATES {
                is_followed = true;
                break;
            }
        }
        self.known.insert(key, is_followed);
        Ok(is_followed)
    }
}
