//! One walk over the vocabulary for each piece.
//!
//! Where few tokens are left of a piece, its walk is short. Others are mostly like one that is known already (its *model*,
//! [`models`](super::models)): a string of at most forty more characters like one of any length, a string in which a date is
//! found like any string. Then the walk goes through both at once ([`compare`](super::compare)), and leaves out each part of
//! the vocabulary where nothing can tell them apart.

use palmette_core::TokenId;
use std::sync::Arc;

use super::alike::Alike;
use super::compare::{Comparison, Counts};
use super::steps::{Local, Steps};
use super::suffixes::SuffixId;
use super::token_set::TokenSet;
use super::{PieceId, Pieces, Unread};
use crate::Budget;
use crate::vocabulary::VocabularyTrie;

/// What tokens do to a lexeme in progress.
#[derive(Debug)]
pub(super) struct Analysis {
    /// The tokens after which the lexeme goes on, or has just ended.
    pub(super) stay: TokenSet,
    /// What may be left of a token when the lexeme has ended within it, not at its front.
    pub(super) suffixes: Box<[(SuffixId, Option<Arc<Except>>)]>,
    /// The nodes of the vocabulary's trie where it may have, with more to come; ascending.
    pub(super) ends: Box<[u32]>,
}

/// A walk is short while no more than one node of so many is left to it.
const SHORT: usize = 200;

/// Tokens of a trie of suffixes that do not count, each with the length of its suffix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Except {
    /// Ascending.
    pub(super) tokens: Box<[(TokenId, u32)]>,
}

impl Except {
    /// Whether the token does not count where so many bytes are left of it.
    pub(super) fn contains(&self, token: TokenId, left: u32) -> bool {
        self.tokens.binary_search(&(token, left)).is_ok()
    }
}

impl Pieces {
    /// What tokens do to a piece, where `num_words` are those of a mask row.
    pub(super) fn analysis(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        piece: PieceId,
        budget: &mut Budget<'_>,
    ) -> Result<&Analysis, Unread> {
        let memo = &self.piece(piece).analysis;
        if let Some(known) = memo.get() {
            return Ok(known);
        }
        let mut at = Analysing { pieces: self, trie, num_words, steps: Steps::new(self), budget };
        let found = at.find(piece)?;
        let except: usize = found
            .suffixes
            .iter()
            .flat_map(|(_, except)| except)
            .map(|except| size_of_val(&*except.tokens))
            .sum();
        let bytes = found.stay.memory_bytes() + size_of_val(&*found.ends) + except;
        self.bytes.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        Ok(memo.get_or_init(|| Box::new(found)))
    }
}

/// A walk for one piece.
pub(super) struct Analysing<'a, 'b, 'c> {
    pub(super) pieces: &'a Pieces,
    pub(super) trie: &'a VocabularyTrie,
    pub(super) num_words: usize,
    pub(super) steps: Steps<'a>,
    pub(super) budget: &'b mut Budget<'c>,
}

impl Analysing<'_, '_, '_> {
    fn find(&mut self, piece: PieceId) -> Result<Analysis, Unread> {
        let home = self.home(piece)?;
        let few = self.trie.num_nodes() / SHORT;
        // Where common bytes may come again and again, tokens are many.
        if home.is_none()
            && let Some(found) = self.walk(piece, few)?
        {
            return Ok(found);
        }
        match home {
            Some(home) if home != piece => return self.like(piece, home, Counts::Same),
            Some(_) => {}
            None => {
                if let Some(simpler) = self.pieces.relaxed(piece, self.budget)? {
                    let counts = self.counts(piece, simpler)?;
                    return self.like(piece, simpler, counts);
                }
            }
        }
        let hub = self.hub(piece)?;
        if home == Some(piece) {
            self.pieces.add_hub(piece);
        }
        let found = match hub {
            Some((hub, alike)) => self.compare(piece, hub, &alike, Counts::Same, usize::MAX)?,
            None => self.walk(piece, usize::MAX)?,
        };
        Ok(found.expect("there are no more nodes"))
    }

    /// What tokens do to a piece that is like another.
    fn like(&mut self, piece: PieceId, model: PieceId, counts: Counts) -> Result<Analysis, Unread> {
        let most = match counts {
            Counts::Differ => usize::MAX,
            Counts::Same => self.trie.num_nodes() / SHORT,
        };
        if let Some(found) = self.compare(piece, model, &Alike::default(), counts, most)? {
            return Ok(found);
        }
        let alike = self.alike(piece, model)?;
        let found = self.compare(piece, model, &alike, Counts::Same, usize::MAX)?;
        Ok(found.expect("there are no more nodes"))
    }

    fn compare(
        &mut self,
        piece: PieceId,
        model: PieceId,
        alike: &Alike,
        counts: Counts,
        most: usize,
    ) -> Result<Option<Analysis>, Unread> {
        let pair = (self.steps.number(piece)?, self.steps.number(model)?);
        let known = self.pieces.analysis(self.trie, self.num_words, model, self.budget)?;
        let found = Comparison::walk(self, pair, alike, counts, known, most)?;
        Ok(found.map(|found| found.like(self, known)))
    }

    /// Walks all tokens through a piece; `None` where more than `most` nodes are left of them.
    fn walk(&mut self, piece: PieceId, most: usize) -> Result<Option<Analysis>, Unread> {
        let (mut stay, mut ends) = (Vec::new(), Vec::new());
        let (trie, mut path) = (self.trie, vec![self.steps.number(piece)?]);
        let (mut index, mut left) = (1, most);
        while index < trie.num_nodes() {
            self.budget.spend(1)?;
            let node = trie.node(index);
            path.truncate(node.depth);
            let from: Local = path[node.depth - 1];
            match self.steps.advance(from, node.byte, self.budget)? {
                Some(next) => {
                    if left == 0 {
                        return Ok(None);
                    }
                    left -= 1;
                    stay.extend_from_slice(trie.tokens_in(trie.own_ranks(index)));
                    if self.steps.ends(next) && trie.end(index) > index + 1 {
                        ends.push(index as u32);
                    }
                    path.push(next);
                    index += 1;
                }
                None => index = trie.end(index),
            }
        }
        let suffixes = self.suffixes(&ends).into_iter().collect();
        let stay = TokenSet::new(stay, self.num_words);
        Ok(Some(Analysis { stay, suffixes, ends: ends.into() }))
    }

    /// What follows these nodes.
    pub(super) fn suffixes(&self, ends: &[u32]) -> Option<(SuffixId, Option<Arc<Except>>)> {
        (!ends.is_empty()).then(|| (self.pieces.suffixes.of(self.trie, ends), None))
    }

    /// Where two pieces are alike.
    pub(super) fn alike(&mut self, piece: PieceId, model: PieceId) -> Result<Alike, Unread> {
        let pair = (self.steps.number(piece)?, self.steps.number(model)?);
        Alike::find(&mut self.steps, &self.pieces.shape, pair, self.budget)
    }
}
