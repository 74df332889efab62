//! The stacks from which a text can be completed, by conditions: predecessors of a pushdown system.
//!
//! A text at a place between two lexemes is a *configuration*: what is asked of the text, and a
//! stack. Reading a lexeme reduces, shifts, and does the reductions that need no lookahead, in
//! steps that look at the topmost state each. The configurations from which a text can be completed
//! are those from which a safe place or an accepted text can be reached. They are a regular set of
//! stacks for each control, read by an automaton from the top down, to which transitions are added
//! until none is missing.
//!
//! Rules are made for the controls and topmost states that the places in question lead to, no
//! others.
//!
//! Source: Bouajjani, Esparza and Maler, "Reachability analysis of pushdown automata" (CONCUR
//! 1997); the order of work is that of Esparza, Hansel, Rossmanith and Schwoon (CAV 2000),
//! algorithm 1.

use hashbrown::{HashMap, HashSet};

use super::places::{ConditionId, Places};
use super::search_failure::SearchFailure;
use crate::lexer::Lexer;
use crate::lr::{StateId, Tables};
use crate::recognizer::Contexts;
use crate::{Budget, NonterminalId, TerminalId, TerminalSet};

/// Controls with a topmost state for which rules are made.
const MAX_HEADS: usize = 400_000;
const MAX_TRANSITIONS: usize = 2_000_000;

/// Step of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Control {
    /// The next lexeme begins.
    Between(Demand),
    /// The next lexeme is this one; the parser is before it.
    Before(TerminalId, Demand),
    /// The lexeme was shifted.
    Shifted(Demand),
    /// Deferred reduction: `left` states are to be taken off before the head of a rule is put on.
    Reduce { then: ControlId, head: NonterminalId, left: u32 },
}

/// Demand on the text after a lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Demand {
    /// A text with which it can be completed on any stack, or nothing.
    Safe,
    Condition(ConditionId),
}

/// A state of the automaton that reads stacks: a control, or [`ControlId::ANY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ControlId(u32);

impl ControlId {
    /// Accepts whatever is below.
    pub(super) const ANY: Self = Self(0);
}

/// The automaton.
#[derive(Debug)]
pub(super) struct Completable {
    ids: HashMap<Control, ControlId>,
    /// Transitions by topmost state and the automaton's state below it: the states above.
    above: Vec<HashMap<ControlId, Vec<ControlId>>>,
}

/// The right side of a rule.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// The text can be completed.
    Done,
    /// The topmost state is taken off.
    Pop(ControlId),
    /// The control changes.
    Turn(ControlId),
    /// A state is put on.
    Push(ControlId, StateId),
}

type Head = (ControlId, StateId);

struct Making<'a> {
    lexer: &'a Lexer,
    tables: &'a Tables,
    contexts: &'a Contexts,
    ignored: &'a TerminalSet,
    places: &'a Places,
    /// Predecessors by state: the states that may be below it.
    below: Vec<Vec<StateId>>,
    ids: HashMap<Control, ControlId>,
    controls: Vec<Control>,
    rules: Vec<(Head, Rule)>,
    seen: HashSet<Head>,
    work: Vec<Head>,
}

impl Completable {
    /// The automaton, for what is asked of it: some controls with topmost states.
    pub(super) fn new(
        (lexer, tables, contexts, ignored): (&Lexer, &Tables, &Contexts, &TerminalSet),
        places: &Places,
        questions: impl Iterator<Item = (Control, StateId)>,
        budget: &mut Budget<'_>,
    ) -> Result<Self, SearchFailure> {
        let mut below = vec![Vec::new(); tables.num_states()];
        for state in tables.states() {
            let shifts = tables.shifts(state).iter().map(|&(_, to)| to);
            let targets = shifts.chain(tables.gotos(state).iter().map(|&(_, to)| to));
            targets.for_each(|to| below[to.index()].push(state));
        }
        for states in &mut below {
            states.sort_unstable();
            states.dedup();
        }
        let mut making = Making {
            lexer,
            tables,
            contexts,
            ignored,
            places,
            below,
            ids: HashMap::new(),
            // The first is a place holder for what accepts any stack.
            controls: vec![Control::Between(Demand::Safe)],
            rules: Vec::new(),
            seen: HashSet::new(),
            work: Vec::new(),
        };
        for (control, state) in questions {
            let control = making.id(control);
            making.ask(control, state);
        }
        while let Some((control, state)) = making.work.pop() {
            budget.spend(1)?;
            making.add_rules(control, state);
            if making.seen.len() > MAX_HEADS {
                return Err(SearchFailure::TooLarge);
            }
        }
        let above = saturate(&making.rules, tables.num_states(), budget)?;
        Ok(Self { ids: making.ids, above })
    }

    /// The control's state of the automaton, if it was asked for.
    pub(super) fn id(&self, control: Control) -> Option<ControlId> {
        self.ids.get(&control).copied()
    }

