//! Texts that end within their tokens: the fewest tokens to the end, and masks that leave a way.
//!
//! The *way to the end* of a position is its shortest completion in bytes
//! ([`Completions`]), cut into the fewest tokens. What is left of it after some of its tokens is
//! the way from there. So where a text may take `n` more tokens and the way has no more than that,
//! the tokens after which the way has at most `n - 1` are some, the next of the way among them, and
//! each text that is written so ends in time. A completion of more bytes may have fewer tokens, so
//! the number may be above the fewest that there are; it never is below.
//!
//! Tokens are told apart by the positions that they lead to, which are few: the vocabulary's trie
//! is walked over numbered positions once for each position, and what was found is kept with it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, OnceLock};

use palmette_core::vocabulary_trie::Visit;
use palmette_core::{Lengths, TokenId, mask};
use palmette_grammar_masks::token_cut::TokenCut;
use palmette_grammar_parser::completion::{CompletionScratch, Completions, MAX_STEP_UNITS};
use palmette_grammar_parser::recognizer::{Position, RecognizerError, RecognizerScratch};

use super::long_path::LongPath;
use super::positions::{DEAD, FIRST, Positions};
use super::token_groups::{NONE, Profile, TokenGroups, Tokens};
use super::{GrammarConstraint, GrammarScratch, GrammarState, MaskBudget};
use crate::Budget;

/// Completions of a grammar's positions, shared by all constraints on its texts.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedCompletions(Arc<OnceLock<Completions>>);

/// A way to the end of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The tokens, without an end token.
    pub tokens: Vec<TokenId>,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

/// A mask under which no text would end within its tokens.
#[derive(Debug, thiserror::Error)]
pub enum EndingError {
    /// The tokens that are left are too few.
    #[error(
        "the text takes {needed} more tokens to end, and {left} are left; give it {needed} or more"
    )]
    TooFew {
        /// Tokens of the way to the end that is known.
        needed: usize,
        /// Tokens that may be written.
        left: usize,
    },
    /// The tokens that must be written are too many.
    #[error(
        "no text is known that takes {} tokens from here; ask for fewer at least, or give it more at most",
        Lengths { least: *least, most: *most }
    )]
    TooMany {
        /// Tokens that must be written.
        least: usize,
        /// Tokens that may be written.
        most: usize,
    },
    /// No way to the end was found.
    #[error(
        "no way to the end of the text was found: its search is bounded, or the vocabulary lacks a byte of it; write without a limit \
         that is kept"
    )]
    Unknown,
    /// A limit of the grammar is exceeded.
    #[error(transparent)]
    Limit(#[from] RecognizerError),
}

/// Memory of positions near an end; what is in it between two calls does not matter.
#[derive(Debug, Default)]
pub(super) struct EndingScratch {
    /// The texts that it is about.
    of: Option<EndedTexts>,
    pub(super) completions: CompletionScratch,
    cut: TokenCut,
    pub(super) positions: Positions,
    /// Positions of other texts, the latest first: those of requests that take turns.
    others: VecDeque<(EndedTexts, Positions)>,
    path: Vec<u32>,
    pub(super) long_path: LongPath,
    /// Steps of searches for long ways.
    pub(super) long_work: u64,
}

/// Texts of one grammar that end by the same tokens.
#[derive(Clone, Debug)]
struct EndedTexts {
    completions: SharedCompletions,
    ends: Arc<[TokenId]>,
}

/// Texts whose positions are remembered beside the latest, at most, and the memory for them.
const MAX_OTHERS: usize = 15;
const MAX_OTHER_BYTES: usize = 32 << 20;

