//! Rules on their way through the passes, and what is known of the nonterminals.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::{Grammar, NonterminalId, Symbol};

/// The rules of a grammar, borrowed until a pass rewrites them.
///
/// Nonterminals keep their ids; those that a pass adds come after the grammar's.
#[derive(Clone, Debug)]
pub(crate) struct RuleList<'g> {
    pub rules: Vec<ListedRule<'g>>,
    pub num_terminals: usize,
    pub num_nonterminals: usize,
    pub start: NonterminalId,
}

/// `head → body`.
#[derive(Clone, Debug)]
pub(crate) struct ListedRule<'g> {
    pub head: NonterminalId,
    pub body: Cow<'g, [Symbol]>,
    /// Place in [`Grammar::rules`], or that of the rule it was made from.
    pub origin: u32,
}

impl<'g> RuleList<'g> {
    /// All rules of a grammar.
    pub(crate) fn new(grammar: &'g Grammar) -> Self {
        let rules = grammar.rules().iter().zip(0..).map(|(rule, origin)| ListedRule {
            head: rule.head,
            body: Cow::Borrowed(&rule.body[..]),
            origin,
        });
        Self {
            rules: rules.collect(),
            num_terminals: grammar.terminals().len(),
            num_nonterminals: grammar.nonterminals().len(),
            start: grammar.start(),
        }
    }

    /// Drops the rules that no sentence uses, those said twice, and `A → A`.
    pub(crate) fn reduce(&mut self) {
        let productive = self.productive();
        self.rules.retain(|rule| productive[rule.head.index()] && all(&rule.body, &productive));
        let reachable = self.reachable();
        self.rules.retain(|rule| reachable[rule.head.index()]);
        let mut seen = HashSet::with_capacity(self.rules.len());
        let kept: Vec<bool> = self
            .rules
            .iter()
            .map(|rule| {
                let to_itself = *rule.body == [Symbol::Nonterminal(rule.head)];
                !to_itself && seen.insert((rule.head, &rule.body[..]))
            })
            .collect();
        let mut kept = kept.into_iter();
        self.rules.retain(|_| kept.next() == Some(true));
    }

    /// Nullability by nonterminal: true where it derives the empty text.
    pub(crate) fn nullable(&self) -> Vec<bool> {
        self.close(|symbol| matches!(symbol, Symbol::Nonterminal(_)))
    }

    /// Productivity by nonterminal: true where it derives any text at all, every terminal taken to
    /// match something.
    pub(crate) fn productive(&self) -> Vec<bool> {
        self.close(|_| true)
    }

    /// Reachability by nonterminal: true where it stands in something that the start derives.
    pub(crate) fn reachable(&self) -> Vec<bool> {
        let by_head = self.by_head();
        let mut reachable = vec![false; self.num_nonterminals];
        reachable[self.start.index()] = true;
        let mut work = vec![self.start];
        while let Some(head) = work.pop() {
            for rule in by_head.of(head) {
                for nonterminal in nonterminals(&self.rules[rule as usize].body) {
                    if !std::mem::replace(&mut reachable[nonterminal.index()], true) {
                        work.push(nonterminal);
                    }
                }
            }
        }
        reachable
    }

    /// The rules of each nonterminal.
    pub(crate) fn by_head(&self) -> ByHead {
        let mut first = vec![0_u32; self.num_nonterminals + 1];
        for rule in &self.rules {
            first[rule.head.index() + 1] += 1;
        }
        for head in 0..self.num_nonterminals {
            first[head + 1] += first[head];
        }
        let mut next = first.clone();
        let mut rules = vec![0; self.rules.len()];
        for (at, rule) in self.rules.iter().enumerate() {
            let place = &mut next[rule.head.index()];
            rules[*place as usize] = at as u32;
            *place += 1;
        }
        ByHead { first, rules }
    }

    /// The nonterminals of which some rule has only `allowed` terminals and such nonterminals;
    /// linear.
    fn close(&self, allowed: impl Fn(Symbol) -> bool) -> Vec<bool> {
        let mut holds = vec![false; self.num_nonterminals];
        let mut missing = vec![0_u32; self.rules.len()];
        let mut uses = Vec::new();
        let mut work = Vec::new();
        for (at, rule) in self.rules.iter().enumerate() {
            if !rule.body.iter().all(|&symbol| allowed(symbol)) {
                continue;
            }
            for nonterminal in nonterminals(&rule.body) {
                uses.push((nonterminal.0, at as u32));
                missing[at] += 1;
            }
            if missing[at] == 0 && !std::mem::replace(&mut holds[rule.head.index()], true) {
                work.push(rule.head);
            }
        }
        let uses = super::graph::Graph::new(self.num_nonterminals, &uses);
        while let Some(nonterminal) = work.pop() {
            for &at in uses.successors(nonterminal.0) {
                missing[at as usize] -= 1;
                let head = self.rules[at as usize].head;
                if missing[at as usize] == 0 && !std::mem::replace(&mut holds[head.index()], true) {
                    work.push(head);
                }
            }
        }
        holds
    }
}

/// The rules of each nonterminal, as places in a [`RuleList`].
#[derive(Clone, Debug)]
pub(crate) struct ByHead {
    first: Vec<u32>,
    rules: Vec<u32>,
}

impl ByHead {
    /// The rules of `head`, in order.
    pub(crate) fn of(&self, head: NonterminalId) -> impl Iterator<Item = u32> + use<'_> {
        let range = self.first[head.index()] as usize..self.first[head.index() + 1] as usize;
        self.rules[range].iter().copied()
    }
}

/// The nonterminals of a body.
pub(crate) fn nonterminals(body: &[Symbol]) -> impl Iterator<Item = NonterminalId> {
    body.iter().filter_map(|symbol| match symbol {
        Symbol::Nonterminal(id) => Some(*id),
        Symbol::Terminal(_) => None,
    })
}

/// True when `symbol` is a nonterminal of which `holds` says so.
pub(crate) fn is(symbol: Symbol, holds: &[bool]) -> bool {
    matches!(symbol, Symbol::Nonterminal(id) if holds[id.index()])
}

/// True when `holds` says so of all nonterminals of a body.
fn all(body: &[Symbol], holds: &[bool]) -> bool {
    nonterminals(body).all(|id| holds[id.index()])
}
