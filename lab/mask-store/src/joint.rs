//! Rows that exactly the same stacks accept (step 6).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use palmette_core::TokenId;
use palmette_grammar_parser::blocks::{Letter, Line};
use palmette_grammar_parser::{Grammar, TerminalId};

use super::reading::Reading;
use super::rules::Rules;
use super::spelling::Spellings;

/// Classes of the sequences that may follow a terminal: those of one class are legal after the same
/// texts.
///
/// A text that ends with the terminal has left places in rules to return to, a stack of them, of
/// which the terminal's own is the topmost. Which stacks let a sequence be read is a regular
/// language: going down the stack, all that matters is which positions of the sequence can have
/// been reached, so there is a deterministic automaton, and two sequences are alike when theirs
/// accept the same stacks.
///
/// Sequences with a line's end or a mark of blocks are alone in their classes.
#[derive(Debug)]
pub(super) struct JointRows {
    rules: Rules,
    /// Places to return to on a shortest way to the end of the text, by nonterminal; `None` for the
    /// start.
    way_out: Vec<Option<(usize, usize)>>,
    /// Terminals of the layer between lexer and parser.
    layered: Vec<TerminalId>,
    classes: Mutex<HashMap<TerminalId, Classes>>,
}

/// Classes of the sequences after one terminal that came so far.
#[derive(Debug, Default)]
struct Classes {
    known: HashMap<Box<[TerminalId]>, usize>,
    /// Classes by the bits of the stacks that are tried first.
    alike: HashMap<Vec<u64>, Vec<usize>>,
    /// A member of each.
    members: Vec<StackAcceptor>,
}

/// Sequence with its automaton over stacks.
#[derive(Debug)]
struct StackAcceptor {
    reading: Reading,
    /// Position at which all is read.
    end: usize,
}

/// Stacks that are tried before two automata are compared, at most.
const MAX_TRIED: usize = 256;

/// Pairs of states after which the comparison of two automata is given up: they then count as
/// different.
const MAX_PAIRS: usize = 100_000;

impl JointRows {
    /// Cost: the size of the rules.
    pub(super) fn new(grammar: &Grammar) -> Self {
        let rules = Rules::new(grammar);
        let blocks = grammar.indentation();
        let layered = blocks
            .map_or_else(Vec::new, |blocks| vec![blocks.newline, blocks.indent, blocks.dedent]);
        let way_out = ways_out(&rules);
        Self { rules, way_out, layered, classes: Mutex::default() }
    }

    /// Rows whose sequences are the first of their classes among them.
    pub(super) fn represent(
        &self,
        rows: Spellings,
    ) -> impl Iterator<Item = (Vec<Letter>, Vec<TokenId>)> {
        let mut first: HashMap<(TerminalId, usize), Vec<Letter>> = HashMap::new();
        let mut classes = self.classes.lock().unwrap_or_else(PoisonError::into_inner);
        let rows: Vec<_> = rows
            .into_iter()
            .map(|(letters, tokens)| {
                let Some(class) = self.class(&letters, &mut classes) else {
                    return (letters, tokens);
                };
                let letters = first.entry(class).or_insert(letters);
                (letters.clone(), tokens)
            })
            .collect();
        rows.into_iter()
    }

    /// The class of a row's sequence: its first terminal, and a number.
    fn class(
        &self,
        letters: &[Letter],
        classes: &mut HashMap<TerminalId, Classes>,
    ) -> Option<(TerminalId, usize)> {
        let is_plain = |letter: &Letter| {
            letter.line == Line::OTHER && !self.layered.contains(&letter.terminal)
        };
        let (first, next) = letters.split_first()?;
        let (terminal, is_short) = (first.terminal, next.len() < Reading::MAX_TERMINALS);
        if !is_short || !letters.iter().all(is_plain) || !self.rules.is_used(terminal) {
            return None;
        }
        let next: Box<[TerminalId]> = next.iter().map(|letter| letter.terminal).collect();
        let classes = classes.entry(terminal).or_default();
        if let Some(&known) = classes.known.get(&next) {
            return Some((terminal, known));
        }
        let one = StackAcceptor { reading: Reading::prefix(&self.rules, &next), end: next.len() };
        let alike = classes.alike.entry(self.tried(terminal, &one)).or_default();
        let same = alike
            .iter()
            .copied()
            .find(|&class| self.accept_the_same(terminal, &one, &classes.members[class]));
        let class = same.unwrap_or_else(|| {
            classes.members.push(one);
            alike.push(classes.members.len() - 1);
            classes.members.len() - 1
        });
        classes.known.insert(next, class);
        Some((terminal, class))
    }

