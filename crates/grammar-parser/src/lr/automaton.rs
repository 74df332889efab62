//! The LR(0) automaton: which items may be at work after which symbols.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use palmette_grammar_regex::Budget;

use super::rule_table::{ItemId, RuleId, RuleTable};
use super::{TableError, TableLimits};
use crate::{NonterminalId, Symbol, TerminalId};

/// A state of the LR automaton: what an entry of a parser's stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);

impl StateId {
    /// The bottom of every stack.
    pub const START: Self = Self(0);

    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Rows of different lengths in one array: row `r` is `entries[first[r]..first[r + 1]]`.
#[derive(Clone, Debug)]
pub(super) struct Rows<T> {
    first: Vec<u32>,
    entries: Vec<T>,
}

impl<T> Rows<T> {
    /// Memory behind the rows.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.first) + size_of_val(&*self.entries)
    }

    /// No rows.
    pub(super) fn new() -> Self {
        Self { first: vec![0], entries: Vec::new() }
    }

    /// Adds an entry to the row that [`end_row`](Self::end_row) is yet to end.
    pub(super) fn push(&mut self, entry: T) {
        self.entries.push(entry);
    }

    /// The next entry begins another row.
    pub(super) fn end_row(&mut self) {
        self.first.push(self.entries.len() as u32);
    }

    /// A row.
    pub(super) fn row(&self, row: usize) -> &[T] {
        &self.entries[self.range(row)]
    }

    /// Range of a row among all entries.
    pub(super) fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.first[row] as usize..self.first[row + 1] as usize
    }

    /// All entries, row after row.
    pub(super) fn entries(&self) -> &[T] {
        &self.entries
    }
}

/// The LR(0) automaton of a [`RuleTable`].
///
/// Rows of transitions ascend by symbol, rows of kernels by item, rows of complete items by rule.
#[derive(Debug)]
pub(super) struct Automaton {
    pub kernels: Rows<ItemId>,
    pub shifts: Rows<(TerminalId, StateId)>,
    pub gotos: Rows<(NonterminalId, StateId)>,
    /// The rules that a state may reduce.
    pub complete: Rows<RuleId>,
}

