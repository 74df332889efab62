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

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use palmette_core::vocabulary_trie::Visit;
use palmette_core::{TokenId, mask};
use palmette_grammar_masks::token_cut::TokenCut;
use palmette_grammar_parser::completion::{CompletionScratch, Completions, MAX_STEP_UNITS};
use palmette_grammar_parser::recognizer::{Position, RecognizerError, RecognizerScratch};

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
    /// The completions and end tokens that it is about.
    of: Option<(SharedCompletions, Arc<[TokenId]>)>,
    completions: CompletionScratch,
    cut: TokenCut,
    positions: Positions,
    path: Vec<u32>,
}

/// Positions by number, with where bytes lead from them.
#[derive(Debug, Default)]
struct Positions {
    numbers: HashMap<Position, u32>,
    all: Vec<KnownPosition>,
    /// Rows of 256 numbers: [`UNKNOWN`], [`DEAD`] or a position's, [`FIRST`] more.
    rows: Vec<u32>,
    /// Transitions of positions that have no row.
    others: HashMap<(u32, u8), u32>,
    profile_bytes: usize,
}

/// Knowledge of a position.
#[derive(Debug)]
struct KnownPosition {
    position: Position,
    /// Tokens to the end; [`NONE`] where no way is known. Empty before it was asked for.
    fewest: Option<u32>,
    profile: Option<Arc<Profile>>,
    /// The position once the token ends here, as in rows.
    ended: u32,
    /// The tokens after which lexemes are whole within their tokens.
    in_time: Option<Arc<Tokens>>,
}

/// The tokens after a position by the tokens to the end after each.
#[derive(Debug, Default)]
struct Profile {
    /// The most tokens to the end first.
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    fewest: u32,
    tokens: Tokens,
}

#[derive(Debug)]
pub(super) enum Tokens {
    Row(Box<[u32]>),
    List(Box<[TokenId]>),
}

const UNKNOWN: u32 = 0;
const DEAD: u32 = 1;
const FIRST: u32 = 2;
pub(super) const NONE: u32 = u32::MAX;

/// Positions that have rows, of a KiB each.
const MAX_ROWS: usize = 1 << 11;

