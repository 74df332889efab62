//! Fewer rows, the same masks (steps 1 to 4).

use std::collections::HashMap;
use std::sync::RwLock;

use palmette_core::TokenId;

use super::{
    interchange::Interchange, legality::Legality, rules::Rules, spelling::Spellings,
    successors::Successors,
};
use crate::blocks::Letter;
use crate::{Grammar, TerminalId};

/// Which steps are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Steps {
    /// 1: rows that differ in interchangeable terminals only become one.
    pub interchange: bool,
    /// 2: rows with a terminal that the graph of successors does not have after the one before it go.
    pub successors: bool,
    /// 3: rows with two neighbours that are never legal go; a last terminal that is always legal after the one before it
    /// is dropped.
    pub pairs: bool,
    /// 4: rows that are never legal as a whole go; an end that is always legal after what is before it is dropped.
    pub sequences: bool,
}

impl Steps {
    /// Rows as the tokens spell them.
    pub const NONE: Self =
        Self { interchange: false, successors: false, pairs: false, sequences: false };
    /// All four.
    pub const ALL: Self =
        Self { interchange: true, successors: true, pairs: true, sequences: true };

    /// The first `count` steps.
    pub fn first(count: usize) -> Self {
        Self {
            interchange: count >= 1,
            successors: count >= 2,
            pairs: count >= 3,
            sequences: count >= 4,
        }
    }
}

/// Takes the steps, remembering what it found out. Threads may share it.
///
/// Sound: for every position of the parser in which a sentence can be, the union of the token sets of the rows
/// that it accepts is the same before and after.
///
/// - A dropped row is accepted by no position.
/// - A row `x₁…xₙ` that loses its end `xᵢ₊₁…xₙ` is accepted wherever `x₁…xᵢ` is, which holds the tokens from then on.
/// - A row takes the first of a set for an interchangeable terminal, whose row is accepted by the same positions.
#[derive(Debug)]
pub struct Streamliner {
    steps: Steps,
    interchange: Interchange,
    successors: Successors,
    legality: Legality,
    newline: Option<TerminalId>,
    /// For sequences that were looked at: how much of them is kept, if any.
    fates: RwLock<HashMap<Box<[TerminalId]>, Option<usize>>>,
    /// Two terminals; 0 for never legal, 1 for always legal.
    pairs: RwLock<HashMap<(TerminalId, TerminalId, u8), bool>>,
}

impl Streamliner {
    /// For a grammar. Cost: see [`Successors::new`] and [`Interchange::new`].
    pub fn new(grammar: &Grammar, steps: Steps) -> Self {
        let rules = Rules::new(grammar);
        let interchange = if steps.interchange {
            Interchange::of_rules(grammar, &rules)
        } else {
            Interchange::none(grammar.terminals().len())
        };
        let blocks = grammar.indentation();
        let marks = blocks.map_or_else(Vec::new, |blocks| vec![blocks.indent, blocks.dedent]);
        Self {
            steps,
            interchange,
            successors: Successors::of_rules(&rules, &marks),
            legality: Legality::of_rules(grammar, rules),
            newline: blocks.map(|blocks| blocks.newline),
            fates: RwLock::default(),
            pairs: RwLock::default(),
        }
    }

    /// The rows that are left; their number is what the steps are for. Cost: that of the questions about sequences that were not asked before.
    pub fn streamline(&self, rows: Spellings) -> Spellings {
        let mut streamlined = Spellings::new();
        let mut merged = Vec::new();
        for (mut letters, tokens) in rows {
            if !self.streamline_row(&mut letters) {
                continue;
            }
            let row: &mut Vec<TokenId> = streamlined.entry(letters.clone()).or_default();
            if row.is_empty() {
                *row = tokens;
            } else {
                row.extend(tokens);
                merged.push(letters);
            }
        }
        for letters in merged {
            let row = streamlined.get_mut(&letters).expect("it was just merged into");
            row.sort_unstable();
            row.dedup();
        }
        streamlined
    }

    /// Streamlines one row's sequence; `false` when the row goes.
    pub(super) fn streamline_row(&self, letters: &mut Vec<Letter>) -> bool {
        self.represent(letters);
        let terminals: Vec<_> = letters.iter().map(|letter| letter.terminal).collect();
        let kept = self.kept(&terminals);
        letters.truncate(kept.unwrap_or(0));
        kept.is_some()
    }

    /// The first two steps for a sequence that others may end with: what goes here goes there too.
    pub(super) fn streamline_end(&self, letters: &mut [Letter]) -> bool {
        self.represent(letters);
        !self.steps.successors || self.can_be_neighbours(letters.iter().map(|one| one.terminal))
    }

    /// Step 1.
    fn represent(&self, letters: &mut [Letter]) {
        for letter in letters {
            letter.terminal = self.interchange.representative(letter.terminal);
        }
    }

    /// How many terminals of a sequence its row keeps; `None` when it goes.
    fn kept(&self, terminals: &[TerminalId]) -> Option<usize> {
        if terminals.is_empty() {
            return Some(0);
        }
        if self.steps.successors && !self.can_be_neighbours(terminals.iter().copied()) {
            return None;
        }
        if !self.steps.pairs && !self.steps.sequences {
            return Some(terminals.len());
        }
        let known = self.fates.read().expect("no panic while held").get(terminals).copied();
        known.unwrap_or_else(|| {
            let fate = self.decide(terminals);
            self.fates.write().expect("no panic while held").insert(terminals.into(), fate);
            fate
        })
    }

    /// Step 2. A line's end may be one inside brackets, which the rules do not see.
    fn can_be_neighbours(&self, terminals: impl Iterator<Item = TerminalId>) -> bool {
        // What the rules have seen last, `None` when it may be anything; and whether that may have been a line's end.
        let (mut before, mut line_ended) = (None, false);
        for terminal in terminals {
            let follows = |before| self.successors.may_follow(before, terminal);
            let fits =
                before.is_none_or(follows) || line_ended && self.newline.is_some_and(follows);
            if self.newline == Some(terminal) {
                line_ended |= fits && before.is_some();
            } else if fits {
                (before, line_ended) = (Some(terminal), false);
            } else {
                return false;
            }
        }
        true
    }

    fn decide(&self, terminals: &[TerminalId]) -> Option<usize> {
        let mut kept = terminals.len();
        if self.steps.pairs {
            if terminals.windows(2).any(|pair| self.is_never_legal(pair)) {
                return None;
            }
            while kept >= 2 && self.is_always_legal(&terminals[kept - 2..kept]) {
                kept -= 1;
            }
        }
        if self.steps.sequences {
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
        let known = self.pairs.read().expect("no panic while held").get(&key).copied();
        known.unwrap_or_else(|| {
            let answer = ask();
            self.pairs.write().expect("no panic while held").insert(key, answer);
            answer
        })
    }
}
