//! Worklist of positions to visit, when masks are computed ahead of time.
//!
//! The [likeliest](super::likely) go first; none is left out.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hashbrown::{HashMap, HashSet};
use palmette_masks::vocabulary::VocabularyTrie;
use palmette_parser::lexer::{Left, Lexer, LexerState};
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::{
    Branch, Lexeme, Position, Recognizer, RecognizerError, RecognizerScratch,
};

use super::likely::{self, Cost, LATER, LIKELY, LITTLE, NOTHING, Token, fingerprint, tops};

/// Positions to be visited, the likeliest first.
#[derive(Default)]
pub(super) struct Frontier {
    /// All that were added, by their [fingerprints](fingerprint).
    seen: HashSet<u128>,
    /// Stacks that the parser makes of them.
    meant: HashSet<u128>,
    open: BinaryHeap<Reverse<Open>>,
    num_added: usize,
    /// By lexemes, and whether they were told apart by states of the lexer.
    kinds: HashMap<(Vec<Lexeme>, bool), Arc<[Kind]>>,
}

/// A position to be visited, twice: at first bytes are read that lead to different lexemes which the parser takes, later all
/// that lead to different states of the lexer.
pub(super) struct Open {
    /// Cost of its bytes, and the order in which it was found.
    order: (Cost, usize),
    pub(super) position: Position,
    token: Token,
    /// True when its mask is known.
    pub(super) is_prepared: bool,
    /// True when it was visited.
    was_visited: bool,
}

/// Work that a position's mask took.
#[derive(Clone, Copy, Debug)]
pub(super) enum Worth {
    Unknown,
    Much,
    Little,
    Nothing,
}

/// A kind of bytes that the lexemes of a position do not tell apart.
#[derive(Clone, Copy, Debug)]
struct Kind {
    /// One of them.
    byte: u8,
    cost: Cost,
}

/// Of what a branch is made, as far as it is looked at: the lexeme in progress, and the states of its stacks by their distance from
/// the top.
type Key<L> = (L, Vec<(usize, StateId)>);

/// Edge by a byte.
pub(super) struct Way {
    pub(super) byte: u8,
    cost: Cost,
    token: Token,
}

/// Number of positions that are dropped between two breaks, and the length of these.
const DROPPED_AT_ONCE: usize = 64;
const BETWEEN_DROPS: Duration = Duration::from_micros(20);

/// About what a position takes: one branch, and the entry of its stack that no other has.
const POSITION_BYTES: usize = size_of::<Branch>() + 96;

impl Frontier {
    /// The next one.
    pub(super) fn next(&mut self) -> Option<Open> {
        self.open.pop().map(|Reverse(open)| open)
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Gives its memory back a little at a time, until `hurry` is true.
    ///
    /// PERF: hundreds of thousands of small lists given back one after the other keep the allocator's lock, which is not handed on in turns: a
    /// mask that was asked for meanwhile waited for 8 to 33 ms.
    pub(super) fn drop_slowly(self, hurry: &AtomicBool) {
        let mut open = self.open.into_vec();
        while !open.is_empty() && !hurry.load(Ordering::Relaxed) {
            open.truncate(open.len().saturating_sub(DROPPED_AT_ONCE));
            std::thread::sleep(BETWEEN_DROPS);
        }
    }

    /// About how much memory it takes, for positions as most are.
    pub(super) fn bytes(&self) -> usize {
        const FINGERPRINT: usize = 2 * size_of::<u128>();
        let fingerprints = self.seen.len() + self.meant.len();
        self.open.len() * (size_of::<Open>() + POSITION_BYTES) + fingerprints * FINGERPRINT
    }

    /// Adds a position unless one like it was added before.
    pub(super) fn add(
        &mut self,
        recognizer: &Recognizer,
        alike: &Alike,
        mut open: Open,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let lexer = recognizer.lexer();
        let mut key: Vec<Key<LexerState>> = Vec::new();
        for branch in open.position.branches() {
            let state = lexer.bounded_equivalent(branch.lexer, alike.bytes)?;
            key.push((state, tops(&branch.stacks, alike.stack_depth)));
        }
        if self.seen.insert(fingerprint(&key)) {
            let mut meaning: Vec<Key<Left>> = Vec::new();
            for (branch, (state, tops)) in open.position.branches().iter().zip(&key) {
                let terminals = recognizer.in_progress(branch, scratch)?.terminals;
                meaning.push((lexer.left_of(*state, &terminals), tops.clone()));
            }
            let later = if self.meant.insert(fingerprint(&meaning)) { 0 } else { LATER };
            open.order = (open.order.0.saturating_add(later), self.num_added);
            self.num_added += 1;
            self.open.push(Reverse(open));
        }
        Ok(())
    }

    /// The kinds of bytes that go on with lexemes; `fine`, as [`kinds`] has it.
    fn kinds(
        &mut self,
        lexer: &Lexer,
        lexemes: Vec<Lexeme>,
        fine: bool,
    ) -> Result<Arc<[Kind]>, RecognizerError> {
        let key = (lexemes, fine);
        if let Some(known) = self.kinds.get(&key) {
            return Ok(Arc::clone(known));
        }
        let found: Arc<[Kind]> = kinds(lexer, &key.0, fine)?.into();
        self.kinds.insert(key, Arc::clone(&found));
        Ok(found)
    }

    /// Adds a position again after its first visit.
    pub(super) fn put_off(&mut self, mut open: Open) {
        if !std::mem::replace(&mut open.was_visited, true) {
            open.order.0 = open.order.0.saturating_add(LATER);
            self.open.push(Reverse(open));
        }
    }
}

impl Open {
    /// The position before a text.
    pub(super) fn start(position: Position) -> Self {
        Self::new(position, 0, Token::NONE)
    }

