//! The rules as the analyses of terminals read them: only what can take part in a sentence, with
//! every place at which a symbol stands.

use palmette_grammar_parser::{Grammar, Rule, Symbol, TerminalId};

/// The rules of a grammar that some sentence uses.
///
/// A rule is left out when a symbol of its body derives no sequence of terminals, or when the start
/// does not reach its head. Every sequence of terminals that the analyses speak of is one *without*
/// ignored terminals.
#[derive(Clone, Debug)]
pub struct Rules {
    num_terminals: usize,
    num_nonterminals: usize,
    start: usize,
    rules: Vec<Rule>,
    /// Symbol `s` (terminals first) stands at `places[s]`, each a rule and an index into its body.
    places: Vec<Vec<(usize, usize)>>,
}

impl Rules {
    /// Rules of a grammar. Linear.
    pub fn new(grammar: &Grammar) -> Self {
        let rules = productive(grammar);
        let rules = reachable(grammar, rules);
        let mut reduced = Self {
            num_terminals: grammar.terminals().len(),
            num_nonterminals: grammar.nonterminals().len(),
            start: grammar.start().index(),
            rules,
            places: Vec::new(),
        };
        reduced.places = vec![Vec::new(); reduced.num_symbols()];
        for (number, rule) in reduced.rules.iter().enumerate() {
            for (place, &symbol) in rule.body.iter().enumerate() {
                let symbol = index(reduced.num_terminals, symbol);
                reduced.places[symbol].push((number, place));
            }
        }
        reduced
    }

    /// The rules, in a fixed order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Terminals of the grammar, used or not.
    pub fn num_terminals(&self) -> usize {
        self.num_terminals
    }

    /// Nonterminals of the grammar, used or not.
    pub fn num_nonterminals(&self) -> usize {
        self.num_nonterminals
    }

    /// Terminals and nonterminals.
    pub fn num_symbols(&self) -> usize {
        self.num_terminals + self.num_nonterminals
    }

    /// The start as an index of a nonterminal.
    pub fn start(&self) -> usize {
        self.start
    }

    /// A symbol as an index: terminals first, then nonterminals.
    pub fn index(&self, symbol: Symbol) -> usize {
        index(self.num_terminals, symbol)
    }

    /// Places of a symbol: rules with an index into their bodies.
    pub fn places(&self, symbol: usize) -> &[(usize, usize)] {
        &self.places[symbol]
    }

    /// True when some sentence has the terminal.
    pub fn is_used(&self, terminal: TerminalId) -> bool {
        !self.places[terminal.index()].is_empty()
    }
}

fn index(num_terminals: usize, symbol: Symbol) -> usize {
    match symbol {
        Symbol::Terminal(terminal) => terminal.index(),
        Symbol::Nonterminal(nonterminal) => num_terminals + nonterminal.index(),
    }
}

/// The rules whose symbols all derive something.
fn productive(grammar: &Grammar) -> Vec<Rule> {
    let mut derives = vec![false; grammar.nonterminals().len()];
    let complete = |rule: &Rule, derives: &[bool]| {
        rule.body.iter().all(|symbol| match symbol {
            Symbol::Terminal(_) => true,
            Symbol::Nonterminal(nonterminal) => derives[nonterminal.index()],
        })
    };
    let mut changed = true;
    while changed {
        changed = false;
        for rule in grammar.rules() {
            if !derives[rule.head.index()] && complete(rule, &derives) {
                derives[rule.head.index()] = true;
                changed = true;
            }
        }
    }
    grammar.rules().iter().filter(|rule| complete(rule, &derives)).cloned().collect()
}

/// The rules whose heads the start reaches, in a fixed order and each once.
fn reachable(grammar: &Grammar, rules: Vec<Rule>) -> Vec<Rule> {
    let mut of_head = vec![Vec::new(); grammar.nonterminals().len()];
    for rule in rules {
        let alternatives: &mut Vec<Rule> = &mut of_head[rule.head.index()];
        if !alternatives.contains(&rule) {
            alternatives.push(rule);
        }
    }
    let mut seen = vec![false; of_head.len()];
    seen[grammar.start().index()] = true;
    let (mut queue, mut kept) = (vec![grammar.start()], Vec::new());
    while let Some(head) = queue.pop() {
        for rule in std::mem::take(&mut of_head[head.index()]) {
            for symbol in &rule.body {
                if let &Symbol::Nonterminal(next) = symbol
                    && !std::mem::replace(&mut seen[next.index()], true)
                {
                    queue.push(next);
                }
            }
            kept.push(rule);
        }
    }
    kept
}
