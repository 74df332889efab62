//! Kinds of the bytes below each node of the vocabulary trie.

use super::VocabularyTrie;

/// For each node of a trie, the kinds of the bytes that come below it, so that a walk can leave out a subtree whose bytes all
/// lead nowhere new: after the third letter of a name, most subtrees are letters.
///
/// Bytes are of one kind where languages seldom tell them apart: letters; digits; what continues a character; each mark of
/// ASCII is one of its own.
///
/// Cost: 8 bytes a node; building looks at each node once.
#[derive(Clone, Debug)]
pub struct BytesBelow {
    kinds: Box<[u64]>,
}

impl BytesBelow {
    /// The kinds of bytes below the nodes of `trie`.
    pub fn new(trie: &VocabularyTrie) -> Self {
        let mut kinds = vec![0; trie.num_nodes()];
        for node in (0..trie.num_nodes()).rev() {
            let below = trie.children(node).map(|child| 1 << kind(child.byte) | kinds[child.index]);
            kinds[node] = below.fold(0, |all, kinds| all | kinds);
        }
        Self { kinds: kinds.into() }
    }

    /// The kinds of the bytes below a node, bit `k` for kind `k`.
    pub fn kinds(&self, node: usize) -> u64 {
        self.kinds[node]
    }
}

/// The bytes of a kind.
pub(crate) fn of_kind(asked: u32) -> impl Iterator<Item = u8> {
    (0..=u8::MAX).filter(move |&byte| kind(byte) == asked)
}

/// The kind of a byte, below 64.
fn kind(byte: u8) -> u32 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => 0,
        b'0'..=b'9' => 1,
        0x80..=0xBF => 2,
        0xC0..=0xDF => 3,
        0xE0..=0xEF => 4,
        0xF0..=0xFF => 5,
        b'\t' => 6,
        b'\n' => 7,
        b'\r' => 8,
        0..=0x1F | 0x7F => 9,
        // Blank and marks, in four ranges between digits and letters.
        b' '..=b'/' => 10 + u32::from(byte - b' '),
        b':'..=b'@' => 26 + u32::from(byte - b':'),
        b'['..=b'`' => 33 + u32::from(byte - b'['),
        b'{'..=b'~' => 39 + u32::from(byte - b'{'),
    }
}

#[cfg(test)]
mod tests {
    use palmette_core::Vocabulary;

    use super::*;

    #[test]
    fn kinds_are_those_of_all_bytes_below() {
        let texts = ["ab1", "a b", "é", "z", "zz.", "\n\t"];
        let trie = VocabularyTrie::new(&Vocabulary::new(texts.map(Some), []).unwrap());
        let below = BytesBelow::new(&trie);
        for text in ["", "a", "ab", "ab1", "a ", "\u{e9}", "z", "zz", "\n"] {
            let node = trie.find(text.as_bytes()).unwrap();
            let rest = texts.iter().filter_map(|other| other.strip_prefix(text));
            let expected = rest.flat_map(str::bytes).fold(0, |kinds, byte| kinds | 1 << kind(byte));
            assert_eq!(below.kinds(node), expected, "{text:?}");
        }
    }

    #[test]
    fn every_byte_is_of_one_kind() {
        let all: usize = (0..64).map(|kind| of_kind(kind).count()).sum();
        assert_eq!(all, 256);
        assert!(
            (33..127).filter(|byte: &u8| byte.is_ascii_punctuation()).all(|byte| of_kind(kind(
                byte
            ))
            .count()
                == 1)
        );
    }
}
