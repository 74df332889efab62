//! The table of a prefix: tokens and the ranks of the strings that go on by them, depth first.

use palmette_core::vocabulary_trie::Child;
use palmette_core::{MemberId, VocabularyTrie};

use crate::join::Sink;
use crate::selection::RankFilter;

/// Token of an entry that has none.
const NO_TOKEN: u32 = u32::MAX;
/// Entries so many and more have the words of their mask besides.
const WITH_ROW: usize = 1 << 13;

/// The tokens by which strings of a prefix go on, each with the ranks of those that do, in
/// depth-first order of the vocabulary.
///
/// Ranks of later entries begin no earlier, so that a set's tokens are found in one pass beside its
/// members; a subtree without a member is jumped over.
///
/// Cost: 10 bytes an entry under prefixes of fewer than 65,536 strings, else 16; the pass looks at
/// an entry for each token that it finds, and one for each subtree that it leaves out.
#[derive(Debug)]
pub(crate) struct Table {
    /// Ranks of entries are counted from here.
    base: u32,
    tokens: Box<[u32]>,
    spans: Spans,
    /// Nodes with nodes below them where the spelling of a member ends. Where filters choose, a
    /// member is its rank.
    ends: Box<[(u32, MemberId)]>,
    /// Words of the mask of all strings, where there are many entries.
    row: Option<Box<[u32]>>,
}

/// The ranks of entries, as wide as they need.
#[derive(Debug)]
enum Spans {
    Narrow(Box<[Span<u16>]>),
    Wide(Box<[Span<u32>]>),
}

/// The ranks of an entry, and the number of entries from it to the first that is not below it.
#[derive(Clone, Copy, Debug)]
struct Span<T> {
    lo: T,
    hi: T,
    size: T,
}

impl Span<u32> {
    fn to_narrow(self) -> Option<Span<u16>> {
        let Self { lo, hi, size } = self;
        let (lo, hi) = (lo.try_into().ok()?, hi.try_into().ok()?);
        Some(Span { lo, hi, size: size.try_into().ok()? })
    }
}

impl Table {
    /// Adds the tokens by which chosen strings go on, and the ends of those; gives the number of
    /// entries looked at.
    pub(crate) fn fill<C: RankFilter>(
        &self,
        chosen: C,
        mask: &mut [u32],
        mut end: impl FnMut(u32, MemberId),
    ) -> u64 {
        let is_chosen = |rank: usize| C::IS_ALL || chosen.next(rank, rank + 1).is_some();
        let ends = self.ends.iter().filter(|&&(_, member)| is_chosen(member.0 as usize));
        ends.for_each(|&(node, member)| end(node, member));
        let looks = match (&self.row, &self.spans) {
            (Some(row), _) if C::IS_ALL => {
                mask.iter_mut().zip(row).for_each(|(to, word)| *to |= word);
                1
            }
            _ if C::IS_ALL => {
                self.tokens.iter().for_each(|&token| mark(token, mask));
                self.tokens.len()
            }
            (_, Spans::Narrow(spans)) => self.fill_chosen(chosen, spans, mask),
            (_, Spans::Wide(spans)) => self.fill_chosen(chosen, spans, mask),
        };
        (looks + self.ends.len()) as u64
    }

    fn fill_chosen<C: RankFilter, T: Copy + Into<u32>>(
        &self,
        chosen: C,
        spans: &[Span<T>],
        mask: &mut [u32],
    ) -> usize {
        let (mut at, mut looks) = (0, 0);
        // The first chosen rank that is not before the entry, counted from the base.
        let mut next = None;
        while let (Some(&Span { lo, hi, size }), Some(&token)) =
            (spans.get(at), self.tokens.get(at))
        {
            looks += 1;
            let lo = lo.into();
            let first = next.filter(|&next| next >= lo).unwrap_or_else(|| {
                let found = chosen.next((self.base + lo) as usize, u32::MAX as usize);
                found.map_or(u32::MAX, |rank| rank as u32 - self.base)
            });
            next = Some(first);
            if first < hi.into() {
                mark(token, mask);
                at += 1;
            } else {
                at += size.into() as usize;
            }
        }
        looks
    }

    pub(crate) fn bytes(&self) -> usize {
        let spans = match &self.spans {
            Spans::Narrow(spans) => size_of_val(&**spans),
            Spans::Wide(spans) => size_of_val(&**spans),
        };
        let lists = size_of_val(&*self.tokens) + spans + size_of_val(&*self.ends);
        size_of::<Self>() + lists + self.row.as_deref().map_or(0, size_of_val)
    }
}

