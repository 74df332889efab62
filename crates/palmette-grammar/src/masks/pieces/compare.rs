//! What tokens do to a piece, given what they do to another that it is mostly like.

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
        let (trie, pieces, mut left) = (at.trie, at.pieces, most);
        let mut path = vec![Pair { own: Some(root.0), like: Some(root.1), apart: false }];
        for first in 0..=u8::MAX {
            let Some(mut index) = trie.child(0, first) else { continue };
            // Most bytes do not tell the two apart; the nodes after them are not looked at.
            let own = at.steps.advance(root.0, first, at.budget)?;
            if deadly == 0 && own == at.steps.advance(root.1, first, at.budget)? {
                continue;
            }
            let last = trie.end(index);
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
                if left == 0 {
                    return Ok(None);
                }
                left -= 1;
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
        }
        Ok(Some(found))
    }

    /// These tokens do what they do to the model.
    fn restore(&mut self, tokens: &[TokenId]) {
        let words = &self.words;
        self.inserted.extend(tokens.iter().filter(|&&token| mask::contains(words, token)));
    }

    /// What tokens do to the piece.
    pub(super) fn like(mut self, at: &Analysing<'_, '_, '_>, model: &Analysis) -> Analysis {
        let mut removed = Vec::new();
        let mut ranges = self.removed.iter().peekable();
        for &end in &*model.ends {
            while ranges.next_if(|range| range.end <= end).is_some() {}
            removed.extend(ranges.peek().filter(|range| range.contains(&end)).map(|_| end));
        }
        at.like_model(model, self.stay(at, model), &removed, &self.added)
    }

    fn stay(&mut self, at: &Analysing<'_, '_, '_>, model: &Analysis) -> TokenSet {
        if self.deadly == 0 {
            return model.stay.changed(&self.denied, &self.inserted, at.num_words);
        }
        let words = &mut self.words;
        for group in 0..NUM_GROUPS {
            if self.deadly >> group & 1 == 1 {
                let having = at.pieces.shape.having(group);
                words.iter_mut().zip(having).for_each(|(word, having)| *word &= !having);
            }
        }
        remove(words, &self.denied);
        self.inserted.iter().for_each(|&token| mask::insert(words, token));
        TokenSet::of_words(words)
    }
}
