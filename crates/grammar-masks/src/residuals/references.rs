//! Reference residuals, and the choice of the one from which a token effect is a difference.

use palmette_grammar_regex::expressions::{Exceeded, Horizon};

use super::Residuals;
use super::bounded_equivalence::BoundedEquivalence;
use super::effect_computation::EffectComputation;
use super::mask_failure::MaskFailure;
use super::residual_id::ResidualId;
use crate::Budget;

/// A byte that is common in tokens: what it leads to again and again is where tokens are mostly
/// consumed.
const COMMON: u8 = b'e';

/// After so many common bytes a residual stays the same, or is taken for one that never does.
const COMMON_STEPS: usize = 3;

/// Number of references that are kept for all residuals. The first is any text.
const MAX_REFERENCES: usize = 4;

/// Number of guarded references, each of which is tried: grammars have some kinds of names, with
/// blanks before them and without.
const MAX_GUARDED_REFERENCES: usize = 8;

impl EffectComputation<'_, '_, '_> {
    /// The residual, of those that others are like, that takes the least to compare with.
    pub(super) fn best_reference(
        &mut self,
        residual: ResidualId,
    ) -> Result<Option<(ResidualId, BoundedEquivalence)>, MaskFailure> {
        let mut best: Option<(u64, ResidualId, BoundedEquivalence)> = None;
        for reference in self.residuals.references(self.budget)? {
            // One of them is compared with those before it, so that no two wait for each other.
            if reference == residual {
                break;
            }
            let equivalence = self.equivalence(residual, reference)?;
            let weight = equivalence.weight(&self.residuals.shape);
            // To look for a better one takes longer.
            if weight <= self.few() as u64 {
                return Ok(Some((reference, equivalence)));
            }
            if best.as_ref().is_none_or(|(least, ..)| weight < *least) {
                best = Some((weight, reference, equivalence));
            }
        }
        Ok(best.map(|(_, reference, equivalence)| (reference, equivalence)))
    }

    /// Residual by which tokens are mostly consumed: where common bytes lead again and again.
    pub(super) fn home(&mut self, residual: ResidualId) -> Result<Option<ResidualId>, MaskFailure> {
        let mut at = self.steps.number(residual)?;
        for _ in 0..COMMON_STEPS {
            match self.steps.advance(at, COMMON, self.budget)? {
                Some(next) if next == at => return Ok(Some(self.steps.residual(at))),
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(None)
    }
}

impl Residuals {
    /// The residual without counts and exceptions, if that is another.
    pub(super) fn relaxed(
        &self,
        residual: ResidualId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ResidualId>, Exceeded> {
        let mut growing = self.growing();
        let expr = self.residual(residual).expr;
        let simpler = growing.expressions.making(budget).relaxed(expr)?;
        let reference = self.intern(&mut growing, simpler, budget)?;
        Ok(reference.filter(|&reference| reference != residual))
    }

    /// Residuals that others are like.
    fn references(&self, budget: &mut Budget<'_>) -> Result<Vec<ResidualId>, Exceeded> {
        let mut growing = self.growing();
        if growing.references.is_empty() {
            let text = growing.expressions.making(budget).endless_text()?;
            let text = self.intern(&mut growing, text, budget)?;
            growing.references.extend(text);
        }
        Ok(growing.references.clone())
    }

    pub(super) fn add_reference(&self, residual: ResidualId) {
        let mut growing = self.growing();
        if growing.references.len() < MAX_REFERENCES && !growing.references.contains(&residual) {
            growing.references.push(residual);
        }
    }

    /// Guarded residuals that others are like, the newest first.
    pub(super) fn guarded_references(&self) -> Vec<ResidualId> {
        self.growing().guarded_references.iter().rev().copied().collect()
    }

    pub(super) fn add_guarded_reference(&self, residual: ResidualId) {
        let known = &mut self.growing().guarded_references;
        if known.len() == MAX_GUARDED_REFERENCES {
            known.pop_front();
        }
        known.push_back(residual);
    }

    /// Number of bytes, at most 254, for which two residuals cannot be told apart; `None` where
    /// they differ at once.
    pub(super) fn agreement(
        &self,
        a: ResidualId,
        b: ResidualId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<u8>, Exceeded> {
        let mut growing = self.growing();
        if let Some(&known) = growing.agreements.get(&(a, b)) {
            return Ok(known);
        }
        let exprs = [a, b].map(|residual| self.residual(residual).expr);
        let mut agree = |num_bytes: u8| {
            let [a, b] = exprs.map(|expr| {
                growing
                    .expressions
                    .making(budget)
                    .bounded_equivalent(expr, Horizon::of_bytes(num_bytes.into()))
            });
            Ok::<_, Exceeded>(a?.is_some_and(|a| b.as_ref().is_ok_and(|b| *b == Some(a))))
        };
        // What agrees for a while agrees for any shorter while.
        let (mut agreed, mut differs) = (None, 255);
        while agreed.map_or(0, |agreed| agreed + 1) < differs {
            let between = agreed.map_or(0, |agreed: u8| agreed + (differs - agreed) / 2);
            if agree(between)? {
                agreed = Some(between);
            } else {
                differs = between;
            }
        }
        growing.agreements.insert((a, b), agreed);
        Ok(agreed)
    }
}
