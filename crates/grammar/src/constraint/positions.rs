//! Positions of a grammar by number, with where bytes lead from them.
//!
//! Masks near the end of a text or of a part of it ask of each token where it leads to. The places
//! are few: many tokens lead to one, and the next mask asks of many again.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_grammar_parser::recognizer::{
    Position, Recognizer, RecognizerError, RecognizerScratch,
};

use super::token_groups::{Profile, Tokens};

/// Positions by number, with where bytes lead from them.
#[derive(Debug, Default)]
pub(super) struct Positions {
    numbers: HashMap<Position, u32>,
    pub(super) all: Vec<KnownPosition>,
    /// Rows of 256 numbers: [`UNKNOWN`], [`DEAD`] or a position's, [`FIRST`] more.
    rows: Vec<u32>,
    /// Transitions of positions that have no row.
    others: HashMap<(u32, u8), u32>,
    profile_bytes: usize,
}

/// Knowledge of a position.
#[derive(Debug)]
pub(super) struct KnownPosition {
    pub(super) position: Position,
    /// Tokens to the end; [`NONE`](super::token_groups::NONE) where no way is known. Empty before it was asked for.
    pub(super) fewest: Option<u32>,
    pub(super) profile: Option<Arc<Profile>>,
    /// The tokens by the positions after them.
    pub(super) reached: Option<Arc<Profile>>,
    /// The position once the token ends here, as in rows.
    ended: u32,
    /// The tokens after which lexemes are whole within their tokens.
    pub(super) in_time: Option<Arc<Tokens>>,
}

/// A transition that was not taken yet.
const UNKNOWN: u32 = 0;
/// A transition to no position.
pub(super) const DEAD: u32 = 1;
/// Transitions to positions begin here.
pub(super) const FIRST: u32 = 2;

/// Positions that have rows, of a KiB each.
const MAX_ROWS: usize = 1 << 11;

/// Positions that are remembered from mask to mask, at most, and bytes of profiles.
const MAX_KNOWN: usize = 1 << 12;
const MAX_PROFILE_BYTES: usize = 8 << 20;

impl Positions {
    pub(super) fn is_full(&self) -> bool {
        self.all.len() > MAX_KNOWN || self.profile_bytes > MAX_PROFILE_BYTES
    }

    pub(super) fn bytes(&self) -> usize {
        let known = size_of::<KnownPosition>() + size_of::<(Position, u32)>() + POSITION_BYTES;
        let transition = size_of::<((u32, u8), u32)>();
        self.all.len() * known
            + size_of_val(&*self.rows)
            + self.others.len() * transition
            + self.profile_bytes
    }

    /// The number of a position.
    pub(super) fn find(&mut self, position: &Position) -> u32 {
        if let Some(&known) = self.numbers.get(position) {
            return known;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(position.clone(), number);
        let position = position.clone();
        let (ended, fewest) = (UNKNOWN, None);
        let (profile, reached, in_time) = (None, None, None);
        self.all.push(KnownPosition { position, fewest, profile, reached, ended, in_time });
        if self.all.len() <= MAX_ROWS {
            self.rows.resize(self.all.len() << 8, UNKNOWN);
        }
        number
    }

    /// The position after a byte, [`FIRST`] more than its number, or [`DEAD`].
    pub(super) fn next(
        &mut self,
        recognizer: &Recognizer,
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
        let next = recognizer.advance(position, byte, reading)?;
        let next = next.map_or(DEAD, |next| self.find(&next) + FIRST);
        match has_row {
            true => self.rows[place] = next,
            false => _ = self.others.insert((at, byte), next),
        }
        Ok(next)
    }

    /// Keeps the profile of a numbered position, unless it is too large.
    pub(super) fn keep_profile(&mut self, at: u32, profile: &Arc<Profile>) {
        let bytes = profile.bytes();
        if bytes <= MAX_PROFILE_BYTES {
            self.profile_bytes += bytes;
            self.all[at as usize].profile = Some(Arc::clone(profile));
        }
    }

    /// Keeps the tokens of a numbered position by the positions after them, unless it is too large.
    pub(super) fn keep_reached(&mut self, at: u32, reached: &Arc<Profile>) {
        let bytes = reached.bytes();
        if bytes <= MAX_PROFILE_BYTES {
            self.profile_bytes += bytes;
            self.all[at as usize].reached = Some(Arc::clone(reached));
        }
    }

    /// Keeps the tokens of a numbered position after which lexemes can be whole in time.
    pub(super) fn keep_in_time(&mut self, at: u32, tokens: &Arc<Tokens>) {
        self.profile_bytes += tokens.bytes();
        self.all[at as usize].in_time = Some(Arc::clone(tokens));
    }

    /// The position once a token ends at a numbered one, as in rows: known since it was kept.
    pub(super) fn ended(&self, at: u32) -> Option<u32> {
        Some(self.all[at as usize].ended).filter(|&ended| ended != UNKNOWN)
    }

    /// Keeps the position once a token ends at a numbered one; `None` where there is none then.
    pub(super) fn keep_ended(&mut self, at: u32, after: Option<&Position>) -> u32 {
        let ended = after.map_or(DEAD, |after| self.find(after) + FIRST);
        self.all[at as usize].ended = ended;
        ended
    }
}

/// About what a position takes, with the stack nodes that it alone keeps alive.
const POSITION_BYTES: usize = 192;
