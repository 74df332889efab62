//! A plain Earley recogniser, over sequences of terminals and over all cuttings of a text.

use std::collections::BTreeSet;

use palmette_grammar_parser::{Grammar, Symbol, TerminalId};

/// A grammar whose sentences and their beginnings are recognised as Earley (1970) does it, item by
/// item.
///
/// Rules with a nonterminal that derives nothing are left out, so that every item stands for a
/// possible sentence.
#[derive(Clone, Debug)]
pub struct EarleyGrammar {
    rules: Vec<(u32, Vec<Symbol>)>,
    start: u32,
    num_terminals: usize,
}

/// The chart after some terminals: one set of items a place.
#[derive(Clone, Debug)]
pub struct Earley<'g> {
    grammar: &'g EarleyGrammar,
    sets: Vec<BTreeSet<Item>>,
}

/// A rule, how much of its body is read, and where it began.
pub(super) type Item = (usize, usize, usize);

/// Terminal that may be read at a place of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme {
    /// End of the lexeme.
    pub(super) end: usize,
    pub(super) terminal: TerminalId,
    /// True if it may also stand for nothing.
    pub(super) ignored: bool,
}

impl EarleyGrammar {
    /// The rules of `grammar` that can be finished.
    pub fn new(grammar: &Grammar) -> Self {
        let mut productive = BTreeSet::new();
        let can_be_finished = |body: &[Symbol], productive: &BTreeSet<u32>| {
            body.iter().all(|symbol| match symbol {
                Symbol::Terminal(_) => true,
                Symbol::Nonterminal(id) => productive.contains(&id.0),
            })
        };
        loop {
            let before = productive.len();
            for rule in grammar.rules() {
                if can_be_finished(&rule.body, &productive) {
                    productive.insert(rule.head.0);
                }
            }
            if productive.len() == before {
                break;
            }
        }
        let kept = grammar.rules().iter().filter(|rule| can_be_finished(&rule.body, &productive));
        Self {
            rules: kept.map(|rule| (rule.head.0, rule.body.clone())).collect(),
            start: grammar.start().0,
            num_terminals: grammar.terminals().len(),
        }
    }

    /// The chart before the first terminal.
    pub fn begin(&self) -> Earley<'_> {
        let mut sets = vec![self.first_items()];
        self.complete(&mut sets, 0);
        Earley { grammar: self, sets }
    }

    /// The terminals in rules that sentences use.
    pub fn used_terminals(&self) -> BTreeSet<TerminalId> {
        let mut heads = BTreeSet::from([self.start]);
        let mut terminals = BTreeSet::new();
        loop {
            let before = heads.len();
            for (head, body) in &self.rules {
                if heads.contains(head) {
                    for symbol in body {
                        match *symbol {
                            Symbol::Terminal(id) => terminals.insert(id),
                            Symbol::Nonterminal(id) => heads.insert(id.0),
                        };
                    }
                }
            }
            if heads.len() == before {
                return terminals;
            }
        }
    }

    /// The chart of a text of `length` places of which `lexemes` tells what may be read at each.
    pub(super) fn read_all(&self, lexemes: &[Vec<Lexeme>], length: usize) -> Vec<BTreeSet<Item>> {
        let mut sets = vec![BTreeSet::new(); length + 1];
        sets[0] = self.first_items();
        for from in 0..=length {
            self.complete(&mut sets, from);
            for lexeme in lexemes.get(from).into_iter().flatten() {
                let here = sets[from].clone();
                // The rules do not see what is ignored, even where they mention it.
                let read = if lexeme.ignored { here } else { self.scan(&here, lexeme.terminal) };
                sets[lexeme.end].extend(read);
            }
        }
        sets
    }

    /// The terminals that some item waits for.
    pub(super) fn expected(&self, items: &BTreeSet<Item>) -> BTreeSet<TerminalId> {
        let next: BTreeSet<Symbol> = items.iter().filter_map(|item| self.after(item)).collect();
        let all = (0..self.num_terminals as u32).map(TerminalId);
        all.filter(|&terminal| next.contains(&Symbol::Terminal(terminal))).collect()
    }

    /// True if the start is finished.
    pub(super) fn is_finished(&self, items: &BTreeSet<Item>) -> bool {
        let of_start = |item: &&Item| item.2 == 0 && self.rules[item.0].0 == self.start;
        items.iter().filter(of_start).any(|item| self.after(item).is_none())
    }

    fn first_items(&self) -> BTreeSet<Item> {
        let starts = self.rules.iter().enumerate().filter(|(_, (head, _))| *head == self.start);
        starts.map(|(rule, _)| (rule, 0, 0)).collect()
    }

    /// The items that have read `terminal`.
    fn scan(&self, items: &BTreeSet<Item>, terminal: TerminalId) -> BTreeSet<Item> {
        let waiting =
            items.iter().filter(|item| self.after(item) == Some(Symbol::Terminal(terminal)));
        waiting.map(|&(rule, dot, begun)| (rule, dot + 1, begun)).collect()
    }

    /// Predicts and completes at one place until nothing is new.
    fn complete(&self, sets: &mut [BTreeSet<Item>], here: usize) {
        loop {
            let mut new = BTreeSet::new();
            for item in &sets[here] {
                match self.after(item) {
                    Some(Symbol::Terminal(_)) => {}
                    Some(Symbol::Nonterminal(id)) => {
                        let rules = self.rules.iter().enumerate();
                        let predicted = rules.filter(|(_, (head, _))| *head == id.0);
                        new.extend(predicted.map(|(rule, _)| (rule, 0, here)));
                    }
                    None => {
                        let head = self.rules[item.0].0;
                        for waiting in &sets[item.2] {
                            let next = self.after(waiting);
                            if matches!(next, Some(Symbol::Nonterminal(id)) if id.0 == head) {
                                new.insert((waiting.0, waiting.1 + 1, waiting.2));
                            }
                        }
                    }
                }
            }
            let before = sets[here].len();
            sets[here].extend(new);
            if sets[here].len() == before {
                return;
            }
        }
    }

    /// The symbol that an item waits for.
    fn after(&self, item: &Item) -> Option<Symbol> {
        self.rules[item.0].1.get(item.1).copied()
    }
}

impl Earley<'_> {
    /// Reads a terminal; tells whether what was read still begins a sentence. If not, nothing is
    /// changed.
    pub fn read(&mut self, terminal: TerminalId) -> bool {
        let read = self.grammar.scan(self.last(), terminal);
        if read.is_empty() {
            return false;
        }
        self.sets.push(read);
        let here = self.sets.len() - 1;
        self.grammar.complete(&mut self.sets, here);
        true
    }

    /// The terminals that may follow.
    pub fn allowed(&self) -> BTreeSet<TerminalId> {
        self.grammar.expected(self.last())
    }

    /// True if what was read is a sentence.
    pub fn is_sentence(&self) -> bool {
        self.grammar.is_finished(self.last())
    }

    fn last(&self) -> &BTreeSet<Item> {
        &self.sets[self.sets.len() - 1]
    }
}
