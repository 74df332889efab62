//! Terminals that the rules cannot tell apart (step 1).

use std::collections::BTreeMap;

use palmette_grammar_parser::{Grammar, Symbol, TerminalId};

use super::rules::Rules;

/// Sets of terminals that may replace each other at any place of any sentence.
///
/// `a` and `b` are in one set when for every rule with `a` at some place, the same rule with `b` at
/// that one place exists too, and the other way round. This asks more than that swapping *all* of
/// them leaves the rules as they are (`s: a a | b b` would pass): a history may hold `a` while the
/// token brings `b`.
///
/// Terminals that the layer between lexer and parser looks at are alone in their sets: ignored ones
/// and those of indentation.
#[derive(Clone, Debug)]
pub struct Interchange {
    /// The first of each terminal's set, by terminal.
    first: Vec<TerminalId>,
}

impl Interchange {
    /// Finds the sets. Cost: the size of the rules times the length of a rule.
    pub fn new(grammar: &Grammar) -> Self {
        Self::of_rules(grammar, &Rules::new(grammar))
    }

    pub(super) fn of_rules(grammar: &Grammar, rules: &Rules) -> Self {
        let mut first: Vec<_> = (0..rules.num_terminals() as u32).map(TerminalId).collect();
        let mut sets: BTreeMap<Vec<Context>, TerminalId> = BTreeMap::new();
        for terminal in first.clone() {
            if !rules.is_used(terminal) || is_special(grammar, terminal) {
                continue;
            }
            let set = sets.entry(contexts(rules, terminal)).or_insert(terminal);
            first[terminal.index()] = *set;
        }
        Self { first }
    }

    /// Every terminal is alone.
    pub(super) fn none(num_terminals: usize) -> Self {
        Self { first: (0..num_terminals as u32).map(TerminalId).collect() }
    }

    /// The terminal that stands for the set of `terminal`: its first.
    pub fn representative(&self, terminal: TerminalId) -> TerminalId {
        self.first[terminal.index()]
    }

    /// The sets of more than one terminal, in ascending order.
    pub fn sets(&self) -> Vec<Vec<TerminalId>> {
        let mut sets: BTreeMap<TerminalId, Vec<TerminalId>> = BTreeMap::new();
        for (terminal, &first) in self.first.iter().enumerate() {
            sets.entry(first).or_default().push(TerminalId(terminal as u32));
        }
        sets.into_values().filter(|set| set.len() > 1).collect()
    }
}

/// A rule with a hole: its head, what stands before the hole, what stands after it.
type Context = (usize, Vec<Symbol>, Vec<Symbol>);

fn contexts(rules: &Rules, terminal: TerminalId) -> Vec<Context> {
    let mut contexts: Vec<Context> = rules
        .places(terminal.index())
        .iter()
        .map(|&(rule, place)| {
            let rule = &rules.rules()[rule];
            (rule.head.index(), rule.body[..place].to_vec(), rule.body[place + 1..].to_vec())
        })
        .collect();
    contexts.sort_unstable();
    contexts
}

fn is_special(grammar: &Grammar, terminal: TerminalId) -> bool {
    grammar.ignored().contains(&terminal)
        || grammar.indentation().is_some_and(|blocks| {
            [blocks.newline, blocks.indent, blocks.dedent].contains(&terminal)
                || blocks.open.contains(&terminal)
                || blocks.close.contains(&terminal)
        })
}
