//! Escapes in progress: what a cursor within a spelling knows of an escape.

use palmette_core::MemberSpelling;

/// Escapes in progress: all beginnings of escapes that are none, and before them the empty one. A
/// place here is what a cursor knows of an escape.
const BEGUN: [&[u8]; 7] = [b"", b"\\", b"\\u", b"\\u0", b"\\u00", b"\\u000", b"\\u001"];

/// The escape in progress after one more byte; `None` where that is none: it is whole, or begins
/// none.
pub(crate) fn begun_after(begun: usize, byte: u8) -> Option<usize> {
    let so_far = BEGUN.get(begun)?;
    BEGUN.iter().position(|next| next.split_last() == Some((&byte, so_far)))
}

/// The bytes whose escapes begin with an escape in progress, each with the remainder of its escape.
pub(crate) fn escapes_begun(
    spelling: MemberSpelling,
    begun: usize,
) -> impl Iterator<Item = (u8, &'static [u8])> {
    let so_far = BEGUN.get(begun).copied().unwrap_or_default();
    let rest =
        move |(byte, escape): (u8, &'static [u8])| Some((byte, escape.strip_prefix(so_far)?));
    spelling.escapes().filter_map(rest)
}

/// The bytes whose escapes begin with an escape in progress and then `byte`.
pub(crate) fn escaped_after(
    spelling: MemberSpelling,
    begun: usize,
    byte: u8,
) -> impl Iterator<Item = u8> {
    let is_next = move |rest: &[u8]| rest.first() == Some(&byte);
    escapes_begun(spelling, begun).filter(move |(_, rest)| is_next(rest)).map(|(byte, _)| byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_spelled_as_serde_json_does() {
        let all: String = (0..0x250).filter_map(char::from_u32).collect();
        let mut spelled = b"\"".to_vec();
        MemberSpelling::JsonString.append(all.as_bytes(), &mut spelled);
        assert_eq!(String::from_utf8(spelled).unwrap(), serde_json::to_string(&all).unwrap());
    }

    #[test]
    fn every_beginning_of_an_escape_has_a_place() {
        for (byte, escape) in MemberSpelling::JsonString.escapes() {
            let (mut begun, last) = (0, escape.len() - 1);
            for (at, &next) in escape.iter().enumerate() {
                assert!(escaped_after(MemberSpelling::JsonString, begun, next).any(|b| b == byte));
                match begun_after(begun, next) {
                    Some(place) => begun = place,
                    None => assert_eq!(at, last),
                }
            }
        }
        assert_eq!(begun_after(1, b'n'), None);
    }
}
