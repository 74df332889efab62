//! LALR(1) tables: the actions of each state.

use palmette_grammar_regex::Budget;

use super::automaton::{Automaton, Rows, StateId};
use super::lookaheads::{LookaheadId, Lookaheads};
use super::rule_table::{ItemId, RuleId, RuleTable};
use super::{TableError, TableLimits};
use crate::{Grammar, NonterminalId, Symbol, TerminalId, TerminalSet};

/// LALR(1) tables with all conflicts kept.
///
/// A state shifts a terminal, or reduces a rule when the next terminal is in the rule's lookahead
/// there, or either: then it has a conflict on that terminal, and both are right until shown
/// otherwise. A state that can do nothing but reduce one rule does so whatever follows
/// ([`sole_reduction`](Self::sole_reduction)): a wrong terminal is then noticed later, but never
/// shifted.
///
/// Memory: 8 bytes a transition, 8 a reduction, and the distinct lookahead sets.
#[derive(Debug)]
pub struct Tables {
    rules: RuleTable,
    shifts: Rows<(TerminalId, StateId)>,
    gotos: Rows<(NonterminalId, StateId)>,
    reductions: Rows<(RuleId, LookaheadId)>,
    lookaheads: Vec<TerminalSet>,
    /// Sole reductions by state.
    sole: Vec<Option<RuleId>>,
    /// The state in which the text may end.
    accepting: StateId,
    /// Items whose dots are past something, and that of the start, by state.
    kernels: Rows<ItemId>,
}

/// Action of a state on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The terminal cannot follow.
    None,
    /// Takes the terminal and goes on in this state.
    Shift(StateId),
    /// Replaces the rule's body by its head and looks again.
    Reduce(RuleId),
    /// Ends the text.
    Accept,
    /// Several actions: a conflict.
    Several,
}

