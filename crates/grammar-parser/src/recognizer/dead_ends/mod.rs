//! Dead ends of contextual lexing: texts that competition lets nobody complete, found when a
//! grammar is made ready.
//!
//! With [`Lexing::Contextual`](crate::Lexing::Contextual) a lexeme ends only where no rival goes
//! on. Where all that the parser takes next goes on so, as in `start: NAME "x"` with `NAME:
//! /[a-z]+/`, no sentence has the terminal there, and a text is stuck after it; or it can go on for
//! ever, and never be a sentence. So that no text comes there, the lexer is told, for each topmost
//! state, which conditions on what follows a lexeme of a terminal leave no sentence: a lexeme does
//! not end under these ([`Guards`]). What competes with what stays as it was.
//!
//! In this order, each step only where the one before leaves a question:
//!
//! 1. [`places`]: conditions and contexts that texts come to, and those that are safe on every
//!    stack. Mostly all are.
//! 2. [`pushdown`]: of the others, the stacks from which a text can be completed, a regular set for
//!    each.
//! 3. [`stacks`]: what is forbidden on a stack, told by its topmost state; states are split where
//!    it does not tell.
//!
//! Each step is exact, so that every text that may still be written can be completed. They have
//! limits; a grammar that exceeds one keeps its dead ends, which [`Recognizer::dead_ends`] then
//! says.
//!
//! Cost: some thousands of lexer states for a programming language; terminals are followed with
//! their rivals only, not once for each context.

mod notes;
mod places;
mod pushdown;
mod risks;
mod search_failure;
mod stacks;

use std::collections::BTreeMap;

use hashbrown::HashMap;
use places::{ConditionId, Places};
use pushdown::Completable;
use risks::Risks;
use search_failure::SearchFailure;
use stacks::{NodeProhibitions, Nodes, Prohibitions, Split};

use super::contexts::Contexts;
use crate::lexer::{Guards, Lexer, LexerState};
use crate::lr::{StateId, Tables};
use crate::{Budget, Interrupted, TerminalId, TerminalSet};

/// A terminal that nothing can follow where some parser states take it, and which no text has
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadEnd {
    /// Terminal that the text would be stuck after.
    pub terminal: TerminalId,
    /// Terminals that the parser would take next, each lexeme of which would have been a part of
    /// the terminal's, or of a rival's.
    pub followers: Vec<TerminalId>,
}

/// Report on dead ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadEnds {
    /// The terminals after which a text would be stuck, each once with what the parser would take
    /// then.
    pub stuck: Vec<DeadEnd>,
    /// True when all dead ends are excluded. Where that was too much to find out, a text may come
    /// to one.
    pub are_excluded: bool,
}

/// Tables and guards that exclude dead ends.
#[derive(Debug)]
pub(super) struct Exclusion {
    /// Other tables, where states had to be split.
    pub(super) tables: Option<Tables>,
    /// Guards by state: what is asked of the text after its lexemes; empty where nothing is
    /// anywhere.
    pub(super) guards: Vec<Guards>,
    pub(super) dead_ends: DeadEnds,
}

impl DeadEnds {
    /// None.
    pub(super) const NONE: Self = Self { stuck: Vec::new(), are_excluded: true };
}

/// Finds out how dead ends are excluded; texts begin in these topmost states.
///
/// # Errors
/// When the work is interrupted.
pub(super) fn exclusion(
    lexer: &Lexer,
    tables: &Tables,
    contexts: &Contexts,
    ignored: &TerminalSet,
    starts: impl Iterator<Item = StateId>,
    budget: &mut Budget<'_>,
) -> Result<Exclusion, Interrupted> {
    match find((lexer, tables, contexts, ignored), starts, budget) {
        Ok(found) => Ok(found),
        Err(SearchFailure::Interrupted(why)) => Err(why),
        Err(SearchFailure::TooLarge) => {
            let dead_ends = DeadEnds { are_excluded: false, ..DeadEnds::NONE };
            Ok(Exclusion { tables: None, guards: Vec::new(), dead_ends })
        }
    }
}

