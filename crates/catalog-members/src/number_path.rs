//! Descents through a vocabulary's trie along the numbers of tokens that ascend.

use palmette_core::{Budget, Interrupted, NUMBER_BYTES, TokenId, VocabularyTrie};

/// A descent below a node of the trie along the numbers of tokens, one after another in ascending
/// order: siblings are passed once, whatever the number of tokens.
#[derive(Debug)]
pub(crate) struct NumberPath<'t> {
    trie: &'t VocabularyTrie,
    /// Bytes of numbers that lie before the node that it begins at.
    skipped: usize,
    /// The number looked for last.
    last: Option<[u8; NUMBER_BYTES]>,
    /// Nodes after each byte of that number; `None` where no token has it.
    nodes: [Option<usize>; NUMBER_BYTES + 1],
    /// The first child of each of these nodes that has not been passed.
    next: [usize; NUMBER_BYTES],
}

impl<'t> NumberPath<'t> {
    /// A descent from a node at which so many bytes of each number have been read.
    pub(crate) fn new(trie: &'t VocabularyTrie, node: usize, skipped: usize) -> Self {
        let (mut nodes, mut next) = ([None; NUMBER_BYTES + 1], [0; NUMBER_BYTES]);
        nodes[skipped] = Some(node);
        next[skipped] = node + 1;
        Self { trie, skipped, last: None, nodes, next }
    }

    /// The node of a token's number, where some token has it; sets the bits of tokens that end on
    /// the way, its own included. Tokens must ascend.
    ///
    /// # Errors
    /// When the budget, of which each visited node takes a unit, is used up.
    pub(crate) fn find(
        &mut self,
        token: TokenId,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<Option<usize>, Interrupted> {
        let number = token.to_spelling();
        let known = match self.last {
            Some(last) => number.iter().zip(&last).take_while(|(a, b)| a == b).count(),
            None => self.skipped,
        };
        self.last = Some(number);
        for at in known.max(self.skipped)..NUMBER_BYTES {
            let Some(above) = self.nodes[at] else { return Ok(None) };
            let (mut child, end) = (self.next[at], self.trie.end(above));
            budget.spend(1)?;
            if above == 0 {
                // The root has a child for most bytes.
                child = self.trie.child(0, number[at]).unwrap_or(end);
            }
            while child < end && self.trie.node(child).byte < number[at] {
                budget.spend(1)?;
                child = self.trie.end(child);
            }
            self.next[at] = child;
            let found = (child < end && self.trie.node(child).byte == number[at]).then_some(child);
            self.nodes[at + 1] = found;
            let Some(child) = found else { return Ok(None) };
            if let Some(next) = self.next.get_mut(at + 1) {
                *next = child + 1;
            }
            self.trie.mark(child, mask);
        }
        Ok(self.nodes[NUMBER_BYTES])
    }
}
