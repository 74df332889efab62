//! Descent to a completion, byte by byte, where layers remember names or members.
//!
//! The bound of a position does not know what comes to be remembered on the way: an object whose
//! five members are required has its cheapest one five times. So each byte is taken by the bound of
//! its own position, which knows what was read: the bound's next byte, or, where a layer refuses
//! that, the byte after which the bound is the least. What is taken depends on the position alone,
//! so the rest of a way is the way from each place on it. Members in another order would be no
//! shorter; where one shuts others out there may be a shorter way.

use std::sync::Arc;

use hashbrown::HashMap;

use super::text::{RANKED, Text};
use super::{CompletionScratch, Completions};
use crate::Budget;
use crate::recognizer::{Position, RecognizerError, RecognizerScratch};

/// Bytes of a way, at most.
const MAX_BYTES: usize = 1 << 16;

/// Units of a budget for a lexeme on a way: about what its bounds take.
const LEXEME_UNITS: u64 = 1 << 6;

/// Memory of ways that were gone, by the positions on them.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// A way, and where the position is on it.
    known: HashMap<Position, (Arc<[u8]>, usize)>,
    bytes: usize,
}

/// About what the memory of ways takes, at most; then it begins anew.
const MAX_WAY_BYTES: usize = 4 << 20;

/// About what a position takes there.
const POSITION_BYTES: usize = 256;

impl Ways {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn keep(&mut self, passed: Vec<(Position, usize)>, way: &[u8]) {
        if self.bytes > MAX_WAY_BYTES {
            self.clear();
        }
        self.bytes += way.len() + passed.len() * POSITION_BYTES;
        let way: Arc<[u8]> = way.into();
        let passed = passed.into_iter();
        self.known.extend(passed.map(|(position, begin)| (position, (Arc::clone(&way), begin))));
    }
}

/// A completion of a position; `None` where it would be too long.
pub(super) fn completion(
    completions: &Completions,
    from: &Position,
    (scratch, reading): (&mut CompletionScratch, &mut RecognizerScratch),
    budget: &mut Budget<'_>,
) -> Result<Option<Vec<u8>>, RecognizerError> {
    let (mut at, mut bytes) = (from.clone(), Vec::new());
    let mut passed = Vec::new();
    while bytes.len() < MAX_BYTES {
        if let Some((way, begin)) = scratch.ways.known.get(&at) {
            bytes.extend_from_slice(&way[*begin..]);
            scratch.ways.keep(passed, &bytes);
            return Ok(Some(bytes));
        }
        passed.push((at.clone(), bytes.len()));
        match budget.spend(LEXEME_UNITS) {
            Err(why) if why.is_limit() => return Ok(None),
            spent => spent?,
        }
        let Some(bound) = completions.bound(&at, scratch, reading)? else { return Ok(None) };
        let mut rest = bound.text.bytes();
        let Some(mut byte) = rest.next() else {
            scratch.ways.keep(passed, &bytes);
            return Ok(Some(bytes));
        };
        let mut next = completions.recognizer.advance(&at, byte, reading)?;
        if next.is_none() {
            let Some((other, _, position)) = least(completions, &at, scratch, reading)? else {
                return Ok(None);
            };
            (byte, next) = (other, Some(position));
        }
        let Some(mut position) = next else { return Ok(None) };
        bytes.push(byte);
        // Within a lexeme nothing more is remembered, and the bound is what is left of it.
        while is_within(&at, &position)
            && let Some(byte) = rest.next()
            && let Some(next) = completions.recognizer.advance(&position, byte, reading)?
        {
            bytes.push(byte);
            (at, position) = (position, next);
        }
        at = position;
    }
    Ok(None)
}

/// True for a position after another, within the same lexeme.
fn is_within(before: &Position, after: &Position) -> bool {
    let ([before], [after]) = (before.branches(), after.branches()) else { return false };
    before.member.is_none()
        && after.member.is_none()
        && before.names == after.names
        && before.scopes == after.scopes
        && before.stacks == after.stacks
}

/// The byte after which the bound is the least, with that and the position.
fn least(
    completions: &Completions,
    at: &Position,
    scratch: &mut CompletionScratch,
    reading: &mut RecognizerScratch,
) -> Result<Option<(u8, Text, Position)>, RecognizerError> {
    let mut least: Option<(u8, Text, Position)> = None;
    for byte in RANKED {
        let Some(next) = completions.recognizer.advance(at, byte, reading)? else { continue };
        let Some(bound) = completions.bound(&next, scratch, reading)? else { continue };
        if least.as_ref().is_none_or(|(_, least, _)| bound.text < *least) {
            least = Some((byte, bound.text, next));
        }
    }
    Ok(least)
}
