//! The general way: all reductions at one place in the text.

use std::collections::HashMap;
use std::sync::Arc;

use super::node::{Node, same};
use super::parser::LimitError;
use crate::TerminalId;
use crate::lr::{RuleId, StateId, Tables};

/// Which reductions are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Those that may come before a terminal.
    Terminal(TerminalId),
    /// Those that may come before some terminal or the end.
    Any,
    /// Those that are to be done whatever follows.
    Sole,
}

/// The stack nodes at one place in the text, one for each state, while reductions add to them.
///
/// A reduction walks links down and, at each node that it ends at, puts a node for the head above. Where a
/// node is there already, it gets one more link, and every reduction that may lead through the new link is done
/// again (Nozohoor-Farshi, "GLR Parsing for ε-Grammars", 1991; he repeats all of them). Walks go down in layers of distinct nodes, not path
/// by path, so the work is polynomial however ambiguous the grammar is.
///
/// Links to nodes of the same place come from empty rules. As no left recursion is hidden, they form no cycle.
#[derive(Debug, Default)]
pub(super) struct Level {
    nodes: Vec<LevelNode>,
    of_state: HashMap<StateId, u32>,
    /// By node and hash of a link's target, a link.
    links: HashMap<(u32, u64), u32>,
    work: Vec<(u32, Along)>,
    num_links: usize,
}

#[derive(Debug)]
struct LevelNode {
    state: StateId,
    links: Vec<Link>,
    /// The node that it was made from and how many links that has.
    made_from: Option<(Arc<Node>, usize)>,
    /// Whether some node of this level has a link to it.
    is_below: bool,
}

/// What lies below a node of a level.
#[derive(Clone, Debug)]
enum Link {
    /// A finished node.
    Done(Arc<Node>),
    /// A node of the same level.
    Here(u32),
}

/// Along which links reductions are to be done.
#[derive(Clone, Copy, Debug)]
enum Along {
    /// All links.
    All,
    /// One link of the node.
    Link(u32),
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
        self.num_links = 0;
    }

    /// Does all reductions. Stops early, with `true`, at the first node in whose state `found` holds.
    pub(super) fn reduce(
        &mut self,
        tables: &Tables,
        before: Before,
        max_links: usize,
        found: impl Fn(StateId) -> bool,
    ) -> Result<bool, LimitError> {
        if self.nodes.iter().any(|node| found(node.state)) {
            return Ok(true);
        }
        while let Some((node, along)) = self.work.pop() {
            let state = self.nodes[node as usize].state;
            for (rule, lookahead) in tables.reductions(state) {
                let applies = match before {
                    Before::Terminal(terminal) => {
                        lookahead.is_none_or(|set| set.contains(terminal))
                    }
                    Before::Any => true,
                    Before::Sole => lookahead.is_none(),
                };
                if !applies {
                    continue;
                }
                for (below, base) in self.ends(tables, node, along, rule) {
                    let Some(target) = tables.goto(base, tables.rules().head(rule)) else {
                        continue;
                    };
                    let is_new = self.add_link(target, below);
                    if self.num_links > max_links {
                        return Err(LimitError::new(max_links));
                    }
                    if is_new && found(target) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    /// The states of all nodes, in the order in which they were found.
    pub(super) fn states(&self) -> impl Iterator<Item = StateId> + '_ {
        self.nodes.iter().map(|node| node.state)
    }

    /// The tops after `terminal`, the reductions done that are to be done whatever follows. Uses the level up.
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
        self.reduce(tables, Before::Sole, max_links, |_| false)?;
        let mut finished = vec![None; self.nodes.len()];
        let mut tops = Vec::new();
        for node in 0..self.nodes.len() {
            if tables.sole_reduction(self.nodes[node].state).is_none() {
                tops.push(self.finish(node as u32, &mut finished));
            }
        }
        Ok(tops)
    }

    /// Where the body of `rule` begins, for stacks from `node` along the links asked for: what is to lie below its head,
    /// and the state of that.
    fn ends(&self, tables: &Tables, node: u32, along: Along, rule: RuleId) -> Vec<(Link, StateId)> {
        let length = tables.rules().length(rule);
        let first = &self.nodes[node as usize];
        let mut layer = match (length, along) {
            // The empty body begins at the node, whatever lies below.
            (0, Along::All) => return vec![(Link::Here(node), first.state)],
            (0, Along::Link(_)) => return Vec::new(),
            (_, Along::All) => first.links.clone(),
            (_, Along::Link(link)) => vec![first.links[link as usize].clone()],
        };
        for _ in 1..length {
            layer = self.layer_below(&layer);
        }
        let state = |link: &Link| match link {
            Link::Done(node) => node.state,
            Link::Here(node) => self.nodes[*node as usize].state,
        };
        layer.into_iter().map(|link| (link.clone(), state(&link))).collect()
    }

    /// The distinct targets of the links of all these nodes.
    fn layer_below(&self, layer: &[Link]) -> Vec<Link> {
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
                    node.links().iter().for_each(|below| add(Link::Done(Arc::clone(below))));
                }
                Link::Here(node) => {
                    self.nodes[*node as usize].links.iter().cloned().for_each(&mut add)
                }
            }
        }
        below
    }

    /// Puts a node of `state` above `below`; tells whether there was none of the state.
    fn add_link(&mut self, state: StateId, below: Link) -> bool {
        let known = self.of_state.get(&state).copied();
        let node = known.unwrap_or_else(|| self.add_node(state));
        if self.has_link(node, &below) {
            return false;
        }
        let link = self.add_known_link(node, below);
        if known.is_some() {
            self.work.push((node, Along::Link(link)));
            self.repeat_above(node);
        }
        known.is_none()
    }

    /// The reductions from nodes above `changed` are to be done again.
    fn repeat_above(&mut self, changed: u32) {
        if !self.nodes[changed as usize].is_below {
            return;
        }
        let mut above = vec![false; self.nodes.len()];
        above[changed as usize] = true;
        let mut changed = vec![changed];
        while let Some(below) = changed.pop() {
            for (at, node) in self.nodes.iter().enumerate() {
                let leads =
                    node.links.iter().any(|link| matches!(link, Link::Here(to) if *to == below));
                if leads && !std::mem::replace(&mut above[at], true) {
                    self.work.push((at as u32, Along::All));
                    changed.push(at as u32);
                }
            }
        }
    }

    fn add_node(&mut self, state: StateId) -> u32 {
        let node = self.nodes.len() as u32;
        self.nodes.push(LevelNode { state, links: Vec::new(), made_from: None, is_below: false });
        self.of_state.insert(state, node);
        self.work.push((node, Along::All));
        node
    }

    /// Adds a link that the node does not have; gives its place.
    fn add_known_link(&mut self, node: u32, link: Link) -> u32 {
        if let Link::Here(below) = link {
            self.nodes[below as usize].is_below = true;
        }
        let links = &mut self.nodes[node as usize].links;
        let place = links.len() as u32;
        self.links.entry((node, link.key())).or_insert(place);
        links.push(link);
        self.num_links += 1;
        place
    }

    fn has_link(&self, node: u32, link: &Link) -> bool {
        let Some(&first) = self.links.get(&(node, link.key())) else { return false };
        let links = &self.nodes[node as usize].links;
        links[first as usize].is_same(link) || links.iter().any(|other| other.is_same(link))
    }

    /// The finished node for a node of this level; `finished` has those that are there already.
    fn finish(&self, node: u32, finished: &mut [Option<Arc<Node>>]) -> Arc<Node> {
        // Nodes of this level below others come first; the stack of calls would be as deep as their chain.
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
