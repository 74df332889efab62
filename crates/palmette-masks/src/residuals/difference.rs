//! Token effect of a residual as a difference from that of another that it is mostly like.

use std::ops::Range;

use palmette_core::{TokenId, mask};

use super::Unread;
use super::bounded_equivalence::BoundedEquivalence;
use super::byte_groups::{Groups, NUM_GROUPS, group_bit};
use super::token_effect::{EffectComputation, TokenEffect};
use super::transitions::Local;
use crate::vocabulary::Visit;

/// Difference between a residual's token effect and that of its reference.
pub(super) struct Difference {
    /// The tokens consumed whole by the reference.
    words: Vec<u32>,
    /// Tokens with bytes of these groups are not consumed, but for those that are inserted.
    deadly: Groups,
    /// Tokens that are consumed whole.
    inserted: Vec<TokenId>,
    /// Tokens that do not.
    denied: Vec<TokenId>,
    /// Nodes where the residual may end and the reference may not.
    added: Vec<u32>,
    /// Nodes where the reference may end and the residual may not, in ascending order.
    removed: Vec<Range<u32>>,
}

/// Pair of residuals at a node: a residual's and its reference's.
#[derive(Clone, Copy)]
struct Pair {
    own: Option<Local>,
    like: Option<Local>,
    /// True when a byte on the way here told them apart without being deadly, where some are: all tokens from here
    /// on are inserted or denied, whatever the reference says.
    apart: bool,
}

impl Difference {
    /// Walks where the residual and its reference differ; `None` where more than `most` nodes are left to both.
    pub(super) fn walk(
        at: &mut EffectComputation<'_, '_, '_>,
        root: (Local, Local),
        equivalence: &BoundedEquivalence,
        reference: &TokenEffect,
        most: usize,
    ) -> Result<Option<Self>, Unread> {
        let deadly = equivalence.deadly;
        let mut found = Self {
            words: reference.consumed.to_words(at.num_words),
            deadly,
            inserted: Vec::new(),
            denied: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
        };
        let mut walk = Walk { at, equivalence, left: most, found: &mut found, path: Vec::new() };
        let is_done = match equivalence.is_closed {
            true => walk.where_told_apart(root, reference)?,
            false => walk.everywhere(root)?,
        };
        Ok(is_done.then_some(found))
    }

    /// These tokens do what they do to the reference.
    fn restore(&mut self, tokens: &[TokenId]) {
        let words = &self.words;
        self.inserted.extend(tokens.iter().filter(|&&token| mask::contains(words, token)));
    }

    /// Token effect of the residual.
    pub(super) fn like(
        mut self,
        at: &EffectComputation<'_, '_, '_>,
        reference: &TokenEffect,
    ) -> TokenEffect {
        self.removed.sort_unstable_by_key(|range| range.start);
        let removed = reference.ends_in(&self.removed);
        self.added.sort_unstable();
        let words = &mut self.words;
        if self.deadly != 0 {
            at.residuals.add_bytes(at.residuals.shape.take_out(self.deadly, words));
        }
        self.denied.iter().for_each(|&token| mask::remove(words, token));
        self.inserted.iter().for_each(|&token| mask::insert(words, token));
        at.like_reference(reference, words, &removed, &self.added)
    }
}

/// A walk in the making.
struct Walk<'w, 'a, 'b, 'c> {
    at: &'w mut EffectComputation<'a, 'b, 'c>,
    equivalence: &'w BoundedEquivalence,
    /// Number of nodes that may still be left to both.
    left: usize,
    found: &'w mut Difference,
    /// Pairs at the nodes down to the one above that which is walked next.
    path: Vec<Pair>,
}

