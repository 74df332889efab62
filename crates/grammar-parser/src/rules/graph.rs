//! Strongly connected components.

/// A directed graph over the nodes `0..num_nodes`: node `v` has the successors
/// `targets[first[v]..first[v + 1]]`.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    first: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    /// The graph with these edges, in any order, repeated or not.
    pub(crate) fn new(num_nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut first = vec![0_u32; num_nodes + 1];
        for &(from, _) in edges {
            first[from as usize + 1] += 1;
        }
        for node in 0..num_nodes {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut targets = vec![0; edges.len()];
        for &(from, to) in edges {
            targets[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Self { first, targets }
    }

    /// The nodes that `node` has edges to.
    pub(crate) fn successors(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.targets[self.first[node] as usize..self.first[node + 1] as usize]
    }

    /// Each node's strongly connected component. Components are numbered such that edges between
    /// two of them lead to the lower number: in ascending order, successors come first.
    ///
    /// Tarjan's algorithm with a stack of its own; linear in nodes and edges.
    pub(crate) fn components(&self) -> Components {
        const UNSEEN: u32 = u32::MAX;
        let num_nodes = self.first.len() - 1;
        let mut of = vec![UNSEEN; num_nodes];
        let mut order = vec![UNSEEN; num_nodes];
        let mut low = vec![0_u32; num_nodes];
        let (mut open, mut path) = (Vec::new(), Vec::new());
        let (mut num_seen, mut count) = (0, 0);
        for root in 0..num_nodes as u32 {
            if order[root as usize] != UNSEEN {
                continue;
            }
            path.push((root, 0));
            while let Some(&mut (node, ref mut tried)) = path.last_mut() {
                let at = node as usize;
                if *tried == 0 {
                    order[at] = num_seen;
                    low[at] = num_seen;
                    num_seen += 1;
                    open.push(node);
                }
                if let Some(&next) = self.successors(node).get(*tried) {
                    *tried += 1;
                    let next_at = next as usize;
                    if order[next_at] == UNSEEN {
                        path.push((next, 0));
                    } else if of[next_at] == UNSEEN {
                        low[at] = low[at].min(order[next_at]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    low[parent as usize] = low[parent as usize].min(low[at]);
                }
                if low[at] == order[at] {
                    while let Some(member) = open.pop() {
                        of[member as usize] = count;
                        if member == node {
                            break;
                        }
                    }
                    count += 1;
                }
            }
        }
        Components { of, count }
    }
}

/// The strongly connected components of a [`Graph`].
#[derive(Clone, Debug)]
pub(crate) struct Components {
    /// The component of each node.
    pub of: Vec<u32>,
    /// Number of them.
    pub count: u32,
}

impl Components {
    /// True when two nodes reach each other, or are the same.
    pub(crate) fn together(&self, a: u32, b: u32) -> bool {
        self.of[a as usize] == self.of[b as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_what_reaches_each_other() {
        let edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (5, 5), (5, 0), (6, 6)];
        let num_nodes = 8;
        let graph = Graph::new(num_nodes, &edges);
        let mut reaches = vec![vec![false; num_nodes]; num_nodes];
        for node in 0..num_nodes {
            reaches[node][node] = true;
        }
        for &(from, to) in edges.iter().cycle().take(edges.len() * num_nodes) {
            for source in &mut reaches {
                source[to as usize] |= source[from as usize];
            }
        }
        let components = graph.components();
        for a in 0..num_nodes {
            for b in 0..num_nodes {
                let both = reaches[a][b] && reaches[b][a];
                assert_eq!(components.together(a as u32, b as u32), both, "{a} {b}");
                if reaches[a][b] {
                    assert!(components.of[a] >= components.of[b], "{a} {b}");
                }
            }
        }
        assert_eq!(components.count, 5);
    }
}
