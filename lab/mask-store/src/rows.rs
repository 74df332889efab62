//! Rows of one position of the lexer, as a tree of terminal sequences in preorder.

use palmette_core::TokenId;
use palmette_grammar_parser::TerminalId;
use palmette_grammar_parser::blocks::{Letter, Line};

use super::spelling::Spellings;

/// Sequences of letters with their token sets, as a tree in preorder: what rows begin with is asked
/// of the parser once.
#[derive(Debug)]
pub(super) struct Rows {
    nodes: Vec<Node>,
    num_rows: usize,
}

#[derive(Debug)]
struct Node {
    /// Last letter; unused in the root, which is node 0.
    letter: Letter,
    /// Number of letters.
    depth: u32,
    /// The node after its subtree.
    end: u32,
    tokens: Vec<TokenId>,
}

impl Rows {
    /// Rows of some spellings, which come in the order of their sequences: a node comes before
    /// those below it.
    pub(super) fn new(rows: Spellings) -> Self {
        const NO_LETTER: Letter = Letter { terminal: TerminalId(u32::MAX), line: Line::OTHER };
        let num_rows = rows.len();
        let node = |letter, depth| Node { letter, depth, end: 0, tokens: Vec::new() };
        let mut nodes = vec![node(NO_LETTER, 0)];
        let mut path: Vec<(Letter, usize)> = Vec::new();
        for (letters, tokens) in rows {
            let shared = path.iter().zip(&letters).take_while(|((a, _), b)| a == *b).count();
            close(&mut nodes, &mut path, shared);
            for &letter in &letters[shared..] {
                path.push((letter, nodes.len()));
                nodes.push(node(letter, path.len() as u32));
            }
            let at = path.last().map_or(0, |&(_, node)| node);
            nodes[at].tokens = tokens;
        }
        close(&mut nodes, &mut path, 0);
        nodes[0].end = nodes.len() as u32;
        Self { nodes, num_rows }
    }

    /// Number of sequences that have tokens.
    pub(super) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Memory that they take.
    pub(super) fn bytes(&self) -> usize {
        let tokens = self.nodes.iter().map(|node| size_of_val(&*node.tokens)).sum::<usize>();
        size_of_val(&*self.nodes) + tokens
    }

    /// Gives `add` the tokens of the rows that are accepted from `position`.
    ///
    /// `step` moves a position over a letter whose lexeme ended; `accepts` asks for a last one,
    /// which may be in progress unless it is a line's end with a line.
    pub(super) fn add_accepted<P: Clone, E>(
        &self,
        position: P,
        mut accepts: impl FnMut(&P, Letter) -> Result<bool, E>,
        mut step: impl FnMut(&P, Letter) -> Result<Option<P>, E>,
        mut add: impl FnMut(TokenId),
    ) -> Result<(), E> {
        let mut add_all = |node: &Node| node.tokens.iter().for_each(|&token| add(token));
        add_all(&self.nodes[0]);
        let mut positions = vec![position];
        let mut at = 1;
        while at < self.nodes.len() {
            let node = &self.nodes[at];
            positions.truncate(node.depth as usize);
            let before = positions.last().expect("the root's position stays");
            let has_tokens = !node.tokens.is_empty();
            // A line's end that is over asks for its blocks, also where only what is ignored comes
            // after it.
            let is_over = node.letter.line != Line::OTHER;
            if has_tokens && !is_over && accepts(before, node.letter)? {
                add_all(node);
            }
            let has_children = node.end as usize > at + 1;
            let needs_step = has_children || has_tokens && is_over;
            let after = if needs_step { step(before, node.letter)? } else { None };
            if after.is_some() && is_over {
                add_all(node);
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

/// Ends the subtrees of all but the first `kept` nodes of a path.
fn close(nodes: &mut [Node], path: &mut Vec<(Letter, usize)>, kept: usize) {
    let end = nodes.len() as u32;
    for (_, node) in path.drain(kept..) {
        nodes[node].end = end;
    }
}
