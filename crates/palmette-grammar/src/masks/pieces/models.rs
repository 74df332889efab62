//! Choice of the reference piece from which a piece's token effect is a difference.

use super::alike::Alike;
use super::analysis::Analysing;
use super::merged::Counts;
use super::{PieceId, Pieces, Unread};
use crate::Budget;
use crate::regex::expressions::Exceeded;

/// A byte that is common in tokens: what it leads to again and again is where tokens mostly stay.
pub(super) const COMMON: u8 = b'e';

/// After so many common bytes a piece stays the same, or is taken for one that never does.
const COMMON_STEPS: usize = 3;

/// So many models are kept for all pieces. The first is any text.
const MAX_HUBS: usize = 4;

impl Analysing<'_, '_, '_> {
    /// The piece, of those that others are like, that takes the least to compare with.
    pub(super) fn hub(&mut self, piece: PieceId) -> Result<Option<(PieceId, Alike)>, Unread> {
        let mut best: Option<(u64, PieceId, Alike)> = None;
        for hub in self.pieces.hubs(self.budget)? {
            // One of them is compared with those before it, so that no two wait for each other.
            if hub == piece {
                break;
            }
            let alike = self.alike(piece, hub)?;
            let weight = alike.weight(&self.pieces.shape);
            // To look for a better one takes longer.
            if weight <= self.few() as u64 {
                return Ok(Some((hub, alike)));
            }
            if best.as_ref().is_none_or(|(least, ..)| weight < *least) {
                best = Some((weight, hub, alike));
            }
        }
        Ok(best.map(|(_, hub, alike)| (hub, alike)))
    }

    /// Whether a piece and a simpler one agree until counts are used up. They may differ before the first byte, where a text
    /// that must not be empty may not end.
    pub(super) fn counts(&mut self, piece: PieceId, simpler: PieceId) -> Result<Counts, Unread> {
        let own = self.pieces.advance(piece, COMMON, self.budget)?;
        let like = self.pieces.advance(simpler, COMMON, self.budget)?;
        let agreed = match own.zip(like) {
            Some((own, like)) => self.pieces.agreement(own, like, self.budget)?,
            None => None,
        };
        Ok(if agreed.is_some() { Counts::Differ } else { Counts::Same })
    }

    /// Where tokens mostly stay.
    pub(super) fn home(&mut self, piece: PieceId) -> Result<Option<PieceId>, Unread> {
        let mut at = self.steps.number(piece)?;
        for _ in 0..COMMON_STEPS {
            match self.steps.advance(at, COMMON, self.budget)? {
                Some(next) if next == at => return Ok(Some(self.steps.piece(at))),
                Some(next) => at = next,
                None => break,
            }
        }
        Ok(None)
    }
}

impl Pieces {
    /// The piece without counts and exceptions, if that is another.
    pub(super) fn relaxed(
        &self,
        piece: PieceId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<PieceId>, Exceeded> {
        let mut growing = self.growing();
        let expr = self.piece(piece).expr;
        let simpler = growing.expressions.making(budget).relaxed(expr)?;
        let model = self.intern(&mut growing, simpler, budget)?;
        Ok(model.filter(|&model| model != piece))
    }

    /// Pieces that others are like.
    fn hubs(&self, budget: &mut Budget<'_>) -> Result<Vec<PieceId>, Exceeded> {
        let mut growing = self.growing();
        if growing.hubs.is_empty() {
            let text = growing.expressions.making(budget).endless_text()?;
            let text = self.intern(&mut growing, text, budget)?;
            growing.hubs.extend(text);
        }
        Ok(growing.hubs.clone())
    }

    pub(super) fn add_hub(&self, piece: PieceId) {
        let mut growing = self.growing();
        if growing.hubs.len() < MAX_HUBS && !growing.hubs.contains(&piece) {
            growing.hubs.push(piece);
        }
    }

    /// For how many bytes, at most 254, two pieces cannot be told apart; `None` where they differ at once.
    pub(super) fn agreement(
        &self,
        a: PieceId,
        b: PieceId,
        budget: &mut Budget<'_>,
    ) -> Result<Option<u8>, Exceeded> {
        let mut growing = self.growing();
        if let Some(&known) = growing.agreements.get(&(a, b)) {
            return Ok(known);
        }
        let exprs = [a, b].map(|piece| self.piece(piece).expr);
        let mut agree = |num_bytes: u8| {
            let [a, b] =
                exprs.map(|expr| growing.expressions.making(budget).within(expr, num_bytes.into()));
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
