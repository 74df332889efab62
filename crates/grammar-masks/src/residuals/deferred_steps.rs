//! Steps of deferred reductions, as states that were missing are read.

use palmette_grammar_parser::lr::StateId;

use super::deferred_reduction::{DeferredId, DeferredReduction, Outcome, ReductionSite};
use super::mask_failure::MaskFailure;
use super::place::Place;
use super::simulation_context::Memos;
use super::stack_simulation::StackSimulation;
use super::suffix_set::{SuffixSet, SuffixSetId};
use crate::NonterminalId;

impl Memos<'_, '_, '_> {
    /// Resumes a set of deferred reductions with the state that decides: the suffix sets found, as
    /// parts of one, and the set deferred then.
    pub(super) fn step(
        &mut self,
        deferred: DeferredId,
        state: StateId,
    ) -> Result<Outcome, MaskFailure> {
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
                ReductionSite::Place(place) => {
                    (ReductionSite::Place(Place { except: None, ..place }), place.except)
                }
                at @ ReductionSite::Within(..) => (at, None),
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
    fn reduced(
        &mut self,
        at: ReductionSite,
        head: NonterminalId,
        state: StateId,
    ) -> Result<Outcome, MaskFailure> {
        if let Some(&known) = self.suffix_sets.deferred.reduced.get(&(at, head, state)) {
            return Ok(known);
        }
        let found = StackSimulation::on(self.reborrow(), state).read_reduced(at, head)?;
        self.suffix_sets.deferred.reduced.insert((at, head, state), found);
        Ok(found)
    }
}
