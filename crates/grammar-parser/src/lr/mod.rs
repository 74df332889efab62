//! LR tables: the LR(0) automaton of a grammar with LALR(1) lookaheads.
//!
//! [`RuleTable`] numbers the rules that sentences use and takes hidden left recursion out of them;
//! the automaton's states are sets of items; lookaheads are computed where a state has a choice;
//! [`Tables`] is what is left.
//!
//! LALR(1) merges states that LR(1) keeps apart, so a lookahead may hold terminals that cannot
//! follow in the case at hand. A parser may then reduce before it notices that a terminal is wrong,
//! but what is on its stack always begins a sentence, and it shifts a terminal only if that still
//! holds afterwards. So all answers are exact, those of grammars that are LR(1) and not LALR(1)
//! too; what such a grammar costs is a conflict, not an error.

mod automaton;
mod lookaheads;
mod rule_table;
mod tables;
mod unhide;

pub use automaton::StateId;
pub(crate) use rule_table::ItemId;
pub use rule_table::{RuleId, RuleTable};
pub(crate) use tables::Action;
pub use tables::Tables;

use palmette_grammar_regex::Interrupted;

/// Limits on the size of tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLimits {
    /// States of the automaton.
    pub max_states: usize,
    /// Items of all states together; and, apart from these, terminals of all lookahead sets
    /// together.
    pub max_items: usize,
}

impl Default for TableLimits {
    fn default() -> Self {
        Self { max_states: 1 << 20, max_items: 1 << 25 }
    }
}

/// Reason that there are no tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// More states than allowed.
    #[error("the parser of this grammar has more than {limit} states (limit `max_states`)")]
    TooManyStates {
        /// [`TableLimits::max_states`].
        limit: usize,
    },
    /// More items than allowed.
    #[error(
        "the states or lookaheads of this grammar's parser have more than {limit} items (limit `max_items`)"
    )]
    TooManyItems {
        /// [`TableLimits::max_items`].
        limit: usize,
    },
    /// The budget is used up, or the compilation was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}
