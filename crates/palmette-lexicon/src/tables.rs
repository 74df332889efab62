//! Tables of hot prefixes: what a join met, kept for all sets of a lexicon.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use palmette_core::{Interrupted, VocabularyTrie};

use crate::arrays::Prefix;
use crate::join::Sink;
use crate::selection::Chosen;
use crate::spelling::Spelling;

/// Prefixes of so many strings and more have tables.
pub(crate) const HOT_STRINGS: usize = 2048;
/// Bytes that tables may take in a lexicon of whatever size.
const MIN_BYTES: usize = 1 << 20;
/// Of the bytes of a lexicon, tables may take a share of one in so many.
const SHARE: usize = 8;
/// Token of an entry that has none.
const NO_TOKEN: u32 = u32::MAX;

/// The question that a table answers. It has no filter: tables serve all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Number of the vocabulary's trie.
    pub(crate) trie: u64,
    /// Node of that trie that is begun at.
    pub(crate) node: u32,
    lo: u32,
    hi: u32,
    depth: u32,
    spelling: Spelling,
}

impl Key {
    pub(crate) fn new(trie: u64, node: u32, at: Prefix, spelling: Spelling) -> Self {
        let Prefix { lo, hi, depth } = at;
        Self { trie, node, lo: lo as u32, hi: hi as u32, depth: depth as u32, spelling }
    }
}

/// The tokens by which strings of a prefix go on, each with the ranks of those that do, in
/// depth-first order.
///
/// Ranks of later entries begin no earlier, so that a set's tokens are found in one pass beside its
/// members; a subtree without a member is jumped over. All strings' tokens are kept as words of a
/// mask besides.
#[derive(Debug)]
pub(crate) struct Table {
    entries: Box<[Entry]>,
    /// Nodes with nodes below them where the spelling of a string ends, by rank.
    ends: Box<[(u32, u32)]>,
    all: Row,
}

/// A token, or a node without one where tokens part.
#[derive(Clone, Copy, Debug)]
struct Entry {
    token: u32,
    lo: u32,
    hi: u32,
    /// The first entry that is not below this one.
    past: u32,
}

/// The words of a mask: all up to the last, or those that are not 0.
#[derive(Debug)]
enum Row {
    Dense(Box<[u32]>),
    Sparse(Box<[(u32, u32)]>),
}

impl Row {
    fn new(tokens: impl Iterator<Item = u32>) -> Self {
        let mut words: Vec<u32> = Vec::new();
        for token in tokens {
            let word = token as usize / 32;
            if word >= words.len() {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (token % 32);
        }
        let sparse: Box<[_]> = (0..)
            .zip(&words)
            .filter(|&(_, &word)| word != 0)
            .map(|(at, &word)| (at, word))
            .collect();
        if sparse.len() * 2 < words.len() {
            Self::Sparse(sparse)
        } else {
            Self::Dense(words.into())
        }
    }

    fn add_to(&self, mask: &mut [u32]) {
        match self {
            Self::Dense(words) => mask.iter_mut().zip(words).for_each(|(to, word)| *to |= word),
            Self::Sparse(words) => words.iter().for_each(|&(at, word)| mask[at as usize] |= word),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Dense(words) => size_of_val(&**words),
            Self::Sparse(words) => size_of_val(&**words),
        }
    }
}

impl Table {
    /// Adds the tokens by which chosen strings go on, and the ends of those; gives the number of
    /// entries looked at.
    pub(crate) fn fill(
        &self,
        chosen: impl Chosen,
        mask: &mut [u32],
        mut end: impl FnMut(u32, u32),
    ) -> u64 {
        fill_from(self, chosen, mask, &mut end)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.entries)
            + size_of_val(&*self.ends)
            + self.all.bytes()
    }
}

fn fill_from<C: Chosen>(
    table: &Table,
    chosen: C,
    mask: &mut [u32],
    end: &mut impl FnMut(u32, u32),
) -> u64 {
    if C::IS_ALL {
        table.all.add_to(mask);
        table.ends.iter().for_each(|&(node, rank)| end(node, rank));
        return table.ends.len() as u64 + 1;
    }
    let (mut at, mut looks) = (0, 1);
    // The first chosen rank that is not before the entry.
    let mut next = 0;
    while let Some(&Entry { token, lo, hi, past }) = table.entries.get(at) {
        looks += 1;
        if next < lo {
            let found = chosen.next(lo as usize, u32::MAX as usize);
            next = found.map_or(u32::MAX, |rank| rank as u32);
        }
        if next < hi {
            if token != NO_TOKEN {
                mask[token as usize / 32] |= 1 << (token % 32);
            }
            at += 1;
        } else {
            at = past as usize;
        }
    }
    for &(node, rank) in &table.ends {
        if chosen.next(rank as usize, rank as usize + 1).is_some() {
            end(node, rank);
        }
    }
    looks + table.ends.len() as u64
}

