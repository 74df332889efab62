//! Steps 3 and 4 of streamlining: rows whose acceptance the grammar alone decides.
//!
//! Of the rows of Python's grammar that the first two steps leave they take away 37 of 100, for
//! fourteen times the time of those. The mask store makes rows while a mask is waited for, so it
//! takes the first two only.

mod legality;
mod reading;

use std::cell::RefCell;
use std::collections::HashMap;

use palmette_core::TokenId;
use palmette_grammar::{Grammar, TerminalId};
use palmette_mask_store::Spellings;

pub(crate) use legality::Legality;

/// Takes steps 3 and 4 after the first two, remembering its answers.
///
/// - Step 3: rows with two neighbours that are never legal go; a last terminal that is always legal
///   after the one before it is dropped.
/// - Step 4: rows that are never legal as a whole go; an end that is always legal after what is
///   before it is dropped.
///
/// Sound: a dropped row is accepted by no position of the parser, and a row that loses its end is
/// accepted wherever its beginning is, which holds the tokens from then on.
#[derive(Debug)]
pub(crate) struct LongSteps {
    legality: Legality,
    pairs: bool,
    sequences: bool,
    /// For sequences that were looked at: how much of them is kept, if any.
    fates: RefCell<HashMap<Box<[TerminalId]>, Option<usize>>>,
    /// Two terminals and the question: 0 for never legal, 1 for always legal.
    answers: RefCell<HashMap<(TerminalId, TerminalId, u8), bool>>,
}

impl LongSteps {
    /// For a grammar; `pairs` takes step 3, `sequences` step 4.
    pub(crate) fn new(grammar: &Grammar, pairs: bool, sequences: bool) -> Self {
        let (fates, answers) = Default::default();
        Self { legality: Legality::new(grammar), pairs, sequences, fates, answers }
    }

    /// The rows that are left.
    pub(crate) fn streamline(&self, rows: Spellings) -> Spellings {
        let mut streamlined = Spellings::new();
        for (mut letters, tokens) in rows {
            let terminals: Vec<_> = letters.iter().map(|letter| letter.terminal).collect();
            let Some(kept) = self.kept(&terminals) else { continue };
            letters.truncate(kept);
            let row: &mut Vec<TokenId> = streamlined.entry(letters).or_default();
            row.extend(tokens);
            row.sort_unstable();
            row.dedup();
        }
        streamlined
    }

    /// Length of the part of a sequence that its row keeps; `None` when it goes.
    fn kept(&self, terminals: &[TerminalId]) -> Option<usize> {
        if terminals.is_empty() {
            return Some(0);
        }
        let known = self.fates.borrow().get(terminals).copied();
        known.unwrap_or_else(|| {
            let fate = self.decide(terminals);
            self.fates.borrow_mut().insert(terminals.into(), fate);
            fate
        })
    }

    fn decide(&self, terminals: &[TerminalId]) -> Option<usize> {
        let mut kept = terminals.len();
        if self.pairs {
            if terminals.windows(2).any(|pair| self.is_never_legal(pair)) {
                return None;
            }
            while kept >= 2 && self.is_always_legal(&terminals[kept - 2..kept]) {
                kept -= 1;
            }
        }
        if self.sequences {
            // A shorter row is judged by the same rule, so its fate may be known.
            if kept < terminals.len() {
                return self.kept(&terminals[..kept]);
            }
            if self.legality.is_never_legal(terminals) {
                return None;
            }
            let end = (1..kept).find(|&begin| self.is_always_legal(&terminals[begin - 1..kept]));
            if let Some(begin) = end {
                return self.kept(&terminals[..begin]);
            }
        }
        Some(kept)
    }

    fn is_never_legal(&self, pair: &[TerminalId]) -> bool {
        self.pair(pair, 0, || self.legality.is_never_legal(pair))
    }

    fn is_always_legal(&self, terminals: &[TerminalId]) -> bool {
        let ask = || self.legality.is_always_legal(terminals[0], &terminals[1..]);
        if terminals.len() == 2 { self.pair(terminals, 1, ask) } else { ask() }
    }

    /// Answers about pairs are remembered: they come up again and again.
    fn pair(&self, pair: &[TerminalId], question: u8, ask: impl FnOnce() -> bool) -> bool {
        let key = (pair[0], pair[1], question);
        let known = self.answers.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let answer = ask();
            self.answers.borrow_mut().insert(key, answer);
            answer
        })
    }
}