impl Tables {
    /// Builds the tables.
    ///
    /// # Errors
    /// When a limit or the budget is exceeded.
    pub fn new(
        grammar: &Grammar,
        limits: &TableLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, TableError> {
        let rules = RuleTable::new(grammar);
        let automaton = Automaton::new(&rules, limits, budget)?;
        let mut sole = vec![None; automaton.num_states()];
        let mut inadequate = Vec::new();
        for state in 0..automaton.num_states() {
            match automaton.complete.row(state) {
                [RuleId::START] => {}
                [rule] if automaton.shifts.row(state).is_empty() => sole[state] = Some(*rule),
                complete => {
                    let reduced = complete.iter().filter(|&&rule| rule != RuleId::START);
                    inadequate.extend(reduced.map(|&rule| (StateId(state as u32), rule)));
                }
            }
        }
        let lookaheads = Lookaheads::new(&rules, &automaton, &inadequate, limits, budget)?;
        let mut reductions = Rows::new();
        let mut known = inadequate.iter().zip(&lookaheads.of_reduction).peekable();
        for state in 0..automaton.num_states() {
            while let Some((&(_, rule), &set)) = known.next_if(|(of, _)| of.0.index() == state) {
                reductions.push((rule, set));
            }
            reductions.end_row();
        }
        let accepting = automaton.gotos.row(StateId::START.index());
        let start = rules.body(RuleId::START).next();
        let accepting =
            accepting.iter().find(|(head, _)| start == Some(Symbol::Nonterminal(*head)));
        let accepting = accepting.map_or(StateId::START, |&(_, target)| target);
        let Automaton { kernels, shifts, gotos, .. } = automaton;
        let lookaheads = lookaheads.sets;
        Ok(Self { rules, shifts, gotos, reductions, lookaheads, sole, accepting, kernels })
    }

    /// The tables with states that are split: `of` is the old state of each new one, and `target`
    /// where a new one goes with a symbol. On every stack they do the same.
    ///
    /// New states must go where the old ones do: `of[target(state, symbol)]` is where `of[state]`
    /// goes. The first is that of [`StateId::START`], and the state in which the text may end is
    /// split into no more than one.
    pub fn split(&self, of: &[StateId], target: impl Fn(StateId, Symbol) -> StateId) -> Self {
        let (mut shifts, mut gotos, mut reductions) = (Rows::new(), Rows::new(), Rows::new());
        for (&old, state) in of.iter().zip((0..).map(StateId)) {
            for &(terminal, _) in self.shifts(old) {
                shifts.push((terminal, target(state, Symbol::Terminal(terminal))));
            }
            for &(head, _) in self.gotos(old) {
                gotos.push((head, target(state, Symbol::Nonterminal(head))));
            }
            self.reductions.row(old.index()).iter().for_each(|&reduced| reductions.push(reduced));
            shifts.end_row();
            gotos.end_row();
            reductions.end_row();
        }
        let accepting = of.iter().position(|&old| old == self.accepting);
        Self {
            rules: self.rules.clone(),
            shifts,
            gotos,
            reductions,
            lookaheads: self.lookaheads.clone(),
            sole: of.iter().map(|old| self.sole[old.index()]).collect(),
            accepting: accepting.map_or(StateId::START, |at| StateId(at as u32)),
            kernels: {
                let mut rows = Rows::new();
                for old in of {
                    self.kernels.row(old.index()).iter().for_each(|&item| rows.push(item));
                    rows.end_row();
                }
                rows
            },
        }
    }

    /// About how much memory the tables take.
    pub fn bytes(&self) -> usize {
        let set = self.num_terminals().div_ceil(8) + size_of::<TerminalSet>();
        self.rules.bytes()
            + self.shifts.bytes()
            + self.gotos.bytes()
            + self.reductions.bytes()
            + self.lookaheads.len() * set
            + self.kernels.bytes()
            + size_of_val(&*self.sole)
    }

    /// The items of a state whose dots are past something, and that of the start.
    pub(crate) fn kernel(&self, state: StateId) -> &[ItemId] {
        self.kernels.row(state.index())
    }

    /// The rules that are parsed.
    #[inline]
    pub fn rules(&self) -> &RuleTable {
        &self.rules
    }

    /// Number of states.
    pub fn num_states(&self) -> usize {
        self.sole.len()
    }

    /// All states, from [`StateId::START`] on.
    pub fn states(&self) -> impl Iterator<Item = StateId> + use<> {
        (0..self.num_states() as u32).map(StateId)
    }

    /// Number of terminals of the grammar.
    pub fn num_terminals(&self) -> usize {
        self.rules.num_terminals()
    }

    /// Stands for the end of the text where a terminal is asked for.
    pub fn end(&self) -> TerminalId {
        TerminalId(self.num_terminals() as u32)
    }

    /// The only thing the state can do, whatever follows: reduce this rule.
    #[inline]
    pub fn sole_reduction(&self, state: StateId) -> Option<RuleId> {
        self.sole[state.index()]
    }

    /// Actions of a state on a terminal or [`end`](Self::end). O(log shifts of the state +
    /// reductions of the state).
    pub(crate) fn action(&self, state: StateId, terminal: TerminalId) -> Action {
        if let Some(rule) = self.sole[state.index()] {
            return Action::Reduce(rule);
        }
        let mut action = match self.shift(state, terminal) {
            Some(target) => Action::Shift(target),
            None if state == self.accepting && terminal == self.end() => Action::Accept,
            None => Action::None,
        };
        for &(rule, lookahead) in self.reductions.row(state.index()) {
            if self.lookaheads[lookahead.0 as usize].contains(terminal) {
                action = match action {
                    Action::None => Action::Reduce(rule),
                    _ => return Action::Several,
                };
            }
        }
        action
    }

    /// Target of a terminal from a state.
    #[inline]
    pub fn shift(&self, state: StateId, terminal: TerminalId) -> Option<StateId> {
        find(self.shifts.row(state.index()), terminal)
    }

    /// The terminals that the state shifts, and where it goes with them, in ascending order.
    #[inline]
    pub fn shifts(&self, state: StateId) -> &[(TerminalId, StateId)] {
        self.shifts.row(state.index())
    }

    /// True when the state shifts one of these terminals.
    pub(crate) fn shifts_any(&self, state: StateId, terminals: &TerminalSet) -> bool {
        let row = self.shifts(state);
        // A property's name may be one of hundreds of texts; then few of them are left to be read.
        if row.len() > 8 && terminals.len() < row.len() / 4 {
            return terminals.iter().any(|terminal| find(row, terminal).is_some());
        }
        row.iter().any(|&(terminal, _)| terminals.contains(terminal))
    }

    /// The rules that the state may reduce, each with what may follow then ([`end`](Self::end)
    /// stands for the end of the text); `None`: whatever follows.
    #[inline]
    pub fn reductions(
        &self,
        state: StateId,
    ) -> impl Iterator<Item = (RuleId, Option<&TerminalSet>)> + '_ {
        let sole = self.sole[state.index()].map(|rule| (rule, None));
        let row = self.reductions.row(state.index()).iter();
        sole.into_iter().chain(
            row.map(|&(rule, lookahead)| (rule, Some(&self.lookaheads[lookahead.0 as usize]))),
        )
    }

    /// Terminals for which a state has an action, and `always`.
    pub fn expected(&self, state: StateId, always: &TerminalSet) -> TerminalSet {
        let mut expected = always.clone();
        let shifted = self.shifts(state).iter().map(|&(terminal, _)| terminal);
        let reduced = self.reductions(state).filter_map(|(_, after)| after);
        let reduced = reduced.flat_map(|after| after.iter());
        for terminal in shifted.chain(reduced).filter(|&terminal| terminal != self.end()) {
            expected.insert(terminal);
        }
        expected
    }

    /// Target of a nonterminal that may begin in a state.
    #[inline]
    pub fn goto(&self, state: StateId, head: NonterminalId) -> Option<StateId> {
        find(self.gotos.row(state.index()), head)
    }

    /// The nonterminals that may begin in the state, and where it goes with them, in ascending
    /// order.
    pub fn gotos(&self, state: StateId) -> &[(NonterminalId, StateId)] {
        self.gotos.row(state.index())
    }

    /// True when the text may end in the state.
    pub fn is_accepting(&self, state: StateId) -> bool {
        state == self.accepting
    }
}

/// The target of a symbol in a sorted row.
fn find<S: Copy + Ord>(row: &[(S, StateId)], symbol: S) -> Option<StateId> {
    row.binary_search_by_key(&symbol, |&(of, _)| of).ok().map(|at| row[at].1)
}
