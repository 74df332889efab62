//! Static analysis of a grammar: reachability, productivity, recursion, conflicts.
//!
//! [`analyse`] finds what its author would want to know; [`reduce`] drops what no sentence uses.
//! Terminals are taken to match something.

mod conflicts;
mod diagnostic;
mod recursion;

pub use conflicts::Conflict;
pub use diagnostic::{Diagnostic, Severity};

use palmette_grammar_regex::Budget;

use crate::lr::{TableLimits, Tables};
use crate::rules::{RuleList, nonterminals};
use crate::{Grammar, NonterminalId};
use recursion::Recursion;

/// Report of [`analyse`]. Lists of nonterminals ascend.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Nonterminals without a rule that a rule, or the start, mentions.
    pub undefined: Vec<NonterminalId>,
    /// Nonterminals that no text of the start uses.
    pub unreachable: Vec<NonterminalId>,
    /// Nonterminals that derive no text at all; the undefined ones are among them.
    pub unproductive: Vec<NonterminalId>,
    /// Nonterminals that derive the empty text.
    pub nullable: Vec<NonterminalId>,
    /// Nonterminals that may begin with themselves.
    pub left_recursive: Vec<NonterminalId>,
    /// Nonterminals among them that may do so behind something that derives the empty text: hidden
    /// left recursion.
    pub hidden_left_recursive: Vec<NonterminalId>,
    /// Nonterminals `A` that derive `A` alone, `A ⇒⁺ A`: their texts have infinitely many parses.
    pub cyclic: Vec<NonterminalId>,
    /// Conflicts of an LALR(1) parser, by state. Empty where the tables could not be built, which a
    /// diagnostic says.
    pub conflicts: Vec<Conflict>,
    /// Findings in words, errors first, then in the order of the fields above.
    pub diagnostics: Vec<Diagnostic>,
}

impl Analysis {
    /// True when the language is empty: a legal grammar that denies everything.
    pub fn is_empty_language(&self, grammar: &Grammar) -> bool {
        self.unproductive.contains(&grammar.start())
    }
}

/// Finds what is wrong or remarkable in a grammar.
///
/// All of it is linear in the rules but the conflicts, for which the parser's tables are built
/// within `limits` and `budget`; that they could not be is a diagnostic.
pub fn analyse(grammar: &Grammar, limits: &TableLimits, budget: &mut Budget<'_>) -> Analysis {
    let list = RuleList::new(grammar);
    let nonterminals_where = |holds: &dyn Fn(usize) -> bool| -> Vec<NonterminalId> {
        let all = 0..list.num_nonterminals;
        all.filter(|&at| holds(at)).map(|at| NonterminalId(at as u32)).collect()
    };
    let (reachable, productive, nullable) = (list.reachable(), list.productive(), list.nullable());
    let (mut defined, mut mentioned) =
        (vec![false; list.num_nonterminals], vec![false; list.num_nonterminals]);
    mentioned[list.start.index()] = true;
    for rule in &list.rules {
        defined[rule.head.index()] = true;
        nonterminals(&rule.body).for_each(|id| mentioned[id.index()] = true);
    }
    let recursion = Recursion::new(&list, &nullable);
    let tables = Tables::new(grammar, limits, budget);
    let mut analysis = Analysis {
        undefined: nonterminals_where(&|at| mentioned[at] && !defined[at]),
        unreachable: nonterminals_where(&|at| !reachable[at]),
        unproductive: nonterminals_where(&|at| !productive[at]),
        nullable: nonterminals_where(&|at| nullable[at]),
        left_recursive: nonterminals_where(&|at| recursion.left[at]),
        hidden_left_recursive: nonterminals_where(&|at| recursion.hidden[at]),
        cyclic: nonterminals_where(&|at| recursion.cyclic[at]),
        conflicts: tables.as_ref().map_or_else(|_| Vec::new(), conflicts::conflicts),
        diagnostics: Vec::new(),
    };
    analysis.diagnostics = diagnostic::diagnostics(grammar, &analysis, tables.err());
    analysis
}