    fn new(position: Position, cost: Cost, token: Token) -> Self {
        Self { order: (cost, 0), position, token, is_prepared: false, was_visited: false }
    }

    /// Finds the bytes to be read; tells whether the mask is to be computed now: where a token is likely to be cut, or at the
    /// second visit.
    pub(super) fn look(
        &self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        frontier: &mut Frontier,
        scratch: &mut RecognizerScratch,
    ) -> Result<(bool, Vec<Way>), RecognizerError> {
        let lexemes = recognizer.lexemes(&self.position, scratch)?;
        let kinds = frontier.kinds(recognizer.lexer(), lexemes, self.was_visited)?;
        let bytes = kinds.iter().map(|kind| (kind.byte, kind.cost));
        let is_due = self.was_visited || self.token.is_cut(trie, bytes.clone());
        let way = |(byte, cost)| Way { byte, cost, token: self.token.after(trie, byte) };
        Ok((is_due, bytes.map(way).collect()))
    }

    /// Target of a way, given the position there and what this one's mask was worth.
    pub(super) fn after(&self, way: &Way, position: Position, worth: Worth) -> Self {
        let less = match worth {
            Worth::Unknown | Worth::Much => 0,
            Worth::Little => LITTLE,
            Worth::Nothing => NOTHING,
        };
        Self::new(position, self.order.0.saturating_add(way.cost + less), way.token)
    }
}

/// Equivalence by which positions are taken for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alike {
    /// Lexemes in progress that go on alike for so many bytes.
    pub(super) bytes: u32,
    /// Stacks whose first so many states are the same.
    pub(super) stack_depth: usize,
}

/// The kinds of bytes that lead to different lexemes that the parser takes, by one byte each; `fine`, to different states of the lexer.
fn kinds(lexer: &Lexer, lexemes: &[Lexeme], fine: bool) -> Result<Vec<Kind>, RecognizerError> {
    let class_of = classes(lexer, lexemes, fine);
    let mut at_class = [None; 256];
    let mut by_next: HashMap<Vec<(Option<LexerState>, Left)>, usize> = HashMap::new();
    let mut kinds: Vec<(Kind, usize)> = Vec::new();
    let others = (0..=u8::MAX).filter(|byte| !LIKELY.contains(byte));
    for byte in LIKELY.iter().copied().chain(others) {
        let class = usize::from(class_of[usize::from(byte)]);
        let at = match at_class[class] {
            Some(known) => known,
            None => {
                let mut next = Vec::new();
                for lexeme in lexemes {
                    if let Some(state) = lexer.advance(lexeme.lexer, byte)? {
                        let left = lexer.left_of(state, &lexeme.terminals);
                        next.push((fine.then_some(state), left));
                    }
                }
                next.retain(|(_, left)| !left.is_nothing());
                let new = || {
                    kinds.push((Kind { byte, cost: likely::cost_of_many(byte) }, 0));
                    kinds.len() - 1
                };
                let at = (!next.is_empty()).then(|| *by_next.entry(next).or_insert_with(new));
                *at_class[class].insert(at)
            }
        };
        if let Some(at) = at {
            kinds[at].1 += 1;
        }
    }
    let cost = |(kind, num_bytes): (Kind, usize)| {
        let cost = likely::cost(kind.byte, kind.cost, num_bytes);
        Kind { cost, ..kind }
    };
    Ok(kinds.into_iter().map(cost).collect())
}

/// For each byte a number; lexemes do not tell bytes of one number apart.
fn classes(lexer: &Lexer, lexemes: &[Lexeme], fine: bool) -> [u8; 256] {
    let mut together = [0; 256];
    for lexeme in lexemes {
        let terminals = (!fine).then_some(&lexeme.terminals);
        let classes = lexer.classes_of(lexeme.lexer, terminals);
        let mut numbers = HashMap::new();
        for (number, byte) in together.iter_mut().zip(0..=u8::MAX) {
            // There are no more numbers than bytes.
            let next = numbers.len() as u8;
            *number = *numbers.entry((*number, classes.class(byte))).or_insert(next);
        }
    }
    together
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}
