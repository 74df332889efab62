//! Walks of residuals through a quotient trie, which grows as they need it.

use std::sync::PoisonError;

use hashbrown::HashMap;
use palmette_core::{VocabularyTrie, mask};
use palmette_grammar_regex::expressions::ExprId;

use super::Residuals;
use super::effect_computation::EffectComputation;
use super::mask_failure::MaskFailure;
use super::quotient_trie::{Child, Next, QuotientNode, QuotientTrie};
use super::residual_id::ResidualId;
use super::token_effect::{GuardedEnds, TokenEffect};
use super::transition_table::LocalId;
use crate::Budget;

/// Number of tokens below a node from which they are kept as a row; tests have few.
const MANY: usize = if cfg!(test) { 64 } else { 2048 };

/// A reference that tells apart so much is of no use.
const MAX_NODES: usize = 1 << 15;

impl QuotientTrie {
    /// Edges after a node; `None` where there are too many nodes.
    fn next(
        &self,
        residuals: &Residuals,
        trie: &VocabularyTrie,
        id: u32,
        budget: &mut Budget<'_>,
    ) -> Result<Option<&Next>, MaskFailure> {
        let node = self.node(id);
        if let Some(known) = node.next.get() {
            return Ok(Some(known));
        }
        let mut found: Vec<Group> = Vec::new();
        let mut dead = Vec::new();
        // By byte, the place in `found`.
        let mut after: [Option<Option<usize>>; 256] = [None; 256];
        for &member in &*node.members {
            for child in trie.children(member as usize) {
                budget.spend(1)?;
                let known = &mut after[usize::from(child.byte)];
                if known.is_none() {
                    *known = Some(match residuals.advance(node.residual, child.byte, budget)? {
                        None => {
                            dead.push(child.byte);
                            None
                        }
                        Some(next) => Some(Group::of(&mut found, next, child.byte)),
                    });
                }
                if let Some(place) = known.flatten() {
                    found[place].members.push(child.index as u32);
                    found[place].height =
                        found[place].height.max(residuals.shape.height(child.index));
                }
            }
        }
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = node.next.get() {
            return Ok(Some(known));
        }
        if self.nodes.count() + found.len() > MAX_NODES {
            return Ok(None);
        }
        let bytes = |found: &Group| {
            size_of_val(&*found.members) + found.bytes.len() + size_of::<(QuotientNode, Child)>()
        };
        residuals.add_bytes(dead.len() + found.iter().map(bytes).sum::<usize>());
        let children = found.into_iter().map(|Group { residual, bytes, members, height }| {
            let node = self.nodes.push(QuotientNode::new(residual, members, height));
            Child { node: node as u32, bytes: bytes.into() }
        });
        let children = children.collect();
        Ok(Some(node.next.get_or_init(|| Next { children, dead: dead.into() })))
    }
}

/// A node in the making.
struct Group {
    residual: ResidualId,
    bytes: Vec<u8>,
    members: Vec<u32>,
    height: u8,
}

impl Group {
    /// The place of the node for a residual that is reached by a byte.
    fn of(all: &mut Vec<Self>, residual: ResidualId, byte: u8) -> usize {
        let place = all.iter().position(|found| found.residual == residual).unwrap_or(all.len());
        if place == all.len() {
            all.push(Self { residual, bytes: Vec::new(), members: Vec::new(), height: 0 });
        }
        all[place].bytes.push(byte);
        place
    }
}

impl QuotientNode {
    /// Takes the tokens here and below out of a row.
    fn take_out(&self, residuals: &Residuals, trie: &VocabularyTrie, words: &mut [u32]) {
        let tokens = || self.members.iter().map(|&m| trie.tokens_in(trie.ranks(m as usize)));
        if self.below.get().is_none() && tokens().map(<[_]>::len).sum::<usize>() < MANY {
            tokens().flatten().for_each(|&token| mask::remove(words, token));
            return;
        }
        let row = self.below.get_or_init(|| {
            let mut row = vec![0; words.len()];
            tokens().flatten().for_each(|&token| mask::insert(&mut row, token));
            residuals.add_bytes(size_of_val(&*row));
            row.into()
        });
        words.iter_mut().zip(row).for_each(|(word, below)| *word &= !below);
    }
}

impl EffectComputation<'_, '_, '_> {
    /// Token effect of a residual that is its reference but for counts; `None` where it tells apart
    /// what the reference does not.
    pub(super) fn by_quotient(
        &mut self,
        residual: ResidualId,
        reference: ResidualId,
    ) -> Result<Option<TokenEffect>, MaskFailure> {
        if self.reads_numbers(residual)? || self.reads_numbers(reference)? {
            return Ok(None);
        }
        let (residuals, trie) = (self.residuals, self.trie);
        let known = residuals.effect(trie, self.num_words, reference, self.budget)?;
        let Some(ends) = &known.ends else { return Ok(None) };
        let quotient = residuals
            .residual(reference)
            .quotient
            .get_or_init(|| Box::new(QuotientTrie::new(reference)));
        let mut words = known.consumed.to_words(self.num_words);
        let (mut removed, mut agreed) = (Vec::new(), HashMap::new());
        let mut work = vec![(0, self.steps.number(residual)?)];
        while let Some((id, from)) = work.pop() {
            let Some(next) = quotient.next(residuals, trie, id, self.budget)? else {
                return Ok(None);
            };
            if self.after_all(from, &next.dead)? != Some(None) {
                return Ok(None);
            }
            for child in &*next.children {
                self.budget.spend(1)?;
                let node = quotient.node(child.node);
                let like = self.steps.number(node.residual)?;
                let own = match self.after_all(from, &child.bytes)? {
                    Some(Some(own)) => own,
                    Some(None) => {
                        node.take_out(residuals, trie, &mut words);
                        node.ends_below(trie, ends, &mut removed);
                        continue;
                    }
                    None => return Ok(None),
                };
                if own == like || self.agreement((own, like), &mut agreed)? >= Some(node.height) {
                    continue;
                }
                match (self.steps.ends(own), self.steps.ends(like)) {
                    (true, false) => return Ok(None),
                    (false, true) => {
                        let goes_on = |&&m: &&u32| trie.end(m as usize) > m as usize + 1;
                        removed.extend(node.members.iter().filter(goes_on));
                    }
                    _ => {}
                }
                work.push((child.node, own));
            }
        }
        let removed: Vec<_> = removed.into_iter().map(|node| (ExprId::ALL, node)).collect();
        self.like_reference(known, &words, &removed, &GuardedEnds::default())
    }

    /// Residual after any of these bytes: `None` where that is not the same for all, `Some(None)`
    /// where nothing is left, or there are none.
    fn after_all(
        &mut self,
        from: LocalId,
        bytes: &[u8],
    ) -> Result<Option<Option<LocalId>>, MaskFailure> {
        let classes = self.residuals.classes(self.steps.residual(from));
        let (mut seen, mut last, mut after) = ([0_u64; 4], None, None);
        for &byte in bytes {
            let class = classes.class(byte);
            if last == Some(class) || seen[class / 64] >> (class % 64) & 1 == 1 {
                continue;
            }
            (last, seen[class / 64]) = (Some(class), seen[class / 64] | 1 << (class % 64));
            let next = self.steps.advance(from, byte, self.budget)?;
            if *after.get_or_insert(next) != next {
                return Ok(None);
            }
        }
        Ok(Some(after.flatten()))
    }
}
