//! A parser's stack, read from the top no deeper than questions need.

use std::collections::HashMap;
use std::rc::Rc;

use crate::glr::StackNode;
use crate::lr::{StateId, Tables};
use crate::{LimitError, TerminalId};

/// A way that a stack may be after some terminals: a number into [`StackReader`]. Equal numbers are equal stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Way(u32);

/// All ways that a stack may be after some terminals; never none.
pub(super) type Ways = Rc<[Way]>;

/// One stack, and those that terminals make of it.
pub(super) struct StackReader<'t, 's> {
    tables: &'t Tables,
    /// By way: the state on top and what is below; `None` where that was not read, and at the bottom.
    tops: Vec<(StateId, Option<Way>)>,
    numbers: HashMap<(StateId, Way), Way>,
    /// The lowest entry that was read.
    lowest: StackNode<'s>,
    /// The states that were read, from the top.
    read: Vec<StateId>,
}

/// As many ways as there may be before one terminal.
const MAX_WAYS: usize = 1_000;

impl<'t, 's> StackReader<'t, 's> {
    /// The stack that begins with `states`, the last of which is that of `lowest`.
    pub(super) fn new(tables: &'t Tables, states: Vec<StateId>, lowest: StackNode<'s>) -> Self {
        let below = |at: usize| (at + 1 < states.len()).then_some(Way(at as u32 + 1));
        let tops = states.iter().enumerate().map(|(at, &state)| (state, below(at))).collect();
        Self { tables, tops, numbers: HashMap::new(), lowest, read: states }
    }

    /// The stack as it is.
    pub(super) fn begin(&self) -> Ways {
        [Way(0)].into()
    }

    /// The states that were read, from the top: on all stacks that begin with them the answers are the same.
    pub(super) fn into_read(self) -> Vec<StateId> {
        self.read
    }

    /// Whether a terminal can be shifted.
    pub(super) fn accepts(&mut self, ways: &Ways, next: TerminalId) -> Result<bool, LimitError> {
        let mut found = false;
        self.shifts(ways, next, |_, _| {
            found = true;
            false
        })?;
        Ok(found)
    }

    /// The ways after a terminal.
    pub(super) fn shift(
        &mut self,
        ways: &Ways,
        next: TerminalId,
    ) -> Result<Option<Ways>, LimitError> {
        let mut shifted = Vec::new();
        self.shifts(ways, next, |below, state| {
            shifted.push((state, below));
            true
        })?;
        let mut after: Vec<_> =
            shifted.into_iter().map(|(state, below)| self.push(state, below)).collect();
        after.sort_unstable();
        after.dedup();
        Ok((!after.is_empty()).then(|| after.into()))
    }

    /// Shows on which stacks a terminal is shifted, to which state, until `visit` has enough.
    fn shifts(
        &mut self,
        ways: &Ways,
        next: TerminalId,
        mut visit: impl FnMut(Way, StateId) -> bool,
    ) -> Result<(), LimitError> {
        let tables = self.tables;
        let mut work = ways.to_vec();
        let mut done = 0;
        while let Some(&way) = work.get(done) {
            done += 1;
            let state = self.tops[way.0 as usize].0;
            if let Some(target) = tables.shift(state, next)
                && !visit(way, target)
            {
                return Ok(());
            }
            for (rule, lookahead) in tables.reductions(state) {
                if lookahead.is_some_and(|set| !set.contains(next)) {
                    continue;
                }
                let Some(base) = self.pop(way, tables.rules().length(rule)) else { continue };
                let below = self.tops[base.0 as usize].0;
                let Some(target) = tables.goto(below, tables.rules().head(rule)) else { continue };
                let reduced = self.push(target, base);
                if !work.contains(&reduced) {
                    work.push(reduced);
                }
            }
            if work.len() > MAX_WAYS {
                return Err(LimitError::new(MAX_WAYS));
            }
        }
        Ok(())
    }

    fn push(&mut self, state: StateId, below: Way) -> Way {
        let next = Way(self.tops.len() as u32);
        let way = *self.numbers.entry((state, below)).or_insert(next);
        if way == next {
            self.tops.push((state, Some(below)));
        }
        way
    }

    /// The stack without its `count` topmost states; `None` when it has no more.
    fn pop(&mut self, mut way: Way, count: usize) -> Option<Way> {
        for _ in 0..count {
            way = match self.tops[way.0 as usize].1 {
                Some(below) => below,
                None => self.read_below(way)?,
            };
        }
        Some(way)
    }

    /// Reads the entry below the lowest, which `way` is.
    fn read_below(&mut self, way: Way) -> Option<Way> {
        let next = self.lowest.below().next()?;
        let below = Way(self.tops.len() as u32);
        self.tops.push((next.state(), None));
        self.tops[way.0 as usize].1 = Some(below);
        self.read.push(next.state());
        self.lowest = next;
        Some(below)
    }
}
