//! Tokens ahead of a matcher: forced ones, drafts, and ways to the end of the text.

use std::mem::MaybeUninit;

use palmette_core::{Constraint, Lengths};
use palmette_grammar::{BatchRow, DraftTree, GrammarState, MaskBudget};

use crate::arguments::{array_mut, invalid, needed, tokens, write_all};
use crate::border;
use crate::error::{Error, Status};
use crate::lengths::LengthsLeft;
use crate::matcher::Matcher;

/// The tokens that must follow, each the only one allowed after those before it: as many as
/// `capacity` at most are written to `tokens`, and `num_tokens` becomes their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_forced_tokens(
    matcher: Option<&mut Matcher>,
    tokens: *mut u32,
    capacity: usize,
    num_tokens: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let num_tokens = needed(num_tokens, "num_tokens")?;
        // SAFETY: the caller's promise.
        let room = unsafe { array_mut(tokens, capacity, "tokens")? };
        let forced = matcher.with(|constraint, state, scratch| {
            constraint.forced_tokens(state, room.len(), scratch)
        })?;
        write_all(forced.iter().map(|token| token.0), room, num_tokens);
        Ok(())
    })
}

/// The bytes that must follow, whatever the text becomes: as many as `capacity` at most are written
/// to `bytes`, and `num_bytes` becomes their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_forced_bytes(
    matcher: Option<&mut Matcher>,
    bytes: *mut u8,
    capacity: usize,
    num_bytes: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let num_bytes = needed(num_bytes, "num_bytes")?;
        // SAFETY: the caller's promise.
        let room = unsafe { array_mut(bytes, capacity, "bytes")? };
        let forced = matcher.with(|constraint, state, scratch| {
            constraint.forced_bytes(state, room.len(), scratch)
        })?;
        write_all(forced.iter().copied(), room, num_bytes);
        Ok(())
    })
}

/// Number of a draft's tokens that could be committed, one after another; nothing is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_accepted_prefix(
    matcher: Option<&mut Matcher>,
    draft: *const u32,
    num_tokens: usize,
    num_accepted: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let answer = needed(num_accepted, "num_accepted")?;
        // SAFETY: the caller's promise.
        let draft = unsafe { tokens(draft, num_tokens)? };
        let accepted = matcher
            .with(|constraint, state, scratch| constraint.accepted_prefix(state, draft, scratch))?;
        answer.write(accepted);
        Ok(())
    })
}

/// Writes the masks along a draft: the mask before it, and after each of its tokens, into
/// num_tokens + 1 rows of `row_words` words. `num_kept` becomes the number of its tokens that may
/// be kept; rows behind a token that may not follow, or behind an end token, are all 0. The matcher
/// stays where it is.
///
/// `lengths` are those of the mask before the draft, and one less after each of its tokens; a token
/// after which no text of such a length is known is not kept. NULL is any length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_fill_draft_masks(
    matcher: Option<&mut Matcher>,
    draft: *const u32,
    num_tokens: usize,
    words: *mut u32,
    row_words: usize,
    lengths: Option<&LengthsLeft>,
    num_kept: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let num_kept = needed(num_kept, "num_kept")?;
        // SAFETY: the caller's promise.
        let draft = unsafe { tokens(draft, num_tokens)? };
        let too_many = || invalid(format!("{num_tokens} rows of {row_words} words are too many"));
        let all_words = row_words.checked_mul(num_tokens + 1).ok_or_else(too_many)?;
        // SAFETY: the caller's promise.
        let words = unsafe { array_mut(words, all_words, "words")? };
        words.fill(0);
        let lengths = lengths.and_then(|lengths| lengths.lengths());
        let work = matcher.mask_budget();
        let kept = matcher.with(|constraint, state, scratch| {
            let draft = DraftTree::from_chain(draft.to_vec());
            let along = constraint.states_after(state, &draft, lengths, scratch)?;
            let along: Vec<GrammarState> = along.into_iter().map_while(|state| state).collect();
            let mut rest = words;
            for (taken, state) in std::iter::once(&*state).chain(&along).enumerate() {
                let (row, after) = std::mem::take(&mut rest).split_at_mut(row_words);
                rest = after;
                // After the draft's last token that is in time nothing is left.
                let at = |all: Lengths| all.after(taken).unwrap_or(Lengths::within(0));
                let row_of = BatchRow::new(constraint, state).ending_within(lengths.map(at));
                let filled = row_of.fill(row, scratch, &work);
                filled.map_err(|error| Error::from(error).at_row(taken))?;
            }
            Ok::<_, Error>(along.len())
        })?;
        num_kept.write(kept);
        Ok(())
    })
}

/// Number of tokens of the shortest way to the end of the text that is known, end tokens left out;
/// 0 where it is whole, SIZE_MAX where no way is known.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_fewest_tokens(
    matcher: Option<&mut Matcher>,
    num_tokens: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let answer = needed(num_tokens, "num_tokens")?;
        let fewest =
            matcher.with(|constraint, state, scratch| constraint.fewest_tokens(state, scratch))?;
        answer.write(fewest.unwrap_or(usize::MAX));
        Ok(())
    })
}

/// Tells whether a text is known that is whole after tokens of these lengths; then masks of them
/// keep one. NULL is any length.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_has_way(
    matcher: Option<&mut Matcher>,
    lengths: Option<&LengthsLeft>,
    has_way: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let (matcher, answer) = (needed(matcher, "matcher")?, needed(has_way, "has_way")?);
        let lengths = lengths.and_then(|lengths| lengths.lengths());
        let lengths = lengths.unwrap_or(Lengths::within(usize::MAX));
        let found = matcher
            .with(|constraint, state, scratch| constraint.has_way(state, lengths, scratch))?;
        answer.write(found);
        Ok(())
    })
}

/// The tokens of the shortest way to the end of the text that is known: `num_tokens` becomes their
/// number, SIZE_MAX where no way is known; of them, as many as `capacity` are written to `tokens`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_shortest_completion(
    matcher: Option<&mut Matcher>,
    tokens: *mut u32,
    capacity: usize,
    num_tokens: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let num_tokens = needed(num_tokens, "num_tokens")?;
        // SAFETY: the caller's promise.
        let room = unsafe { array_mut(tokens, capacity, "tokens")? };
        let found = matcher.with(|constraint, state, scratch| {
            constraint.shortest_completion(state, scratch, &MaskBudget::unlimited())
        })?;
        match found {
            Some(way) => write_all(way.tokens.iter().map(|token| token.0), room, num_tokens),
            None => {
                num_tokens.write(usize::MAX);
            }
        }
        Ok(())
    })
}
