//! The successor relation between terminals (step 2).

use palmette_grammar_parser::{Grammar, Symbol, TerminalId};

use super::rules::Rules;

/// The relation "some sentence may have `b` right after `a`", from the directed graph of symbols.
///
/// The graph's nodes are the terminals and, for each nonterminal, its beginning and its end; an
/// edge leads from each to what a rule lets come next. Paths need not return to the rule they came
/// from, so the relation may be too large (where nonterminals derive the empty text), never too
/// small.
#[derive(Clone, Debug)]
pub struct Successors {
    num_terminals: usize,
    /// Bit `a * num_terminals + b`.
    follows: Vec<u64>,
}

impl Successors {
    /// Cost: number of terminals times the size of the rules.
    pub fn new(grammar: &Grammar) -> Self {
        Self::of_rules(&Rules::new(grammar), &[])
    }

    /// With the terminals of `invisible` read as the empty text.
    pub(super) fn of_rules(rules: &Rules, invisible: &[TerminalId]) -> Self {
        let graph = Graph::new(rules, invisible);
        let num_terminals = rules.num_terminals();
        let mut relation =
            Self { num_terminals, follows: vec![0; (num_terminals * num_terminals).div_ceil(64)] };
        for terminal in 0..num_terminals {
            graph.terminals_after(terminal, |next| {
                let bit = terminal * num_terminals + next;
                relation.follows[bit / 64] |= 1 << (bit % 64);
            });
        }
        relation
    }

    /// True when `next` can stand right after `terminal`.
    pub fn may_follow(&self, terminal: TerminalId, next: TerminalId) -> bool {
        let bit = terminal.index() * self.num_terminals + next.index();
        self.follows[bit / 64] & (1 << (bit % 64)) != 0
    }
}

/// Nodes: terminal `t` is `t`; nonterminal `n` begins at `T + 2n` and ends at `T + 2n + 1`.
struct Graph {
    num_terminals: usize,
    edges: Vec<Vec<usize>>,
    /// Nodes that are passed through: nonterminals' and invisible terminals'.
    passed: Vec<bool>,
}

impl Graph {
    fn new(rules: &Rules, invisible: &[TerminalId]) -> Self {
        let num_terminals = rules.num_terminals();
        let num_nodes = num_terminals + 2 * rules.num_nonterminals();
        let begin = |symbol: Symbol| match symbol {
            Symbol::Terminal(terminal) => terminal.index(),
            Symbol::Nonterminal(nonterminal) => num_terminals + 2 * nonterminal.index(),
        };
        let end = |symbol: Symbol| match symbol {
            Symbol::Terminal(terminal) => terminal.index(),
            Symbol::Nonterminal(nonterminal) => num_terminals + 2 * nonterminal.index() + 1,
        };
        let mut edges = vec![Vec::new(); num_nodes];
        for rule in rules.rules() {
            let head = Symbol::Nonterminal(rule.head);
            let mut at = begin(head);
            for &symbol in &rule.body {
                edges[at].push(begin(symbol));
                at = end(symbol);
            }
            edges[at].push(end(head));
        }
        for next in &mut edges {
            next.sort_unstable();
            next.dedup();
        }
        let mut passed = vec![true; num_nodes];
        for terminal in 0..num_terminals {
            passed[terminal] = invisible.contains(&TerminalId(terminal as u32));
        }
        Self { num_terminals, edges, passed }
    }

    fn terminals_after(&self, terminal: usize, mut visit: impl FnMut(usize)) {
        let mut seen = vec![false; self.edges.len()];
        let mut stack = vec![terminal];
        while let Some(node) = stack.pop() {
            for &next in &self.edges[node] {
                if std::mem::replace(&mut seen[next], true) {
                    continue;
                }
                if next < self.num_terminals {
                    visit(next);
                }
                if self.passed[next] {
                    stack.push(next);
                }
            }
        }
    }
}
