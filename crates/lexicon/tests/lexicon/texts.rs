//! Texts, vocabularies and selections to test with.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_core::{Vocabulary, VocabularyTrie};
use palmette_lexicon::{Lexicon, RankSet, Selection};
use palmette_testkit::member_sets::NaiveSet;
use proptest::prelude::*;

/// Texts of few bytes, which share prefixes: all byte values now and then, and prefixes about as
/// long as a byte counts.
pub(crate) fn texts(max: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let byte = || prop_oneof![6 => prop::sample::select(b"ab\"\\,".to_vec()), 1 => any::<u8>()];
    let short = prop::collection::vec(byte(), 0..9);
    let long = (prop_oneof![253_usize..258, 508_usize..513], prop::collection::vec(byte(), 0..4));
    let long = long.prop_map(|(len, end)| [vec![b'x'; len], end].concat());
    prop::collection::vec(prop_oneof![12 => short, 1 => long], 0..max)
}

/// Texts that JSON can hold.
pub(crate) fn utf8_texts(max: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let special = prop::sample::select(
        "ab\"\\/,\n\t\u{1}\u{1f}\u{1e}\u{b}\u{c}é🦆".chars().collect::<Vec<_>>(),
    );
    let short = prop::collection::vec(prop_oneof![9 => special, 1 => any::<char>()], 0..7);
    let text = short.prop_map(|chars| chars.into_iter().collect::<String>().into_bytes());
    prop::collection::vec(text, 0..max)
}

/// Tokens over the bytes of texts and their spellings; some alike, some without text.
pub(crate) fn vocabulary() -> impl Strategy<Value = Vocabulary> {
    let byte = prop_oneof![
        9 => prop::sample::select(b"ab\"\\,nu01ex".to_vec()),
        2 => any::<u8>(),
    ];
    let token = prop_oneof![
        9 => prop::collection::vec(byte, 0..5),
        1 => (1_usize..300).prop_map(|len| vec![b'x'; len]),
    ];
    prop::collection::vec(token, 0..80).prop_map(|tokens| {
        Vocabulary::new(tokens.into_iter().map(Some), []).expect("no token ends a text")
    })
}

/// A selection of a kind, of about one in `of` strings.
#[derive(Clone, Debug)]
pub(crate) struct TestSelection {
    pub(crate) kind: u8,
    pub(crate) of: u64,
    pub(crate) seed: u64,
}

pub(crate) fn chosen() -> impl Strategy<Value = TestSelection> {
    let of = prop::sample::select(vec![1, 2, 2, 5, 20, 1_000_000]);
    (0_u8..3, of, any::<u64>()).prop_map(|(kind, of, seed)| TestSelection { kind, of, seed })
}

impl TestSelection {
    pub(crate) fn ranks(&self, len: usize) -> Vec<u32> {
        let hash = |rank: u64| (rank ^ self.seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let all = self.kind == 0;
        (0..len as u32).filter(|&rank| all || hash(rank.into()) % self.of == 0).collect()
    }

    pub(crate) fn selection(&self, len: usize) -> Selection {
        let ranks = self.ranks(len);
        match self.kind {
            0 => Selection::All,
            1 => {
                let ranks = ranks.into_iter().map(u64::from);
                Selection::Ranks(Arc::new(RankSet::from_ranks(len as u64, ranks)))
            }
            _ => Selection::List(ranks.into()),
        }
    }

    /// The chosen strings with their ranks.
    pub(crate) fn members(&self, texts: &BTreeSet<Vec<u8>>) -> Vec<(u64, Vec<u8>)> {
        let texts: Vec<&Vec<u8>> = texts.iter().collect();
        let member = |rank: u32| (u64::from(rank), texts[rank as usize].clone());
        self.ranks(texts.len()).into_iter().map(member).collect()
    }
}

pub(crate) fn lexicon(texts: &[Vec<u8>]) -> Arc<Lexicon> {
    Arc::new(Lexicon::from_texts(texts).expect("short texts"))
}

/// The root, and some nodes with nodes below them.
pub(crate) fn nodes(trie: &VocabularyTrie) -> Vec<u32> {
    let inner = (1..trie.num_nodes()).filter(|&node| trie.end(node) > node + 1);
    std::iter::once(0).chain(inner.map(|node| node as u32)).take(4).collect()
}

/// The same members by definition.
pub(crate) fn naive(json: bool, members: Vec<(u64, Vec<u8>)>) -> NaiveSet {
    if json { NaiveSet::json_strings(members) } else { NaiveSet::raw(members) }
}
