//! The parser's states by what can be completed on their stacks.
//!
//! An automaton that reads stacks from the bottom up goes along with the parser's states: a *node*
//! is a state with the automaton's. It tells, of each lexeme that may come, what its end must not
//! ask of the text. Where that depends on the topmost state alone, the tables stay what they are;
//! elsewhere states are split, into as few as tell it.

use hashbrown::HashMap;

use super::places::ConditionId;
use super::pushdown::{Completable, Control, ControlId, Demand};
use super::risks::{Risk, Risks};
use super::search_failure::SearchFailure;
use crate::lr::{StateId, Tables};
use crate::recognizer::Contexts;
use crate::{Budget, Symbol, TerminalId};

const MAX_NODES: usize = 20_000;
/// States of the automaton in all nodes together.
const MAX_NODE_WORK: u64 = 20_000_000;

/// Forbidden demands of ends on the text, by terminal; only of those that must not ask something.
pub(super) type Prohibitions = Vec<(TerminalId, Vec<ConditionId>)>;

/// Forbidden demands of ends on the stacks of a node, by terminal; `None` where the terminal cannot
/// follow.
pub(super) type NodeProhibitions = Vec<(TerminalId, Option<Vec<ConditionId>>)>;

/// The states, split or not, each with what is forbidden there.
#[derive(Debug)]
pub(super) struct Split {
    /// Old states by new state.
    pub(super) of: Vec<StateId>,
    /// Transitions by new state and symbol.
    pub(super) targets: Vec<HashMap<Symbol, StateId>>,
    pub(super) forbidden: Vec<Prohibitions>,
}

/// A state with what can be completed on some of its stacks.
#[derive(Debug)]
struct Node {
    state: StateId,
    accepted: Vec<ControlId>,
    edges: Vec<(Symbol, usize)>,
}

/// Nodes, the bottom of stacks first.
#[derive(Debug)]
pub(super) struct Nodes(Vec<Node>);

/// Conditions by state and terminal: what is forbidden at all nodes where the terminal can follow;
/// `None` where they differ.
type Usual = Vec<HashMap<TerminalId, Option<Vec<ConditionId>>>>;

