//! Reading of a sequence of terminals, by symbol: the rules intersected with a small automaton.

use palmette_grammar_parser::TerminalId;

use super::rules::Rules;

/// Relations between the positions of a sequence, by symbol: from which to which it can lead.
///
/// Position `i` is before the `i`-th terminal. The relation of a terminal is where the automaton
/// moves on it; that of a nonterminal is the union over its rules of the products of their bodies,
/// the least such.
#[derive(Debug)]
pub(super) struct Reading {
    num_positions: usize,
    /// Bit `j` of row `symbol * num_positions + i`: symbol leads from `i` to `j`.
    rows: Vec<u64>,
    /// Positions that are reached from each by reading nothing, as bits.
    skips: Vec<u64>,
}

impl Reading {
    /// The most terminals of a sequence: its positions are bits.
    pub(super) const MAX_TERMINALS: usize = 63;

    /// The automaton of Σ*·`terminals`·Σ*. `optional` may be read as if it were not there,
    /// `invisible` are read as the empty text.
    pub(super) fn infix(
        rules: &Rules,
        terminals: &[TerminalId],
        optional: Option<TerminalId>,
        invisible: &[TerminalId],
    ) -> Self {
        let mut reading = Self::new(rules, terminals, optional);
        let last = terminals.len();
        for symbol in 0..rules.num_symbols() {
            // Every symbol derives something.
            reading.add(symbol, 0, 0);
            reading.add(symbol, last, last);
        }
        for terminal in invisible {
            for position in 0..=last {
                reading.add(terminal.index(), position, position);
            }
        }
        reading.close(rules);
        reading
    }

    /// The automaton of `terminals`·Σ*.
    pub(super) fn prefix(rules: &Rules, terminals: &[TerminalId]) -> Self {
        let mut reading = Self::new(rules, terminals, None);
        for symbol in 0..rules.num_symbols() {
            reading.add(symbol, terminals.len(), terminals.len());
        }
        reading.close(rules);
        reading
    }

    /// True when the symbol of this index leads from one position to another.
    pub(super) fn reads(&self, symbol: usize, from: usize, to: usize) -> bool {
        self.rows[symbol * self.num_positions + from] & (1 << to) != 0
    }

    /// The positions to which these symbols, one after another, lead from `from`, as bits.
    pub(super) fn read_all(&self, from: usize, symbols: impl Iterator<Item = usize>) -> u64 {
        self.read_from(self.skips[from], symbols)
    }

    /// The positions to which these symbols lead from any of some, as bits.
    pub(super) fn read_from(&self, from: u64, mut symbols: impl Iterator<Item = usize>) -> u64 {
        symbols
            .try_fold(from, |reached, symbol| {
                let next = self.read_one(reached, symbol);
                if next == 0 { Err(()) } else { Ok(next) }
            })
            .unwrap_or(0)
    }

    /// The positions to which a symbol leads from any of some, as bits.
    pub(super) fn read_one(&self, from: u64, symbol: usize) -> u64 {
        let row = symbol * self.num_positions;
        let (mut next, mut left) = (0, from);
        while left != 0 {
            next |= self.rows[row + left.trailing_zeros() as usize];
            left &= left - 1;
        }
        next
    }

    fn new(rules: &Rules, terminals: &[TerminalId], optional: Option<TerminalId>) -> Self {
        let num_positions = terminals.len() + 1;
        assert!(terminals.len() <= Self::MAX_TERMINALS, "{} terminals at once", terminals.len());
        let mut skips = vec![0_u64; num_positions];
        for position in (0..num_positions).rev() {
            skips[position] |= 1 << position;
            if position < terminals.len() && optional == Some(terminals[position]) {
                skips[position] |= skips[position + 1];
            }
        }
        let rows = vec![0; rules.num_symbols() * num_positions];
        let mut reading = Self { num_positions, rows, skips };
        for (position, terminal) in terminals.iter().enumerate() {
            reading.add(terminal.index(), position, position + 1);
        }
        reading
    }

    /// Lets a symbol lead from one position to another, with what may be skipped before and after.
    fn add(&mut self, symbol: usize, from: usize, to: usize) {
        for before in 0..=from {
            if self.skips[before] & (1 << from) != 0 {
                self.rows[symbol * self.num_positions + before] |= self.skips[to];
            }
        }
    }

    /// The least fixpoint over the rules.
    fn close(&mut self, rules: &Rules) {
        let mut waiting = vec![true; rules.rules().len()];
        let mut queue: Vec<usize> = (0..rules.rules().len()).collect();
        while let Some(number) = queue.pop() {
            waiting[number] = false;
            let rule = &rules.rules()[number];
            let head = rules.num_terminals() + rule.head.index();
            let mut grown = false;
            for from in 0..self.num_positions {
                let body = rule.body.iter().map(|&symbol| rules.index(symbol));
                let reached = self.read_all(from, body);
                let row = &mut self.rows[head * self.num_positions + from];
                grown |= reached & !*row != 0;
                *row |= reached;
            }
            if grown {
                for &(user, _) in rules.places(head) {
                    if !std::mem::replace(&mut waiting[user], true) {
                        queue.push(user);
                    }
                }
            }
        }
    }
}