impl GrammarConstraint {
    /// The tokens that end the text in the shortest way that is known; none where it is whole.
    /// `None` where no way was found.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn shortest_completion(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
    ) -> Result<Option<Ending>, RecognizerError> {
        if state.ended() {
            return Ok(Some(Ending::default()));
        }
        let Some(position) = state.position() else { return Ok(None) };
        let GrammarScratch { ending, recognizer, .. } = scratch;
        ending.turn_to(self);
        let (completions, budget) = (&mut ending.completions, &mut work.budget(work.walk));
        let found = self.completions().shortest(position, completions, recognizer, budget)?;
        let Some(bytes) = found else { return Ok(None) };
        let tokens = match self.recognizer.token_limits().is_active() {
            false => self.cut(&bytes, &mut ending.cut).map(|_| ending.cut.tokens().collect()),
            true => {
                let at = ending.positions.find(position);
                self.cut_within_limits(at, &bytes, (&mut ending.positions, recognizer))?
            }
        };
        Ok(tokens.map(|tokens| Ending { tokens, bytes }))
    }

    /// The tokens after which the text can still be whole with one of these lengths, the next token
    /// counted; end tokens are none of those. After tokens of such masks the text ends in time, and
    /// not before it may.
    ///
    /// # Errors
    /// When no way to the end is known that is so short or so long, or a limit of the grammar or of
    /// `work` is exceeded. The mask then denies all.
    ///
    /// # Panics
    /// As [`fill_mask`](palmette_core::Constraint::fill_mask).
    pub fn fill_ending_mask_within(
        &self,
        state: &GrammarState,
        lengths: Lengths,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Result<(), EndingError> {
        let filled = match lengths.least {
            0 => self.fill_ending(state, lengths.most, scratch, mask, work),
            _ => self.fill_lasting(state, lengths, scratch, mask, work),
        };
        if filled.is_err() {
            mask.fill(0);
        }
        filled
    }

    /// True where a text is known that is whole after more tokens of one of these lengths, within
    /// the steps of `work`.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, or the work is called off.
    pub fn has_way_within(
        &self,
        state: &GrammarState,
        lengths: Lengths,
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
    ) -> Result<bool, RecognizerError> {
        let position = state.position().filter(|_| !state.ended() && lengths.least > 0);
        let Some(position) = position else {
            let fewest = self.fewest_tokens_within(state, scratch, work)?;
            return Ok(fewest.is_some_and(|fewest| lengths.contains(fewest)));
        };
        let GrammarScratch { ending, recognizer, .. } = scratch;
        ending.turn_to(self);
        let at = ending.positions.find(position);
        self.has_way_at(at, lengths, (ending, recognizer), &mut work.budget(work.walk))
    }

    /// Tokens of the shortest way to the end of the text that is known, without an end token; 0
    /// where it is whole. `None` where no way was found, or none within the steps of `work`.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, or the work is called off.
    pub fn fewest_tokens_within(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
    ) -> Result<Option<usize>, RecognizerError> {
        if state.ended() {
            return Ok(Some(0));
        }
        let Some(position) = state.position() else { return Ok(None) };
        let GrammarScratch { ending, recognizer, .. } = scratch;
        ending.turn_to(self);
        let at = ending.positions.find(position);
        let budget = &mut work.budget(work.walk);
        let fewest = self.fewest(at, (ending, recognizer), budget)?;
        if fewest != NONE {
            return Ok(Some(fewest as usize));
        }
        let searched = self.searched_way(at, usize::MAX, (ending, recognizer), budget)?;
        Ok(searched.map(|(tokens, _)| tokens))
    }

    /// Visits the tokens that may follow, end tokens left out, each with the tokens to the end
    /// after it; `None` where no way is known then.
    ///
    /// # Errors
    /// When a limit of the grammar or of `work` is exceeded; then nothing was visited.
    pub fn visit_ways_within(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
        visit: impl FnMut(TokenId, Option<usize>),
    ) -> Result<(), RecognizerError> {
        let Some(position) = state.position().filter(|_| !state.ended()) else { return Ok(()) };
        scratch.ending.turn_to(self);
        let mut allowed = std::mem::take(&mut scratch.mask);
        allowed.resize(mask::num_words(self.vocabulary().num_tokens()), 0);
        let filled = self.fill_mask_within(state, scratch, &mut allowed, work);
        let budget = &mut work.budget(work.walk);
        let profile = filled.and_then(|()| self.profile(position, &allowed, scratch, budget));
        scratch.mask = allowed;
        profile?.visit(visit);
        Ok(())
    }

    fn fill_ending(
        &self,
        state: &GrammarState,
        left: usize,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Result<(), EndingError> {
        self.fill_mask_within(state, scratch, mask, work)?;
        let Some(position) = state.position().filter(|_| !state.ended()) else { return Ok(()) };
        let needed = self.fewest_tokens_within(state, scratch, work)?;
        let mut searched = None;
        if needed.is_none_or(|needed| needed > left) {
            searched = self.next_searched(position, left, scratch, work)?;
            if searched.is_none() {
                return Err(match needed {
                    Some(needed) => EndingError::TooFew { needed, left },
                    None => EndingError::Unknown,
                });
            }
        }
        if left == 0 {
            mask.fill(0);
            self.ends().iter().for_each(|&end| mask::insert(mask, end));
            return Ok(());
        }
        let profile = self.profile(position, mask, scratch, &mut work.budget(work.walk))?;
        profile.keep(left - 1, mask);
        if searched.is_none() && mask.iter().all(|&word| word == 0) {
            searched = self.next_searched(position, left, scratch, work)?;
        }
        if let Some(token) = searched {
            mask::insert(mask, token);
        }
        Ok(())
    }

    /// The first token of a way of `left` tokens at most that a search over positions finds.
    fn next_searched(
        &self,
        position: &Position,
        left: usize,
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
    ) -> Result<Option<TokenId>, RecognizerError> {
        let GrammarScratch { ending, recognizer, .. } = scratch;
        let from = ending.positions.find(position);
        let budget = &mut work.budget(work.walk);
        let way = self.searched_way(from, left, (ending, recognizer), budget)?;
        Ok(way.and_then(|(_, first)| first))
    }

    /// The fewest tokens to the end, and the first of them: breadth first over positions. `None`
    /// where a shortest completion is one of tokens too, there is no such way of `most` tokens, or
    /// none within the bounds of the search and the budget.
    ///
    /// A shortest completion is one of bytes. Under limits its tokens may be too many for a lexeme
    /// on the way; and after a token that is read as text and by number it is that of both
    /// readings, which may be of more tokens than the one that was counted on. Where that happens,
    /// which is seldom, the vocabulary is walked at each place.
    fn searched_way(
        &self,
        from: u32,
        most: usize,
        (ending, reading): (&mut EndingScratch, &mut RecognizerScratch),
        budget: &mut Budget<'_>,
    ) -> Result<Option<(usize, Option<TokenId>)>, RecognizerError> {
        if !self.recognizer.token_limits().is_active() && !self.asks_for_tokens {
            return Ok(None);
        }
        let all = vec![!0; mask::num_words(self.vocabulary().num_tokens())];
        let (mut level, mut seen) = (vec![(from, None)], HashSet::from([from]));
        for tokens in 0..=most {
            let mut next = Vec::new();
            for (at, first) in level {
                let position = ending.positions.all[at as usize].position.clone();
                if self.recognizer.is_accepting(&position, reading)? {
                    return Ok(Some((tokens, first)));
                }
                let memory = (&mut *ending, &mut *reading);
                let mut found = match self.grouped(&position, &all, memory, budget, &mut number_of)
                {
                    Err(RecognizerError::Interrupted(why)) if why.is_limit() => return Ok(None),
                    found => found?,
                };
                let memory = (&mut *ending, &mut *reading);
                self.join_readings(&position, &mut found, memory, budget, &mut number_of)?;
                for (to, list) in found.groups {
                    let token = list.iter().min().copied();
                    if to != NONE && seen.len() < MAX_SEARCHED && seen.insert(to) {
                        next.push((to, first.or(token)));
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            // In an order that does not depend on what was asked before.
            next.sort_by_key(|&(_, first)| first);
            level = next;
        }
        Ok(None)
    }

    /// The allowed tokens by the tokens to the end after each.
    fn profile(
        &self,
        position: &Position,
        allowed: &[u32],
        scratch: &mut GrammarScratch,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<Profile>, RecognizerError> {
        let GrammarScratch { ending, recognizer, .. } = scratch;
        let from = ending.positions.find(position);
        if let Some(profile) = &ending.positions.all[from as usize].profile {
            return Ok(Arc::clone(profile));
        }
        let number_of = &mut |at: Option<u32>, memory: Memory<'_>, budget: &mut Budget<'_>| match at
        {
            Some(at) => self.fewest(at, memory, budget),
            None => Ok(NONE),
        };
        let mut found = self.grouped(position, allowed, (ending, recognizer), budget, number_of)?;
        self.join_readings(position, &mut found, (ending, recognizer), budget, number_of)?;
        let profile = Arc::new(found.into_profile(allowed.len()));
        ending.positions.keep_profile(from, &profile);
        Ok(profile)
    }

    /// The allowed tokens by a number of the position after each, where there is one once the token
    /// has ended.
    pub(super) fn grouped(
        &self,
        position: &Position,
        allowed: &[u32],
        (ending, reading): (&mut EndingScratch, &mut RecognizerScratch),
        budget: &mut Budget<'_>,
        number_of: &mut NumberOf<'_>,
    ) -> Result<TokenGroups, RecognizerError> {
        let from = ending.positions.find(position);
        let is_whole = self.recognizer.is_accepting(position, reading)?;
        let trie = self.vocabulary.trie();
        let mut found = TokenGroups::default();
        let mut path = std::mem::take(&mut ending.path);
        let walked = trie.walk(1..trie.num_nodes(), from, &mut path, |node, &above| {
            budget.spend(1)?;
            let next = ending.positions.next(&self.recognizer, above, node.byte, reading)?;
            if next == DEAD {
                return Ok(Visit::Past);
            }
            let own = trie.tokens_in(trie.own_ranks(node.index));
            let mut own = own.iter().filter(|&&token| mask::contains(allowed, token)).peekable();
            if own.peek().is_some() {
                let ended = self.ended(&mut ending.positions, next - FIRST, reading)?;
                let at = (ended != DEAD).then(|| ended - FIRST);
                let number = number_of(at, (ending, reading), budget)?;
                // A text that is whole ends by an end token, whatever its bytes.
                let is_text =
                    |token: &&TokenId| !is_whole || self.ends.binary_search(token).is_err();
                found.of(number).extend(own.filter(is_text));
            }
            Ok::<_, RecognizerError>(Visit::Below(next - FIRST))
        });
        ending.path = path;
        walked?;
        Ok(found)
    }

    /// The numbered position once a token ends at one, [`FIRST`] more than its number, or [`DEAD`]
    /// where a lexeme would not be whole within its tokens.
    pub(super) fn ended(
        &self,
        positions: &mut Positions,
        at: u32,
        reading: &mut RecognizerScratch,
    ) -> Result<u32, RecognizerError> {
        if !self.recognizer.token_limits().is_active() {
            return Ok(at + FIRST);
        }
        if let Some(known) = positions.ended(at) {
            return Ok(known);
        }
        let position = positions.all[at as usize].position.clone();
        let after = self.after_token(position, reading)?;
        Ok(positions.keep_ended(at, after.as_ref()))
    }

    /// The tokens of a mask after which lexemes can be whole within their tokens; without those
    /// that end a text which is whole.
    pub(super) fn tokens_in_time(
        &self,
        position: &Position,
        allowed: &[u32],
        scratch: &mut GrammarScratch,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<Tokens>, RecognizerError> {
        let GrammarScratch { ending, recognizer, .. } = scratch;
        ending.turn_to(self);
        let from = ending.positions.find(position);
        if let Some(known) = &ending.positions.all[from as usize].in_time {
            return Ok(Arc::clone(known));
        }
        let memory = (&mut *ending, recognizer);
        let mut found = self.grouped(position, allowed, memory, budget, &mut |at, _, _| {
            Ok(if at.is_some() { 0 } else { NONE })
        })?;
        // A token that is read in two ways is in time where one of them is.
        let in_time = Arc::new(Tokens::new(std::mem::take(found.of(0)), allowed.len()));
        ending.positions.keep_in_time(from, &in_time);
        Ok(in_time)
    }

    /// The fewest tokens of a text after a numbered position that keep the limits on lexemes, and
    /// after which a text is whole: breadth first over places of the text and positions there.
    fn cut_within_limits(
        &self,
        from: u32,
        text: &[u8],
        (positions, reading): (&mut Positions, &mut RecognizerScratch),
    ) -> Result<Option<Vec<TokenId>>, RecognizerError> {
        let trie = self.vocabulary.trie();
        let children = trie.child_lists();
        // Places and positions, with the one before each and the token between them.
        let mut found = vec![(0, from, 0, TokenId(0))];
        let mut seen = HashSet::from([(0, from)]);
        let mut at = 0;
        while let Some(&(place, position, ..)) = found.get(at) {
            if place == text.len() {
                let is_whole = {
                    let end = &positions.all[position as usize].position;
                    self.recognizer.is_accepting(end, reading)?
                };
                if is_whole {
                    let (mut tokens, mut step) = (Vec::new(), at);
                    while step > 0 {
                        let (_, _, before, token) = found[step];
                        tokens.push(token);
                        step = before;
                    }
                    tokens.reverse();
                    return Ok(Some(tokens));
                }
            }
            let (mut node, mut to, mut now) = (0, place, position);
            while let Some(child) = text.get(to).and_then(|&byte| children.child(node, byte)) {
                let next = positions.next(&self.recognizer, now, text[to], reading)?;
                if next == DEAD {
                    break;
                }
                (node, to, now) = (child.node(), to + 1, next - FIRST);
                let Some(&token) = trie.tokens_in(trie.own_ranks(node as usize)).first() else {
                    continue;
                };
                let ended = self.ended(positions, now, reading)?;
                if ended != DEAD && seen.insert((to, ended - FIRST)) {
                    found.push((to, ended - FIRST, at, token));
                }
            }
            at += 1;
        }
        Ok(None)
    }

    /// Tokens that were come to as text and by number lead to both readings.
    fn join_readings(
        &self,
        position: &Position,
        found: &mut TokenGroups,
        (ending, reading): (&mut EndingScratch, &mut RecognizerScratch),
        budget: &mut Budget<'_>,
        number_of: &mut NumberOf<'_>,
    ) -> Result<(), RecognizerError> {
        if !self.asks_for_tokens {
            return Ok(());
        }
        let each = |(number, tokens): (u32, Vec<TokenId>)| {
            tokens.into_iter().map(move |token| (token, number))
        };
        let mut all: Vec<(TokenId, u32)> =
            std::mem::take(&mut found.groups).into_iter().flat_map(each).collect();
        all.sort_unstable_by_key(|&(token, _)| token);
        for readings in all.chunk_by(|a, b| a.0 == b.0) {
            let &(token, mut number) = readings.first().expect("a chunk");
            if readings.len() > 1 {
                let state = GrammarState::new(Some(position.clone()));
                if let Some((after, _)) = self.after(&state, token, reading)? {
                    let at = ending.positions.find(&after);
                    number = number_of(Some(at), (ending, reading), budget)?;
                }
            }
            found.of(number).push(token);
        }
        Ok(())
    }

    /// Tokens to the end of a numbered position; [`NONE`] where no way is known.
    pub(super) fn fewest(
        &self,
        at: u32,
        (ending, reading): (&mut EndingScratch, &mut RecognizerScratch),
        budget: &mut Budget<'_>,
    ) -> Result<u32, RecognizerError> {
        let EndingScratch { completions, cut, positions, .. } = ending;
        let known = &mut positions.all[at as usize];
        if let Some(fewest) = known.fewest {
            return Ok(fewest);
        }
        let bytes = self.completions().shortest(&known.position, completions, reading, budget)?;
        // It may be found with more work.
        if bytes.is_none() && budget.left() < MAX_STEP_UNITS {
            return Ok(NONE);
        }
        let fewest = match bytes {
            Some(bytes) if self.recognizer.token_limits().is_active() => {
                let tokens = self.cut_within_limits(at, &bytes, (positions, reading))?;
                tokens.map(|tokens| tokens.len())
            }
            bytes => bytes.and_then(|bytes| self.cut(&bytes, cut)),
        };
        let known = &mut positions.all[at as usize];
        let fewest = fewest.and_then(|fewest| u32::try_from(fewest).ok()).unwrap_or(NONE);
        Ok(*known.fewest.insert(fewest))
    }

    fn cut(&self, bytes: &[u8], cut: &mut TokenCut) -> Option<usize> {
        // No text is whole on the way, so that a token that ends texts is text or a special token.
        cut.cut(self.vocabulary.trie(), bytes)
    }

    pub(super) fn completions(&self) -> &Completions {
        self.endings.0.get_or_init(|| {
            let binding = self.bound.as_ref().and_then(|bound| bound.start().binding().cloned());
            Completions::new(Arc::clone(&self.recognizer), binding)
        })
    }
}

impl EndingScratch {
    pub(super) fn bytes(&self) -> usize {
        self.positions.bytes() + self.other_bytes()
    }

    fn other_bytes(&self) -> usize {
        self.others.iter().map(|(_, positions)| positions.bytes()).sum()
    }

    /// Turns to the texts of a constraint, and begins anew where what is known of them is full.
    pub(super) fn turn_to(&mut self, constraint: &GrammarConstraint) {
        let is_about = |of: &EndedTexts| {
            Arc::ptr_eq(&of.completions.0, &constraint.endings.0) && of.ends == constraint.ends
        };
        if !self.of.as_ref().is_some_and(is_about) {
            let place = self.others.iter().position(|(of, _)| is_about(of));
            let known = place.and_then(|place| self.others.remove(place));
            let (of, positions) = known.unwrap_or_else(|| {
                let (completions, ends) =
                    (constraint.endings.clone(), Arc::clone(&constraint.ends));
                (EndedTexts { completions, ends }, Positions::default())
            });
            let before = std::mem::replace(&mut self.positions, positions);
            if let Some(of) = self.of.replace(of)
                && !before.is_full()
            {
                self.others.push_front((of, before));
            }
            while self.others.len() > MAX_OTHERS || self.other_bytes() > MAX_OTHER_BYTES {
                self.others.pop_back();
            }
        }
        if self.positions.is_full() {
            self.positions = Positions::default();
        }
    }
}

/// Number that tells positions after tokens apart, of the position or where there is none.
type NumberOf<'a> =
    dyn FnMut(Option<u32>, Memory<'_>, &mut Budget<'_>) -> Result<u32, RecognizerError> + 'a;

/// The number of the position, for [`grouped`](GrammarConstraint::grouped).
pub(super) fn number_of(
    at: Option<u32>,
    _: Memory<'_>,
    _: &mut Budget<'_>,
) -> Result<u32, RecognizerError> {
    Ok(at.unwrap_or(NONE))
}

/// A thread's memory of ends and of steps.
pub(super) type Memory<'a> = (&'a mut EndingScratch, &'a mut RecognizerScratch);

/// Positions of a search for a way within limits, at most.
const MAX_SEARCHED: usize = 1 << 10;
