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
use std::sync::Arc;

use palmette_core::{Lengths, TokenId, mask};
use palmette_grammar_parser::Lexing;
use palmette_grammar_parser::recognizer::{Position, RecognizerError};

use super::ending::{EndingError, Memory, number_of};
use super::long_path::{LongPath, WayStart};
use super::positions::{DEAD, FIRST};
use super::token_groups::{NONE, Profile};
use super::{GrammarConstraint, GrammarScratch, GrammarState, MaskBudget};
use crate::Budget;

/// Steps of a search for a long way, at most.
const MAX_STEPS: usize = 1 << 14;

/// Positions beside a long way that are tried, at most.
const MAX_TRIED: usize = 1 << 8;

/// Steps of the searches of a mask for long ways, after which it has what was found.
const MAX_MASK_WORK: u64 = 1 << 19;

impl GrammarConstraint {
    /// [`fill_ending_mask_within`](Self::fill_ending_mask_within) where more tokens must follow.
    pub(super) fn fill_lasting(
        &self,
        state: &GrammarState,
        lengths: Lengths,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Result<(), EndingError> {
        self.fill_mask_within(state, scratch, mask, work)?;
        let Lengths { least, most } = lengths;
        let position = state.position().filter(|_| !state.ended());
        let (Some(position), Some(after)) = (position, lengths.after(1)) else {
            return Err(EndingError::TooMany { least, most });
        };
        scratch.ending.turn_to(self);
        let from = scratch.ending.positions.find(position);
        let budget = &mut work.budget(work.walk);
        let memory = (&mut scratch.ending, &mut scratch.recognizer);
        let Some(way) = self.way_at(from, lengths, memory, budget)? else {
            return Err(match self.fewest_tokens_within(state, scratch, work)? {
                Some(needed) if needed > most => EndingError::TooFew { needed, left: most },
                Some(_) => EndingError::TooMany { least, most },
                None => EndingError::Unknown,
            });
        };
        let budget = &mut work.budget(work.walk);
        let reached = match self.reached(position, mask, scratch, budget) {
            Err(RecognizerError::Interrupted(why)) if why.is_limit() => None,
            reached => Some(reached?),
        };
        mask.fill(0);
        let is_whole = match reached {
            Some(reached) => self.join_lasting(&reached, after, scratch, mask, budget)?,
            None => false,
        };
        // The way that is known is there, whatever others would take to be found.
        if !is_whole || mask.iter().all(|&word| word == 0) {
            let budget = &mut work.budget(work.walk);
            let next = match way {
                WayStart::Shortest => {
                    let way = self.shortest_completion(state, scratch, work)?;
                    way.and_then(|way| way.tokens.first().copied())
                }
                WayStart::Byte(to) => {
                    let memory = (&mut scratch.ending, &mut scratch.recognizer);
                    self.byte_between(from, to, memory, budget)?
                }
            };
            next.into_iter().for_each(|next| mask::insert(mask, next));
        }
        Ok(())
    }

    /// Adds the tokens after which a text of one of these lengths is known to a mask; false where
    /// they took too long to be found, and some may be missing.
    fn join_lasting(
        &self,
        reached: &Profile,
        after: Lengths,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let GrammarScratch { ending, recognizer, .. } = scratch;
        ending.long_work = 0;
        // In an order that does not depend on what was asked before.
        let mut groups: Vec<_> = reached.groups.iter().filter(|of| of.number != NONE).collect();
        groups.sort_by_key(|group| group.tokens.first());
        for group in groups {
            match self.has_way_at(group.number, after, (ending, recognizer), budget) {
                Ok(true) => group.tokens.join(mask),
                Ok(false) => {}
                Err(RecognizerError::Interrupted(why)) if why.is_limit() => return Ok(false),
                Err(error) => return Err(error),
            }
            if ending.long_work > MAX_MASK_WORK {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The allowed tokens by the numbered positions after them: two for one that is read in two
    /// ways.
    fn reached(
        &self,
        position: &Position,
        allowed: &[u32],
        scratch: &mut GrammarScratch,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<Profile>, RecognizerError> {
        let GrammarScratch { ending, recognizer, .. } = scratch;
        let from = ending.positions.find(position);
        if let Some(reached) = &ending.positions.all[from as usize].reached {
            return Ok(Arc::clone(reached));
        }
        let found =
            self.grouped(position, allowed, (ending, recognizer), budget, &mut number_of)?;
        let reached = Arc::new(found.into_profile(allowed.len()));
        ending.positions.keep_reached(from, &reached);
        Ok(reached)
    }

    /// True where a text is known that is whole after more tokens of one of these lengths, and from
    /// all of whose places the shortest way is short enough: then this is so after its next token.
    pub(super) fn has_way_at(
        &self,
        at: u32,
        lengths: Lengths,
        memory: Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        Ok(self.way_at(at, lengths, memory, budget)?.is_some())
    }

    /// The beginning of the way that [`has_way_at`](Self::has_way_at) finds.
    pub(super) fn way_at(
        &self,
        at: u32,
        lengths: Lengths,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<WayStart>, RecognizerError> {
        let shortest = self.total(at, 0, (ending, reading), budget)?;
        match shortest.filter(|&shortest| shortest <= lengths.most) {
            Some(shortest) if shortest >= lengths.least => return Ok(Some(WayStart::Shortest)),
            Some(_) if lengths.least <= lengths.most => {}
            _ => return Ok(None),
        }
        if !self.goes_on_for(at, lengths.least, (ending, reading), budget)? {
            return Ok(None);
        }
        let path = std::mem::take(&mut ending.long_path);
        let found = self.ends_along(&path, lengths, (ending, reading), budget);
        let first = path.place(1);
        ending.long_path = path;
        match found? {
            true => Ok(Some(WayStart::Byte(first))),
            false => self.way_beside(at, lengths, (ending, reading), budget),
        }
    }

    /// True where the shortest way from a place of a path makes a text of one of these lengths;
    /// from the first place it makes one that is too short.
    fn ends_along(
        &self,
        path: &LongPath,
        lengths: Lengths,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let mut end = None;
        let (mut short, mut long) = (0, lengths.least);
        // From the last place no text is too short; before it the number of tokens mostly rises.
        let mut middle = long;
        while end.is_none() && short < middle {
            let total = self.total(path.place(middle), middle, (ending, reading), budget)?;
            match total {
                Some(total) if lengths.contains(total) => end = Some(middle),
                Some(total) if total < lengths.least => short = middle,
                _ => long = middle,
            }
            middle = short.midpoint(long);
        }
        let Some(end) = end else { return Ok(false) };
        // Of a position that comes again the last time is the one with the most tokens.
        let once = path.len();
        for long in (0..once.min(end)).chain((once..end).rev().take(once)) {
            let total = self.total(path.place(long), long, (ending, reading), budget)?;
            if total.is_none_or(|total| total > lengths.most) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// [`ends_along`](Self::ends_along) all paths of tokens of a byte, the shortest first, as far
    /// as they have few positions: for texts of which few have such a length.
    fn way_beside(
        &self,
        from: u32,
        lengths: Lengths,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<WayStart>, RecognizerError> {
        let mut level = vec![(from, from)];
        let mut tried = 0;
        for long in 0..=lengths.most {
            if level.is_empty() {
                break;
            }
            // In the order in which they are come to, not of their numbers.
            let (mut next, mut seen) = (Vec::new(), HashSet::new());
            for (at, first) in level {
                tried += 1;
                let total = self.total(at, long, (ending, reading), budget)?;
                match total.filter(|&total| total <= lengths.most) {
                    Some(total) if total >= lengths.least => {
                        return Ok(Some(WayStart::Byte(first)));
                    }
                    Some(_) if tried <= MAX_TRIED => {}
                    _ => continue,
                }
                for byte in 0..=u8::MAX {
                    let after = self.after_byte(at, byte, (ending, reading), budget)?;
                    if let Some(after) = after.filter(|&after| seen.insert(after)) {
                        next.push((after, if long == 0 { after } else { first }));
                    }
                }
            }
            level = next;
        }
        Ok(None)
    }

    /// The token of a byte that leads from one numbered position to another.
    pub(super) fn byte_between(
        &self,
        at: u32,
        to: u32,
        (ending, reading): Memory<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<TokenId>, RecognizerError> {
        for byte in 0..=u8::MAX {
            if self.after_byte(at, byte, (ending, reading), budget)? == Some(to) {
                return Ok(self.token_of_byte(byte));
            }
        }
        Ok(None)
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
        Ok((short != NONE).then_some(long.saturating_add(short as usize)))
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
            let Some(at) = path.last() else { return Ok(false) };
            if path.len() > tokens {
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
        if self.token_of_byte(byte).is_none() {
            return Ok(None);
        }
        ending.long_work += 1;
        budget.spend(1)?;
        let next = ending.positions.next(&self.recognizer, at, byte, reading)?;
        if next == DEAD {
            return Ok(None);
        }
        let ended = self.ended(&mut ending.positions, next - FIRST, reading)?;
        Ok((ended != DEAD).then(|| ended - FIRST))
    }

    fn token_of_byte(&self, byte: u8) -> Option<TokenId> {
        let trie = self.vocabulary.trie();
        let node = trie.child_lists().child(0, byte)?.node();
        trie.tokens_in(trie.own_ranks(node as usize)).first().copied()
    }
}
