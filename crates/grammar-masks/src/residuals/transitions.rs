//! Transitions of the residuals that walks meet, dense by byte.

use std::sync::PoisonError;

use palmette_grammar_regex::expressions::ExprId;

use super::Residuals;
use super::byte_groups::{Groups, group_bit};
use super::mask_failure::MaskFailure;
use super::residual_id::ResidualId;
use super::transition_table::{FIRST, KnownResidual, LocalId, NOWHERE, TransitionTable, UNASKED};
use crate::Budget;

/// Transitions that a walk asks for: a step is one look-up. The table is kept for later walks,
/// which are likely to come by the same residuals.
#[derive(Debug)]
pub(super) struct Transitions<'a> {
    residuals: &'a Residuals,
    table: TransitionTable,
}

/// A table of more residuals, which would take more than 4 MiB, is not kept.
const MAX_KEPT: usize = 4096;

impl<'a> Transitions<'a> {
    pub(super) fn new(residuals: &'a Residuals) -> Self {
        let kept = residuals.transition_tables.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let table = kept.unwrap_or_default();
        residuals.take_bytes(table.memory_bytes());
        Self { residuals, table }
    }

    /// The number of a residual.
    ///
    /// # Errors
    /// When a walk meets too many.
    pub(super) fn number(&mut self, residual: ResidualId) -> Result<LocalId, MaskFailure> {
        if let Some(&known) = self.table.numbers.get(&residual) {
            return Ok(known);
        }
        if self.table.known.len() >= usize::from(u16::MAX - FIRST) {
            return Err(MaskFailure::BeyondLimits);
        }
        let number = LocalId(self.table.known.len() as u16);
        let ends = self.residuals.ends(residual);
        self.table.known.push(KnownResidual { residual, ends, incomplete: Groups::MAX });
        self.table.rows.push([UNASKED; 256]);
        self.table.numbers.insert(residual, number);
        Ok(number)
    }

    /// The residual of a number.
    pub(super) fn residual(&self, local: LocalId) -> ResidualId {
        self.table.known[usize::from(local.0)].residual
    }

    /// True when the lexeme may end here.
    pub(super) fn ends(&self, local: LocalId) -> bool {
        self.ends_if(local).is_some()
    }

    /// Condition that an end of the lexeme puts on what follows; `None` where it cannot end here.
    pub(super) fn ends_if(&self, local: LocalId) -> Option<ExprId> {
        self.table.known[usize::from(local.0)].ends
    }

    /// The residual after a byte.
    #[inline]
    pub(super) fn advance(
        &mut self,
        from: LocalId,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LocalId>, MaskFailure> {
        match self.table.rows[usize::from(from.0)][usize::from(byte)] {
            UNASKED => self.find(from, byte, budget),
            NOWHERE => Ok(None),
            found => Ok(Some(LocalId(found - FIRST))),
        }
    }

    /// [`advance`](Self::advance) where there may be no residual left already.
    #[inline]
    pub(super) fn advance_if(
        &mut self,
        from: Option<LocalId>,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LocalId>, MaskFailure> {
        match from {
            Some(from) => self.advance(from, byte, budget),
            None => Ok(None),
        }
    }

    #[cold]
    fn find(
        &mut self,
        from: LocalId,
        byte: u8,
        budget: &mut Budget<'_>,
    ) -> Result<Option<LocalId>, MaskFailure> {
        let residual = self.residual(from);
        let found = match self.residuals.advance(residual, byte, budget)? {
            Some(residual) => Some(self.number(residual)?),
            None => None,
        };
        let entry = found.map_or(NOWHERE, |local| local.0 + FIRST);
        self.table.rows[usize::from(from.0)][usize::from(byte)] = entry;
        Ok(found)
    }

    /// Asks for the steps by all bytes but those of some groups.
    pub(super) fn complete(
        &mut self,
        from: LocalId,
        but: Groups,
        budget: &mut Budget<'_>,
    ) -> Result<(), MaskFailure> {
        if self.table.known[usize::from(from.0)].incomplete & !but == 0 {
            return Ok(());
        }
        let residuals = self.residuals;
        let classes = residuals.classes(self.residual(from));
        let mut by_class = vec![UNASKED; classes.representatives().len()];
        for byte in 0..=u8::MAX {
            if but & group_bit(byte) != 0 {
                continue;
            }
            let at = usize::from(byte);
            match self.table.rows[usize::from(from.0)][at] {
                UNASKED if by_class[classes.class(byte)] == UNASKED => {
                    self.find(from, byte, budget)?;
                    by_class[classes.class(byte)] = self.table.rows[usize::from(from.0)][at];
                }
                UNASKED => self.table.rows[usize::from(from.0)][at] = by_class[classes.class(byte)],
                known => by_class[classes.class(byte)] = known,
            }
        }
        self.table.known[usize::from(from.0)].incomplete &= but;
        Ok(())
    }
}

impl Drop for Transitions<'_> {
    fn drop(&mut self) {
        let table = std::mem::take(&mut self.table);
        if table.known.len() <= MAX_KEPT {
            self.residuals.add_bytes(table.memory_bytes());
            let mut tables =
                self.residuals.transition_tables.lock().unwrap_or_else(PoisonError::into_inner);
            tables.push(table);
        }
    }
}