impl Automaton {
    /// Builds all states, numbered in the order in which they are found.
    pub(super) fn new(
        rules: &RuleTable,
        limits: &TableLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, TableError> {
        let mut states = States::new(rules);
        let mut automaton = Self {
            kernels: Rows::new(),
            shifts: Rows::new(),
            gotos: Rows::new(),
            complete: Rows::new(),
        };
        let mut closure = Closure::new(rules);
        states.find(&[rules.first_item(RuleId::START)], &mut automaton.kernels);
        let mut state = 0;
        let (mut num_items, mut next_kernel) = (0, Vec::new());
        while state < states.count {
            closure.expand(rules, automaton.kernels.row(state as usize));
            budget.spend(closure.size as u64)?;
            num_items += closure.size;
            if num_items > limits.max_items {
                return Err(TableError::TooManyItems { limit: limits.max_items });
            }
            closure.complete.sort_unstable();
            for &rule in &closure.complete {
                automaton.complete.push(rule);
            }
            automaton.complete.end_row();
            closure.moves.sort_unstable();
            for group in closure.moves.chunk_by(|a, b| a.0 == b.0) {
                next_kernel.clear();
                next_kernel.extend(group.iter().map(|&(_, item)| item.next()));
                let target = states.find(&next_kernel, &mut automaton.kernels);
                match group[0].0 {
                    Symbol::Terminal(terminal) => automaton.shifts.push((terminal, target)),
                    Symbol::Nonterminal(head) => automaton.gotos.push((head, target)),
                }
            }
            if states.count as usize > limits.max_states {
                return Err(TableError::TooManyStates { limit: limits.max_states });
            }
            automaton.shifts.end_row();
            automaton.gotos.end_row();
            state += 1;
        }
        Ok(automaton)
    }

    /// Number of states.
    pub(super) fn num_states(&self) -> usize {
        self.kernels.first.len() - 1
    }

    /// The place of a transition over `head` among all entries of `gotos`.
    pub(super) fn goto_place(&self, state: StateId, head: NonterminalId) -> Option<usize> {
        let range = self.gotos.range(state.index());
        let row = &self.gotos.entries[range.clone()];
        row.binary_search_by_key(&head, |&(of, _)| of).ok().map(|at| range.start + at)
    }

    /// Predecessors of each state, ascending.
    pub(super) fn predecessors(&self) -> Rows<StateId> {
        let num_states = self.num_states();
        let targets = || {
            (0..num_states).flat_map(|from| {
                let shifts = self.shifts.row(from).iter().map(|&(_, to)| to);
                let gotos = self.gotos.row(from).iter().map(|&(_, to)| to);
                shifts.chain(gotos).map(move |to| (StateId(from as u32), to))
            })
        };
        let mut first = vec![0_u32; num_states + 1];
        for (_, to) in targets() {
            first[to.index() + 1] += 1;
        }
        for state in 0..num_states {
            first[state + 1] += first[state];
        }
        let mut next = first.clone();
        let mut entries = vec![StateId::START; first[num_states] as usize];
        for (from, to) in targets() {
            entries[next[to.index()] as usize] = from;
            next[to.index()] += 1;
        }
        Rows { first, entries }
    }
}

/// Finds states by their kernels.
struct States {
    count: u32,
    /// States by item: the state whose kernel is that item alone; most are.
    of_item: Vec<Option<StateId>>,
    of_kernel: HashTable<StateId>,
    hasher: DefaultHashBuilder,
}

impl States {
    fn new(rules: &RuleTable) -> Self {
        Self {
            count: 0,
            of_item: vec![None; rules.num_items()],
            of_kernel: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// The state with this kernel, a new one where there is none yet.
    fn find(&mut self, kernel: &[ItemId], kernels: &mut Rows<ItemId>) -> StateId {
        let new = StateId(self.count);
        let found = if let [item] = kernel {
            *self.of_item[item.index()].get_or_insert(new)
        } else {
            let hash = self.hasher.hash_one(kernel);
            let same = |state: &StateId| kernels.row(state.index()) == kernel;
            let rehash = |state: &StateId| self.hasher.hash_one(kernels.row(state.index()));
            *self.of_kernel.entry(hash, same, rehash).or_insert(new).get()
        };
        if found == new {
            self.count += 1;
            kernel.iter().for_each(|&item| kernels.push(item));
            kernels.end_row();
        }
        found
    }
}

/// The items of one state; kept so that its buffers are.
struct Closure {
    moves: Vec<(Symbol, ItemId)>,
    complete: Vec<RuleId>,
    size: usize,
    /// The round in which each nonterminal was last expanded.
    expanded: Vec<u32>,
    round: u32,
    work: Vec<NonterminalId>,
}

impl Closure {
    fn new(rules: &RuleTable) -> Self {
        Self {
            moves: Vec::new(),
            complete: Vec::new(),
            size: 0,
            expanded: vec![0; rules.num_nonterminals()],
            round: 0,
            work: Vec::new(),
        }
    }

    /// Takes in the items of `kernel` and those that begin where they stand.
    fn expand(&mut self, rules: &RuleTable, kernel: &[ItemId]) {
        self.round += 1;
        self.moves.clear();
        self.complete.clear();
        for &item in kernel {
            self.take(rules, item);
        }
        while let Some(head) = self.work.pop() {
            for rule in rules.rules_of(head) {
                self.take(rules, rules.first_item(rule));
            }
        }
        self.size = self.moves.len() + self.complete.len();
    }

    fn take(&mut self, rules: &RuleTable, item: ItemId) {
        let Some(symbol) = rules.after(item) else {
            self.complete.push(rules.rule_of(item));
            return;
        };
        self.moves.push((symbol, item));
        if let Symbol::Nonterminal(head) = symbol {
            let round = std::mem::replace(&mut self.expanded[head.index()], self.round);
            if round != self.round {
                self.work.push(head);
            }
        }
    }
}
