//! Depth-first walk over the vocabulary trie, with a state for each node on the path.

use std::ops::Range;

use super::{Node, VocabularyTrie};

/// Decision about a node that a walk comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit<S> {
    /// Go below: the children come next, and this is the node's state.
    Below(S),
    /// Leave the subtree out.
    Past,
    /// End the walk.
    Stop,
}

impl VocabularyTrie {
    /// Walks some nodes in depth-first order, where `above` is the state of the node above the
    /// first, and all are below that one. `visit` is given a node and the state of the one above
    /// it. Gives `false` when it stopped the walk.
    ///
    /// `path` is memory for the states from the node above on; what is in it does not matter.
    ///
    /// # Errors
    /// Those of `visit`, which end the walk.
    ///
    /// PERF: what walks spend their time in is inlined here, as if each had a loop of its own.
    #[inline]
    pub fn walk<S, E>(
        &self,
        nodes: Range<usize>,
        above: S,
        path: &mut Vec<S>,
        mut visit: impl FnMut(Node, &S) -> Result<Visit<S>, E>,
    ) -> Result<bool, E> {
        if nodes.is_empty() {
            return Ok(true);
        }
        let depth_above = self.node(nodes.start).depth - 1;
        path.clear();
        path.push(above);
        let mut index = nodes.start;
        while index < nodes.end {
            let node = self.node(index);
            path.truncate(node.depth - depth_above);
            match visit(node, &path[node.depth - depth_above - 1])? {
                Visit::Below(state) => {
                    path.push(state);
                    index += 1;
                }
                Visit::Past => index = self.end(index),
                Visit::Stop => return Ok(false),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::Vocabulary;

    fn trie() -> VocabularyTrie {
        let texts = ["a", "ab", "abc", "abd", "ac", "b", "ba"];
        VocabularyTrie::new(&Vocabulary::new(texts.map(Some), []).expect("no token ends a text"))
    }

    /// Texts of the nodes that are come to, below one of them.
    fn texts(below: &str, decide: impl Fn(&str) -> Visit<()>) -> (Vec<String>, bool) {
        let (trie, mut come_to) = (trie(), Vec::new());
        let node = trie.find(below.as_bytes()).expect("a node");
        let mut path = vec!["left over".to_owned()];
        let nodes = node + 1..trie.end(node);
        let ended = trie.walk(nodes, below.to_owned(), &mut path, |node, above| {
            let text = format!("{above}{}", node.byte as char);
            assert_eq!(trie.find(text.as_bytes()), Some(node.index));
            come_to.push(text.clone());
            Ok::<_, Infallible>(match decide(&text) {
                Visit::Below(()) => Visit::Below(text),
                Visit::Past => Visit::Past,
                Visit::Stop => Visit::Stop,
            })
        });
        let Ok(ended) = ended;
        (come_to, ended)
    }

    #[test]
    fn states_are_those_of_the_node_above() {
        let all = ["a", "ab", "abc", "abd", "ac", "b", "ba"].map(str::to_owned).to_vec();
        assert_eq!(texts("", |_| Visit::Below(())), (all.clone(), true));
        assert_eq!(texts("a", |_| Visit::Below(())), (all[1..5].to_vec(), true));
        assert_eq!(texts("abc", |_| Visit::Below(())), (vec![], true));
    }

    #[test]
    fn subtrees_are_left_out_and_walks_end() {
        let past = |at: &str| if at == "ab" { Visit::Past } else { Visit::Below(()) };
        assert_eq!(texts("", past).0, ["a", "ab", "ac", "b", "ba"]);
        let stop = |at: &str| if at == "ac" { Visit::Stop } else { Visit::Below(()) };
        assert_eq!(
            texts("", stop),
            (["a", "ab", "abc", "abd", "ac"].map(str::to_owned).to_vec(), false)
        );
    }
}
