//! The rows of one position of the lexer, ready to be asked.

use palmette_core::{TokenId, mask};

use super::{letter::Letter, spelling::Spellings};

/// Sequences of letters with their token sets, as a tree in preorder: what rows begin with is asked of the parser once.
#[derive(Debug)]
pub(crate) struct Rows {
    nodes: Vec<Node>,
    num_rows: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Node {
    /// Its last letter; unused in the root, which is node 0.
    letter: Letter,
    /// How many letters it has.
    depth: u32,
    /// The node after its subtree.
    end: u32,
    tokens: Tokens,
}

#[derive(Debug)]
enum Tokens {
    /// In any order.
    List(Box<[TokenId]>),
    /// A bit for each token.
    Mask(Box<[u32]>),
}

impl Rows {
    pub(crate) fn new(spellings: Spellings, num_tokens: usize) -> Self {
        let num_rows = spellings.len();
        let root = Node { letter: NO_LETTER, depth: 0, end: 0, tokens: Tokens::List([].into()) };
        let mut nodes = vec![root];
        let mut path: Vec<(Letter, usize)> = Vec::new();
        // Sequences are sorted, so a node comes before those below it.
        for (letters, tokens) in spellings {
            let shared = path.iter().zip(&letters).take_while(|((a, _), b)| a == *b).count();
            close(&mut nodes, &mut path, shared);
            for &letter in &letters[shared..] {
                path.push((letter, nodes.len()));
                let depth = path.len() as u32;
                nodes.push(Node { letter, depth, end: 0, tokens: Tokens::List([].into()) });
            }
            let node = path.last().map_or(0, |&(_, node)| node);
            nodes[node].tokens = Tokens::new(tokens, num_tokens);
        }
        close(&mut nodes, &mut path, 0);
        nodes[0].end = nodes.len() as u32;
        let bytes = size_of::<Self>() + nodes.iter().map(Node::bytes).sum::<usize>();
        Self { nodes, num_rows, bytes }
    }

    /// How many sequences have tokens.
    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the tokens of the rows that are accepted from `position` to `words`.
    ///
    /// `step` moves a position over a letter whose lexeme ended; `accepts` asks for a last one, which may be in
    /// progress.
    pub(crate) fn fill<P: Clone, E>(
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
            if !node.tokens.is_empty() && accepts(before, node.letter)? {
                node.tokens.add_to(words);
            }
            let has_children = node.end as usize > at + 1;
            if has_children && let Some(after) = step(before, node.letter)? {
                positions.push(after);
                at += 1;
            } else {
                at = node.end as usize;
            }
        }
        Ok(())
    }
}

const NO_LETTER: Letter =
    Letter { terminal: crate::TerminalId(u32::MAX), line: super::letter::Line::OTHER };

/// Ends the subtrees of all but the first `kept` nodes of a path.
fn close(nodes: &mut [Node], path: &mut Vec<(Letter, usize)>, kept: usize) {
    let end = nodes.len() as u32;
    for (_, node) in path.drain(kept..) {
        nodes[node].end = end;
    }
}

impl Node {
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.tokens {
                Tokens::List(tokens) => size_of_val(&**tokens),
                Tokens::Mask(words) => size_of_val(&**words),
            }
    }
}

impl Tokens {
    fn new(tokens: Vec<TokenId>, num_tokens: usize) -> Self {
        let num_words = mask::num_words(num_tokens);
        if tokens.len() <= num_words {
            return Self::List(tokens.into());
        }
        let mut words = vec![0; num_words];
        tokens.iter().for_each(|&token| mask::insert(&mut words, token));
        Self::Mask(words.into())
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::List(tokens) if tokens.is_empty())
    }

    fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::List(tokens) => tokens.iter().for_each(|&token| mask::insert(words, token)),
            Self::Mask(row) => words.iter_mut().zip(row).for_each(|(word, bits)| *word |= bits),
        }
    }
}