/// What a join met, on its way to a table.
#[derive(Debug, Default)]
pub(crate) struct TableSink {
    /// Nodes with the ranks of the strings that lead to them.
    nodes: Vec<(u32, u32, u32)>,
    ends: Vec<(u32, u32)>,
}

impl Sink for TableSink {
    #[inline]
    fn live(&mut self, node: u32, lo: usize, hi: usize) {
        self.nodes.push((node, lo as u32, hi as u32));
    }

    fn end(&mut self, node: u32, rank: usize) {
        self.ends.push((node, rank as u32));
    }
}

impl TableSink {
    pub(crate) fn finish(self, trie: &VocabularyTrie) -> Table {
        let Self { nodes, ends } = self;
        let shape = Shape::new(trie, &nodes);
        let mut entries = Vec::with_capacity(shape.first_entry[nodes.len()] as usize);
        for (at, &(node, lo, hi)) in nodes.iter().enumerate() {
            let past = shape.first_entry[shape.past[at] as usize];
            let own = trie.tokens_in(trie.own_ranks(node as usize));
            // Several tokens may be spelled alike: they are entries in a row.
            for token in
                own.iter().map(|token| token.0).chain(shape.has_bare(at).then_some(NO_TOKEN))
            {
                entries.push(Entry { token, lo, hi, past });
            }
        }
        let tokens = entries.iter().map(|entry| entry.token).filter(|&token| token != NO_TOKEN);
        let all = Row::new(tokens);
        Table { entries: entries.into(), ends: ends.into(), all }
    }
}

/// Subtrees of the nodes that a join met, and the entries that nodes have in a table.
struct Shape {
    /// By node: the first one that is not below it.
    past: Vec<u32>,
    /// By node, and in the end: its first entry.
    first_entry: Vec<u32>,
    /// By node: whether it has an entry without a token, as it has none and tokens part below.
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

    fn has_bare(&self, at: usize) -> bool {
        self.bare[at]
    }
}

/// Tables of a lexicon, the least recently used of them dropped where they take too much.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    max_bytes: usize,
    bytes: AtomicUsize,
    /// Counts questions: what was used last has the largest number.
    now: AtomicU64,
    kept: RwLock<HashMap<Key, Kept>>,
}

/// A table with its last use.
#[derive(Debug)]
struct Kept {
    table: Arc<Table>,
    used: AtomicU64,
}

impl Tables {
    /// Tables of a lexicon of so many bytes.
    pub(crate) fn new(lexicon_bytes: usize) -> Self {
        Self { max_bytes: (lexicon_bytes / SHARE).max(MIN_BYTES), ..Self::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether there is no room for more but in place of others.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.max_bytes
    }

    /// The table of a key, made where there is none.
    ///
    /// # Errors
    /// Those of making it; it is then not kept.
    pub(crate) fn get(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Table, Interrupted>,
    ) -> Result<Arc<Table>, Interrupted> {
        let now = self.now.fetch_add(1, Ordering::Relaxed);
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(&key) {
            found.used.store(now, Ordering::Relaxed);
            return Ok(Arc::clone(&found.table));
        }
        drop(kept);
        let table = Arc::new(make()?);
        if table.bytes() <= self.max_bytes {
            self.keep(key, &table, now);
        }
        Ok(table)
    }

    fn keep(&self, key: Key, table: &Arc<Table>, now: u64) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let added = Kept { table: Arc::clone(table), used: now.into() };
        let mut bytes = self.bytes() + table.bytes();
        // Another thread may have made it meanwhile.
        bytes -= kept.insert(key, added).map_or(0, |other| other.table.bytes());
        while bytes > self.max_bytes {
            let used = |(_, kept): &(&Key, &Kept)| kept.used.load(Ordering::Relaxed);
            let Some(oldest) = kept.iter().min_by_key(used).map(|(&key, _)| key) else { break };
            bytes -= kept.remove(&oldest).map_or(0, |dropped| dropped.table.bytes());
        }
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}