    /// The state of an automaton below a place: the positions that it can have reached, as bits;
    /// that of the end alone where it is there.
    fn below(&self, of: &StackAcceptor, (rule, place): (usize, usize), reached: u64) -> u64 {
        let body = &self.rules.rules()[rule].body[place + 1..];
        let symbols = body.iter().map(|&symbol| self.rules.index(symbol));
        let below = of.reading.read_from(reached, symbols);
        if below & (1 << of.end) != 0 { 1 << of.end } else { below }
    }

    fn head(&self, (rule, _): (usize, usize)) -> usize {
        self.rules.rules()[rule].head.index()
    }

    fn places(&self, nonterminal: usize) -> &[(usize, usize)] {
        self.rules.places(self.rules.num_terminals() + nonterminal)
    }

    /// Bits of some stacks, set where the stack is accepted: those of the terminal's places, alone
    /// and with each place below, and from there the shortest way out.
    fn tried(&self, terminal: TerminalId, of: &StackAcceptor) -> Vec<u64> {
        let tops = self.rules.places(terminal.index()).iter();
        let begun = tops.map(|&top| (self.head(top), self.below(of, top, 1)));
        let below = begun.flat_map(|(head, reached)| {
            let out = self.accepts_on_way_out(of, head, reached);
            let next = self.places(head).iter().map(move |&place| {
                let below = self.below(of, place, reached);
                self.accepts_on_way_out(of, self.head(place), below)
            });
            [out].into_iter().chain(next)
        });
        let mut bits = Vec::new();
        for (at, accepts) in below.take(MAX_TRIED).enumerate() {
            if at % 64 == 0 {
                bits.push(0);
            }
            bits[at / 64] |= u64::from(accepts) << (at % 64);
        }
        bits
    }

    fn accepts_on_way_out(&self, of: &StackAcceptor, mut head: usize, mut reached: u64) -> bool {
        while let Some(place) = self.way_out[head] {
            reached = self.below(of, place, reached);
            head = self.head(place);
        }
        reached & (1 << of.end) != 0
    }

    /// True when two automata accept the same stacks below a terminal.
    ///
    /// Cost: the number of pairs of states that some stack leads to, times the places of a symbol.
    fn accept_the_same(
        &self,
        terminal: TerminalId,
        one: &StackAcceptor,
        other: &StackAcceptor,
    ) -> bool {
        let mut seen: BTreeSet<(usize, u64, u64)> = BTreeSet::new();
        let tops = self.rules.places(terminal.index()).iter();
        let mut waiting: Vec<(usize, u64, u64)> = tops
            .map(|&top| (self.head(top), self.below(one, top, 1), self.below(other, top, 1)))
            .collect();
        while let Some(pair @ (head, left, right)) = waiting.pop() {
            let ends = [left & (1 << one.end) != 0, right & (1 << other.end) != 0];
            let is_settled = ends == [true; 2] || left == 0 && right == 0;
            if is_settled || !seen.insert(pair) {
                continue;
            }
            // The text may be over here, and more of it was asked for.
            if head == self.rules.start() && ends[0] != ends[1] || seen.len() > MAX_PAIRS {
                return false;
            }
            for &place in self.places(head) {
                let below = (
                    self.head(place),
                    self.below(one, place, left),
                    self.below(other, place, right),
                );
                waiting.push(below);
            }
        }
        true
    }
}

/// Places on shortest ways to the end of the text, by nonterminal.
fn ways_out(rules: &Rules) -> Vec<Option<(usize, usize)>> {
    let mut way_out = vec![None; rules.num_nonterminals()];
    let mut reached = vec![false; rules.num_nonterminals()];
    reached[rules.start()] = true;
    loop {
        // A round for each length: those of this one do not count yet.
        let before = reached.clone();
        for (number, rule) in rules.rules().iter().enumerate() {
            if !before[rule.head.index()] {
                continue;
            }
            for (place, &symbol) in rule.body.iter().enumerate() {
                let Some(part) = rules.index(symbol).checked_sub(rules.num_terminals()) else {
                    continue;
                };
                if !std::mem::replace(&mut reached[part], true) {
                    way_out[part] = Some((number, place));
                }
            }
        }
        if before == reached {
            return way_out;
        }
    }
}
