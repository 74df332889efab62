//! Token effect of a piece as a difference from that of another that it is mostly like.

use std::ops::Range;

use palmette_core::{TokenId, mask};

use super::Unread;
use super::alike::Alike;
use super::analysis::{Analysing, Analysis};
use super::byte_groups::{Groups, NUM_GROUPS, group_bit};
use super::steps::Local;
use super::token_set::{TokenSet, remove};

/// How a piece differs from its model.
pub(super) struct Comparison {
    /// The tokens that stay within the model, where some bytes are deadly.
    words: Vec<u32>,
    /// Tokens with bytes of these groups do not stay, but for those that are inserted.
    deadly: Groups,
    /// Tokens that stay.
    inserted: Vec<TokenId>,
    /// Tokens that do not.
    denied: Vec<TokenId>,
    /// Nodes where the piece may end and the model may not.
    added: Vec<u32>,
    /// Nodes where the model may end and the piece may not, in ascending order.
    removed: Vec<Range<u32>>,
}

/// What is left of both at a node.
#[derive(Clone, Copy)]
struct Pair {
    own: Option<Local>,
    like: Option<Local>,
    /// Whether a byte on the way here told them apart without being deadly, where some are: all tokens from here
    /// on are inserted or denied, whatever the model says.
    apart: bool,
}

impl Comparison {
    /// Walks where the piece and its model differ; `None` where more than `most` nodes are left to both.
    pub(super) fn walk(
        at: &mut Analysing<'_, '_, '_>,
        root: (Local, Local),
        alike: &Alike,
        model: &Analysis,
        most: usize,
    ) -> Result<Option<Self>, Unread> {
        let deadly = alike.deadly;
        let mut found = Self {
            words: if deadly == 0 { Vec::new() } else { model.stay.to_words(at.num_words) },
            deadly,
            inserted: Vec::new(),
            denied: Vec::new(),
            added: Vec::new(),
            removed: Vec::new(),
        };
        let mut walk = Walk { at, alike, left: most, found: &mut found, path: Vec::new() };
        let is_done = match alike.is_closed {
            true => walk.where_told_apart(root, model)?,
            false => walk.everywhere(root)?,
        };
        Ok(is_done.then_some(found))
    }

    /// These tokens do what they do to the model.
    fn restore(&mut self, tokens: &[TokenId]) {
        let words = &self.words;
        self.inserted.extend(tokens.iter().filter(|&&token| mask::contains(words, token)));
    }

    /// What tokens do to the piece.
    pub(super) fn like(mut self, at: &Analysing<'_, '_, '_>, model: &Analysis) -> Analysis {
        self.removed.sort_unstable_by_key(|range| range.start);
        let removed = model.ends_in(&self.removed);
        self.added.sort_unstable();
        at.like_model(model, self.stay(at, model), &removed, &self.added)
    }

    fn stay(&mut self, at: &Analysing<'_, '_, '_>, model: &Analysis) -> TokenSet {
        if self.deadly == 0 {
            return model.stay.changed(&self.denied, &self.inserted, at.num_words);
        }
        let words = &mut self.words;
        at.pieces.add_bytes(at.pieces.shape.take_out(self.deadly, words));
        remove(words, &self.denied);
        self.inserted.iter().for_each(|&token| mask::insert(words, token));
        TokenSet::of_words(words)
    }
}

/// A walk in the making.
struct Walk<'w, 'a, 'b, 'c> {
    at: &'w mut Analysing<'a, 'b, 'c>,
    alike: &'w Alike,
    /// How many more nodes may be left to both.
    left: usize,
    found: &'w mut Comparison,
    /// What is left at the nodes down to the one above that which is walked next.
    path: Vec<Pair>,
}

impl Walk<'_, '_, '_, '_> {
    /// Walks the whole vocabulary; `false` where too many nodes are left.
    fn everywhere(&mut self, root: (Local, Local)) -> Result<bool, Unread> {
        let trie = self.at.trie;
        self.path.push(Pair { own: Some(root.0), like: Some(root.1), apart: false });
        for first in 0..=u8::MAX {
            let Some(index) = trie.child(0, first) else { continue };
            // Most bytes do not tell the two apart; the nodes after them are not looked at.
            let own = self.at.steps.advance(root.0, first, self.at.budget)?;
            if self.found.deadly == 0
                && own == self.at.steps.advance(root.1, first, self.at.budget)?
            {
                continue;
            }
            if !self.below(index)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Walks from the nodes on at which the first byte may tell the two apart, where that is known of all others; `false` where too
    /// many nodes are left.
    fn where_told_apart(&mut self, root: (Local, Local), model: &Analysis) -> Result<bool, Unread> {
        let (trie, shape) = (self.at.trie, &self.at.pieces.shape);
        let (telling, deadly) = (self.alike.telling, self.alike.deadly);
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
                let depth = trie.node(index).depth;
                let at_above = Pair { own: Some(pair.0), like: Some(pair.1), apart: false };
                self.path.clear();
                self.path.resize(depth, at_above);
                if !self.below(index)? {
                    return Ok(false);
                }
            }
        }
        if deadly != 0 {
            for &end in &*model.ends {
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

    /// What is left of both at a node; `None` where they are not told apart below it, whatever comes.
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
            at = self.at.pieces.shape.parent(at);
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

    /// Walks a node and all below it.
    fn below(&mut self, node: usize) -> Result<bool, Unread> {
        let Self { at, alike, left, found, path } = self;
        let (trie, pieces) = (at.trie, at.pieces);
        let deadly = found.deadly;
        let (mut index, last) = (node, trie.end(node));
        while index < last {
            at.budget.spend(1)?;
            let node = trie.node(index);
            path.truncate(node.depth);
            let above = path[node.depth - 1];
            let own = at.steps.advance_if(above.own, node.byte, at.budget)?;
            let like = at.steps.advance_if(above.like, node.byte, at.budget)?;
            let bit = group_bit(node.byte);
            let apart = above.apart || deadly != 0 && alike.telling & !deadly & bit != 0;
            let end = trie.end(index);
            if own == like {
                if apart && own.is_some() {
                    found.restore(trie.tokens_in(trie.ranks(index)));
                }
                index = end;
                continue;
            }
            let Some(own) = own else {
                if apart || deadly & bit == 0 {
                    found.denied.extend_from_slice(trie.tokens_in(trie.ranks(index)));
                }
                found.removed.push(index as u32..end as u32);
                index = end;
                continue;
            };
            if let Some(like) = like {
                let (below, height) = (pieces.shape.below(index), pieces.shape.height(index));
                if alike.holds((own, like), below, height) {
                    if apart {
                        found.restore(trie.tokens_in(trie.ranks(index)));
                    }
                    index = end;
                    continue;
                }
            }
            if *left == 0 {
                return Ok(false);
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
            path.push(Pair { own: Some(own), like, apart });
            index += 1;
        }
        Ok(true)
    }
}
