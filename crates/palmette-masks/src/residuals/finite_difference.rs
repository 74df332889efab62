//! Finite difference: the token effect of a residual that is its reference but for finitely many lexemes.
//!
//! Where an object may have members that are not declared, their names are all but the declared ones. Such a residual does what
//! names do, but for tokens that end a declared one. So the declared names are followed through the vocabulary, and none
//! of the others.

use std::ops::Range;
use std::sync::Arc;

use palmette_core::{TokenId, mask};
use palmette_regex::expressions::{Exceeded, Exception, ExprId, Maker};

use super::references::COMMON;
use super::token_effect::{EffectComputation, TokenEffect};
use super::{Growing, ResidualId, Residuals, Unread};
use crate::Budget;
use crate::vocabulary::{Visit, VocabularyTrie};

/// Derivatives of the part at a node: of all that it may be, and of the exceptions.
#[derive(Clone, Copy)]
struct Left {
    of: ExprId,
    but: ExprId,
}

/// Tokens and ends that the reference has and the residual with the exception has not.
#[derive(Default)]
struct Lost {
    tokens: Vec<TokenId>,
    /// Nodes, ascending.
    nodes: Vec<Range<u32>>,
}

/// No more than one node of so many may be left to an exception.
const FEW: usize = 16;

impl EffectComputation<'_, '_, '_> {
    /// Token effect of a residual with exceptions; `None` where it has none, too much of the vocabulary may be one, or a limit is in
    /// the way.
    pub(super) fn finite_difference(
        &mut self,
        residual: ResidualId,
    ) -> Result<Option<TokenEffect>, Unread> {
        let (lost, reference) = match self.lost(residual) {
            Err(Exceeded::Interrupted(why)) => return Err(why.into()),
            Err(_) | Ok(None) => return Ok(None),
            Ok(Some(found)) => found,
        };
        let known = self.residuals.effect(self.trie, self.num_words, reference, self.budget)?;
        let mut words = known.consumed.to_words(self.num_words);
        lost.tokens.iter().for_each(|&token| mask::remove(&mut words, token));
        let removed = known.ends_in(&lost.nodes);
        Ok(Some(self.like_reference(known, &words, &removed, &[])))
    }

    /// Tokens and ends lost to the exception, and the residual without it.
    fn lost(&mut self, residual: ResidualId) -> Result<Option<(Lost, ResidualId)>, Exceeded> {
        let Some((exception, reference)) = self.residuals.exception(residual, self.budget)? else {
            return Ok(None);
        };
        let most = self.trie.num_nodes() / FEW;
        let lost = self.residuals.follow(&exception, self.trie, most, self.budget)?;
        Ok(lost.map(|lost| (lost, reference)))
    }
}

