//! A plain Earley recogniser over sequences of terminals.

use std::collections::BTreeSet;

use palmette_grammar::{Grammar, Symbol, TerminalId};

/// A grammar whose sentences and their beginnings are recognised as Earley (1970) does it, item by item.
///
/// Rules with a nonterminal that derives nothing are left out, so that every item stands for a possible sentence.
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
type Item = (usize, usize, usize);

impl EarleyGrammar {
    /// The rules of `grammar` that can be finished.
    pub fn new(grammar: &Grammar) -> Self {
        let mut productive = BTreeSet::new();
        loop {
            let before = productive.len();
            for rule in grammar.rules() {
                let mut body = rule.body.iter();
                if body.all(|symbol| match symbol {
                    Symbol::Terminal(_) => true,
                    Symbol::Nonterminal(id) => productive.contains(&id.0),
                }) {
                    productive.insert(rule.head.0);
                }
            }
            if productive.len() == before {
                break;
            }
        }
        let kept = grammar.rules().iter().filter(|rule| {
            rule.body.iter().all(|symbol| match symbol {
                Symbol::Terminal(_) => true,
                Symbol::Nonterminal(id) => productive.contains(&id.0),
            })
        });
        Self {
            rules: kept.map(|rule| (rule.head.0, rule.body.clone())).collect(),
            start: grammar.start().0,
            num_terminals: grammar.terminals().len(),
        }
    }

    /// The chart before the first terminal.
    pub fn begin(&self) -> Earley<'_> {
        let starts = self.rules.iter().enumerate().filter(|(_, (head, _))| *head == self.start);
        let items = starts.map(|(rule, _)| (rule, 0, 0)).collect();
        let mut chart = Earley { grammar: self, sets: vec![items] };
        chart.complete();
        chart
    }
}

impl Earley<'_> {
    /// Reads a terminal; tells whether what was read still begins a sentence. If not, nothing is changed.
    pub fn read(&mut self, terminal: TerminalId) -> bool {
        let scanned: BTreeSet<Item> = self
            .last()
            .iter()
            .filter(|item| self.after(item) == Some(Symbol::Terminal(terminal)))
            .map(|&(rule, dot, begun)| (rule, dot + 1, begun))
            .collect();
        if scanned.is_empty() {
            return false;
        }
        self.sets.push(scanned);
        self.complete();
        true
    }

    /// The terminals that may follow.
    pub fn allowed(&self) -> BTreeSet<TerminalId> {
        let all = (0..self.grammar.num_terminals as u32).map(TerminalId);
        let next: BTreeSet<Symbol> =
            self.last().iter().filter_map(|item| self.after(item)).collect();
        all.filter(|&terminal| next.contains(&Symbol::Terminal(terminal))).collect()
    }

    /// Whether what was read is a sentence.
    pub fn is_sentence(&self) -> bool {
        self.last().iter().any(|item| {
            item.2 == 0
                && self.grammar.rules[item.0].0 == self.grammar.start
                && self.after(item).is_none()
        })
    }

    /// Predicts and completes until nothing is new.
    fn complete(&mut self) {
        let here = self.sets.len() - 1;
        loop {
            let mut new = BTreeSet::new();
            for item in &self.sets[here] {
                match self.after(item) {
                    Some(Symbol::Terminal(_)) => {}
                    Some(Symbol::Nonterminal(id)) => {
                        for (rule, (head, _)) in self.grammar.rules.iter().enumerate() {
                            if *head == id.0 {
                                new.insert((rule, 0, here));
                            }
                        }
                    }
                    None => {
                        let head = self.grammar.rules[item.0].0;
                        for waiting in &self.sets[item.2] {
                            let next = self.after(waiting);
                            if matches!(next, Some(Symbol::Nonterminal(id)) if id.0 == head) {
                                new.insert((waiting.0, waiting.1 + 1, waiting.2));
                            }
                        }
                    }
                }
            }
            let before = self.sets[here].len();
            self.sets[here].extend(new);
            if self.sets[here].len() == before {
                return;
            }
        }
    }

    fn last(&self) -> &BTreeSet<Item> {
        &self.sets[self.sets.len() - 1]
    }

    /// The symbol that an item waits for.
    fn after(&self, item: &Item) -> Option<Symbol> {
        self.grammar.rules[item.0].1.get(item.1).copied()
    }
}
