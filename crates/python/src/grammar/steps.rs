//! The commits of a sequence, as a list that forks share.

use std::sync::Arc;

/// One commit, as the caller gave it.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Token(u32),
    Bytes(Box<[u8]>),
}

/// A list that grows and shrinks at its end: a clone is one count more. It is what a position is
/// pickled as.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    last: Option<Arc<Node>>,
}

#[derive(Debug)]
struct Node {
    step: Step,
    before: Option<Arc<Node>>,
}

impl Steps {
    /// Adds a step.
    pub(crate) fn push(&mut self, step: Step) {
        self.last = Some(Arc::new(Node { step, before: self.last.take() }));
    }

    /// Takes back the last `count` steps, or all where there are fewer.
    pub(crate) fn pop(&mut self, count: usize) {
        for _ in 0..count {
            let Some(node) = self.last.take() else { break };
            self.last = node.before.clone();
        }
    }

    /// All steps, the first one first.
    pub(crate) fn all(&self) -> Vec<Step> {
        let nodes = std::iter::successors(self.last.as_ref(), |node| node.before.as_ref());
        let mut steps: Vec<_> = nodes.map(|node| node.step.clone()).collect();
        steps.reverse();
        steps
    }
}

impl Drop for Node {
    /// Without recursion: the list is as long as the text.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut node) = before.and_then(Arc::into_inner) {
            before = node.before.take();
        }
    }
}
