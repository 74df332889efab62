//! Stack reader: a parser's stack as a partial stack that is revealed no deeper than questions need.

use std::rc::Rc;

use palmette_parser::glr::{PartialStack, Shift, StackNode, TopId};
use palmette_parser::lr::{StateId, Tables};

use crate::{LimitError, TerminalId};

/// All ways that a stack may be after some terminals; never none.
pub(super) type Ways = Rc<[TopId]>;

/// One stack, and those that terminals make of it.
pub(super) struct StackReader<'t, 's> {
    tables: &'t Tables,
    stack: PartialStack,
    /// The lowest entry that was read.
    lowest: StackNode<'s>,
    /// The states that were read, from the top.
    read: Vec<StateId>,
    shifts: Vec<Shift>,
}

/// Limit on the ways before one terminal.
const MAX_WAYS: usize = 1_000;

impl<'t, 's> StackReader<'t, 's> {
    /// The stack that begins with `states`, the last of which is that of `lowest`.
    pub(super) fn new(tables: &'t Tables, states: Vec<StateId>, lowest: StackNode<'s>) -> Self {
        let mut stack = PartialStack::with_max_tops(MAX_WAYS);
        stack.begin(&states);
        Self { tables, stack, lowest, read: states, shifts: Vec::new() }
    }

    /// The stack as it is.
    pub(super) fn begin(&self) -> Ways {
        [TopId::WHOLE].into()
    }

    /// The states that were read, from the top: on all stacks that begin with them the answers are the same.
    pub(super) fn into_read(self) -> Vec<StateId> {
        self.read
    }

    /// True when a terminal can be shifted.
    pub(super) fn accepts(&mut self, ways: &Ways, next: TerminalId) -> Result<bool, LimitError> {
        loop {
            let is_open = self.find_shifts(ways, next)?;
            if !self.shifts.is_empty() {
                return Ok(true);
            }
            if !is_open || !self.read_below() {
                return Ok(false);
            }
        }
    }

    /// The ways after a terminal.
    pub(super) fn shift(
        &mut self,
        ways: &Ways,
        next: TerminalId,
    ) -> Result<Option<Ways>, LimitError> {
        while self.find_shifts(ways, next)? && self.read_below() {}
        let Self { stack, shifts, .. } = self;
        let mut after: Vec<_> =
            shifts.drain(..).map(|(_, below, state)| stack.push(state, below)).collect();
        after.sort_unstable();
        after.dedup();
        Ok((!after.is_empty()).then(|| after.into()))
    }

    /// Finds all shifts of a terminal as far as the stack was read; tells if there may be others.
    fn find_shifts(&mut self, ways: &Ways, next: TerminalId) -> Result<bool, LimitError> {
        self.shifts.clear();
        self.stack.shifts(self.tables, ways, Some(next), &mut self.shifts)?;
        Ok(!self.stack.open_reductions().is_empty())
    }

    /// Reads the entry below the lowest; `false` when there is none.
    fn read_below(&mut self) -> bool {
        let Some(next) = self.lowest.below().next() else { return false };
        self.stack.reveal(next.state());
        self.read.push(next.state());
        self.lowest = next;
        true
    }
}
