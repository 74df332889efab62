//! A position of the parser.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::node::{Node, same};
use crate::lr::StateId;

/// Every LR stack that the terminals read so far may have led to; never none.
///
/// Immutable: a clone is one count more, whatever the depth. Equal when the stacks are the same, as
/// the same terminals always make them; two positions with the same stacks that came about
/// differently usually are equal too, but a `false` proves nothing.
#[derive(Clone)]
pub struct Stacks {
    heads: Heads,
}

/// The tops of the stacks: one node for each LR state, in ascending order of states.
#[derive(Clone)]
enum Heads {
    One(Arc<Node>),
    /// Two or more.
    Many(Arc<[Arc<Node>]>),
}

/// An entry of a stack, to be read downwards.
#[derive(Clone, Copy)]
pub struct StackNode<'a>(&'a Arc<Node>);

impl fmt::Debug for StackNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StackNode").field(&self.state()).finish()
    }
}

/// An entry that is kept, and so is its address.
#[derive(Clone)]
pub(crate) struct KeptStackNode(Arc<Node>);

impl fmt::Debug for KeptStackNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptStackNode").field(&self.0.state).finish()
    }
}

impl<'a> StackNode<'a> {
    /// Address of the entry: its own as long as it is [kept](Self::keep) or on a stack.
    pub(crate) fn address(self) -> usize {
        Arc::as_ptr(self.0) as usize
    }

    /// The entry, kept.
    pub(crate) fn keep(self) -> KeptStackNode {
        KeptStackNode(Arc::clone(self.0))
    }

    /// State of the entry.
    #[inline]
    pub fn state(self) -> StateId {
        self.0.state
    }

    /// Entries directly below: one, several where stacks part, none at the bottom.
    #[inline]
    pub fn below(self) -> impl ExactSizeIterator<Item = StackNode<'a>> {
        self.0.links().iter().map(StackNode)
    }
}

impl PartialEq for StackNode<'_> {
    /// True when it is the same entry; equal ones may be stored twice.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.0, other.0)
    }
}

impl Eq for StackNode<'_> {}

impl Hash for StackNode<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(self.0).hash(state);
    }
}

impl Stacks {
    /// The stacks with one top.
    pub(super) fn one(head: Arc<Node>) -> Self {
        Self { heads: Heads::One(head) }
    }

    /// The stacks with these tops, which have different states; `None` when there are none.
    pub(super) fn new(mut heads: Vec<Arc<Node>>) -> Option<Self> {
        if heads.len() < 2 {
            return heads.pop().map(Self::one);
        }
        heads.sort_unstable_by_key(|head| head.state);
        Some(Self { heads: Heads::Many(heads.into()) })
    }

    /// The tops, in ascending order of their states.
    pub(super) fn heads(&self) -> &[Arc<Node>] {
        match &self.heads {
            Heads::One(head) => std::slice::from_ref(head),
            Heads::Many(heads) => heads,
        }
    }

    /// The top, if there is one only.
    pub(super) fn only_head(&self) -> Option<&Arc<Node>> {
        match &self.heads {
            Heads::One(head) => Some(head),
            Heads::Many(_) => None,
        }
    }

    /// The tops, to be read downwards.
    #[inline]
    pub fn tops(&self) -> impl Iterator<Item = StackNode<'_>> {
        self.heads().iter().map(StackNode)
    }

    /// The states on top of the stacks, in ascending order.
    pub fn states(&self) -> impl Iterator<Item = StateId> + '_ {
        self.heads().iter().map(|head| head.state)
    }

    /// Entries of the highest stack.
    pub fn height(&self) -> usize {
        self.heads().iter().map(|head| head.height() as usize).max().unwrap_or(0)
    }

    /// A hash that equal positions share; the same on every machine.
    pub fn fingerprint(&self) -> u64 {
        self.heads().iter().fold(0, |sum, head| sum.rotate_left(23) ^ head.hash())
    }

    /// The stacks by a key of their topmost state, in ascending order of keys; what is below is
    /// shared.
    pub fn by_top<K: Copy + Ord>(&self, key: impl Fn(StateId) -> K) -> Vec<(K, Self)> {
        if let Heads::One(head) = &self.heads {
            return vec![(key(head.state), self.clone())];
        }
        let mut heads: Vec<_> = self.heads().iter().map(|head| (key(head.state), head)).collect();
        heads.sort_by_key(|&(key, head)| (key, head.state));
        let groups = heads.chunk_by(|a, b| a.0 == b.0);
        let stacks = |group: &[(K, &Arc<Node>)]| {
            Self::new(group.iter().map(|&(_, head)| Arc::clone(head)).collect())
        };
        groups.filter_map(|group| Some((group[0].0, stacks(group)?))).collect()
    }

    /// Number of nodes, each counted once; O(that many).
    pub fn num_nodes(&self) -> usize {
        self.number_nodes().len()
    }

    /// A number for each node, those nearer to a top first.
    fn number_nodes(&self) -> HashMap<*const Node, usize> {
        let mut numbers = HashMap::new();
        let mut work: Vec<&Arc<Node>> = self.heads().iter().rev().collect();
        while let Some(node) = work.pop() {
            let next = numbers.len();
            if let std::collections::hash_map::Entry::Vacant(place) =
                numbers.entry(Arc::as_ptr(node))
            {
                place.insert(next);
                work.extend(node.links().iter().rev());
            }
        }
        numbers
    }

    /// The stacks of both.
    pub(super) fn union(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) =
            (self.heads().iter().peekable(), other.heads().iter().peekable());
        let mut heads = Vec::with_capacity(ours.len() + theirs.len());
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.state.cmp(&b.state),
            };
            let a = if order.is_le() { ours.next() } else { None };
            let b = if order.is_ge() { theirs.next() } else { None };
            heads.extend(match (a, b) {
                (Some(a), Some(b)) => Some(join(a, b)),
                (a, b) => a.or(b).cloned(),
            });
        }
        match <[_; 1]>::try_from(heads) {
            Ok([head]) => Self::one(head),
            Err(heads) => Self { heads: Heads::Many(heads.into()) },
        }
    }
}

/// The stacks of two nodes of one state.
fn join(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    // Only the bottom has no links, and it is equal to itself.
    if same(a, b) {
        return Arc::clone(a);
    }
    let below = a.links().iter().chain(b.links()).cloned().collect();
    Arc::new(Node::above_all(a.state, below))
}

impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        if let (Heads::Many(ours), Heads::Many(theirs)) = (&self.heads, &other.heads)
            && Arc::ptr_eq(ours, theirs)
        {
            return true;
        }
        let (ours, theirs) = (self.heads(), other.heads());
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
    }
}

impl fmt::Debug for Stacks {
    /// One node a line, tops first: its number, its state, and the numbers of the nodes below.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = self.number_nodes();
        let mut lines = vec![String::new(); numbers.len()];
        let mut work: Vec<&Arc<Node>> = self.heads().iter().collect();
        while let Some(node) = work.pop() {
            let number = numbers[&Arc::as_ptr(node)];
            if lines[number].is_empty() {
                let below = node.links().iter().map(|below| numbers[&Arc::as_ptr(below)]);
                let below: Vec<_> = below.collect();
                lines[number] = format!("{number}: state {} above {below:?}", node.state.0);
                work.extend(node.links());
            }
        }
        let tops: Vec<_> = self.heads().iter().map(|head| numbers[&Arc::as_ptr(head)]).collect();
        writeln!(f, "stacks with tops {tops:?}")?;
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
