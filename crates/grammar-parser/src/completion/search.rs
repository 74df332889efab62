//! Best-first search for the least completion, over positions.
//!
//! A* with the bound of texts without competition: it is never too long, and a byte shortens it by
//! one at most. Of two ways of one length the one whose bytes come first by rank is taken, and of
//! two ways to one position the one that is taken first, so that the result is the least.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashSet;

use super::text::{RANKED, Text, rank};
use super::{CompletionScratch, Completions, MAX_STEP_UNITS};
use crate::Budget;
use crate::recognizer::{Position, RecognizerError, RecognizerScratch};

/// Positions that are read on from, at most.
const MAX_POSITIONS: usize = 1 << 10;

/// A way that was gone, in the order in which ways are gone on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    /// Bytes of the whole completion, at least.
    len: usize,
    /// Ranks of the bytes so far.
    ranks: Box<[u8]>,
    number: usize,
}

/// The ways that are not gone on yet.
#[derive(Default)]
struct Ways {
    heap: BinaryHeap<Reverse<Way>>,
    /// Ends of the ways by number, with the least that may follow.
    ends: Vec<(Position, Vec<u8>, Text)>,
}

impl Ways {
    fn add(&mut self, position: Position, bytes: Vec<u8>, bound: Text) {
        let ranks = bytes.iter().map(|&byte| rank(byte)).collect();
        let way = Way { len: bytes.len() + bound.len(), ranks, number: self.ends.len() };
        self.heap.push(Reverse(way));
        self.ends.push((position, bytes, bound));
    }
}

/// The least completion of a position; `None` where the limit comes first.
pub(super) fn shortest(
    completions: &Completions,
    from: &Position,
    (scratch, reading): (&mut CompletionScratch, &mut RecognizerScratch),
    budget: &mut Budget<'_>,
) -> Result<Option<Vec<u8>>, RecognizerError> {
    let (mut ways, mut seen) = (Ways::default(), HashSet::new());
    if let Some(bound) = completions.bound(from, scratch, reading)? {
        ways.add(from.clone(), Vec::new(), bound.text);
    }
    while let Some(Reverse(way)) = ways.heap.pop() {
        let (position, bytes, bound) = ways.ends[way.number].clone();
        // It was come to by a lesser way.
        if !seen.insert(position.clone()) {
            continue;
        }
        // No way that is left is before this one, nor any end of it before its bound.
        let rest: Vec<u8> = bound.bytes().collect();
        if completions.completes(&position, &rest, reading)? {
            return Ok(Some([bytes, rest].concat()));
        }
        match budget.spend(MAX_STEP_UNITS) {
            Err(why) if !why.is_limit() => return Err(why.into()),
            spent if spent.is_err() || seen.len() > MAX_POSITIONS => return Ok(None),
            _ => {}
        }
        for byte in RANKED {
            let next = completions.recognizer.advance(&position, byte, reading)?;
            let Some(next) = next.filter(|next| !seen.contains(next)) else { continue };
            if let Some(bound) = completions.bound(&next, scratch, reading)? {
                ways.add(next, [&bytes[..], &[byte]].concat(), bound.text);
            }
        }
    }
    Ok(None)
}