impl Nodes {
    pub(super) fn new(
        tables: &Tables,
        completable: &Completable,
        budget: &mut Budget<'_>,
    ) -> Result<Self, SearchFailure> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut ids: HashMap<(StateId, Vec<ControlId>), usize> = HashMap::new();
        let mut work_done = 0;
        let mut find = |nodes: &mut Vec<Node>, below: &[ControlId], state: StateId| {
            let accepted = completable.longer(below, state);
            work_done += (below.len() + accepted.len()) as u64;
            let next = nodes.len();
            let id = *ids.entry((state, accepted)).or_insert_with_key(|(_, accepted)| {
                nodes.push(Node { state, accepted: accepted.clone(), edges: Vec::new() });
                next
            });
            budget.spend(1 + below.len() as u64)?;
            match nodes.len() > MAX_NODES || work_done > MAX_NODE_WORK {
                true => Err(SearchFailure::TooLarge),
                false => Ok(id),
            }
        };
        find(&mut nodes, &[ControlId::ANY], StateId::START)?;
        let mut at = 0;
        while at < nodes.len() {
            let (state, accepted) = (nodes[at].state, nodes[at].accepted.clone());
            let shifts = tables.shifts(state).iter().map(|&(of, to)| (Symbol::Terminal(of), to));
            let gotos = tables.gotos(state).iter().map(|&(of, to)| (Symbol::Nonterminal(of), to));
            let mut edges = Vec::new();
            for (symbol, to) in shifts.chain(gotos) {
                edges.push((symbol, find(&mut nodes, &accepted, to)?));
            }
            nodes[at].edges = edges;
            at += 1;
        }
        Ok(Self(nodes))
    }

    /// Forbidden demands at each node.
    pub(super) fn forbidden(
        &self,
        tables: &Tables,
        completable: &Completable,
        contexts: &Contexts,
        risks: &Risks,
    ) -> Vec<NodeProhibitions> {
        let of = |node: &Node| {
            // Where a reduction is done whatever follows, no lexeme begins.
            let is_settled = tables.sole_reduction(node.state).is_none();
            let risky = risks.of(contexts.of(node.state)).iter().filter(|_| is_settled);
            let accepts = |control: Control| {
                let id = completable.id(control);
                id.is_some_and(|id| node.accepted.binary_search(&id).is_ok())
            };
            let of_terminal = |risk: &Risk| {
                let can_follow =
                    risk.is_ignored || accepts(Control::Before(risk.terminal, Demand::Safe));
                let is_dead = |&condition: &ConditionId| {
                    let after = Demand::Condition(condition);
                    !accepts(match risk.is_ignored {
                        true => Control::Between(after),
                        false => Control::Before(risk.terminal, after),
                    })
                };
                let dead = || risk.unsafe_ends.iter().copied().filter(is_dead).collect();
                (risk.terminal, can_follow.then(dead))
            };
            risky.map(of_terminal).collect()
        };
        self.0.iter().map(of).collect()
    }

    /// The state of each node.
    pub(super) fn states(&self) -> impl Iterator<Item = StateId> + '_ {
        self.0.iter().map(|node| node.state)
    }

    /// The fewest states that tell what is forbidden at each node.
    pub(super) fn split(&self, forbidden: &[NodeProhibitions], num_states: usize) -> Split {
        let usual = usual(self, forbidden, num_states);
        let is_usual = self.0.iter().zip(forbidden).all(|(node, forbidden)| {
            let usual = &usual[node.state.index()];
            forbidden.iter().all(|(of, told)| told.is_none() || *told == usual[of])
        });
        let told = |node: &Node, forbidden: &NodeProhibitions| {
            let usual = &usual[node.state.index()];
            let told = forbidden.iter().filter_map(|(of, told)| {
                let told = told.as_ref().or(usual[of].as_ref())?;
                (!told.is_empty()).then(|| (*of, told.clone()))
            });
            told.collect::<Prohibitions>()
        };
        // Moore's algorithm: nodes are told apart by what is forbidden, then by where symbols lead.
        let mut class_of: Vec<usize> = match is_usual {
            true => self.0.iter().map(|node| node.state.index()).collect(),
            false => {
                let nodes = self.0.iter().zip(forbidden);
                numbered(nodes.map(|(node, forbidden)| (node.state, told(node, forbidden))))
            }
        };
        let mut num_classes = 0;
        loop {
            let now = class_of.iter().max().map_or(0, |&last| last + 1);
            if is_usual || std::mem::replace(&mut num_classes, now) == now {
                break;
            }
            class_of = numbered(self.0.iter().zip(&class_of).map(|(node, &class)| {
                (class, node.edges.iter().map(|&(_, to)| class_of[to]).collect::<Vec<_>>())
            }));
        }
        let class_of = numbered(class_of.into_iter());
        let mut split = Split { of: Vec::new(), targets: Vec::new(), forbidden: Vec::new() };
        for ((node, forbidden), &class) in self.0.iter().zip(forbidden).zip(&class_of) {
            let state = |at: usize| StateId(class_of[at] as u32);
            if class == split.of.len() {
                split.of.push(node.state);
                split.targets.push(node.edges.iter().map(|&(by, to)| (by, state(to))).collect());
                split.forbidden.push(told(node, forbidden));
            } else if is_usual && split.forbidden[class].is_empty() {
                split.forbidden[class] = told(node, forbidden);
            }
        }
        split
    }
}

fn usual(nodes: &Nodes, forbidden: &[NodeProhibitions], num_states: usize) -> Usual {
    let mut usual: Usual = vec![HashMap::new(); num_states];
    let mut differs: Vec<(StateId, TerminalId)> = Vec::new();
    for (state, forbidden) in nodes.states().zip(forbidden) {
        for (of, told) in forbidden {
            let known = usual[state.index()].entry(*of).or_default();
            match (known.as_ref(), told) {
                (None, Some(told)) => *known = Some(told.clone()),
                (Some(known), Some(told)) if known != told => differs.push((state, *of)),
                _ => {}
            }
        }
    }
    for (state, of) in differs {
        usual[state.index()].insert(of, None);
    }
    usual
}

/// A number for each key, equal ones under one, in the order in which they come.
fn numbered<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> Vec<usize> {
    let mut numbers: HashMap<K, usize> = HashMap::new();
    keys.map(|key| {
        let next = numbers.len();
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}