/// Positions that are remembered from mask to mask, at most, and bytes of profiles.
const MAX_KNOWN: usize = 1 << 12;
const MAX_PROFILE_BYTES: usize = 8 << 20;

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
        if self.cut(&bytes, &mut ending.cut).is_none()
            || !self.is_within_limits(position, &ending.cut, recognizer)?
        {
            return Ok(None);
        }
        Ok(Some(Ending { tokens: ending.cut.tokens().collect(), bytes }))
    }

    /// The tokens after which the text can still be whole within `left` tokens, the next one among
    /// them; end tokens are none of those. After tokens of such masks the text ends in time.
    ///
    /// # Errors
    /// When so few tokens are left that no way to the end is known, or a limit of the grammar or of
    /// `work` is exceeded. The mask then denies all.
    ///
    /// # Panics
    /// As [`fill_mask`](palmette_core::Constraint::fill_mask).
    pub fn fill_ending_mask_within(
        &self,
        state: &GrammarState,
        left: usize,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Result<(), EndingError> {
        let filled = self.fill_ending(state, left, scratch, mask, work);
        if filled.is_err() {
            mask.fill(0);
        }
        filled
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
        Ok((fewest != NONE).then_some(fewest as usize))
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
        match self.fewest_tokens_within(state, scratch, work)? {
            Some(needed) if needed > left => return Err(EndingError::TooFew { needed, left }),
            Some(_) => {}
            None => return Err(EndingError::Unknown),
        }
        if left == 0 {
            mask.fill(0);
            self.ends().iter().for_each(|&end| mask::insert(mask, end));
            return Ok(());
        }
        let profile = self.profile(position, mask, scratch, &mut work.budget(work.walk))?;
        profile.keep(left - 1, mask);
        Ok(())
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
        let mut found = self.grouped(
            position,
            allowed,
            (ending, recognizer),
            budget,
            &mut |at, memory, budget| match at {
                Some(at) => self.fewest(at, memory, budget),
                None => Ok(NONE),
            },
        )?;
        if self.asks_for_tokens {
            self.join_readings(position, &mut found, (ending, recognizer), budget)?;
        }
        let profile = Arc::new(found.into_profile(allowed.len()));
        let bytes = profile.bytes();
        if bytes <= MAX_PROFILE_BYTES {
            ending.positions.profile_bytes += bytes;
            ending.positions.all[from as usize].profile = Some(Arc::clone(&profile));
        }
        Ok(profile)
    }

    /// The allowed tokens by a number of the position after each, where there is one once the token
    /// has ended.
    fn grouped(
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
            let next = ending.positions.next(self, above, node.byte, reading)?;
            if next == DEAD {
                return Ok(Visit::Past);
            }
            let own = trie.tokens_in(trie.own_ranks(node.index));
            let mut own = own.iter().filter(|&&token| mask::contains(allowed, token)).peekable();
            if own.peek().is_some() {
                let ended = ending.positions.ended(self, next - FIRST, reading)?;
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

    /// The tokens of a mask after which lexemes can be whole within their tokens; without those that
    /// end a text which is whole.
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
        ending.positions.profile_bytes += in_time.bytes();
        ending.positions.all[from as usize].in_time = Some(Arc::clone(&in_time));
        Ok(in_time)
    }

    /// True where tokens of a cut way keep the limits on lexemes.
    fn is_within_limits(
        &self,
        position: &Position,
        cut: &TokenCut,
        reading: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        if !self.recognizer.token_limits().is_active() {
            return Ok(true);
        }
        let mut state = GrammarState::new(Some(position.clone()));
        for token in cut.tokens() {
            match self.after(&state, token, reading)? {
                Some((after, false)) => state = GrammarState::new(Some(after)),
                // An end token that is text on the way is none here.
                Some((_, true)) | None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Tokens that were come to as text and by number lead to both readings.
    fn join_readings(
        &self,
        position: &Position,
        found: &mut TokenGroups,
        (ending, reading): (&mut EndingScratch, &mut RecognizerScratch),
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let each = |(fewest, tokens): (u32, Vec<TokenId>)| {
            tokens.into_iter().map(move |token| (token, fewest))
        };
        let mut all: Vec<(TokenId, u32)> =
            std::mem::take(&mut found.groups).into_iter().flat_map(each).collect();
        all.sort_unstable_by_key(|&(token, _)| token);
        for readings in all.chunk_by(|a, b| a.0 == b.0) {
            let &(token, mut fewest) = readings.first().expect("a chunk");
            if readings.len() > 1 {
                let state = GrammarState::new(Some(position.clone()));
                if let Some((after, _)) = self.after(&state, token, reading)? {
                    let at = ending.positions.find(&after);
                    fewest = self.fewest(at, (ending, reading), budget)?;
                }
            }
            found.of(fewest).push(token);
        }
        Ok(())
    }

    /// Tokens to the end of a numbered position; [`NONE`] where no way is known.
    fn fewest(
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
        let mut fewest = bytes.and_then(|bytes| self.cut(&bytes, cut));
        let position = known.position.clone();
        if fewest.is_some() && !self.is_within_limits(&position, cut, reading)? {
            fewest = None;
        }
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
        self.positions.bytes()
    }

    /// Forgets what is about other completions, and begins anew where it is full.
    fn turn_to(&mut self, constraint: &GrammarConstraint) {
        let (endings, ends) = (&constraint.endings, &constraint.ends);
        let is_same = self
            .of
            .as_ref()
            .is_some_and(|(of, of_ends)| Arc::ptr_eq(&of.0, &endings.0) && of_ends == ends);
        if !is_same {
            self.of = Some((endings.clone(), Arc::clone(ends)));
        }
        if !is_same || self.positions.is_full() {
            self.positions = Positions::default();
        }
    }
}

impl Positions {
    fn is_full(&self) -> bool {
        self.all.len() > MAX_KNOWN || self.profile_bytes > MAX_PROFILE_BYTES
    }

    fn bytes(&self) -> usize {
        let known = size_of::<KnownPosition>() + size_of::<(Position, u32)>() + POSITION_BYTES;
        let transition = size_of::<((u32, u8), u32)>();
        self.all.len() * known
            + size_of_val(&*self.rows)
            + self.others.len() * transition
            + self.profile_bytes
    }

    /// The number of a position.
    fn find(&mut self, position: &Position) -> u32 {
        if let Some(&known) = self.numbers.get(position) {
            return known;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(position.clone(), number);
        let position = position.clone();
        let (ended, profile, in_time) = (UNKNOWN, None, None);
        self.all.push(KnownPosition { position, fewest: None, profile, ended, in_time });
        if self.all.len() <= MAX_ROWS {
            self.rows.resize(self.all.len() << 8, UNKNOWN);
        }
        number
    }

    /// The position after a byte, [`FIRST`] more than its number, or [`DEAD`].
    fn next(
        &mut self,
        constraint: &GrammarConstraint,
        at: u32,
        byte: u8,
        reading: &mut RecognizerScratch,
    ) -> Result<u32, RecognizerError> {
        let place = (at as usize) << 8 | usize::from(byte);
        let has_row = (at as usize) < MAX_ROWS;
        let known = match has_row {
            true => self.rows[place],
            false => self.others.get(&(at, byte)).copied().unwrap_or(UNKNOWN),
        };
        if known != UNKNOWN {
            return Ok(known);
        }
        let position = &self.all[at as usize].position;
        let next = constraint.recognizer.advance(position, byte, reading)?;
        let next = next.map_or(DEAD, |next| self.find(&next) + FIRST);
        match has_row {
            true => self.rows[place] = next,
            false => _ = self.others.insert((at, byte), next),
        }
        Ok(next)
    }
}

impl Positions {
    /// The position once a token ends at a numbered one, [`FIRST`] more than its number, or
    /// [`DEAD`] where a lexeme would not be whole within its tokens.
    fn ended(
        &mut self,
        constraint: &GrammarConstraint,
        at: u32,
        reading: &mut RecognizerScratch,
    ) -> Result<u32, RecognizerError> {
        if !constraint.recognizer.token_limits().is_active() {
            return Ok(at + FIRST);
        }
        let known = &self.all[at as usize];
        if known.ended != UNKNOWN {
            return Ok(known.ended);
        }
        let after = constraint.after_token(known.position.clone(), reading)?;
        let ended = after.map_or(DEAD, |after| self.find(&after) + FIRST);
        self.all[at as usize].ended = ended;
        Ok(ended)
    }
}

/// Number that tells positions after tokens apart, of the position or where there is none.
type NumberOf<'a> = dyn FnMut(
        Option<u32>,
        (&mut EndingScratch, &mut RecognizerScratch),
        &mut Budget<'_>,
    ) -> Result<u32, RecognizerError>
    + 'a;

/// About what a position takes, with the stack nodes that it alone keeps alive.
const POSITION_BYTES: usize = 192;

/// Tokens by the tokens to the end after each, as they are found.
#[derive(Default)]
struct TokenGroups {
    groups: Vec<(u32, Vec<TokenId>)>,
}

impl TokenGroups {
    /// The tokens after which so many are needed. Those found one after another mostly are alike,
    /// and the different numbers are few.
    fn of(&mut self, fewest: u32) -> &mut Vec<TokenId> {
        let known = self.groups.iter().rposition(|&(of, _)| of == fewest);
        let at = known.unwrap_or_else(|| {
            self.groups.push((fewest, Vec::new()));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    fn into_profile(mut self, words: usize) -> Profile {
        self.groups.sort_unstable_by_key(|&(fewest, _)| std::cmp::Reverse(fewest));
        let group = |(fewest, list)| Group { fewest, tokens: Tokens::new(list, words) };
        Profile { groups: self.groups.into_iter().map(group).collect() }
    }
}

impl Tokens {
    /// The smaller form of two: a row of so many words, or a list.
    fn new(list: Vec<TokenId>, words: usize) -> Self {
        if list.len() <= words {
            return Self::List(list.into());
        }
        let mut row = vec![0; words];
        list.iter().for_each(|&token| mask::insert(&mut row, token));
        Self::Row(row.into())
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Row(row) => size_of_val(&**row),
            Self::List(list) => size_of_val(&**list),
        }
    }

    /// Writes the mask of these tokens.
    pub(super) fn fill(&self, mask: &mut [u32]) {
        match self {
            Self::Row(row) => mask.copy_from_slice(row),
            Self::List(list) => {
                mask.fill(0);
                list.iter().for_each(|&token| mask::insert(mask, token));
            }
        }
    }
}

impl Profile {
    fn bytes(&self) -> usize {
        self.groups.iter().map(|group| size_of::<Group>() + group.tokens.bytes()).sum()
    }

    fn visit(&self, mut visit: impl FnMut(TokenId, Option<usize>)) {
        for &Group { fewest, ref tokens } in &self.groups {
            let fewest = (fewest != NONE).then_some(fewest as usize);
            match tokens {
                Tokens::Row(row) => mask::iter(row).for_each(|token| visit(token, fewest)),
                Tokens::List(list) => list.iter().for_each(|&token| visit(token, fewest)),
            }
        }
    }

    fn visit(&self, mut visit: impl FnMut(TokenId, Option<usize>)) {
        for &Group { fewest, ref tokens } in &self.groups {
            let fewest = (fewest != NONE).then_some(fewest as usize);
            match tokens {
                Tokens::Row(row) => mask::iter(row).for_each(|token| visit(token, fewest)),
                Tokens::List(list) => list.iter().for_each(|&token| visit(token, fewest)),
            }
        }
    }

    /// Takes the tokens out of a mask after which more than `left` are needed.
    fn keep(&self, left: usize, mask: &mut [u32]) {
        let too_long = |group: &&Group| group.fewest == NONE || group.fewest as usize > left;
        for group in self.groups.iter().take_while(too_long) {
            match &group.tokens {
                Tokens::Row(row) => mask.iter_mut().zip(row).for_each(|(word, &out)| *word &= !out),
                Tokens::List(list) => list.iter().for_each(|&token| mask::remove(mask, token)),
            }
        }
    }
}
