//! Left corners: the relation "may begin with" between nonterminals.

use super::graph::{Components, Graph};
use super::rule_list::{RuleList, is};
use crate::{NonterminalId, Symbol};

/// `A → αBβ` with `α` nullable makes `B` a left corner of `A`.
#[derive(Debug)]
pub(crate) struct LeftCorners {
    components: Components,
}

impl LeftCorners {
    /// The left corners of these rules; linear.
    pub(crate) fn new(list: &RuleList<'_>, nullable: &[bool]) -> Self {
        let mut edges = Vec::new();
        for rule in &list.rules {
            for &symbol in &*rule.body {
                if let Symbol::Nonterminal(corner) = symbol {
                    edges.push((rule.head.0, corner.0));
                }
                if !is(symbol, nullable) {
                    break;
                }
            }
        }
        Self { components: Graph::new(list.num_nonterminals, &edges).components() }
    }

    /// True when two nonterminals may begin each other, or are the same.
    pub(crate) fn together(&self, a: NonterminalId, b: NonterminalId) -> bool {
        self.components.together(a.0, b.0)
    }

    /// A number below that of the nonterminals which those have in common that may begin each
    /// other.
    pub(crate) fn component(&self, nonterminal: NonterminalId) -> usize {
        self.components.of[nonterminal.index()] as usize
    }
}
