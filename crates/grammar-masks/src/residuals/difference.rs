//! Difference of token effects: the product walk of a residual and its reference.
//!
//! A residual that is almost another does to most tokens what that one does. So both are walked
//! through the vocabulary trie together, and a subtree is left out where the two are equal, or
//! [equivalent](BoundedEquivalence) for its bytes and height: what tokens do there is what they do
//! to the reference.

use std::ops::Range;

use hashbrown::HashMap;
use palmette_core::vocabulary_trie::Visit;
use palmette_core::{NUMBER_MARK, mask};
use palmette_grammar_regex::expressions::ExprId;

use super::bounded_equivalence::BoundedEquivalence;
use super::effect_computation::EffectComputation;
use super::mask_failure::MaskFailure;
use super::residual_id::ResidualId;
use super::token_effect::{GuardedEnds, TokenEffect};
use super::transition_table::LocalId;

impl EffectComputation<'_, '_, '_> {
    /// Token effect of a residual as a difference from that of a reference; `None` where more than
    /// `most` nodes are left to both, or too many ends of a guarded one are not the reference's.
    /// What asks something of what follows is equal only where that is equal too.
    pub(super) fn difference(
        &mut self,
        residual: ResidualId,
        reference: ResidualId,
        equivalence: &BoundedEquivalence,
        most: usize,
    ) -> Result<Option<TokenEffect>, MaskFailure> {
        if self.reads_numbers(residual)? || self.reads_numbers(reference)? {
            return self.walk(residual, most);
        }
        let root = (self.steps.number(residual)?, self.steps.number(reference)?);
        let known = self.residuals.effect(self.trie, self.num_words, reference, self.budget)?;
        let mut words = known.consumed.to_words(self.num_words);
        let guarded = self.residuals.is_guarded(residual) || self.residuals.is_guarded(reference);
        // Nodes where the residual may end and the reference may not so, and the other way round;
        // subtrees that are dead to the residual.
        let (mut added, mut removed) = (GuardedEnds::default(), Vec::new());
        let mut dead: Vec<Range<u32>> = Vec::new();
        let (trie, shape) = (self.trie, &self.residuals.shape);
        let (mut path, mut agreed, mut left) = (Vec::new(), HashMap::new(), most);
        for first in 0..=u8::MAX {
            let Some(index) = trie.child(0, first) else { continue };
            // Most bytes do not tell the two apart; the nodes after them are not looked at.
            let own = self.steps.advance(root.0, first, self.budget)?;
            if own == self.steps.advance(root.1, first, self.budget)? {
                continue;
            }
            let above = (Some(root.0), Some(root.1));
            let ended = trie.walk(index..trie.end(index), above, &mut path, |node, &above| {
                self.budget.spend(1)?;
                let (index, end) = (node.index, trie.end(node.index));
                let own = self.steps.advance_if(above.0, node.byte, self.budget)?;
                let like = self.steps.advance_if(above.1, node.byte, self.budget)?;
                if own == like {
                    return Ok(Visit::Past);
                }
                if own.is_none() && !guarded {
                    let tokens = trie.tokens_in(trie.ranks(index));
                    tokens.iter().for_each(|&token| mask::remove(&mut words, token));
                    dead.push(index as u32..end as u32);
                    return Ok(Visit::Past);
                }
                if let Some(pair) = own.zip(like)
                    && (equivalence.holds(pair, shape.below(index), shape.height(index))
                        || !guarded
                            && self.agreement(pair, &mut agreed)? >= Some(shape.height(index)))
                {
                    return Ok(Visit::Past);
                }
                if left == 0 {
                    return Ok(Visit::Stop);
                }
                left -= 1;
                let tokens = trie.tokens_in(trie.own_ranks(index)).iter();
                match (own, like) {
                    (Some(_), None) => tokens.for_each(|&token| mask::insert(&mut words, token)),
                    (None, Some(_)) => tokens.for_each(|&token| mask::remove(&mut words, token)),
                    _ => {}
                }
                let ends = [own, like].map(|at| at.and_then(|at| self.steps.ends_if(at)));
                if end > index + 1 && ends[0] != ends[1] {
                    if let Some(condition) = ends[0] {
                        added.entry(condition).or_default().push(index as u32);
                    }
                    removed.extend(ends[1].map(|condition| (condition, index as u32)));
                }
                Ok::<_, MaskFailure>(Visit::Below((own, like)))
            })?;
            if !ended {
                return Ok(None);
            }
        }
        removed.extend(known.ends_in(&dead).into_iter().map(|node| (ExprId::ALL, node)));
        self.like_reference(known, &words, &removed, &added)
    }

    /// True where tokens are read by number. A token may be spelled by text too: what is taken out
    /// of a row since it is not consumed by the one may be consumed by the other.
    pub(super) fn reads_numbers(&mut self, residual: ResidualId) -> Result<bool, MaskFailure> {
        let root = self.steps.number(residual)?;
        Ok(self.steps.advance(root, NUMBER_MARK, self.budget)?.is_some())
    }

    /// Number of bytes, whatever they are, for which two residuals cannot be told apart; `None`
    /// where they differ at once.
    pub(super) fn agreement(
        &mut self,
        pair: (LocalId, LocalId),
        known: &mut HashMap<(LocalId, LocalId), Option<u8>>,
    ) -> Result<Option<u8>, MaskFailure> {
        if let Some(&known) = known.get(&pair) {
            return Ok(known);
        }
        let (own, like) = (self.steps.residual(pair.0), self.steps.residual(pair.1));
        let found = self.residuals.agreement(own, like, self.budget)?;
        known.insert(pair, found);
        Ok(found)
    }
}
