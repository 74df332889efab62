//! Conflicts of LALR(1) tables, each with a shortest example.

use std::collections::VecDeque;

use crate::lr::{RuleId, StateId, Tables};
use crate::{NonterminalId, Symbol, TerminalId, TerminalSet};

/// A state in which some terminal has several actions. It costs time, and is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The terminals; the number of terminals stands for the end of the text.
    pub on: TerminalSet,
    /// True when one of the actions is to shift.
    pub shifts: bool,
    /// The rules that may be reduced, by their places in [`Grammar::rules`](crate::Grammar::rules),
    /// ascending. A rule is here twice if hidden left recursion was taken out of it and two of the
    /// rules made from it conflict.
    pub rules: Vec<usize>,
    /// Terminals after which the state is reached: as few as spell the shortest sequence of symbols
    /// that leads to it; `None` where they would be more than 64.
    pub example: Option<Vec<TerminalId>>,
}

/// The longest example: a short grammar may have exponentially long texts only.
pub(super) const MAX_EXAMPLE: usize = 64;

/// All conflicts, by state.
pub(super) fn conflicts(tables: &Tables) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    let mut examples = None;
    for state in tables.states() {
        let mut once = TerminalSet::new(tables.num_terminals() + 1);
        let mut on = once.clone();
        for &(terminal, _) in tables.shifts(state) {
            once.insert(terminal);
        }
        if tables.is_accepting(state) {
            once.insert(tables.end());
        }
        for terminal in
            tables.reductions(state).filter_map(|(_, set)| set).flat_map(TerminalSet::iter)
        {
            if !once.insert(terminal) {
                on.insert(terminal);
            }
        }
        if on.is_empty() {
            continue;
        }
        let reduced =
            tables.reductions(state).filter(|(_, set)| set.is_some_and(|set| set.intersects(&on)));
        let mut rules: Vec<usize> =
            reduced.filter_map(|(rule, _)| tables.rules().origin(rule)).collect();
        rules.sort_unstable();
        let examples = examples.get_or_insert_with(|| Examples::new(tables));
        conflicts.push(Conflict {
            shifts: tables.shifts(state).iter().any(|&(terminal, _)| on.contains(terminal)),
            on,
            rules,
            example: examples.of(state),
        });
    }
    conflicts
}

/// Ways to all states.
struct Examples<'t> {
    tables: &'t Tables,
    /// Predecessors by state: the state before on a shortest way, and the symbol between.
    before: Vec<Option<(StateId, Symbol)>>,
    /// Shortest derivations by nonterminal: the rule that begins its shortest text, and how many
    /// terminals that has.
    shortest: Vec<Option<(RuleId, usize)>>,
}

impl<'t> Examples<'t> {
    fn new(tables: &'t Tables) -> Self {
        let mut before = vec![None; tables.num_states()];
        let mut work = VecDeque::from([StateId::START]);
        while let Some(state) = work.pop_front() {
            let shifts = tables.shifts(state).iter().map(|&(id, to)| (Symbol::Terminal(id), to));
            let gotos = tables.gotos(state).iter().map(|&(id, to)| (Symbol::Nonterminal(id), to));
            for (symbol, to) in shifts.chain(gotos) {
                if before[to.index()].is_none() && to != StateId::START {
                    before[to.index()] = Some((state, symbol));
                    work.push_back(to);
                }
            }
        }
        Self { tables, before, shortest: shortest_texts(tables) }
    }

    fn of(&self, state: StateId) -> Option<Vec<TerminalId>> {
        let mut symbols = Vec::new();
        let mut at = state;
        while let Some((before, symbol)) = self.before[at.index()] {
            symbols.push(symbol);
            at = before;
        }
        let lengths = symbols.iter().map(|&symbol| match symbol {
            Symbol::Terminal(_) => 1,
            Symbol::Nonterminal(id) => self.shortest[id.index()].map_or(0, |(_, length)| length),
        });
        if lengths.fold(0, usize::saturating_add) > MAX_EXAMPLE {
            return None;
        }
        // The last of `symbols` is the next. A nonterminal is replaced by the body of its shortest
        // text's rule, in which there are only nonterminals that were settled before, so this ends.
        let mut example = Vec::new();
        while let Some(symbol) = symbols.pop() {
            match symbol {
                Symbol::Terminal(id) => example.push(id),
                Symbol::Nonterminal(id) => {
                    if let Some((rule, _)) = self.shortest[id.index()] {
                        let body: Vec<_> = self.tables.rules().body(rule).collect();
                        symbols.extend(body.into_iter().rev());
                    }
                }
            }
        }
        Some(example)
    }
}

/// Shortest texts by nonterminal, each as its first rule and length.
///
/// Knuth's generalisation of Dijkstra's algorithm (1977): texts are settled in the order of their
/// lengths, so a rule's symbols are settled before its head.
fn shortest_texts(tables: &Tables) -> Vec<Option<(RuleId, usize)>> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    let rules = tables.rules();
    let mut settled: Vec<Option<(RuleId, usize)>> = vec![None; rules.num_nonterminals()];
    let mut waiting = vec![0_usize; rules.num_rules()];
    let mut lengths = vec![0_usize; rules.num_rules()];
    let mut users: Vec<Vec<RuleId>> = vec![Vec::new(); rules.num_nonterminals()];
    let mut heap = BinaryHeap::new();
    for rule in rules.ids() {
        for symbol in rules.body(rule) {
            match symbol {
                Symbol::Terminal(_) => lengths[rule.index()] += 1,
                Symbol::Nonterminal(NonterminalId(id)) => {
                    waiting[rule.index()] += 1;
                    users[id as usize].push(rule);
                }
            }
        }
        if waiting[rule.index()] == 0 {
            heap.push(Reverse((lengths[rule.index()], rule)));
        }
    }
    while let Some(Reverse((length, rule))) = heap.pop() {
        let head = rules.head(rule).index();
        if settled[head].is_some() {
            continue;
        }
        settled[head] = Some((rule, length));
        for &user in &users[head] {
            waiting[user.index()] -= 1;
            lengths[user.index()] = lengths[user.index()].saturating_add(length);
            if waiting[user.index()] == 0 {
                heap.push(Reverse((lengths[user.index()], user)));
            }
        }
    }
    settled
}
