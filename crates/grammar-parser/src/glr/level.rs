//! The general way: all reductions at one place in the text.

use std::sync::Arc;

use hashbrown::HashMap;

use super::node::{Node, same};
use super::parser::LimitError;
use crate::lr::{StateId, Tables};
use crate::{NonterminalId, TerminalId, TerminalSet};

/// Choice of the reductions that are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReductionChoice {
    /// Reductions that may come before a terminal.
    Terminal(TerminalId),
    /// Reductions that may come before some terminal or the end.
    Any,
    /// Reductions that are to be done whatever follows.
    Sole,
}

impl ReductionChoice {
    /// True when a reduction with this lookahead is one of them.
    fn allows(self, lookahead: Option<&TerminalSet>) -> bool {
        match self {
            Self::Terminal(terminal) => lookahead.is_none_or(|set| set.contains(terminal)),
            Self::Any => true,
            Self::Sole => lookahead.is_none(),
        }
    }
}

/// The stack nodes at one place in the text, one for each state, while reductions add to them.
///
/// A reduction walks links down and, at each node that it ends at, puts a node for the head above.
/// Where a node is there already, it gets one more link, and the reductions that may lead through
/// the new link are done then (Nozohoor-Farshi, "GLR Parsing for ε-Grammars", 1991; he repeats all
/// of them): those from the node itself, and those from nodes of this level above it. New links of
/// a node wait for each other and are gone along together, and walks go down in layers of distinct
/// nodes, not path by path. So the work is polynomial however ambiguous the grammar is: a text of
/// `n` terminals costs O(n³) where bodies have two symbols or fewer.
///
/// Links to nodes of the same place come from empty rules. As no left recursion is hidden, they
/// form no cycle.
#[derive(Debug, Default)]
pub(super) struct Level {
    nodes: Vec<LevelNode>,
    of_state: HashMap<StateId, u32>,
    /// Links by node and hash of the target.
    links: HashMap<(u32, u64), u32>,
    /// The nodes with links that no reduction went along yet.
    work: Vec<u32>,
    /// Number of links that were looked at.
    num_seen: usize,
}

#[derive(Debug)]
struct LevelNode {
    state: StateId,
    links: Vec<Link>,
    /// The node that it was made from and how many links that has.
    made_from: Option<(Arc<Node>, usize)>,
    /// The nodes of this level that have a link to it.
    above: Vec<u32>,
    /// True when reductions from it began.
    begun: bool,
    /// Number of its links that reductions went along.
    gone: usize,
    /// True when it is in the list of work.
    waits: bool,
}

/// Links below a node of a level.
#[derive(Clone, Debug)]
enum Link {
    /// A finished node.
    Done(Arc<Node>),
    /// A node of the same level.
    Here(u32),
}

impl Level {
    /// Begins with these tops.
    pub(super) fn start(&mut self, heads: &[Arc<Node>]) {
        self.clear();
        for head in heads {
            let node = self.add_node(head.state);
            for below in head.links() {
                self.add_known_link(node, Link::Done(Arc::clone(below)));
            }
            self.nodes[node as usize].made_from = Some((Arc::clone(head), head.links().len()));
        }
    }

    /// Begins with one top for each target of `shifts`, above the node it comes from.
    fn start_above(&mut self, shifts: Vec<(StateId, Arc<Node>)>) {
        self.clear();
        for (state, below) in shifts {
            let node = self.of_state.get(&state).copied().unwrap_or_else(|| self.add_node(state));
            let link = Link::Done(below);
            if !self.has_link(node, &link) {
                self.add_known_link(node, link);
            }
        }
    }

    fn clear(&mut self) {
        self.nodes.clear();
        self.of_state.clear();
        self.links.clear();
        self.work.clear();
        self.num_seen = 0;
    }

