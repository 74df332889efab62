//! Ways to the end of a text that take at least so many tokens.
//!
//! A text can be made longer byte by byte, since most bytes are tokens: the *long way* of a
//! position is a path of such tokens over numbered positions, each of which is on a way to the end.
//! Within a string it is one position, whose next is itself. After some of its tokens the shortest
//! way follows, so that the whole takes any number that is wanted: the tokens before and those of
//! that way.
//!
//! The path is searched depth first. Where the window of lengths is so small that no place of it
//! has an end within it, others are tried, breadth first. A search has a bound, and takes tokens of
//! a byte alone, so that what is found is there, and some that is there is not found.

use std::collections::HashSet;

use palmette_core::Lengths;
use palmette_grammar_parser::Lexing;
use palmette_grammar_parser::recognizer::RecognizerError;

use super::GrammarConstraint;
use super::ending::Memory;
use super::positions::{DEAD, FIRST};
use super::token_groups::NONE;
use crate::Budget;

/// Steps of a search for a long way, at most.
const MAX_STEPS: usize = 1 << 14;

/// Positions beside a long way that are tried, at most.
const MAX_TRIED: usize = 1 << 10;

impl GrammarConstraint {
    /// True where a text is known that is whole after more tokens of one of these lengths, and from
    /// all of whose places the shortest way is short enough: then this is so after its next token.
    pub(super) fn has_way_at(
        &self,
        at: u32,
        lengths: Lengths,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let shortest = self.fewest(at, (ending, reading), budget)? as usize;
        if shortest > lengths.most || shortest == NONE as usize {
            return Ok(false);
        }
        if shortest >= lengths.least {
            return Ok(true);
        }
        if !self.goes_on_for(at, lengths.least, (ending, reading), budget)? {
            return Ok(false);
        }
        let path = std::mem::take(&mut ending.long_path.path);
        let found = self.ends_along(&path, lengths, (ending, reading), budget);
        ending.long_path.path = path;
        Ok(found? || self.has_way_beside(at, lengths, (ending, reading), budget)?)
    }

    /// True where the shortest way from a place of a path makes a text of one of these lengths;
    /// from the first place it makes one that is too short.
    fn ends_along(
        &self,
        path: &[u32],
        lengths: Lengths,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let mut end = None;
        let (mut short, mut long) = (0, path.len() - 1);
        // From the last place no text is too short; before it the number of tokens mostly rises.
        let mut middle = long;
        while end.is_none() && short < middle {
            let total = self.total(path[middle], middle, (ending, reading), budget)?;
            match total {
                Some(total) if lengths.contains(total) => end = Some(middle),
                Some(total) if total < lengths.least => short = middle,
                _ => long = middle,
            }
            middle = short.midpoint(long);
        }
        let Some(end) = end else { return Ok(false) };
        // A way from before is no longer, in bytes, than one by the rest of the path.
        let last = ending.positions.all[path[end] as usize].position.clone();
        let completions = &mut ending.completions;
        let way = self.completions().shortest(&last, completions, reading, budget)?;
        if way.is_some_and(|way| end + way.len() <= lengths.most) {
            return Ok(true);
        }
        for (long, &at) in path[..end].iter().enumerate() {
            let total = self.total(at, long, (ending, reading), budget)?;
            if total.is_none_or(|total| total > lengths.most) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// [`ends_along`](Self::ends_along) all paths of tokens of a byte, the shortest first, as far
    /// as they have few positions: for texts of which few have such a length.
    fn has_way_beside(
        &self,
        from: u32,
        lengths: Lengths,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let mut level = vec![from];
        let mut tried = 0;
        for long in 0..=lengths.most {
            if level.is_empty() {
                break;
            }
            // In the order in which they are come to, not of their numbers.
            let (mut next, mut seen) = (Vec::new(), HashSet::new());
            for at in level {
                tried += 1;
                let total = self.total(at, long, (ending, reading), budget)?;
                match total.filter(|&total| total <= lengths.most) {
                    Some(total) if total >= lengths.least => return Ok(true),
                    Some(_) if tried <= MAX_TRIED => {}
                    _ => continue,
                }
                for byte in 0..=u8::MAX {
                    let after = self.after_byte(at, byte, (ending, reading), budget)?;
                    next.extend(after.filter(|&after| seen.insert(after)));
                }
            }
            level = next;
        }
        Ok(false)
    }

    /// Tokens of the text that takes so many of a path to a position, and the shortest way from
    /// there.
    fn total(
        &self,
        at: u32,
        long: usize,
        memory: Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<usize>, RecognizerError> {
        let short = self.fewest(at, memory, budget)?;
        Ok((short != NONE).then_some(long + short as usize))
    }

    /// True where a path of so many tokens of a byte each is found from a position, which is then
    /// in memory.
    fn goes_on_for(
        &self,
        from: u32,
        tokens: usize,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let has_dead_ends = self.recognizer.grammar().lexing() == Lexing::Longest;
        ending.long_path.begin(from);
        let mut steps = 0;
        loop {
            let path = &mut ending.long_path;
            let Some(&at) = path.path.last() else { return Ok(false) };
            if path.path.len() > tokens {
                return Ok(true);
            }
            let Some(byte) = path.next_byte() else {
                path.leave();
                continue;
            };
            let next = match self.after_byte(at, byte, (ending, reading), budget)? {
                // Where the longest lexemes count, a text may come to where nothing completes it.
                Some(next)
                    if has_dead_ends && self.fewest(next, (ending, reading), budget)? == NONE =>
                {
                    continue;
                }
                Some(next) => next,
                None => continue,
            };
            steps += 1;
            if steps > MAX_STEPS {
                return Ok(false);
            }
            if ending.long_path.enter(next, tokens) {
                return Ok(true);
            }
        }
    }

    /// The position after a byte that is a token; `None` where it may not follow.
    fn after_byte(
        &self,
        at: u32,
        byte: u8,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<u32>, RecognizerError> {
        let trie = self.vocabulary.trie();
        let node = trie.child_lists().child(0, byte).map(|child| child.node() as usize);
        if node.is_none_or(|node| trie.tokens_in(trie.own_ranks(node)).is_empty()) {
            return Ok(None);
        }
        budget.spend(1)?;
        let next = ending.positions.next(&self.recognizer, at, byte, reading)?;
        if next == DEAD {
            return Ok(None);
        }
        let ended = self.ended(&mut ending.positions, next - FIRST, reading)?;
        Ok((ended != DEAD).then(|| ended - FIRST))
    }
}