impl Walk<'_, '_, '_, '_> {
    /// Walks the whole vocabulary; `false` where too many nodes are left.
    fn everywhere(&mut self, root: (Local, Local)) -> Result<bool, Unread> {
        let trie = self.at.trie;
        let above = Pair { own: Some(root.0), like: Some(root.1), apart: false };
        for first in 0..=u8::MAX {
            let Some(index) = trie.child(0, first) else { continue };
            // Most bytes do not tell the two apart; the nodes after them are not looked at.
            let own = self.at.steps.advance(root.0, first, self.at.budget)?;
            if self.found.deadly == 0
                && own == self.at.steps.advance(root.1, first, self.at.budget)?
            {
                continue;
            }
            if !self.below(index, above)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Walks from the nodes on at which the first byte may tell the two apart, where that is known of all others; `false` where too
    /// many nodes are left.
    fn where_told_apart(
        &mut self,
        root: (Local, Local),
        reference: &TokenEffect,
    ) -> Result<bool, Unread> {
        let (trie, shape) = (self.at.trie, &self.at.residuals.shape);
        let (telling, deadly) = (self.equivalence.telling, self.equivalence.deadly);
        let leads_on = |group: &usize| (telling & !deadly) >> group & 1 == 1;
        let (mut above, mut pair) = (0, root);
        for group in (0..NUM_GROUPS).filter(leads_on) {
            for &node in shape.nodes(group) {
                let index = node as usize;
                if shape.above(index) & telling != 0 {
                    continue;
                }
                let parent = shape.parent(index);
                if parent != above {
                    let Some(found) = self.pair_at(root, parent)? else { continue };
                    (above, pair) = (parent, found);
                }
                // At the node above nothing has told them apart.
                let at_above = Pair { own: Some(pair.0), like: Some(pair.1), apart: false };
                if !self.below(index, at_above)? {
                    return Ok(false);
                }
            }
        }
        if deadly != 0 {
            for &end in &*reference.ends {
                let mut first = end as usize;
                while shape.above(first) & telling != 0 {
                    first = shape.parent(first);
                }
                if group_bit(trie.node(first).byte) & deadly != 0 {
                    self.found.removed.push(end..end + 1);
                }
            }
        }
        Ok(true)
    }

    /// Pair at a node; `None` where they are not told apart below it, whatever comes.
    fn pair_at(
        &mut self,
        root: (Local, Local),
        node: usize,
    ) -> Result<Option<(Local, Local)>, Unread> {
        let mut pair = root;
        let mut bytes = Vec::new();
        let mut at = node;
        while at != 0 {
            bytes.push(self.at.trie.node(at).byte);
            at = self.at.residuals.shape.parent(at);
        }
        for &byte in bytes.iter().rev() {
            let own = self.at.steps.advance(pair.0, byte, self.at.budget)?;
            let like = self.at.steps.advance(pair.1, byte, self.at.budget)?;
            match own.zip(like) {
                Some(next) if own != like => pair = next,
                _ => return Ok(None),
            }
        }
        Ok(Some(pair))
    }

    /// Walks a node and all below it, where `above` is the pair at the one above it.
    fn below(&mut self, node: usize, above: Pair) -> Result<bool, Unread> {
        let Self { at, equivalence, left, found, path } = self;
        let (trie, residuals) = (at.trie, at.residuals);
        let deadly = found.deadly;
        trie.walk(node..trie.end(node), above, path, |node, &above| {
            at.budget.spend(1)?;
            let (index, end) = (node.index, trie.end(node.index));
            let own = at.steps.advance_if(above.own, node.byte, at.budget)?;
            let like = at.steps.advance_if(above.like, node.byte, at.budget)?;
            let bit = group_bit(node.byte);
            let apart = above.apart || deadly != 0 && equivalence.telling & !deadly & bit != 0;
            if own == like {
                if apart && own.is_some() {
                    found.restore(trie.tokens_in(trie.ranks(index)));
                }
                return Ok(Visit::Past);
            }
            let Some(own) = own else {
                if apart || deadly & bit == 0 {
                    found.denied.extend_from_slice(trie.tokens_in(trie.ranks(index)));
                }
                found.removed.push(index as u32..end as u32);
                return Ok(Visit::Past);
            };
            if let Some(like) = like {
                let (below, height) = (residuals.shape.below(index), residuals.shape.height(index));
                if equivalence.holds((own, like), below, height) {
                    if apart {
                        found.restore(trie.tokens_in(trie.ranks(index)));
                    }
                    return Ok(Visit::Past);
                }
            }
            if *left == 0 {
                return Ok(Visit::Stop);
            }
            *left -= 1;
            if apart || like.is_none() {
                found.inserted.extend_from_slice(trie.tokens_in(trie.own_ranks(index)));
            }
            if end > index + 1 {
                let ends = like.is_some_and(|like| at.steps.ends(like));
                match (at.steps.ends(own), ends) {
                    (true, false) => found.added.push(index as u32),
                    (false, true) => found.removed.push(index as u32..index as u32 + 1),
                    _ => {}
                }
            }
            Ok(Visit::Below(Pair { own: Some(own), like, apart }))
        })
    }
}
