//! Bytes in 64 groups, so that a set of groups is a word.
//!
//! Bytes that patterns tell apart are in groups of their own: punctuation, digits, what follows a
//! backslash, the leading bytes of characters that are blanks.

/// A set of groups, a bit each.
pub(super) type Groups = u64;

/// Number of groups.
pub(super) const NUM_GROUPS: usize = 64;

const GROUP_OF: [u8; 256] = numbered();

/// The group of a byte.
#[inline]
pub(super) fn group(byte: u8) -> usize {
    usize::from(GROUP_OF[usize::from(byte)])
}

/// The group of a byte as a set.
#[inline]
pub(super) fn group_bit(byte: u8) -> Groups {
    1 << group(byte)
}

/// The least byte of a byte's group.
const fn least(byte: u8) -> u8 {
    match byte {
        b'\t' | b'\n' | b'\r' => byte,
        0..=0x1F => 0,
        b'4'..=b'9' => b'4',
        b'A'..=b'F' => b'A',
        b'G'..=b'Z' => b'G',
        b'a' | b'c'..=b'e' => b'a',
        b'g'..=b'm' | b'o'..=b'q' | b's' | b'v'..=b'z' => b'g',
        0x7F | 0xC0 | 0xC1 | 0xF5.. => 0x7F,
        0x80..=0xBF => byte & 0xF0,
        0xC3..=0xDF => 0xC3,
        0xE0 | 0xE1 => 0xE0,
        0xE4..=0xEF => 0xE4,
        0xF0..=0xF4 => 0xF0,
        _ => byte,
    }
}

const fn numbered() -> [u8; 256] {
    let mut groups = [0; 256];
    let (mut byte, mut next) = (0, 0);
    while byte < 256 {
        let least = least(byte as u8) as usize;
        if least == byte {
            groups[byte] = next;
            next += 1;
        } else {
            groups[byte] = groups[least];
        }
        byte += 1;
    }
    assert!(next as usize == NUM_GROUPS);
    groups
}
