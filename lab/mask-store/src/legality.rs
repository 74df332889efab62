//! Sequences of terminals that can never, or can always, stand after a terminal (steps 3 to 5).

use palmette_grammar_parser::{Grammar, Rule, Symbol, TerminalId};

use super::reading::Reading;
use super::rules::Rules;

/// Answers for one grammar: is what follows some terminals decided by these alone?
///
/// Sequences are without ignored terminals, which may stand anywhere between. With
/// [`Indentation`](palmette_grammar_parser::Indentation) they are sequences of *lexemes*: the marks
/// of blocks, which have no text, are not in them, and a line's end may be one inside brackets,
/// which the rules do not see.
#[derive(Clone, Debug)]
pub struct Legality {
    rules: Rules,
    newline: Option<TerminalId>,
    /// Terminals without text.
    marks: Vec<TerminalId>,
}

impl Legality {
    /// Cost: the size of the rules.
    pub fn new(grammar: &Grammar) -> Self {
        let blocks = grammar.indentation();
        Self {
            rules: Rules::new(grammar),
            newline: blocks.map(|blocks| blocks.newline),
            marks: blocks.map_or_else(Vec::new, |blocks| vec![blocks.indent, blocks.dedent]),
        }
    }

    /// True when no sentence has these terminals one right after another.
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
    pub fn is_never_legal(&self, terminals: &[TerminalId]) -> bool {
        if terminals.is_empty() {
            return false;
        }
        let window = terminals.len().min(Self::MAX_TERMINALS);
        terminals.windows(window).any(|window| {
            let reading = Reading::infix(&self.rules, window, self.newline, &self.marks);
            !reading.reads(self.rules.num_terminals() + self.rules.start(), 0, window.len())
        })
    }

    /// True when `next` can follow wherever the terminals of `context` are legal, one right after
    /// another. `false` may also mean "not known": the question is undecidable in general.
    ///
    /// *Unlimited credit exploration*: a pushdown automaton generates the sentences, its stack
    /// holding the places in rules to return to. It starts after the context's first terminal with
    /// nothing known of its stack; where it must return to a place that is not known, each place at
    /// which what was read last can stand is possible, and from all of them there must be a way on.
    /// While the context is read every choice of the automaton counts, since the text may have been
    /// made by any; after it the automaton chooses. So this is a game, won when all of `next` has
    /// been read.
    ///
    /// The part of the stack that *is* known needs no exploration: what a nonterminal can read of
    /// `next` is a relation between positions of `next`, found once for all. So there is no
    /// greatest stack, and nothing is lost to one.
    ///
    /// Of the context, what is before a line's end or a mark of blocks is not looked at.
    ///
    /// Cost: (length of `next`)² times the size of the rules, times the length of the context.
    pub fn is_always_legal(&self, context: &[TerminalId], next: &[TerminalId]) -> bool {
        let layered = |terminal: &TerminalId| {
            self.newline == Some(*terminal) || self.marks.contains(terminal)
        };
        let begin = context.iter().rposition(layered).map_or(0, |at| at + 1);
        let Some((&first, context)) = context[begin..].split_first() else { return false };
        if next.is_empty() {
            return true;
        }
        if next.len() >= Self::MAX_TERMINALS
            || context.len() >= Self::MAX_TERMINALS
            || !self.rules.is_used(first)
            || next.iter().any(layered)
        {
            return false;
        }
        let game = Game {
            rules: &self.rules,
            context,
            reading: Reading::prefix(&self.rules, next),
            end: next.len(),
        };
        game.is_won_after(first)
    }

    /// The longest sequence that is looked at as a whole.
    pub const MAX_TERMINALS: usize = Reading::MAX_TERMINALS;
}

/// Unlimited credit exploration of one sequence.
struct Game<'a> {
    rules: &'a Rules,
    /// The context without its first terminal.
    context: &'a [TerminalId],
    reading: Reading,
    /// Position at which all is read.
    end: usize,
}

/// Ends of a part of a rule, over every way to read the context in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outcomes {
    /// Positions in the context, as bits: it goes on after the part.
    open: u64,
    /// Ways on which the context has ended: the positions of the sequence to which the automaton
    /// can then bring it, as bits. None contains another: the smaller is harder to win from.
    read: Vec<u64>,
}

