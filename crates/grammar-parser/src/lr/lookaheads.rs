//! LALR(1) lookaheads, by the relations of DeRemer and Pennello, "Efficient Computation of LALR(1)
//! Look-Ahead Sets" (1982).
//!
//! Only states with more than one thing to do need to look ahead, so the relations are followed
//! backwards from those, and nothing else is computed. The paper's four relations over transitions
//! `(p, A)`, where `r = goto(p, A)`:
//!
//! - *directly reads* `t`: `r` shifts `t`, or is where the text may end;
//! - *reads* `(r, C)`, for a nullable `C`;
//! - *includes* `(p', B)`: `B → βAγ`, `γ` nullable, and `β` leads from `p'` to `p`;
//! - a reduction of `A → ω` in `q` *looks back* to `(p, A)`: `ω` leads from `p` to `q`.
//!
//! We differ in taking *reads* and *includes* together as one graph over nodes `Read(p, A)` and
//! `Follow(p, A)`, with an edge from the latter to the former, and in keeping equal sets once.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use palmette_grammar_regex::Budget;

use super::automaton::{Automaton, StateId};
use super::rule_table::{RuleId, RuleTable};
use super::{TableError, TableLimits};
use crate::rules::Graph;
use crate::{Symbol, TerminalId, TerminalSet};

/// A set of terminals, with one more for the end of the text, in [`Lookaheads::sets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LookaheadId(pub u32);

/// Lookaheads of the reductions that need to know.
#[derive(Debug)]
pub(super) struct Lookaheads {
    /// Distinct sets, sized for the grammar's terminals and one more, the end of the text.
    pub sets: Vec<TerminalSet>,
    /// One set for each reduction asked for, in that order.
    pub of_reduction: Vec<LookaheadId>,
}

impl Lookaheads {
    /// The lookaheads of `reductions`.
    pub(super) fn new(
        rules: &RuleTable,
        automaton: &Automaton,
        reductions: &[(StateId, RuleId)],
        limits: &TableLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, TableError> {
        if reductions.is_empty() {
            return Ok(Self { sets: Vec::new(), of_reduction: Vec::new() });
        }
        let mut relations = Relations::new(rules, automaton, budget);
        let mut look_back = Vec::with_capacity(reductions.len());
        for &(state, rule) in reductions {
            let mut nodes = Vec::new();
            for from in relations.back(state, rules.length(rule))? {
                nodes.push(relations.node_of(from, rules.head(rule), SetKind::Follow));
            }
            look_back.push(nodes);
        }
        relations.follow_all()?;
        let Relations { nodes, edges, budget, .. } = relations;

        let mut pool = Pool::default();
        let graph = Graph::new(nodes.len(), &edges);
        let components = graph.components();
        // Successors have lower components, so in this order their sets are known.
        let mut members = vec![Vec::new(); components.count as usize];
        for (node, &component) in components.of.iter().enumerate() {
            members[component as usize].push(node as u32);
        }
        let mut of_component: Vec<u32> = Vec::with_capacity(members.len());
        for members in &members {
            let mut parts = BTreeSet::new();
            let mut own = Vec::new();
            for &node in members {
                own.extend(nodes[node as usize].directly_reads(rules, automaton));
                let successors = graph.successors(node).iter();
                let known = successors.map(|&next| components.of[next as usize] as usize);
                parts.extend(known.filter_map(|component| of_component.get(component).copied()));
            }
            of_component.push(pool.union(own, &parts, limits, budget)?);
        }
        let mut sets = Vec::new();
        let mut of_reduction = Vec::with_capacity(reductions.len());
        let mut numbered = HashMap::new();
        for nodes in &look_back {
            let parts =
                nodes.iter().map(|&node| of_component[components.of[node as usize] as usize]);
            let pooled = pool.union(Vec::new(), &parts.collect(), limits, budget)?;
            let id = *numbered.entry(pooled).or_insert_with(|| {
                let mut set = TerminalSet::new(rules.num_terminals() + 1);
                for &terminal in &pool.sets[pooled as usize] {
                    set.insert(terminal);
                }
                sets.push(set);
                LookaheadId(sets.len() as u32 - 1)
            });
            of_reduction.push(id);
        }
        Ok(Self { sets, of_reduction })
    }
}

/// The relation that a node of the graph belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SetKind {
    Read,
    Follow,
}

/// `Read(p, A)` or `Follow(p, A)`.
#[derive(Clone, Copy)]
struct Node {
    kind: SetKind,
    /// `p`.
    from: StateId,
    /// `goto(p, A)`.
    to: StateId,
}

impl Node {
    /// Terminals that `goto(p, A)` shifts, and the end where it may be; nothing for `Follow`, which
    /// has it from `Read`.
    fn directly_reads<'a>(
        &self,
        rules: &'a RuleTable,
        automaton: &'a Automaton,
    ) -> impl Iterator<Item = TerminalId> + use<'a> {
        let reads = self.kind == SetKind::Read;
        let to = self.to.index();
        let shifts = automaton.shifts.row(to).iter().map(|&(terminal, _)| terminal);
        let ends = automaton.complete.row(to).contains(&RuleId::START);
        let end = ends.then_some(TerminalId(rules.num_terminals() as u32));
        shifts.chain(end).filter(move |_| reads)
    }
}

