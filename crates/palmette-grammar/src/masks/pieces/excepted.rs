//! Pieces that are another but for a few lexemes.
//!
//! Where an object may have members that are not declared, their names are all but the declared ones. Such a piece does what
//! names do, but for tokens that end a declared one. So the declared names are followed through the vocabulary, and none
//! of the others.

use std::ops::Range;

use palmette_core::TokenId;

use super::analysis::{Analysing, Analysis};
use super::models::COMMON;
use super::{PieceId, Pieces, Unread};
use crate::Budget;
use crate::regex::expressions::{Exceeded, Exception, ExprId, Maker};
use crate::vocabulary::VocabularyTrie;

/// What is left at a node.
#[derive(Clone, Copy)]
struct Left {
    /// Before the part that has the exception; empty within it.
    head: ExprId,
    of: ExprId,
    but: ExprId,
}

/// What tokens do to the other piece and not to this one.
#[derive(Default)]
struct Lost {
    tokens: Vec<TokenId>,
    /// Nodes, ascending.
    nodes: Vec<Range<u32>>,
}

/// No more than one node of so many may be left to an exception.
const FEW: usize = 16;

impl Analysing<'_, '_, '_> {
    /// What tokens do to a piece with an exception; `None` where it has none, or too much of the vocabulary may be one.
    pub(super) fn excepted(&mut self, piece: PieceId) -> Result<Option<Analysis>, Unread> {
        let Some((exception, model)) = self.pieces.exception(piece, self.budget)? else {
            return Ok(None);
        };
        let most = self.trie.num_nodes() / FEW;
        let Some(lost) = self.pieces.follow(&exception, self.trie, most, self.budget)? else {
            return Ok(None);
        };
        let known = self.pieces.analysis(self.trie, self.num_words, model, self.budget)?;
        let stay = known.stay.changed(&lost.tokens, &[], self.num_words);
        let removed = known.ends_in(&lost.nodes);
        Ok(Some(self.like_model(known, stay, &removed, &[])))
    }
}

impl Pieces {
    /// The exception that a piece has, and the piece without it.
    fn exception(
        &self,
        piece: PieceId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<(Exception, PieceId)>, Exceeded> {
        let mut growing = self.growing();
        let mut making = growing.expressions.making(budget);
        let Some(found) = making.exception(self.piece(piece).expr)? else { return Ok(None) };
        let Exception { head, of, but, rest, .. } = found;
        // It must be seen from its first byte on that the part has ended.
        if making.null(rest) != ExprId::NEVER || !is_open(&making, head) {
            return Ok(None);
        }
        // Whatever was read, some lexeme of the part that is no exception must be left: it has endlessly many, and never fewer.
        if !making.is_finite(but)
            || making.derive(of, COMMON)? != of
            || !making.matches_something(of)?
        {
            return Ok(None);
        }
        let model = self.intern(&mut growing, found.without, budget)?;
        Ok(model.map(|model| (found, model)))
    }

    /// Follows what is excepted; `None` where more than `most` nodes are left to that, where what is left of the part changes on the
    /// way, or where it cannot be told from one byte that the part has ended.
    fn follow(
        &self,
        exception: &Exception,
        trie: &VocabularyTrie,
        most: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Lost>, Exceeded> {
        let mut growing = self.growing();
        let mut making = growing.expressions.making(budget);
        let &Exception { head, of, but, rest, .. } = exception;
        let (mut lost, mut left) = (Lost::default(), most);
        let mut path = vec![Left { head, of, but }];
        let mut index = 1;
        while index < trie.num_nodes() {
            let node = trie.node(index);
            path.truncate(node.depth);
            let from = path[node.depth - 1];
            let end = trie.end(index);
            if from.is_exception(&making) && making.derive(rest, node.byte)? != ExprId::NEVER {
                if making.derive(from.of, node.byte)? != ExprId::NEVER {
                    return Ok(None);
                }
                lost.tokens.extend_from_slice(trie.tokens_in(trie.ranks(index)));
                lost.nodes.push(index as u32..end as u32);
                index = end;
                continue;
            }
            let Some(next) = from.after(&mut making, node.byte)? else {
                index = end;
                continue;
            };
            if left == 0 || !is_open(&making, next.head) || next.of != of {
                return Ok(None);
            }
            left -= 1;
            path.push(next);
            index += 1;
        }
        Ok(Some(lost))
    }
}

/// Whether something is before the part for sure, or nothing at all.
fn is_open(making: &Maker<'_, '_>, head: ExprId) -> bool {
    head == ExprId::EMPTY || making.null(head) == ExprId::NEVER
}

impl Left {
    /// Whether the part would be one of the exceptions if it ended here.
    fn is_exception(&self, making: &Maker<'_, '_>) -> bool {
        self.head == ExprId::EMPTY && making.null(self.but) != ExprId::NEVER
    }

    /// What is left after a byte; `None` where the part can be no exception any more.
    fn after(self, making: &mut Maker<'_, '_>, byte: u8) -> Result<Option<Self>, Exceeded> {
        if self.head != ExprId::EMPTY {
            let head = making.derive(self.head, byte)?;
            return Ok((head != ExprId::NEVER).then_some(Self { head, ..self }));
        }
        let but = making.derive(self.but, byte)?;
        if but == ExprId::NEVER {
            return Ok(None);
        }
        let of = making.derive(self.of, byte)?;
        Ok((of != ExprId::NEVER).then_some(Self { of, but, ..self }))
    }
}