impl Outcomes {
    /// More ways than are kept apart: they are then one that is won from nowhere.
    const MAX_WAYS: usize = 32;

    /// Adds a way; true when that changes anything.
    fn add(&mut self, positions: u64) -> bool {
        if self.read.iter().any(|&known| known & !positions == 0) {
            return false;
        }
        self.read.retain(|&known| positions & !known != 0);
        self.read.push(positions);
        if self.read.len() > Self::MAX_WAYS {
            self.read = vec![0];
        }
        true
    }

    fn add_all(&mut self, other: &Self) -> bool {
        let grown = other.open & !self.open != 0;
        self.open |= other.open;
        other.read.iter().fold(grown, |grown, &positions| self.add(positions) | grown)
    }
}

impl Game<'_> {
    fn is_won_after(&self, terminal: TerminalId) -> bool {
        let (of_heads, won) = (self.outcomes(), self.winning());
        // What has just ended, and where in the context: each of its places may come.
        let mut seen = vec![0_u64; self.rules.num_symbols()];
        let begin = self.begin();
        let mut waiting = vec![(terminal.index(), begin)];
        if self.rules.places(terminal.index()).is_empty() {
            return false;
        }
        while let Some((symbol, begin)) = waiting.pop() {
            for &(rule, place) in self.rules.places(symbol) {
                let rule = &self.rules.rules()[rule];
                let after = self.follow(begin.clone(), &rule.body[place + 1..], &of_heads);
                let head = rule.head.index();
                let wins = |&positions: &u64| positions & (won[head] | 1 << self.end) != 0;
                if !after.read.iter().all(wins) {
                    return false;
                }
                // After the start the text may be over, but then the context was never read.
                let ended = self.rules.num_terminals() + head;
                for at in bits(after.open & !seen[ended]) {
                    waiting.push((ended, Outcomes { open: 1 << at, read: Vec::new() }));
                }
                seen[ended] |= after.open;
            }
        }
        true
    }

    /// Outcome of having read nothing.
    fn begin(&self) -> Outcomes {
        match self.context {
            [] => Outcomes { open: 0, read: vec![1] },
            _ => Outcomes { open: 1, read: Vec::new() },
        }
    }

    /// Outcomes of a sequence of symbols.
    fn follow(&self, begin: Outcomes, symbols: &[Symbol], of_heads: &[Vec<Outcomes>]) -> Outcomes {
        let mut at = begin;
        for &symbol in symbols {
            let mut next = Outcomes::default();
            for &positions in &at.read {
                next.add(self.reading.read_one(positions, self.rules.index(symbol)));
            }
            for position in bits(at.open) {
                match symbol {
                    Symbol::Terminal(terminal) if self.context[position] == terminal => {
                        if position + 1 < self.context.len() {
                            next.open |= 1 << (position + 1);
                        } else {
                            next.add(1);
                        }
                    }
                    Symbol::Terminal(_) => {}
                    Symbol::Nonterminal(head) => {
                        next.add_all(&of_heads[head.index()][position]);
                    }
                }
            }
            at = next;
        }
        at
    }

    /// Outcomes of each nonterminal from each position in the context. Least fixpoint.
    fn outcomes(&self) -> Vec<Vec<Outcomes>> {
        let from_each = vec![Outcomes::default(); self.context.len()];
        let mut of_heads = vec![from_each; self.rules.num_nonterminals()];
        let mut changed = !self.context.is_empty();
        while changed {
            changed = false;
            for Rule { head, body } in self.rules.rules() {
                for position in 0..self.context.len() {
                    let begin = Outcomes { open: 1 << position, read: Vec::new() };
                    let after = self.follow(begin, body, &of_heads);
                    changed |= of_heads[head.index()][position].add_all(&after);
                }
            }
        }
        of_heads
    }

    /// Positions of the sequence, as bits by nonterminal, from which the game is won where that has
    /// just ended and the stack is unknown. Least fixpoint, so that going round in a circle without
    /// reading does not win.
    fn winning(&self) -> Vec<u64> {
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
        won
    }

    /// True when from every place of `symbol`, which has just ended, there is a way on.
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

/// Places of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}
