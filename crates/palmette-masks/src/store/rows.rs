//! Rows of one position of the lexer, as a tree of terminal sequences in preorder.

use palmette_parser::blocks::{Letter, Line};

use super::tokens::Tokens;

/// Sequences of letters with their token sets, as a tree in preorder: what rows begin with is asked of the parser once.
#[derive(Debug)]
pub(super) struct Rows {
    nodes: Vec<Node>,
    num_rows: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Node {
    /// Last letter; unused in the root, which is node 0.
    letter: Letter,
    /// Number of letters.
    depth: u32,
    /// The node after its subtree.
    end: u32,
    tokens: Tokens,
}

impl Rows {
    /// Rows in any order, for masks of so many words; those of one sequence become one.
    pub(super) fn new(mut rows: Vec<(Vec<Letter>, Tokens)>, num_words: usize) -> Self {
        // A node comes before those below it.
        rows.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let none = || Tokens::new(Vec::new(), num_words);
        let mut nodes = vec![Node { letter: NO_LETTER, depth: 0, end: 0, tokens: none() }];
        let mut path: Vec<(Letter, usize)> = Vec::new();
        let (mut num_rows, mut bytes) = (0, size_of::<Self>());
        for same in rows.chunk_by(|(a, _), (b, _)| a == b) {
            let letters = &same[0].0;
            let shared = path.iter().zip(letters).take_while(|((a, _), b)| a == *b).count();
            close(&mut nodes, &mut path, shared);
            for &letter in &letters[shared..] {
                path.push((letter, nodes.len()));
                let depth = path.len() as u32;
                nodes.push(Node { letter, depth, end: 0, tokens: none() });
            }
            let node = path.last().map_or(0, |&(_, node)| node);
            let (tokens, own) = Tokens::union(same.iter().map(|(_, tokens)| tokens), num_words);
            nodes[node].tokens = tokens;
            num_rows += 1;
            bytes += own;
        }
        close(&mut nodes, &mut path, 0);
        nodes[0].end = nodes.len() as u32;
        bytes += nodes.len() * size_of::<Node>();
        Self { nodes, num_rows, bytes }
    }

    /// Number of sequences that have tokens.
    pub(super) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Memory in bytes, but for token sets that it was given.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the tokens of the rows that are accepted from `position` to `words`.
    ///
    /// `step` moves a position over a letter whose lexeme ended; `accepts` asks for a last one, which may be in
    /// progress unless it is a line's end with a line.
    pub(super) fn fill<P: Clone, E>(
        &self,
        position: P,
        words: &mut [u32],
        mut accepts: impl FnMut(&P, Letter) -> Result<bool, E>,
        mut step: impl FnMut(&P, Letter) -> Result<Option<P>, E>,
    ) -> Result<(), E> {
        self.nodes[0].tokens.add_to(words);
        let mut positions = vec![position];
        let mut at = 1;
        while at < self.nodes.len() {
            let node = &self.nodes[at];
            positions.truncate(node.depth as usize);
            let before = positions.last().expect("the root's position stays");
            let has_tokens = !node.tokens.is_empty();
            // A line's end that is over asks for its blocks, also where only what is ignored comes after it.
            let is_over = node.letter.line != Line::OTHER;
            if has_tokens && !is_over && accepts(before, node.letter)? {
                node.tokens.add_to(words);
            }
            let has_children = node.end as usize > at + 1;
            let needs_step = has_children || has_tokens && is_over;
            let after = if needs_step { step(before, node.letter)? } else { None };
            if after.is_some() && is_over {
                node.tokens.add_to(words);
            }
            match after {
                Some(after) if has_children => {
                    positions.push(after);
                    at += 1;
                }
                _ => at = node.end as usize,
            }
        }
        Ok(())
    }
}

const NO_LETTER: Letter = Letter { terminal: crate::TerminalId(u32::MAX), line: Line::OTHER };

/// Ends the subtrees of all but the first `kept` nodes of a path.
fn close(nodes: &mut [Node], path: &mut Vec<(Letter, usize)>, kept: usize) {
    let end = nodes.len() as u32;
    for (_, node) in path.drain(kept..) {
        nodes[node].end = end;
    }
}

#[cfg(test)]
impl Rows {
    /// The sequences with their tokens.
    pub(super) fn spelled(
        &self,
        num_words: usize,
    ) -> std::collections::BTreeMap<Vec<Letter>, Vec<palmette_core::TokenId>> {
        let mut path = Vec::new();
        let mut spelled = std::collections::BTreeMap::new();
        for node in &self.nodes {
            path.truncate(node.depth.saturating_sub(1) as usize);
            path.extend((node.depth > 0).then_some(node.letter));
            let mut words = vec![0; num_words];
            node.tokens.add_to(&mut words);
            let tokens: Vec<_> = palmette_core::mask::iter(&words).collect();
            if !tokens.is_empty() {
                spelled.insert(path.clone(), tokens);
            }
        }
        spelled
    }
}