    /// The automaton's states from which a stack is accepted that is longer by one state, in
    /// ascending order.
    pub(super) fn longer(&self, accepted: &[ControlId], state: StateId) -> Vec<ControlId> {
        let above = &self.above[state.index()];
        let mut all = vec![ControlId::ANY];
        all.extend(accepted.iter().filter_map(|below| above.get(below)).flatten());
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Making<'_> {
    fn id(&mut self, control: Control) -> ControlId {
        let next = ControlId(self.controls.len() as u32);
        let id = *self.ids.entry(control).or_insert(next);
        if id == next {
            self.controls.push(control);
        }
        id
    }

    fn ask(&mut self, control: ControlId, state: StateId) {
        if self.seen.insert((control, state)) {
            self.work.push((control, state));
        }
    }

    fn add(&mut self, head: Head, rule: Rule) {
        self.rules.push((head, rule));
        match rule {
            Rule::Done => {}
            Rule::Pop(next) => {
                for at in 0..self.below[head.1.index()].len() {
                    self.ask(next, self.below[head.1.index()][at]);
                }
            }
            Rule::Turn(next) => self.ask(next, head.1),
            Rule::Push(next, state) => self.ask(next, state),
        }
    }

    fn add_rules(&mut self, control: ControlId, state: StateId) {
        let head = (control, state);
        let tables = self.tables;
        match self.controls[control.0 as usize] {
            Control::Between(Demand::Safe) => self.add(head, Rule::Done),
            Control::Between(Demand::Condition(condition)) => {
                let Some(place) = self.places.at(condition, self.contexts.of(state)) else {
                    return;
                };
                if place.is_safe {
                    return self.add(head, Rule::Done);
                }
                for &(terminal, condition) in &*place.ends {
                    let next = match self.ignored.contains(terminal) {
                        true => Control::Between(Demand::Condition(condition)),
                        false if self.places.is_safe_after(terminal, condition) => {
                            Control::Before(terminal, Demand::Safe)
                        }
                        false => Control::Before(terminal, Demand::Condition(condition)),
                    };
                    let next = self.id(next);
                    self.add(head, Rule::Turn(next));
                }
                if self.lexer.may_end(self.places.state_of(condition)) {
                    let next = self.id(Control::Before(tables.end(), Demand::Safe));
                    self.add(head, Rule::Turn(next));
                }
            }
            Control::Before(terminal, after) => {
                if terminal == tables.end() && tables.is_accepting(state) {
                    self.add(head, Rule::Done);
                }
                if let Some(target) = tables.shift(state, terminal) {
                    let next = self.id(Control::Shifted(after));
                    self.add(head, Rule::Push(next, target));
                }
                for (rule, lookahead) in tables.reductions(state) {
                    if lookahead.is_none_or(|all| all.contains(terminal)) {
                        self.reduce(head, rule);
                    }
                }
            }
            Control::Shifted(after) => match tables.sole_reduction(state) {
                Some(rule) => self.reduce(head, rule),
                None => {
                    let next = self.id(Control::Between(after));
                    self.add(head, Rule::Turn(next));
                }
            },
            Control::Reduce { then, head: symbol, left: 0 } => {
                if let Some(target) = tables.goto(state, symbol) {
                    self.add(head, Rule::Push(then, target));
                }
            }
            Control::Reduce { then, head: symbol, left } => {
                let next = self.id(Control::Reduce { then, head: symbol, left: left - 1 });
                self.add(head, Rule::Pop(next));
            }
        }
    }

    fn reduce(&mut self, head: Head, rule: crate::lr::RuleId) {
        let rules = self.tables.rules();
        let (symbol, left) = (rules.head(rule), rules.length(rule) as u32);
        let next = self.id(Control::Reduce { then: head.0, head: symbol, left });
        self.add(head, Rule::Turn(next));
    }
}

/// Adds transitions until none is missing; gives them by topmost state and the state below.
fn saturate(
    rules: &[(Head, Rule)],
    num_states: usize,
    budget: &mut Budget<'_>,
) -> Result<Vec<HashMap<ControlId, Vec<ControlId>>>, SearchFailure> {
    let mut turns: HashMap<Head, Vec<Head>> = HashMap::new();
    let mut pushes: HashMap<Head, Vec<Head>> = HashMap::new();
    let mut work: Vec<(Head, ControlId)> = Vec::new();
    for &(head, rule) in rules {
        match rule {
            Rule::Done => work.push((head, ControlId::ANY)),
            Rule::Pop(next) => work.push((head, next)),
            Rule::Turn(next) => turns.entry((next, head.1)).or_default().push(head),
            Rule::Push(next, state) => pushes.entry((next, state)).or_default().push(head),
        }
    }
    let mut targets: HashMap<Head, Vec<ControlId>> = HashMap::new();
    let mut known: HashSet<(Head, ControlId)> = HashSet::new();
    let mut above = vec![HashMap::<ControlId, Vec<ControlId>>::new(); num_states];
    // Rules that are left once a state that was put on is read, by the state that is then at the
    // top.
    let mut rest: HashMap<Head, Vec<Head>> = HashMap::new();
    while let Some((head, to)) = work.pop() {
        if !known.insert((head, to)) {
            continue;
        }
        if known.len() > MAX_TRANSITIONS {
            return Err(SearchFailure::TooLarge);
        }
        budget.spend(1)?;
        targets.entry(head).or_default().push(to);
        above[head.1.index()].entry(to).or_default().push(head.0);
        work.extend(turns.get(&head).into_iter().flatten().map(|&from| (from, to)));
        work.extend(rest.get(&head).into_iter().flatten().map(|&from| (from, to)));
        for &from in pushes.get(&head).into_iter().flatten() {
            // What was below is read from `to` on.
            if to == ControlId::ANY {
                work.push((from, ControlId::ANY));
                continue;
            }
            let left = (to, from.1);
            rest.entry(left).or_default().push(from);
            work.extend(targets.get(&left).into_iter().flatten().map(|&to| (from, to)));
        }
    }
    Ok(above)
}
