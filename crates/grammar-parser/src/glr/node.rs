//! The nodes of the graph-structured stack.

use std::collections::HashSet;
use std::sync::Arc;

use crate::lr::StateId;

/// An entry of one or several stacks, with all that is below it.
///
/// Immutable. A path along links to the bottom is a stack, top first; a node is the set of these
/// stacks. Links are sorted by their targets' hashes and states, no two lead to equal nodes, and
/// there is no cycle. Only the bottom has none.
pub(super) struct Node {
    pub(super) state: StateId,
    /// Entries of its highest stack.
    height: u32,
    /// Hash of the state and the links' hashes: equal nodes have equal hashes.
    hash: u64,
    links: Links,
}

/// Links directly below a node.
#[derive(Clone)]
pub(super) enum Links {
    /// No link: the bottom of the stack.
    None,
    One(Arc<Node>),
    /// Two or more.
    Many(Box<[Arc<Node>]>),
}

impl Node {
    /// The bottom of every stack.
    pub(super) fn bottom() -> Self {
        let hash = mix(0, StateId::START.0.into());
        Self { state: StateId::START, height: 1, hash, links: Links::None }
    }

    /// An entry above one other.
    pub(super) fn above(state: StateId, below: Arc<Node>) -> Self {
        let (height, hash) = (below.height + 1, mix(mix(0, state.0.into()), below.hash));
        Self { state, height, hash, links: Links::One(below) }
    }

    /// An entry above several others, of which some may be equal.
    pub(super) fn above_all(state: StateId, mut below: Vec<Arc<Node>>) -> Self {
        below.sort_by_key(|node| (node.hash, node.state));
        below.dedup_by(|a, b| same(a, b));
        if below.len() == 1
            && let Some(only) = below.pop()
        {
            return Self::above(state, only);
        }
        let hash = below.iter().fold(mix(0, state.0.into()), |hash, node| mix(hash, node.hash));
        let height = below.iter().map(|node| node.height).max().unwrap_or(0) + 1;
        Self { state, height, hash, links: Links::Many(below.into()) }
    }

    /// Links directly below.
    pub(super) fn links(&self) -> &[Arc<Node>] {
        match &self.links {
            Links::None => &[],
            Links::One(below) => std::slice::from_ref(below),
            Links::Many(below) => below,
        }
    }

    /// Link directly below, if it is one.
    pub(super) fn only_link(&self) -> Option<&Arc<Node>> {
        match &self.links {
            Links::One(below) => Some(below),
            _ => None,
        }
    }

    /// Entries of its highest stack, itself included.
    pub(super) fn height(&self) -> u32 {
        self.height
    }

    /// Equal for equal nodes.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}

/// True when two nodes are the same set of stacks; where it is `false`, they may still be so by a
/// hash collision alone.
///
/// Stops at what they share; otherwise linear in the pairs of nodes that are compared.
pub(super) fn same(mut a: &Arc<Node>, mut b: &Arc<Node>) -> bool {
    // Down to where several links are, there is nothing to remember.
    loop {
        if Arc::ptr_eq(a, b) {
            return true;
        }
        if a.hash != b.hash || a.state != b.state {
            return false;
        }
        match (&a.links, &b.links) {
            (Links::One(below_a), Links::One(below_b)) => (a, b) = (below_a, below_b),
            _ => return same_graph(a, b),
        }
    }
}

/// [`same`] for nodes below which ways part.
fn same_graph(a: &Arc<Node>, b: &Arc<Node>) -> bool {
    let mut work = vec![(a, b)];
    let mut seen = HashSet::new();
    while let Some((a, b)) = work.pop() {
        if Arc::ptr_eq(a, b) {
            continue;
        }
        let (below_a, below_b) = (a.links(), b.links());
        if a.hash != b.hash || a.state != b.state || below_a.len() != below_b.len() {
            return false;
        }
        // Below a node with several links, ways meet again: what has been compared is not compared
        // twice.
        let branches = below_a.len() > 1 || !seen.is_empty();
        if !branches || seen.insert((Arc::as_ptr(a), Arc::as_ptr(b))) {
            work.extend(below_a.iter().zip(below_b));
        }
    }
    true
}

impl Drop for Node {
    /// A chain of a million nodes must not be a million calls deep.
    fn drop(&mut self) {
        let mut work = Vec::new();
        let mut next = std::mem::replace(&mut self.links, Links::None);
        loop {
            match next {
                Links::None => {}
                Links::One(below) => {
                    if let Some(mut below) = Arc::into_inner(below) {
                        next = std::mem::replace(&mut below.links, Links::None);
                        continue;
                    }
                }
                Links::Many(below) => work.extend(below),
            }
            let Some(node) = work.pop() else { return };
            next = match Arc::into_inner(node) {
                Some(mut node) => std::mem::replace(&mut node.links, Links::None),
                None => Links::None,
            };
        }
    }
}

/// A hash of what went into `hash` and of `value`; the same on every machine. (Murmur3's last
/// steps.)
fn mix(hash: u64, value: u64) -> u64 {
    let mut mixed = hash.rotate_left(29) ^ value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    mixed = (mixed ^ mixed >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    mixed ^ mixed >> 33
}