    /// Does all reductions. Stops early, with `true`, at the first node in whose state `found`
    /// holds.
    pub(super) fn reduce(
        &mut self,
        tables: &Tables,
        choice: ReductionChoice,
        max_links: usize,
        found: impl Fn(StateId) -> bool,
    ) -> Result<bool, LimitError> {
        if self.nodes.iter().any(|node| found(node.state)) {
            return Ok(true);
        }
        while let Some(node) = self.work.pop() {
            if self.reduce_along_new(tables, choice, node, max_links, &found)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does all reductions that lead through links of a node that none went along yet, and those of
    /// empty bodies if the node is new. Stops early, with `true`, at the first new node in whose
    /// state `found` holds.
    fn reduce_along_new(
        &mut self,
        tables: &Tables,
        choice: ReductionChoice,
        changed: u32,
        max_links: usize,
        found: &impl Fn(StateId) -> bool,
    ) -> Result<bool, LimitError> {
        let node = &mut self.nodes[changed as usize];
        let is_new = !std::mem::replace(&mut node.begun, true);
        let new_links = node.links[node.gone..].to_vec();
        (node.gone, node.waits) = (node.links.len(), false);
        // What lies below the changed node, by depth from 1 on; and the nodes from which so many
        // steps lead to it.
        let mut below = vec![new_links];
        let mut above = vec![changed];
        let mut steps = 0;
        while !above.is_empty() && steps < tables.rules().longest() {
            for &top in &above {
                let state = self.nodes[top as usize].state;
                for (rule, lookahead) in tables.reductions(state) {
                    if !choice.allows(lookahead) {
                        continue;
                    }
                    let head = tables.rules().head(rule);
                    let length = tables.rules().length(rule);
                    if length == 0 && steps == 0 && is_new {
                        // The empty body begins at the node, whatever lies below.
                        if self.put_above(tables, head, state, Link::Here(top), found) {
                            return Ok(true);
                        }
                        continue;
                    }
                    if length <= steps {
                        continue;
                    }
                    while below.len() < length - steps {
                        let deeper = self.layer_below(&below[below.len() - 1], max_links)?;
                        below.push(deeper);
                    }
                    self.see(below[length - steps - 1].len(), max_links)?;
                    for link in &below[length - steps - 1] {
                        let base = self.state_of(link);
                        if self.put_above(tables, head, base, link.clone(), found) {
                            return Ok(true);
                        }
                    }
                }
            }
            let mut higher: Vec<u32> =
                above.iter().flat_map(|&node| &self.nodes[node as usize].above).copied().collect();
            higher.sort_unstable();
            higher.dedup();
            above = higher;
            steps += 1;
        }
        Ok(false)
    }

    /// Puts a node for a rule's head above `below`, whose state is `base`; tells whether it is a
    /// new one in whose state `found` holds.
    fn put_above(
        &mut self,
        tables: &Tables,
        head: NonterminalId,
        base: StateId,
        below: Link,
        found: &impl Fn(StateId) -> bool,
    ) -> bool {
        let Some(target) = tables.goto(base, head) else { return false };
        self.add_link(target, below) && found(target)
    }

    /// The states of all nodes, in the order in which they were found.
    pub(super) fn states(&self) -> impl Iterator<Item = StateId> + '_ {
        self.nodes.iter().map(|node| node.state)
    }

    /// The tops after `terminal`, the reductions done that are to be done whatever follows. Uses
    /// the level up.
    pub(super) fn shift(
        &mut self,
        tables: &Tables,
        terminal: TerminalId,
        max_links: usize,
    ) -> Result<Vec<Arc<Node>>, LimitError> {
        let mut finished = vec![None; self.nodes.len()];
        let mut shifts = Vec::new();
        for node in 0..self.nodes.len() {
            if let Some(target) = tables.shift(self.nodes[node].state, terminal) {
                shifts.push((target, self.finish(node as u32, &mut finished)));
            }
        }
        self.start_above(shifts);
        self.finish_tops(tables, max_links)
    }

    /// Does the reductions that are to be done whatever follows, and gives the tops that are left.
    pub(super) fn finish_tops(
        &mut self,
        tables: &Tables,
        max_links: usize,
    ) -> Result<Vec<Arc<Node>>, LimitError> {
        self.reduce(tables, ReductionChoice::Sole, max_links, |_| false)?;
        let mut finished = vec![None; self.nodes.len()];
        let mut tops = Vec::new();
        for node in 0..self.nodes.len() {
            if tables.sole_reduction(self.nodes[node].state).is_none() {
                tops.push(self.finish(node as u32, &mut finished));
            }
        }
        Ok(tops)
    }

    fn state_of(&self, link: &Link) -> StateId {
        match link {
            Link::Done(node) => node.state,
            Link::Here(node) => self.nodes[*node as usize].state,
        }
    }

    /// The distinct targets of the links of all these nodes.
    fn layer_below(&mut self, layer: &[Link], max_links: usize) -> Result<Vec<Link>, LimitError> {
        let mut below: Vec<Link> = Vec::new();
        let mut seen: HashMap<u64, usize> = HashMap::new();
        let mut add = |link: Link| {
            let next = below.len();
            let first = *seen.entry(link.key()).or_insert(next);
            // The search through all is for a collision of hashes.
            let is_known = first < next
                && (below[first].is_same(&link) || below.iter().any(|known| known.is_same(&link)));
            if !is_known {
                below.push(link);
            }
        };
        for link in layer {
            match link {
                Link::Done(node) => {
                    self.see(node.links().len(), max_links)?;
                    node.links().iter().for_each(|below| add(Link::Done(Arc::clone(below))));
                }
                Link::Here(node) => {
                    self.see(self.nodes[*node as usize].links.len(), max_links)?;
                    self.nodes[*node as usize].links.iter().cloned().for_each(&mut add);
                }
            }
        }
        Ok(below)
    }

    /// Counts links that are looked at.
    fn see(&mut self, num_links: usize, max_links: usize) -> Result<(), LimitError> {
        self.num_seen += num_links;
        if self.num_seen > max_links { Err(LimitError::new(max_links)) } else { Ok(()) }
    }

    /// Puts a node of `state` above `below`; tells whether there was none of the state.
    fn add_link(&mut self, state: StateId, below: Link) -> bool {
        let known = self.of_state.get(&state).copied();
        let node = known.unwrap_or_else(|| self.add_node(state));
        if self.has_link(node, &below) {
            return false;
        }
        self.add_known_link(node, below);
        known.is_none()
    }

    fn add_node(&mut self, state: StateId) -> u32 {
        let node = self.nodes.len() as u32;
        self.nodes.push(LevelNode {
            state,
            links: Vec::new(),
            made_from: None,
            above: Vec::new(),
            begun: false,
            gone: 0,
            waits: true,
        });
        self.of_state.insert(state, node);
        self.work.push(node);
        node
    }

    /// Adds a link that the node does not have.
    fn add_known_link(&mut self, node: u32, link: Link) {
        if let Link::Here(below) = link {
            self.nodes[below as usize].above.push(node);
        }
        let above = &mut self.nodes[node as usize];
        self.links.entry((node, link.key())).or_insert(above.links.len() as u32);
        above.links.push(link);
        if !std::mem::replace(&mut above.waits, true) {
            self.work.push(node);
        }
    }

    fn has_link(&self, node: u32, link: &Link) -> bool {
        let Some(&first) = self.links.get(&(node, link.key())) else { return false };
        let links = &self.nodes[node as usize].links;
        links[first as usize].is_same(link) || links.iter().any(|other| other.is_same(link))
    }

    /// The finished node for a node of this level; `finished` has those that are there already.
    fn finish(&self, node: u32, finished: &mut [Option<Arc<Node>>]) -> Arc<Node> {
        // Nodes of this level below others come first; the stack of calls would be as deep as their
        // chain.
        let mut work = vec![node];
        while let Some(&at) = work.last() {
            let unfinished = finished[at as usize].is_none();
            let missing = self.nodes[at as usize].links.iter().find_map(|link| match link {
                Link::Here(below) if unfinished && finished[*below as usize].is_none() => {
                    Some(*below)
                }
                _ => None,
            });
            match missing {
                Some(below) => work.push(below),
                None => {
                    work.pop();
                    if unfinished {
                        finished[at as usize] = Some(self.finish_one(at, finished));
                    }
                }
            }
        }
        finished[node as usize].clone().expect("it was finished last")
    }

    /// The finished node, those of this level below it being finished.
    fn finish_one(&self, node: u32, finished: &[Option<Arc<Node>>]) -> Arc<Node> {
        let node = &self.nodes[node as usize];
        match &node.made_from {
            Some((before, links)) if *links == node.links.len() => return Arc::clone(before),
            _ => {}
        }
        let below = node.links.iter().filter_map(|link| match link {
            Link::Done(below) => Some(Arc::clone(below)),
            Link::Here(below) => finished[*below as usize].clone(),
        });
        Arc::new(Node::above_all(node.state, below.collect()))
    }
}

impl Link {
    /// Equal for equal links.
    fn key(&self) -> u64 {
        match self {
            Self::Done(node) => node.hash(),
            Self::Here(node) => u64::from(*node),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Done(a), Self::Done(b)) => same(a, b),
            (Self::Here(a), Self::Here(b)) => a == b,
            _ => false,
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "state {} #{:x}", self.state.0, self.hash())
    }
}
