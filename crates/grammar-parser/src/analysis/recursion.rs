//! Recursion of nonterminals: left, hidden left, and cycles.

use crate::Symbol;
use crate::rules::{Graph, LeftCorners, RuleList, is};

/// Recursion, by nonterminal.
#[derive(Debug)]
pub(super) struct Recursion {
    /// `A ⇒⁺ A…`.
    pub(super) left: Vec<bool>,
    /// `A ⇒⁺ αA…` on a way on which something before a left corner derives the empty text.
    pub(super) hidden: Vec<bool>,
    /// `A ⇒⁺ A`.
    pub(super) cyclic: Vec<bool>,
}

impl Recursion {
    /// Linear, but for rules with several nullable symbols, each of which is tried as the rest's
    /// only text.
    pub(super) fn new(list: &RuleList<'_>, nullable: &[bool]) -> Self {
        let corners = LeftCorners::new(list, nullable);
        let mut left = vec![false; list.num_nonterminals];
        let mut hidden_components = vec![false; list.num_nonterminals];
        let mut units = Vec::new();
        for rule in &list.rules {
            let mut before_nullable = true;
            for (at, &symbol) in rule.body.iter().enumerate() {
                if let Symbol::Nonterminal(id) = symbol {
                    if before_nullable && corners.together(rule.head, id) {
                        left[rule.head.index()] = true;
                        if at > 0 {
                            hidden_components[corners.component(rule.head)] = true;
                        }
                    }
                    let mut others = rule.body[..at].iter().chain(&rule.body[at + 1..]);
                    if others.all(|&other| is(other, nullable)) {
                        units.push((rule.head.0, id.0));
                    }
                }
                before_nullable &= is(symbol, nullable);
            }
        }
        // Every member of a component with an edge inside leads back to itself, not only the heads
        // of such rules.
        let components = Graph::new(list.num_nonterminals, &units).components();
        let mut cyclic_components = vec![false; components.count as usize];
        for &(from, to) in &units {
            if components.together(from, to) {
                cyclic_components[components.of[from as usize] as usize] = true;
            }
        }
        let cyclic = components.of.iter().map(|&of| cyclic_components[of as usize]).collect();
        let all = (0..list.num_nonterminals as u32).map(crate::NonterminalId);
        let hidden = all.map(|id| hidden_components[corners.component(id)]).collect();
        Self { left, hidden, cyclic }
    }
}