/// The graph, as it is discovered.
struct Relations<'a, 'b, 'c> {
    rules: &'a RuleTable,
    automaton: &'a Automaton,
    predecessors: super::automaton::Rows<StateId>,
    /// Nodes by place of a transition and kind.
    numbers: HashMap<(usize, SetKind), u32>,
    nodes: Vec<Node>,
    edges: Vec<(u32, u32)>,
    budget: &'b mut Budget<'c>,
}

impl<'a, 'b, 'c> Relations<'a, 'b, 'c> {
    fn new(rules: &'a RuleTable, automaton: &'a Automaton, budget: &'b mut Budget<'c>) -> Self {
        Self {
            rules,
            automaton,
            predecessors: automaton.predecessors(),
            numbers: HashMap::new(),
            nodes: Vec::new(),
            edges: Vec::new(),
            budget,
        }
    }

    /// The node of the transition of `from` over `head`, which exists.
    fn node_of(&mut self, from: StateId, head: crate::NonterminalId, kind: SetKind) -> u32 {
        let place = self.automaton.goto_place(from, head);
        let place = place.expect("a state in which a rule begins has a transition over its head");
        self.node_at(from, place, kind)
    }

    fn node_at(&mut self, from: StateId, place: usize, kind: SetKind) -> u32 {
        let (_, to) = self.automaton.gotos.entries()[place];
        *self.numbers.entry((place, kind)).or_insert_with(|| {
            self.nodes.push(Node { kind, from, to });
            self.nodes.len() as u32 - 1
        })
    }

    /// Finds the edges of all nodes, which finds more nodes.
    fn follow_all(&mut self) -> Result<(), TableError> {
        let (rules, automaton) = (self.rules, self.automaton);
        let mut node = 0;
        while let Some(&Node { kind, from, to }) = self.nodes.get(node as usize) {
            let mut targets = Vec::new();
            match kind {
                SetKind::Read => {
                    for place in automaton.gotos.range(to.index()) {
                        let (head, _) = automaton.gotos.entries()[place];
                        if rules.nullable(head) {
                            targets.push(self.node_at(to, place, SetKind::Read));
                        }
                    }
                }
                SetKind::Follow => {
                    let kernel = automaton.kernels.row(to.index());
                    // The transition is over the symbol before the dot of any item of the kernel.
                    if let Some(Symbol::Nonterminal(head)) = rules.after(kernel[0].previous()) {
                        targets.push(self.node_of(from, head, SetKind::Read));
                    }
                    for &item in kernel.iter().filter(|&&item| rules.rest_nullable(item)) {
                        let rule = rules.rule_of(item);
                        if rule == RuleId::START {
                            continue;
                        }
                        for start in self.back(from, rules.dot(item) - 1)? {
                            targets.push(self.node_of(start, rules.head(rule), SetKind::Follow));
                        }
                    }
                }
            }
            self.budget.spend(targets.len() as u64 + 1)?;
            self.edges.extend(targets.into_iter().map(|target| (node, target)));
            node += 1;
        }
        Ok(())
    }

    /// The states from which `steps` transitions lead to `state` and in which the symbols are those
    /// before it.
    fn back(&mut self, state: StateId, steps: usize) -> Result<Vec<StateId>, TableError> {
        // All ways into a state are over the same symbol, and the states before it have the same
        // items one symbol earlier or more of them; so no way needs to be checked.
        let mut layer = vec![state];
        for _ in 0..steps {
            let before = layer.iter().flat_map(|state| self.predecessors.row(state.index()));
            let mut before: Vec<StateId> = before.copied().collect();
            before.sort_unstable();
            before.dedup();
            self.budget.spend(before.len() as u64)?;
            layer = before;
        }
        Ok(layer)
    }
}

/// Sets of terminals, equal ones once.
#[derive(Default)]
struct Pool {
    sets: Vec<Box<[TerminalId]>>,
    numbers: HashMap<Box<[TerminalId]>, u32>,
    size: usize,
}

impl Pool {
    /// The number of the union of the sets `parts` and of `own`.
    fn union(
        &mut self,
        mut own: Vec<TerminalId>,
        parts: &BTreeSet<u32>,
        limits: &TableLimits,
        budget: &mut Budget<'_>,
    ) -> Result<u32, TableError> {
        if own.is_empty() && parts.len() == 1 {
            return Ok(parts.iter().copied().sum());
        }
        for &part in parts {
            own.extend(&self.sets[part as usize]);
        }
        budget.spend(own.len() as u64 + 1)?;
        own.sort_unstable();
        own.dedup();
        if let Some(&known) = self.numbers.get(&own[..]) {
            return Ok(known);
        }
        self.size += own.len();
        if self.size > limits.max_items {
            return Err(TableError::TooManyItems { limit: limits.max_items });
        }
        let number = self.sets.len() as u32;
        let set: Box<[_]> = own.into();
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        Ok(number)
    }
}
