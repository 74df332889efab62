//! Member sets by definition: a sorted map of spellings, and a comparison of any set with it along
//! all texts.

use std::collections::BTreeMap;
use std::ops::Bound;

use palmette_core::{
    Budget, Cursor, Interrupted, MemberId, MemberSet, MemberSpelling, TokenId, VocabularyTrie,
};

/// A member set as its definition: spellings in a sorted map. A cursor is the bytes read.
#[derive(Clone, Debug, Default)]
pub struct NaiveSet {
    /// Members and their texts by spelling.
    members: BTreeMap<Vec<u8>, (MemberId, Vec<u8>)>,
}

impl NaiveSet {
    /// Members that are written as themselves, less the empty text.
    pub fn raw(members: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Self {
        let members = members.into_iter().filter(|(_, text)| !text.is_empty());
        let spelled = |(id, text): (u64, Vec<u8>)| (text.clone(), (MemberId(id), text));
        Self { members: members.map(spelled).collect() }
    }

    /// Members that are written as JSON strings after their opening quote, less the empty text.
    ///
    /// # Panics
    /// When a text is no UTF-8.
    pub fn json_strings(members: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Self {
        let members = members.into_iter().filter(|(_, text)| !text.is_empty());
        let spelled = |(id, bytes): (u64, Vec<u8>)| {
            let text = std::str::from_utf8(&bytes).expect("UTF-8");
            let json = serde_json::to_string(text).expect("a text is JSON");
            (json.as_bytes()[1..].to_vec(), (MemberId(id), bytes))
        };
        Self { members: members.map(spelled).collect() }
    }

    /// Members with a spelling and a text each.
    pub fn spelled(members: impl IntoIterator<Item = (u64, Vec<u8>, Vec<u8>)>) -> Self {
        let members = members.into_iter();
        Self {
            members: members.map(|(id, spelled, text)| (spelled, (MemberId(id), text))).collect(),
        }
    }

    /// Spellings that begin so, in order.
    fn beginning_with<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let from = (Bound::Included(bytes), Bound::Unbounded);
        let all = self.members.range::<[u8], _>(from).map(|(spelling, _)| spelling.as_slice());
        all.take_while(move |spelling| spelling.starts_with(bytes))
    }

    fn is_any(&self, bytes: &[u8]) -> bool {
        self.beginning_with(bytes).next().is_some()
    }
}

/// Bytes as words: how many, and eight in each.
fn cursor(bytes: &[u8]) -> Cursor {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let words: Vec<u64> =
        std::iter::once(bytes.len() as u64).chain(bytes.chunks(8).map(word)).collect();
    Cursor::new(&words)
}

fn bytes_of(cursor: &Cursor) -> Vec<u8> {
    let (&len, words) = cursor.words().split_first().expect("a length");
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.take(len as usize).collect()
}

impl MemberSet for NaiveSet {
    fn start(&self) -> Option<Cursor> {
        self.is_any(&[]).then(|| cursor(&[]))
    }

    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        let mut bytes = bytes_of(at);
        bytes.push(byte);
        self.is_any(&bytes).then(|| cursor(&bytes))
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        self.members.get(&bytes_of(at)).map(|&(member, _)| member)
    }

