//! Forks: nodes of the suffixes' trie where members end, though not in the first suffix.

use palmette_mapped::RankSet;

use super::suffixes::{Ends, Span, is_inner};
use super::units::Edges;
use crate::arrays::SharedView;

/// The nodes of a trie in which members end at the character by which its suffixes part, and how
/// many of these do not end in the node's first suffix.
///
/// A node is known by the rank at which its second child begins. A character may have several
/// bytes, and suffixes part within it: the first node that they part in stands for all below.
#[derive(Debug)]
pub(super) struct Forks {
    ranks: RankSet,
    num_others: u64,
}

/// A node whose suffixes are being gone through.
#[derive(Clone, Copy, Debug)]
struct Node {
    depth: u32,
    first: usize,
    second: usize,
    /// Bytes before the character at `depth`.
    edge: u32,
    /// Flag of a member that ends at the edge.
    is_any: bool,
}

impl Forks {
    /// No forks among so many suffixes.
    pub(super) fn none(num_suffixes: usize) -> Self {
        Self { ranks: RankSet::empty(num_suffixes as u64), num_others: 0 }
    }

    /// Goes through the nodes from below (Abouelhoda, Kurtz, Ohlebusch 2004, "bottom-up
    /// traversal").
    ///
    /// Cost: O(n), and a list as deep as nodes are nested.
    pub(super) fn new(ends: Ends<'_>, spans: &[Span], shared: SharedView<'_, u32>) -> Self {
        let mut words = vec![0; spans.len().div_ceil(64)];
        let mut num_others = 0;
        let mut open: Vec<Node> = Vec::new();
        for rank in 1..=spans.len() {
            let depth = if rank < spans.len() { Some(shared.get(rank) as u32) } else { None };
            // The suffix before is a child of the innermost node, or of one that begins with it.
            let mut child = Child { first: rank - 1, edge: None, is_any: false };
            while let Some(mut node) = open.pop_if(|node| Some(node.depth) > depth) {
                node.take(child, ends, spans);
                // What is asked at the edge is asked of the outermost node that has it.
                let above = open.last().map(|node| node.depth).max(depth);
                if node.is_any && above.is_none_or(|above| above < node.edge) {
                    words[node.second / 64] |= 1 << (node.second % 64);
                    num_others += u64::from(!ends.is_end(spans[node.first], node.edge as usize));
                }
                child = Child { first: node.first, edge: Some(node.edge), is_any: node.is_any };
            }
            let Some(depth) = depth else { break };
            if open.last().is_none_or(|node| node.depth < depth) {
                open.push(Node::new(depth, child.first, rank, ends.text, spans));
            }
            let node = open.last_mut().expect("one was added where there was none");
            node.take(child, ends, spans);
        }
        let ranks = RankSet::from_words(spans.len() as u64, &words).expect("a bit a rank");
        Self { ranks, num_others }
    }

    /// The number of members of all suffixes. `least` gives the bytes of the shortest that may
    /// begin at a place.
    pub(super) fn num_members(
        &self,
        least: impl Fn(usize) -> u32,
        edges: &Edges,
        spans: &[Span],
        shared: SharedView<'_, u32>,
    ) -> u64 {
        let counts = Counts::new(&edges.ends);
        let own = |(rank, &span): (usize, &Span)| {
            let start = span.start as usize;
            // Shorter ones are those of suffixes before.
            let shorter = shared.get(rank).max(least(start) as usize - 1);
            counts.to(start + span.len as usize + 1) - counts.to(start + shorter + 1)
        };
        self.num_others + spans.iter().enumerate().map(own).sum::<u64>()
    }

    pub(super) fn into_ranks(self) -> RankSet {
        self.ranks
    }
}

/// A child of a node: a suffix, or a node with its edge.
#[derive(Clone, Copy, Debug)]
struct Child {
    first: usize,
    edge: Option<u32>,
    is_any: bool,
}

impl Node {
    fn new(depth: u32, first: usize, second: usize, text: &[u8], spans: &[Span]) -> Self {
        // The second child goes on; the first may end here.
        let bytes = spans[second].of(text);
        let mut edge = depth;
        while is_inner(bytes[edge as usize]) {
            edge -= 1;
        }
        Self { depth, first, second, edge, is_any: false }
    }

    fn take(&mut self, child: Child, ends: Ends<'_>, spans: &[Span]) {
        // Below a node of another edge all have the whole character, and end alike.
        self.is_any |= match child.edge == Some(self.edge) {
            true => child.is_any,
            false => ends.is_end(spans[child.first], self.edge as usize),
        };
    }
}

/// Numbers of bits before each word.
struct Counts<'a> {
    words: &'a [u64],
    before: Vec<u64>,
}

impl<'a> Counts<'a> {
    fn new(words: &'a [u64]) -> Self {
        let mut sum = 0;
        let before = |word: &u64| {
            let before = sum;
            sum += u64::from(word.count_ones());
            before
        };
        let before = words.iter().map(before).collect();
        Self { words, before }
    }

    /// Number of bits before a place.
    fn to(&self, at: usize) -> u64 {
        let in_word = self.words[at / 64] & ((1 << (at % 64)) - 1);
        self.before[at / 64] + u64::from(in_word.count_ones())
    }
}