impl Residuals {
    /// The exception that a residual has, and the residual without it.
    fn exception(
        &self,
        residual: ResidualId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<(Exception, ResidualId)>, Exceeded> {
        let mut growing = self.growing();
        let mut making = growing.expressions.making(budget);
        let Some(found) = making.exception(self.residual(residual).expr)? else { return Ok(None) };
        let Exception { of, but, rest, .. } = found;
        // It must be seen from its first byte on that the part has ended.
        if making.null(rest) != ExprId::NEVER {
            return Ok(None);
        }
        // Whatever was read, some lexeme of the part that is no exception must be left: it has endlessly many, and never fewer.
        if !making.is_finite(but)
            || making.derive(of, COMMON)? != of
            || !making.matches_something(of)?
        {
            return Ok(None);
        }
        let reference = self.intern(&mut growing, found.without, budget)?;
        Ok(reference.map(|reference| (found, reference)))
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
        let Some(fronts) = self.fronts(&mut growing, exception.head, trie, most, budget)? else {
            return Ok(None);
        };
        let making = growing.expressions.making(budget);
        let lost = Lost::default();
        let mut following =
            Following { making, exception, trie, left: most, path: Vec::new(), lost };
        for &front in &*fronts {
            if !following.begin_at(front as usize)? {
                return Ok(None);
            }
        }
        Ok(Some(following.lost))
    }

    /// The nodes at which what stands before a part has ended, ascending; `None` where it might go on as well, or goes on through more
    /// than `most` nodes.
    fn fronts(
        &self,
        growing: &mut Growing,
        head: ExprId,
        trie: &VocabularyTrie,
        most: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Arc<[u32]>>, Exceeded> {
        if head == ExprId::EMPTY {
            return Ok(Some([0].into()));
        }
        if let Some(known) = growing.fronts.get(&head) {
            return Ok(known.clone());
        }
        let mut making = growing.expressions.making(budget);
        let (mut found, mut more) = (Vec::new(), most);
        let nodes = 1..trie.num_nodes();
        let is_sure = making.null(head) == ExprId::NEVER
            && trie.walk(nodes, head, &mut Vec::new(), |node, &above| {
                let left = making.derive(above, node.byte)?;
                if left == ExprId::NEVER || left == ExprId::EMPTY {
                    found.extend((left == ExprId::EMPTY).then_some(node.index as u32));
                    return Ok(Visit::Past);
                }
                if making.null(left) != ExprId::NEVER || more == 0 {
                    return Ok(Visit::Stop);
                }
                more -= 1;
                Ok::<_, Exceeded>(Visit::Below(left))
            })?;
        let found: Option<Arc<[u32]>> = is_sure.then(|| found.into());
        self.add_bytes(found.as_ref().map_or(0, |found| size_of_val(&**found)));
        growing.fronts.insert(head, found.clone());
        Ok(found)
    }
}

/// An exception being followed.
struct Following<'f, 'e, 'b> {
    making: Maker<'e, 'b>,
    exception: &'f Exception,
    trie: &'f VocabularyTrie,
    /// Number of nodes that may still be left to it.
    left: usize,
    /// Derivatives at the nodes from a front on.
    path: Vec<Left>,
    lost: Lost,
}

impl Following<'_, '_, '_> {
    /// Follows it from a node on at which the part begins; `false` where that cannot be done.
    fn begin_at(&mut self, front: usize) -> Result<bool, Exceeded> {
        let &Exception { of, but, rest, .. } = self.exception;
        let begun = Left { of, but };
        let trie = self.trie;
        if front != 0 {
            return self.below(front + 1..trie.end(front), begun);
        }
        // All bytes begin tokens, and few begin what is excepted.
        let classes = self.making.classes([but, rest]);
        let is_end = self.is_exception(begun);
        let mut goes_on = vec![false; classes.representatives().len()];
        for (&byte, goes_on) in classes.representatives().iter().zip(&mut goes_on) {
            let mut begins = |of| Ok::<_, Exceeded>(self.making.derive(of, byte)? != ExprId::NEVER);
            *goes_on = begins(but)? || is_end && begins(rest)?;
        }
        for byte in (0..=u8::MAX).filter(|&byte| goes_on[classes.class(byte)]) {
            let Some(node) = trie.child(0, byte) else { continue };
            if !self.below(node..trie.end(node), begun)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Follows it through some nodes below one with these derivatives.
    fn below(&mut self, nodes: Range<usize>, above: Left) -> Result<bool, Exceeded> {
        let (trie, exception) = (self.trie, self.exception);
        let mut path = std::mem::take(&mut self.path);
        let ended = trie.walk(nodes, above, &mut path, |node, &from| {
            if self.is_exception(from)
                && self.making.derive(exception.rest, node.byte)? != ExprId::NEVER
            {
                if self.making.derive(from.of, node.byte)? != ExprId::NEVER {
                    return Ok(Visit::Stop);
                }
                let (index, end) = (node.index, trie.end(node.index));
                self.lost.tokens.extend_from_slice(trie.tokens_in(trie.ranks(index)));
                self.lost.nodes.push(index as u32..end as u32);
                return Ok(Visit::Past);
            }
            let Some(next) = self.after(from, node.byte)? else { return Ok(Visit::Past) };
            if self.left == 0 || next.of != exception.of {
                return Ok(Visit::Stop);
            }
            self.left -= 1;
            Ok(Visit::Below(next))
        });
        self.path = path;
        ended
    }

    /// True when the part would be one of the exceptions if it ended here.
    fn is_exception(&self, left: Left) -> bool {
        self.making.null(left.but) != ExprId::NEVER
    }

    /// Derivatives after a byte; `None` where the part can be no exception any more.
    fn after(&mut self, left: Left, byte: u8) -> Result<Option<Left>, Exceeded> {
        let but = self.making.derive(left.but, byte)?;
        if but == ExprId::NEVER {
            return Ok(None);
        }
        let of = self.making.derive(left.of, byte)?;
        Ok((of != ExprId::NEVER).then_some(Left { of, but }))
    }
}
