//! Places where lexemes begin: what earlier lexemes ask of the text, with a context; and the ways
//! from place to place.
//!
//! A place's ends are the terminals that a lexeme which begins there may become, each with what its
//! end asks of the text from there. They are found by following the residuals of each terminal with
//! those that decide about its lexemes.
//!
//! A place is *safe* if every terminal that the parser may ask for there can be spelled, at once or
//! after ignored lexemes, and leads to safe places only, wherever the parser then is. From a safe
//! place a text can be completed on every stack: its lexemes are those of any sentence of the
//! rules. Safe places are the greatest set of this kind.

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::search_failure::SearchFailure;
use crate::lexer::{Deciding, Demand, Lexer, LexerState};
use crate::lr::{Action, StateId, Tables};
use crate::recognizer::vacuous::Entered;
use crate::recognizer::{ContextId, Contexts};
use crate::{Budget, TerminalId, TerminalSet};

/// Lexer states that are followed, each for each terminal for which it is.
const MAX_FOLLOWED: usize = 20_000;
/// Conditions that are told apart.
const MAX_CONDITIONS: usize = 1_000;
const MAX_PLACES: usize = 10_000;

/// Number of a demand of earlier lexemes on the text; equal demands have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ConditionId(pub(super) u32);

/// Number of a place in [`Places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PlaceId(u32);

#[derive(Debug)]
pub(super) struct Place {
    pub(super) condition: ConditionId,
    pub(super) context: ContextId,
    /// Terminals whose lexemes end here, each with what its end asks of the text. Sorted, each
    /// once.
    pub(super) ends: Rc<[(TerminalId, ConditionId)]>,
    pub(super) is_safe: bool,
}

/// Places that a text may come to, and more: the parser's states after a terminal are bounded from
/// above.
#[derive(Debug)]
pub(super) struct Places {
    places: Vec<Place>,
    ids: HashMap<(ConditionId, ContextId), PlaceId>,
    conditions: Conditions,
    /// Contexts by terminal: those of the topmost states after it.
    contexts_after: HashMap<TerminalId, Rc<[ContextId]>>,
}

#[derive(Debug, Default)]
struct Conditions {
    ids: HashMap<Demand, ConditionId>,
    of_state: HashMap<LexerState, ConditionId>,
    /// A state in which no byte was read, for all terminals, by condition.
    states: Vec<LexerState>,
}

impl Places {
    /// Finds all places, from where a text begins on these stacks.
    pub(super) fn find(
        lexer: &Lexer,
        tables: &Tables,
        contexts: &Contexts,
        ignored: &TerminalSet,
        starts: impl Iterator<Item = StateId>,
        budget: &mut Budget<'_>,
    ) -> Result<Self, SearchFailure> {
        let mut found = Self {
            places: Vec::new(),
            ids: HashMap::new(),
            conditions: Conditions::default(),
            contexts_after: HashMap::new(),
        };
        let entered = Entered::new(tables);
        let mut spelling = Spelling::default();
        let mut work: Vec<(ConditionId, ContextId)> = Vec::new();
        let start = found.conditions.of(lexer, lexer.start())?;
        work.extend(starts.map(|state| (start, contexts.of(state))));
        while let Some((condition, context)) = work.pop() {
            if found.ids.contains_key(&(condition, context)) {
                continue;
            }
            if found.places.len() >= MAX_PLACES {
                return Err(SearchFailure::TooLarge);
            }
            let next = found.conditions.states[condition.0 as usize];
            let terminals = contexts.terminals(context);
            let mut ends = Vec::new();
            for terminal in terminals.iter() {
                let of = (terminal, terminals);
                let asked = spelling.ends(lexer, next, of, &mut found.conditions, budget)?;
                ends.extend(asked.iter().map(|&condition| (terminal, condition)));
            }
            let ends: Rc<[_]> = ends.into();
            for &(terminal, after) in &*ends {
                if ignored.contains(terminal) {
                    work.push((after, context));
                    continue;
                }
                let known = found.contexts_after.entry(terminal).or_insert_with(|| {
                    let tops = entered.after(tables, terminal).into_iter();
                    let mut all: Vec<_> = tops.map(|top| contexts.of(top)).collect();
                    all.sort_unstable();
                    all.dedup();
                    all.into()
                });
                work.extend(known.iter().map(|&context| (after, context)));
            }
            found.ids.insert((condition, context), PlaceId(found.places.len() as u32));
            found.places.push(Place { condition, context, ends, is_safe: true });
        }
        found.find_safe(lexer, tables, contexts, ignored, budget)?;
        Ok(found)
    }

