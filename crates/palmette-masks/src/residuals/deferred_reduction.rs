//! Deferred reductions: they pop below what was read of a stack, and resume when more is read.
//!
//! On a stack of which only the top is known, tokens go on as far as the parser shifts their lexemes. Where it would reduce by a rule that
//! pops more than is known, what comes then is *deferred*: where the tokens are, the head of the rule, and how many states are
//! missing. As these are read, what is deferred goes on, and ends or is deferred again. It is little once the first
//! states are read, brackets that close one after the other mostly, and the same for many stacks. What each part of it finds is
//! kept by itself ("Precomputing grammar masks": templates that pop, composed).

use hashbrown::HashMap;
use palmette_parser::glr::OpenReduction;
use palmette_parser::lr::StateId;

use super::Unread;
use super::layer_states::LayerId;
use super::lexemes::LexemeId;
use super::place::{ExceptId, Place};
use super::stack_simulation::{Memos, Outcome, StackSimulation};
use super::suffix_sets::{SuffixSet, SuffixSetId};
use crate::tables::{IndexSet, table_bytes};
use crate::{NonterminalId, TerminalId};

/// Place of tokens when the parser reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum At {
    Place(Place),
    /// Before their first byte, in a terminal's lexeme, of which this is left, in a state of the layer.
    Within(LexemeId, TerminalId, LayerId),
}

/// Continuation after a reduction that pops more of the stack than is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DeferredReduction {
    pub(super) at: At,
    pub(super) reduction: OpenReduction,
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
    steps: HashMap<(DeferredId, StateId), Outcome>,
    /// With what a rule's head goes on.
    reduced: HashMap<(At, NonterminalId, StateId), Outcome>,
    bytes: usize,
}

impl DeferredReduction {
    /// Remaining reduction after some states that make no difference.
    pub(super) fn after(self, read: u32) -> Self {
        let OpenReduction { head, missing } = self.reduction;
        Self { reduction: OpenReduction { head, missing: missing - read }, ..self }
    }

    /// This reduction at a place of which some tokens do not count.
    pub(super) fn without(self, except: Option<ExceptId>) -> Self {
        match self.at {
            At::Place(place) if except.is_some() => {
                Self { at: At::Place(Place { except, ..place }), ..self }
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
            + table_bytes::<(At, NonterminalId, StateId, Outcome)>(self.reduced.len())
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

impl Memos<'_, '_, '_> {
    /// Resumes a set of deferred reductions with the state that decides: the suffix sets found, as parts of one, and the set deferred then.
    pub(super) fn step(&mut self, deferred: DeferredId, state: StateId) -> Result<Outcome, Unread> {
        if let Some(&known) = self.suffix_sets.deferred.steps.get(&(deferred, state)) {
            return Ok(known);
        }
        let step = (deferred, state);
        let set: Box<[DeferredReduction]> = self.suffix_sets.deferred.get(deferred).into();
        let known = self.suffix_sets.deferred.missing(deferred);
        let (mut parts, mut rest) = (Vec::new(), Vec::new());
        for deferred in set {
            if deferred.reduction.missing > known {
                rest.push(deferred.after(known));
                continue;
            }
            let (at, except) = match deferred.at {
                At::Place(place) => (At::Place(Place { except: None, ..place }), place.except),
                at @ At::Within(..) => (at, None),
            };
            let mut found = self.reduced(at, deferred.reduction.head, state)?;
            if let Some(except) = except {
                let residuals = self.fixed.residuals;
                found.suffix_set = self.suffix_sets.without(found.suffix_set, except, residuals);
            }
            if found.suffix_set != SuffixSetId::NOTHING {
                parts.push(found.suffix_set);
            }
            let after = self.suffix_sets.deferred.get(found.deferred).iter();
            rest.extend(after.map(|deferred| deferred.without(except)));
        }
        let suffix_set = self.suffix_sets.intern(SuffixSet { parts, ..SuffixSet::default() });
        let found = Outcome { suffix_set, deferred: self.suffix_sets.deferred.intern(&mut rest) };
        self.suffix_sets.deferred.steps.insert(step, found);
        Ok(found)
    }

    /// Suffixes that are accepted once a rule's head is on top of a state.
    fn reduced(&mut self, at: At, head: NonterminalId, state: StateId) -> Result<Outcome, Unread> {
        if let Some(&known) = self.suffix_sets.deferred.reduced.get(&(at, head, state)) {
            return Ok(known);
        }
        let found = StackSimulation::on(self.reborrow(), state).read_reduced(at, head)?;
        self.suffix_sets.deferred.reduced.insert((at, head, state), found);
        Ok(found)
    }
}
