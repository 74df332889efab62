//! Texts in pieces, ordered by length and then by their bytes' ranks.
//!
//! Completions of stacks share their ends: a text is some bytes before another text. The order is
//! *shortlex*. The least text of a concatenation is that of its parts, and what is left of the
//! least completion of a text is the least completion of the longer text: so a way to the end,
//! once it is taken, is found again at each place on it.

use std::cmp::Ordering;
use std::sync::Arc;

/// A text: pieces, the first one first.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    len: usize,
    first: Option<Arc<TextPart>>,
}

#[derive(Debug)]
struct TextPart {
    bytes: Arc<[u8]>,
    rest: Text,
}

impl Text {
    /// `bytes`, then this text.
    pub(super) fn after(&self, bytes: &Arc<[u8]>) -> Self {
        if bytes.is_empty() {
            return self.clone();
        }
        let len = self.len.saturating_add(bytes.len());
        let piece = TextPart { bytes: Arc::clone(bytes), rest: self.clone() };
        Self { len, first: Some(Arc::new(piece)) }
    }

    /// Number of bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> + '_ {
        let mut next = self.first.as_deref();
        let pieces = std::iter::from_fn(move || {
            let piece = next?;
            next = piece.rest.first.as_deref();
            Some(&*piece.bytes)
        });
        pieces.flatten().copied()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.len.cmp(&other.len).then_with(|| self.bytes().map(rank).cmp(other.bytes().map(rank)))
    }
}

impl Drop for TextPart {
    /// Without recursion: a text has as many pieces as a stack has entries.
    fn drop(&mut self) {
        let mut next = self.rest.first.take();
        while let Some(mut piece) = next.and_then(Arc::into_inner) {
            next = piece.rest.first.take();
        }
    }
}

/// Order of two texts in one piece.
pub(super) fn order(one: &[u8], other: &[u8]) -> Ordering {
    let ranks = |text: &[u8]| text.iter().copied().map(rank).collect::<Vec<_>>();
    one.len().cmp(&other.len()).then_with(|| match one == other {
        true => Ordering::Equal,
        false => ranks(one).cmp(&ranks(other)),
    })
}

/// Place of a byte in the order of bytes: digits, letters, the line break, other printable
/// characters, the space, what is beyond ASCII, and other control characters last. So a text that
/// only its length matters of is `0` or `a`, whose repetitions vocabularies have, and a line ends
/// by its break and not by a comment.
pub(super) fn rank(byte: u8) -> u8 {
    RANKS[usize::from(byte)]
}

/// The bytes in the order of their ranks.
pub(super) const RANKED: [u8; 256] = ranked();

const RANKS: [u8; 256] = {
    let (mut ranks, mut at) = ([0; 256], 0);
    while at < 256 {
        ranks[RANKED[at] as usize] = at as u8;
        at += 1;
    }
    ranks
};

const fn ranked() -> [u8; 256] {
    let (mut bytes, mut len, mut group) = ([0; 256], 0, 0);
    while group < 8 {
        let mut byte = 0;
        while byte < 256 {
            if group_of(byte as u8) == group {
                bytes[len] = byte as u8;
                len += 1;
            }
            byte += 1;
        }
        group += 1;
    }
    bytes
}

const fn group_of(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        b'\n' => 3,
        b'!'..=b'~' => 4,
        b' ' => 5,
        128.. => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[&str]) -> Text {
        let pieces = pieces.iter().rev();
        pieces.fold(Text::default(), |text, piece| text.after(&piece.as_bytes().into()))
    }

    #[test]
    fn shorter_texts_come_first_then_digits_and_letters() {
        let ascending = [&[][..], &["0"], &["a"], &["\n"], &["}"], &[" "], &["0", "z"], &["a0"]];
        for (place, one) in ascending.iter().enumerate() {
            for (other_place, other) in ascending.iter().enumerate() {
                assert_eq!(
                    text(one).cmp(&text(other)),
                    place.cmp(&other_place),
                    "{one:?} {other:?}"
                );
                let (one, other) = (one.concat(), other.concat());
                let order = order(one.as_bytes(), other.as_bytes());
                assert_eq!(order, place.cmp(&other_place), "{one:?} {other:?}");
            }
        }
        assert_eq!(text(&["ab", "", "c"]), text(&["a", "bc"]));
    }

    #[test]
    fn each_byte_has_one_rank() {
        let mut seen: Vec<u8> = (0..=u8::MAX).map(rank).collect();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..=u8::MAX));
    }

    #[test]
    fn a_million_pieces_are_dropped_without_recursion() {
        let byte: Arc<[u8]> = b"a"[..].into();
        let long = (0..1_000_000).fold(Text::default(), |text, _| text.after(&byte));
        assert_eq!((long.len(), long.bytes().count()), (1_000_000, 1_000_000));
    }
}
