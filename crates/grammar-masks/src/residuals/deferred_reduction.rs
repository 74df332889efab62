//! Deferred reductions: they pop below what was read of a stack, and resume when more is read.
//!
//! On a stack of which only the top is known, tokens go on as far as the parser shifts their
//! lexemes. Where it would reduce by a rule that pops more than is known, what comes then is *deferred*:
//! where the tokens are, the head of the rule, and how many states are missing. As these are read,
//! what is deferred goes on, and ends or is deferred again. It is little once the first states are
//! read, brackets that close one after the other mostly, and the same for many stacks. What each
//! part of it finds is kept by itself ("Precomputing grammar masks": templates that pop, composed).

use hashbrown::HashMap;
use palmette_grammar_parser::glr::OpenReduction;
use palmette_grammar_parser::lr::StateId;

use super::layer_states::LayerId;
use super::lexemes::LexemeId;
use super::place::{ExceptionsId, Place};
use super::suffix_set::SuffixSetId;
use crate::tables::{IndexSet, table_bytes};
use crate::{NonterminalId, TerminalId};

/// Place of tokens when the parser reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ReductionSite {
    Place(Place),
    /// Before their first byte, in a terminal's lexeme, of which this is left, in a state of the
    /// layer.
    Within(LexemeId, TerminalId, LayerId),
}

/// Continuation after a reduction that pops more of the stack than is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DeferredReduction {
    pub(super) at: ReductionSite,
    pub(super) reduction: OpenReduction,
}

/// Result of a simulation with one state at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) suffix_set: SuffixSetId,
    pub(super) deferred: DeferredId,
}

/// Set of deferred reductions. A number into [`DeferredSets`]; equal numbers are equal sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DeferredId(u32);

/// Sets of deferred reductions of a grammar, with memos of their steps.
#[derive(Debug, Default)]
pub(super) struct DeferredSets {
    /// Ascending.
    sets: IndexSet<Box<[DeferredReduction]>>,
    /// With the state that is missing.
    pub(super) steps: HashMap<(DeferredId, StateId), Outcome>,
    /// With what a rule's head goes on.
    pub(super) reduced: HashMap<(ReductionSite, NonterminalId, StateId), Outcome>,
    bytes: usize,
}

impl DeferredReduction {
    /// Remaining reduction after some states that make no difference.
    pub(super) fn after(self, read: u32) -> Self {
        let OpenReduction { head, missing } = self.reduction;
        Self { reduction: OpenReduction { head, missing: missing - read }, ..self }
    }

    /// This reduction at a place of which some tokens do not count.
    pub(super) fn without(self, except: Option<ExceptionsId>) -> Self {
        match self.at {
            ReductionSite::Place(place) if except.is_some() => {
                Self { at: ReductionSite::Place(Place { except, ..place }), ..self }
            }
            _ => self,
        }
    }
}

impl DeferredSets {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        table_bytes::<Box<[DeferredReduction]>>(self.sets.len())
            + table_bytes::<(DeferredId, StateId, Outcome)>(self.steps.len())
            + table_bytes::<(ReductionSite, NonterminalId, StateId, Outcome)>(self.reduced.len())
            + self.bytes
    }

    pub(super) fn get(&self, id: DeferredId) -> &[DeferredReduction] {
        &self.sets[id.0 as usize]
    }

    /// The number of a set, in whatever order.
    pub(super) fn intern(&mut self, set: &mut Vec<DeferredReduction>) -> DeferredId {
        set.sort_unstable();
        set.dedup();
        let number = self.sets.get_index_of(set.as_slice()).unwrap_or_else(|| {
            self.bytes += size_of_val(set.as_slice());
            self.sets.insert_full(set.as_slice().into()).0
        });
        DeferredId(number as u32)
    }

    /// Number of states of which only the last decides how a set goes on; 0 where it is empty.
    pub(super) fn missing(&self, id: DeferredId) -> u32 {
        self.get(id).iter().map(|deferred| deferred.reduction.missing).min().unwrap_or(0)
    }
}