#[inline(always)]
fn mark(token: u32, mask: &mut [u32]) {
    if token != NO_TOKEN {
        mask[token as usize / 32] |= 1 << (token % 32);
    }
}

/// The words of the mask of some tokens, up to the last that is not 0.
fn row_of(tokens: &[u32]) -> Box<[u32]> {
    let last = tokens.iter().filter(|&&token| token != NO_TOKEN).max();
    let mut words = vec![0; last.map_or(0, |&last| last as usize / 32 + 1)];
    tokens.iter().for_each(|&token| mark(token, &mut words));
    words.into()
}

/// Nodes and ends that a join met, on its way to a table.
#[derive(Debug, Default)]
pub(crate) struct TableSink {
    /// Nodes with the ranks of the strings that lead to them.
    nodes: Vec<(u32, u32, u32)>,
    ends: Vec<(u32, MemberId)>,
}

impl Sink for TableSink {
    #[inline]
    fn live(&mut self, node: Child, lo: usize, hi: usize) {
        self.nodes.push((node.node(), lo as u32, hi as u32));
    }

    fn end(&mut self, node: u32, member: MemberId) {
        self.ends.push((node, member));
    }
}

impl TableSink {
    pub(crate) fn finish(self, trie: &VocabularyTrie) -> Table {
        let Self { nodes, ends } = self;
        let shape = Shape::new(trie, &nodes);
        let num_entries = shape.first_entry[nodes.len()] as usize;
        let (mut tokens, mut spans) =
            (Vec::with_capacity(num_entries), Vec::with_capacity(num_entries));
        let base = nodes.first().map_or(0, |&(_, lo, _)| lo);
        for (at, &(node, lo, hi)) in nodes.iter().enumerate() {
            let past = shape.first_entry[shape.past[at] as usize];
            let own = trie.tokens_in(trie.own_ranks(node as usize)).iter().map(|token| token.0);
            // Several tokens may be spelled alike: they are entries in a row.
            for token in own.chain(shape.bare[at].then_some(NO_TOKEN)) {
                let size = past - tokens.len() as u32;
                tokens.push(token);
                spans.push(Span { lo: lo - base, hi: hi - base, size });
            }
        }
        let narrow: Option<Box<[_]>> = spans.iter().map(|span| span.to_narrow()).collect();
        let spans = narrow.map_or_else(|| Spans::Wide(spans.into()), Spans::Narrow);
        let row = (tokens.len() >= WITH_ROW).then(|| row_of(&tokens));
        Table { base, tokens: tokens.into(), spans, ends: ends.into(), row }
    }
}

/// Subtrees of the nodes that a join met, and the entries that nodes have in a table.
struct Shape {
    /// First node past the subtree of each node.
    past: Vec<u32>,
    /// First entry of each node, and in the end the number of entries.
    first_entry: Vec<u32>,
    /// Flags of the nodes that have an entry without a token. Such a node has no token, and tokens
    /// part below it.
    bare: Vec<bool>,
}

impl Shape {
    fn new(trie: &VocabularyTrie, nodes: &[(u32, u32, u32)]) -> Self {
        let mut past = vec![nodes.len() as u32; nodes.len()];
        let mut children = vec![0_u32; nodes.len()];
        // A node may be met several times, by escapes of different bytes: each is a subtree.
        let mut open: Vec<usize> = Vec::new();
        for (at, &(node, lo, hi)) in nodes.iter().enumerate() {
            while let Some(&above) = open.last() {
                let (top, top_lo, top_hi) = nodes[above];
                let is_below = top < node && (node as usize) < trie.end(top as usize);
                if is_below && top_lo <= lo && hi <= top_hi {
                    children[above] += 1;
                    break;
                }
                past[above] = at as u32;
                open.pop();
            }
            open.push(at);
        }
        let mut first_entry = Vec::with_capacity(nodes.len() + 1);
        let mut bare = Vec::with_capacity(nodes.len());
        let mut num_entries = 0;
        for (at, &(node, ..)) in nodes.iter().enumerate() {
            first_entry.push(num_entries);
            let own = trie.own_ranks(node as usize).len() as u32;
            bare.push(own == 0 && children[at] > 1);
            num_entries += own.max(bare[at].into());
        }
        first_entry.push(num_entries);
        Self { past, first_entry, bare }
    }
}