fn find(
    (lexer, tables, contexts, ignored): (&Lexer, &Tables, &Contexts, &TerminalSet),
    starts: impl Iterator<Item = StateId>,
    budget: &mut Budget<'_>,
) -> Result<Exclusion, SearchFailure> {
    let none = || Exclusion { tables: None, guards: Vec::new(), dead_ends: DeadEnds::NONE };
    let places = Places::find(lexer, tables, contexts, ignored, starts, budget)?;
    let risks = Risks::of_all(&places, ignored);
    if risks.is_empty() {
        return Ok(none());
    }
    let questions = risks.questions(tables, contexts);
    let grammar = (lexer, tables, contexts, ignored);
    let completable = Completable::new(grammar, &places, questions.into_iter(), budget)?;
    let nodes = Nodes::new(tables, &completable, budget)?;
    let forbidden = nodes.forbidden(tables, &completable, contexts, &risks);
    let is_forbidden =
        |(_, told): &(_, Option<Vec<_>>)| told.as_ref().is_some_and(|of| !of.is_empty());
    if !forbidden.iter().flatten().any(is_forbidden) {
        return Ok(none());
    }
    let stuck = stuck(&places, &risks, contexts, ignored, nodes.states().zip(&forbidden));
    let Split { of, targets, forbidden } = nodes.split(&forbidden, tables.num_states());
    let mut guards = Vec::with_capacity(of.len());
    let mut known: HashMap<Prohibitions, Guards> = HashMap::new();
    for forbidden in forbidden {
        let made = match known.get(&forbidden) {
            Some(made) => made.clone(),
            None => {
                let states = |of: &Vec<ConditionId>| -> Vec<LexerState> {
                    of.iter().map(|&condition| places.state_of(condition)).collect()
                };
                let of_each = forbidden.iter().map(|(terminal, of)| (*terminal, states(of)));
                let made = lexer.guards_against(of_each)?;
                known.insert(forbidden, made.clone());
                made
            }
        };
        guards.push(made);
    }
    let tables = tables.split(&of, |state, symbol| targets[state.index()][&symbol]);
    Ok(Exclusion {
        tables: Some(tables),
        guards,
        dead_ends: DeadEnds { stuck, are_excluded: true },
    })
}

/// Terminals of which all ends are forbidden wherever they can follow in some state, and after
/// which no lexeme can begin.
fn stuck<'f>(
    places: &Places,
    risks: &Risks,
    contexts: &Contexts,
    ignored: &TerminalSet,
    forbidden: impl Iterator<Item = (StateId, &'f NodeProhibitions)>,
) -> Vec<DeadEnd> {
    let mut never: BTreeMap<(StateId, TerminalId), bool> = BTreeMap::new();
    for (state, forbidden) in forbidden {
        for (risk, (terminal, told)) in risks.of(contexts.of(state)).iter().zip(forbidden) {
            let Some(told) = told else { continue };
            let is_never = !risk.has_safe_ends && told.len() == risk.unsafe_ends.len();
            *never.entry((state, *terminal)).or_insert(true) &= is_never;
        }
    }
    let mut found: Vec<DeadEnd> = Vec::new();
    for ((state, terminal), _) in never.into_iter().filter(|&(_, is_never)| is_never) {
        if ignored.contains(terminal) {
            continue;
        }
        let risk = risks.of(contexts.of(state)).iter().find(|risk| risk.terminal == terminal);
        let ends = risk.into_iter().flat_map(|risk| &risk.unsafe_ends);
        let after = places.contexts_after(terminal);
        let mut all = ends.flat_map(|&condition| after.iter().map(move |&of| (condition, of)));
        if !all.all(|(condition, of)| places.at(condition, of).is_none_or(|at| at.ends.is_empty()))
        {
            continue;
        }
        let mut followers = TerminalSet::new(ignored.num_terminals());
        for &of in after {
            followers.union_with(contexts.terminals(of));
        }
        let followers = followers.iter().filter(|&next| !ignored.contains(next)).collect();
        let dead_end = DeadEnd { terminal, followers };
        if !found.contains(&dead_end) {
            found.push(dead_end);
        }
    }
    found
}
