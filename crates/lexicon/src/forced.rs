//! Forced bytes: what every member has from a place on.

use crate::arrays::{ImplicitTrie, Prefix};
use crate::cursor::{Phase, Place};
use crate::escapes::escapes_begun;
use crate::selection::RankFilter;
use palmette_core::MemberSpelling;

/// Adds the bytes that the spellings of all chosen strings have from a place on, up to where they
/// part or one ends.
pub(crate) fn forced<'a, V: ImplicitTrie<'a>, C: RankFilter>(
    strings: V,
    chosen: C,
    spelling: MemberSpelling,
    place: Place,
    bytes: &mut Vec<u8>,
) {
    let mut at = place.at;
    match place.phase {
        Phase::Closed => return,
        Phase::Inside => {}
        Phase::Escape(begun) => match only_escape(strings, chosen, spelling, (at, begun), bytes) {
            Some(child) => at = child,
            None => return,
        },
    }
    let Prefix { lo, hi, depth } = at;
    let (Some(first), Some(last)) = (chosen.next(lo, hi), chosen.last(lo, hi)) else { return };
    let shared = if first == last { usize::MAX } else { strings.shared_within(first, last + 1) };
    let (mut read, mut is_end) = (depth, false);
    let is_whole = strings.hop(lo, first, depth, |byte| {
        is_end = V::ENDS_WITHIN && read > 0 && strings.ends_at(Prefix { lo, hi, depth: read });
        let goes_on = read < shared && !is_end;
        if goes_on {
            spelling.append_byte(byte, bytes);
            read += 1;
        }
        goes_on
    });
    if first == last && is_whole {
        bytes.extend(spelling.close());
        return;
    }
    // Where a member ends there is another way on than by the next byte of the others.
    if is_whole || is_end {
        return;
    }
    // The strings that share as much are neighbours of the first.
    let before = shared.checked_sub(1).filter(|_| shared > depth);
    let (lo, hi) = match before {
        Some(before) => {
            (strings.child_of(lo, first, before), strings.next_child(first, hi, before))
        }
        None => (lo, hi),
    };
    common_escape(strings, chosen, spelling, Prefix { lo, hi, depth: shared }, bytes);
}

/// Adds the bytes that escapes of all bytes by which chosen strings go on begin with; none where
/// one is no escape.
fn common_escape<'a, V: ImplicitTrie<'a>, C: RankFilter>(
    strings: V,
    chosen: C,
    spelling: MemberSpelling,
    at: Prefix,
    bytes: &mut Vec<u8>,
) {
    let mut common: Option<&[u8]> = None;
    let mut from = at.lo;
    while let Some(rank) = chosen.next(from, at.hi) {
        let child = strings.child_of(from, rank, at.depth);
        let first = match child == at.lo {
            true => strings.tail(child, at.depth).first,
            false => Some(strings.branch(child)),
        };
        let Some(escape) = first.and_then(|byte| spelling.escape(byte)) else { return };
        let so_far = common.unwrap_or(escape);
        common = Some(&so_far[..alike(so_far, escape)]);
        from = strings.next_child(child, at.hi, at.depth);
    }
    bytes.extend_from_slice(common.unwrap_or_default());
}

/// The prefix after the only escape that goes on as begun, whose remainder is added; `None` where
/// there are several, and what these have alike is added.
fn only_escape<'a, V: ImplicitTrie<'a>, C: RankFilter>(
    strings: V,
    chosen: C,
    spelling: MemberSpelling,
    (at, begun): (Prefix, usize),
    bytes: &mut Vec<u8>,
) -> Option<Prefix> {
    let going_on = |(byte, rest)| {
        let child =
            strings.child(at, byte).filter(|child| chosen.next(child.lo, child.hi).is_some());
        child.map(|child| (child, rest))
    };
    let mut escapes = escapes_begun(spelling, begun).filter_map(going_on);
    let (child, mut rest): (Prefix, &[u8]) = escapes.next()?;
    let mut is_only = true;
    for (_, other) in escapes {
        rest = &rest[..alike(rest, other)];
        is_only = false;
    }
    bytes.extend_from_slice(rest);
    is_only.then_some(child)
}

/// Bytes that two slices begin with alike.
fn alike(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