    /// Every node below is asked for by itself, but those under one to which no spelling leads.
    fn effect(
        &self,
        at: &Cursor,
        trie: &VocabularyTrie,
        node: u32,
        mask: &mut [u32],
        ends: &mut Vec<(u32, MemberId)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        let read = bytes_of(at);
        let first = trie.node(node as usize).depth;
        // The bytes from `node` to the one looked at.
        let mut path = Vec::new();
        let mut below = node as usize;
        while below < trie.end(node as usize) {
            budget.spend(1)?;
            let looked_at = trie.node(below);
            if below > node as usize {
                path.truncate(looked_at.depth - first - 1);
                path.push(looked_at.byte);
            }
            let text = [&read[..], &path].concat();
            if !self.is_any(&text) {
                below = trie.end(below);
                continue;
            }
            if below > node as usize {
                trie.mark(below, mask);
            }
            let has_nodes_below = trie.end(below) > below + 1;
            if let Some(&(member, _)) = self.members.get(&text).filter(|_| has_nodes_below) {
                ends.push((below as u32, member));
            }
            below += 1;
        }
        Ok(())
    }

    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        let read = bytes_of(at);
        let mut all = self.beginning_with(&read);
        let Some(first) = all.next() else { return };
        let alike = all.fold(first.len(), |alike, other| {
            first.iter().zip(other).take(alike).take_while(|(a, b)| a == b).count()
        });
        bytes.extend_from_slice(&first[read.len()..alike]);
    }

    fn text(&self, member: MemberId, bytes: &mut Vec<u8>) {
        let mut all = self.members.values();
        let (_, text) = all.find(|(other, _)| *other == member).expect("a member");
        bytes.extend_from_slice(text);
    }

    fn spell(&self, member: MemberId, _: MemberSpelling, bytes: &mut Vec<u8>) {
        let mut all = self.members.iter();
        let (spelling, _) = all.find(|(_, (other, _))| *other == member).expect("a member");
        bytes.extend_from_slice(spelling);
    }

    fn len(&self) -> u64 {
        self.members.len() as u64
    }

    fn longest(&self) -> Option<usize> {
        self.members.keys().map(Vec::len).max()
    }
}

/// Compares two sets along the bytes of all their spellings, up to `max_places` texts: members,
/// masks and ends below `nodes` of the trie, and forced bytes. Gives the number of texts compared.
///
/// # Panics
/// Where they differ.
pub fn assert_equal_sets(
    set: &dyn MemberSet,
    expected: &dyn MemberSet,
    trie: &VocabularyTrie,
    nodes: &[u32],
    max_places: usize,
) -> usize {
    assert_eq!(set.len(), expected.len(), "members");
    assert_eq!(set.is_empty(), set.start().is_none());
    let mut open = Vec::new();
    match (set.start(), expected.start()) {
        (Some(one), Some(other)) => open.push((one, other, Vec::new())),
        (one, other) => assert_eq!(one.is_some(), other.is_some(), "no member"),
    }
    let mut num_places = 0;
    while let Some((one, other, read)) = open.pop().filter(|_| num_places < max_places) {
        num_places += 1;
        let shown = || read.escape_ascii().to_string();
        assert_eq!(set.member(&one), expected.member(&other), "member after {}", shown());
        let texts = [(set, &one), (expected, &other)].map(|(set, at)| {
            let mut text = Vec::new();
            set.member(at).iter().for_each(|&member| set.text(member, &mut text));
            text
        });
        assert_eq!(texts[0], texts[1], "text after {}", shown());
        let forced = [(set, &one), (expected, &other)].map(|(set, at)| {
            let mut bytes = Vec::new();
            set.forced(at, &mut bytes);
            bytes.escape_ascii().to_string()
        });
        assert_eq!(forced[0], forced[1], "forced after {}", shown());
        for &node in nodes {
            let effects = [effect(set, &one, trie, node), effect(expected, &other, trie, node)];
            assert_eq!(effects[0], effects[1], "tokens below node {node} after {}", shown());
        }
        for byte in 0..=u8::MAX {
            match (set.advance(&one, byte), expected.advance(&other, byte)) {
                (Some(one), Some(other)) => open.push((one, other, [&read[..], &[byte]].concat())),
                (one, other) => assert_eq!(
                    one.is_some(),
                    other.is_some(),
                    "going on by {} after {}",
                    byte.escape_ascii(),
                    shown()
                ),
            }
        }
    }
    num_places
}

/// The tokens and ends of an effect, sorted.
pub fn effect(
    set: &dyn MemberSet,
    at: &Cursor,
    trie: &VocabularyTrie,
    node: u32,
) -> (Vec<TokenId>, Vec<(u32, MemberId)>) {
    let most = trie.tokens().iter().map(|token| token.index()).max().map_or(0, |most| most + 1);
    let mut mask = vec![0; palmette_core::mask::num_words(most)];
    let mut ends = Vec::new();
    let budget = &mut Budget::unlimited();
    set.effect(at, trie, node, &mut mask, &mut ends, budget).expect("an unlimited budget");
    ends.sort();
    (palmette_core::mask::iter(&mask).collect(), ends)
}
