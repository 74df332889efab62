//! Sequences of terminals that can never, or can always, stand after a terminal (steps 3 and 4).

use palmette_grammar::{Grammar, TerminalId};
use palmette_mask_store::Rules;

use super::reading::Reading;

/// Answers for one grammar whether what follows a terminal is decided by that terminal alone.
///
/// Sequences are without ignored terminals, which may stand anywhere between. With
/// [`Indentation`](palmette_grammar::Indentation) they are sequences of *lexemes*: the marks of
/// blocks, which have no text, are not in them, and a line's end may be one inside brackets, which
/// the rules do not see.
#[derive(Clone, Debug)]
pub(crate) struct Legality {
    rules: Rules,
    newline: Option<TerminalId>,
    /// Terminals without text.
    marks: Vec<TerminalId>,
}

impl Legality {
    /// Cost: the size of the rules.
    pub(crate) fn new(grammar: &Grammar) -> Self {
        let blocks = grammar.indentation();
        Self {
            rules: Rules::new(grammar),
            newline: blocks.map(|blocks| blocks.newline),
            marks: blocks.map_or_else(Vec::new, |blocks| vec![blocks.indent, blocks.dedent]),
        }
    }

    /// Whether no sentence has these terminals one right after another.
    ///
    /// The intersection of the rules with the regular language Σ*·`terminals`·Σ* is empty
    /// (Bar-Hillel, Perles and Shamir): for each nonterminal, which positions of the automaton of
    /// that language it can lead between.
    ///
    /// Exact, but for two cases that may answer `false` where `true` would be right: more than
    /// [`MAX_TERMINALS`](Self::MAX_TERMINALS) terminals are looked at in windows of that many, and
    /// a line's end is taken for one that is ignored as well as for one that is not.
    ///
    /// Cost: (number of terminals)² times the size of the rules.
    pub(crate) fn is_never_legal(&self, terminals: &[TerminalId]) -> bool {
        if terminals.is_empty() {
            return false;
        }
        let window = terminals.len().min(Self::MAX_TERMINALS);
        terminals.windows(window).any(|window| {
            let reading = Reading::infix(&self.rules, window, self.newline, &self.marks);
            !reading.reads(self.rules.num_terminals() + self.rules.start(), 0, window.len())
        })
    }

    /// Whether `next` can follow wherever `terminal` is legal. `false` may also mean "not known":
    /// the question is undecidable in general.
    ///
    /// *Unlimited credit exploration*: a pushdown automaton generates the sentences, its stack
    /// holding the places in rules to return to. It starts after `terminal` with nothing known of
    /// its stack; where it must return to a place that is not known, each place at which what was
    /// read last can stand is possible, and from all of them there must be a way on. The automaton
    /// chooses where it has a choice, so this is a game, won when all of `next` has been read.
    ///
    /// The part of the stack that *is* known needs no exploration: what a nonterminal can read of
    /// `next` is a relation between positions of `next`, found once for all. So there is no
    /// greatest stack, and nothing is lost to one.
    ///
    /// Cost: (length of `next`)² times the size of the rules.
    pub(crate) fn is_always_legal(&self, terminal: TerminalId, next: &[TerminalId]) -> bool {
        let layered = |terminal: &TerminalId| {
            self.newline == Some(*terminal) || self.marks.contains(terminal)
        };
        if next.is_empty() {
            return true;
        }
        if next.len() >= Self::MAX_TERMINALS
            || !self.rules.is_used(terminal)
            || layered(&terminal)
            || next.iter().any(layered)
        {
            return false;
        }
        let game = Game {
            rules: &self.rules,
            reading: Reading::prefix(&self.rules, next),
            end: next.len(),
        };
        game.is_won_after(terminal)
    }

    /// The longest sequence that is looked at as a whole.
    pub(crate) const MAX_TERMINALS: usize = 63;
}

/// Unlimited credit exploration of one sequence.
struct Game<'a> {
    rules: &'a Rules,
    reading: Reading,
    /// All is read.
    end: usize,
}

impl Game<'_> {
    fn is_won_after(&self, terminal: TerminalId) -> bool {
        // Bit `i` of `won[n]`: won when nonterminal `n` has just ended, `i` terminals have been
        // read and the stack is unknown. Least fixpoint, so that going round in a circle without
        // reading does not win.
        let mut won = vec![1_u64 << self.end; self.rules.num_nonterminals()];
        // After the start the text may be over.
        let open = |nonterminal: usize| nonterminal != self.rules.start();
        let mut changed = true;
        while changed {
            changed = false;
            for nonterminal in (0..won.len()).filter(|&nonterminal| open(nonterminal)) {
                for read in 0..self.end {
                    let symbol = self.rules.num_terminals() + nonterminal;
                    if won[nonterminal] & (1 << read) == 0 && self.is_won(symbol, read, &won) {
                        won[nonterminal] |= 1 << read;
                        changed = true;
                    }
                }
            }
        }
        self.is_won(terminal.index(), 0, &won)
    }

    /// Whether from every place of `symbol`, which has just ended, there is a way on.
    fn is_won(&self, symbol: usize, read: usize, won: &[u64]) -> bool {
        let places = self.rules.places(symbol);
        !places.is_empty()
            && places.iter().all(|&(rule, place)| {
                let rule = &self.rules.rules()[rule];
                let rest = rule.body[place + 1..].iter().map(|&symbol| self.rules.index(symbol));
                let reached = self.reading.read_all(read, rest);
                reached & (won[rule.head.index()] | 1 << self.end) != 0
            })
    }
}