    /// Places in the order of their numbers.
    pub(super) fn all(&self) -> &[Place] {
        &self.places
    }

    /// The place of a condition and a context; `None` if no text comes there.
    pub(super) fn at(&self, condition: ConditionId, context: ContextId) -> Option<&Place> {
        self.ids.get(&(condition, context)).map(|&id| &self.places[id.0 as usize])
    }

    /// True when all places after a terminal whose end asks this are safe.
    pub(super) fn is_safe_after(&self, terminal: TerminalId, condition: ConditionId) -> bool {
        let safe = |&context: &ContextId| self.at(condition, context).is_some_and(|at| at.is_safe);
        self.contexts_after.get(&terminal).is_none_or(|after| after.iter().all(safe))
    }

    /// The contexts of the topmost states after a terminal.
    pub(super) fn contexts_after(&self, terminal: TerminalId) -> &[ContextId] {
        self.contexts_after.get(&terminal).map_or(&[], |after| after)
    }

    /// A lexer state with the condition.
    pub(super) fn state_of(&self, condition: ConditionId) -> LexerState {
        self.conditions.states[condition.0 as usize]
    }

    /// The greatest set of safe places.
    fn find_safe(
        &mut self,
        lexer: &Lexer,
        tables: &Tables,
        contexts: &Contexts,
        ignored: &TerminalSet,
        budget: &mut Budget<'_>,
    ) -> Result<(), SearchFailure> {
        let may_end: HashSet<ContextId> = tables
            .states()
            .filter(|&state| tables.action(state, tables.end()) != Action::None)
            .map(|state| contexts.of(state))
            .collect();
        let reached: Vec<Vec<PlaceId>> = (0..self.places.len())
            .map(|at| self.after_ignored(PlaceId(at as u32), ignored))
            .collect();
        let mut known: HashMap<(TerminalId, ConditionId), bool> = HashMap::new();
        loop {
            let mut changed = false;
            known.clear();
            for at in 0..self.places.len() {
                if !self.places[at].is_safe {
                    continue;
                }
                let context = self.places[at].context;
                let mut spelled = TerminalSet::new(tables.num_terminals());
                let mut ends = !may_end.contains(&context);
                for &PlaceId(place) in &reached[at] {
                    let place = &self.places[place as usize];
                    ends |= lexer.may_end(self.state_of(place.condition));
                    budget.spend(1 + place.ends.len() as u64)?;
                    for &(terminal, condition) in &*place.ends {
                        // What is no longer safe is found the next time.
                        let is_safe = || self.is_safe_after(terminal, condition);
                        if *known.entry((terminal, condition)).or_insert_with(is_safe) {
                            spelled.insert(terminal);
                        }
                    }
                }
                let asked = contexts.terminals(context).iter();
                let mut asked = asked.filter(|&terminal| !ignored.contains(terminal));
                if !ends || !asked.all(|terminal| spelled.contains(terminal)) {
                    (self.places[at].is_safe, changed) = (false, true);
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// The places that ignored lexemes lead to, the place itself among them.
    fn after_ignored(&self, from: PlaceId, ignored: &TerminalSet) -> Vec<PlaceId> {
        let (mut found, mut done) = (vec![from], 0);
        while let Some(&PlaceId(at)) = found.get(done) {
            done += 1;
            let place = &self.places[at as usize];
            for &(terminal, condition) in &*place.ends {
                if ignored.contains(terminal) {
                    let next = self.ids[&(condition, place.context)];
                    if !found.contains(&next) {
                        found.push(next);
                    }
                }
            }
        }
        found
    }
}

impl Conditions {
    /// Demand on the text in a state in which no byte was read.
    fn of(&mut self, lexer: &Lexer, state: LexerState) -> Result<ConditionId, SearchFailure> {
        if let Some(&known) = self.of_state.get(&state) {
            return Ok(known);
        }
        let next = ConditionId(self.states.len() as u32);
        let found = *self.ids.entry(lexer.demand(state)?).or_insert(next);
        if found == next {
            if self.states.len() >= MAX_CONDITIONS {
                return Err(SearchFailure::TooLarge);
            }
            self.states.push(state);
        }
        self.of_state.insert(state, found);
        Ok(found)
    }
}

/// Ends of a terminal's lexemes.
#[derive(Debug, Default)]
struct Spelling {
    /// Rivals by terminal: all that could decide about its lexemes.
    rivals: HashMap<TerminalId, TerminalSet>,
    /// Numbers by terminal and those of its rivals that a context has: a number for those that
    /// decide.
    numbers: HashMap<(TerminalId, Vec<TerminalId>), usize>,
    deciding: Vec<Deciding>,
    /// Memo by a state for all terminals, the terminal, and the number of those that decide.
    known: HashMap<(LexerState, TerminalId, usize), Rc<BTreeSet<ConditionId>>>,
    /// Memo by a state in which no byte was read, for those that decide.
    begun: HashMap<(LexerState, TerminalId), Conditionals>,
    /// Memo by the state after the first byte.
    after_byte: HashMap<(LexerState, TerminalId), Conditionals>,
    num_followed: usize,
}

/// Demands of the ends of a terminal's lexemes on the text.
#[derive(Clone, Debug, Default)]
struct Conditionals {
    all: Rc<BTreeSet<ConditionId>>,
    /// Demands of the ends of infinitely many.
    infinitely: Rc<BTreeSet<ConditionId>>,
}

impl Spelling {
    /// Demands of the ends of lexemes of a terminal that begin in a context under a condition, for
    /// which `next` stands.
    ///
    /// PERF: not all terminals of the context are followed side by side: there are many contexts,
    /// and few terminals are rivals. Those that take some few texts by their rank matter only where
    /// a condition is asked by few lexemes.
    fn ends(
        &mut self,
        lexer: &Lexer,
        next: LexerState,
        (terminal, terminals): (TerminalId, &TerminalSet),
        conditions: &mut Conditions,
        budget: &mut Budget<'_>,
    ) -> Result<Rc<BTreeSet<ConditionId>>, SearchFailure> {
        budget.spend(1)?;
        let number = self.number(lexer, terminal, terminals)?;
        let key = (next, terminal, number);
        if let Some(known) = self.known.get(&key) {
            return Ok(Rc::clone(known));
        }
        let Deciding { mut infinite, finite } = self.deciding[number].clone();
        let begin = lexer.restricted_to(next, &infinite)?;
        let mut found = self.from(lexer, begin, terminal, conditions, budget)?;
        if !finite.is_empty() && found.all != found.infinitely {
            infinite.union_with(&finite);
            let begin = lexer.restricted_to(next, &infinite)?;
            found = self.from(lexer, begin, terminal, conditions, budget)?;
        }
        self.known.insert(key, Rc::clone(&found.all));
        Ok(found.all)
    }

    /// The number of those of some terminals that decide about lexemes of one.
    fn number(
        &mut self,
        lexer: &Lexer,
        terminal: TerminalId,
        terminals: &TerminalSet,
    ) -> Result<usize, SearchFailure> {
        if !self.rivals.contains_key(&terminal) {
            self.rivals.insert(terminal, lexer.rivals(terminal)?);
        }
        let rivals = self.rivals[&terminal].iter().filter(|&rival| terminals.contains(rival));
        let key = (terminal, rivals.collect::<Vec<_>>());
        if let Some(&known) = self.numbers.get(&key) {
            return Ok(known);
        }
        let mut present = TerminalSet::new(terminals.num_terminals());
        key.1.iter().for_each(|&rival| {
            present.insert(rival);
        });
        let number = self.deciding.len();
        self.deciding.push(lexer.deciding(terminal, &present)?);
        self.numbers.insert(key, number);
        Ok(number)
    }

    /// Demands of the ends of lexemes of a terminal from a state in which no byte was read.
    fn from(
        &mut self,
        lexer: &Lexer,
        begin: LexerState,
        terminal: TerminalId,
        conditions: &mut Conditions,
        budget: &mut Budget<'_>,
    ) -> Result<Conditionals, SearchFailure> {
        if let Some(known) = self.begun.get(&(begin, terminal)) {
            return Ok(known.clone());
        }
        let mut parts = Vec::new();
        for (_, state) in lexer.steps(begin)? {
            if !lexer.viable_terminals(state).contains(terminal) {
                continue;
            }
            if let Some(known) = self.after_byte.get(&(state, terminal)) {
                parts.push(known.clone());
                continue;
            }
            let found = self.follow(lexer, state, terminal, conditions, budget)?;
            self.after_byte.insert((state, terminal), found.clone());
            parts.push(found);
        }
        let union = |of: fn(&Conditionals) -> &Rc<BTreeSet<ConditionId>>| match &parts[..] {
            [only] => Rc::clone(of(only)),
            parts => Rc::new(parts.iter().flat_map(|part| of(part).iter().copied()).collect()),
        };
        let found = Conditionals {
            all: union(|part| &part.all),
            infinitely: union(|part| &part.infinitely),
        };
        self.begun.insert((begin, terminal), found.clone());
        Ok(found)
    }

    /// Demands of the ends of lexemes of a terminal that go on from a state.
    fn follow(
        &mut self,
        lexer: &Lexer,
        from: LexerState,
        terminal: TerminalId,
        conditions: &mut Conditions,
        budget: &mut Budget<'_>,
    ) -> Result<Conditionals, SearchFailure> {
        let mut ids: HashMap<LexerState, usize> = HashMap::from([(from, 0)]);
        let (mut states, mut steps, mut asked) = (vec![from], Vec::<Vec<usize>>::new(), Vec::new());
        let mut num_into = vec![0_usize];
        while let Some(&state) = states.get(steps.len()) {
            self.num_followed += 1;
            // The other half of the lexer's states is for texts.
            if self.num_followed > MAX_FOLLOWED || lexer.is_half_full() {
                return Err(SearchFailure::TooLarge);
            }
            let mut next: Vec<LexerState> =
                lexer.steps(state)?.into_iter().map(|(_, to)| to).collect();
            budget.spend(1 + next.len() as u64)?;
            next.retain(|&to| lexer.viable_terminals(to).contains(terminal));
            next.sort_unstable();
            next.dedup();
            let mut to = Vec::with_capacity(next.len());
            for state in next {
                let id = *ids.entry(state).or_insert_with(|| {
                    states.push(state);
                    num_into.push(0);
                    states.len() - 1
                });
                num_into[id] += 1;
                to.push(id);
            }
            steps.push(to);
            let mut at_end = Vec::new();
            for end in lexer.ends(state)? {
                if end.terminals.contains(terminal) {
                    at_end.push(conditions.of(lexer, end.next)?);
                }
            }
            asked.push(at_end);
        }
        // What is left when those are taken away, again and again, that no step leads into: on a
        // circle, or after one.
        let mut is_finite = vec![false; states.len()];
        let mut work: Vec<usize> = if num_into[0] == 0 { vec![0] } else { Vec::new() };
        while let Some(at) = work.pop() {
            is_finite[at] = true;
            for &to in &steps[at] {
                num_into[to] -= 1;
                if num_into[to] == 0 {
                    work.push(to);
                }
            }
        }
        let infinite = asked.iter().zip(&is_finite).filter(|&(_, &is_finite)| !is_finite);
        Ok(Conditionals {
            infinitely: Rc::new(infinite.flat_map(|(asked, _)| asked.iter().copied()).collect()),
            all: Rc::new(asked.iter().flatten().copied().collect()),
        })
    }
}
