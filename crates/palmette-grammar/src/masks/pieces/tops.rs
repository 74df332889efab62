//! The top of a stack, read as deep as reductions ask.

use hashbrown::HashMap;

use crate::glr::StackNode;
use crate::lr::{StateId, Tables};
use crate::{LimitError, TerminalId};

/// A stack. A number into [`Tops`]; equal numbers are equal stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopId(u32);

/// Stacks above one that is known as far as it was read. What is below is read when a reduction gets there.
pub(super) struct Tops<'s> {
    memory: TopsMemory,
    /// The lowest entry that was read, and its number.
    lowest: Option<StackNode<'s>>,
    lowest_id: TopId,
}

/// The memory of [`Tops`], kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct TopsMemory {
    /// By id: the top state and the stack without it; `None` at the bottom and below what was read.
    entries: Vec<(StateId, Option<TopId>)>,
    ids: HashMap<(StateId, TopId), TopId>,
    /// The states that were read, from the top.
    read: Vec<StateId>,
    work: Vec<TopId>,
}

/// A terminal that may be shifted: on which stack, and to which state.
pub(super) type Shift = (TerminalId, TopId, StateId);

/// As many tops as there may be before one terminal.
const MAX_TOPS: usize = 10_000;

impl<'s> Tops<'s> {
    /// The stack that begins with `states`, the last of which is that of `lowest`.
    pub(super) fn new(mut memory: TopsMemory, states: &[StateId], lowest: StackNode<'s>) -> Self {
        memory.entries.clear();
        memory.ids.clear();
        memory.read.clear();
        memory.read.extend_from_slice(states);
        for (&state, at) in states.iter().zip(1..) {
            let below = (at < states.len()).then_some(TopId(at as u32));
            memory.entries.push((state, below));
        }
        Self { memory, lowest: Some(lowest), lowest_id: TopId(states.len() as u32 - 1) }
    }

    /// The whole stack.
    pub(super) fn whole(&self) -> TopId {
        TopId(0)
    }

    /// The states that were read, from the top; the memory.
    pub(super) fn finish(self) -> TopsMemory {
        self.memory
    }

    /// Adds all ways to shift a terminal (`only`, or any) on a stack.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn shifts(
        &mut self,
        tables: &Tables,
        stack: TopId,
        only: Option<TerminalId>,
        found: &mut Vec<Shift>,
    ) -> Result<(), LimitError> {
        let mut work = std::mem::take(&mut self.memory.work);
        work.clear();
        work.push(stack);
        let mut done = 0;
        while let Some(&stack) = work.get(done) {
            done += 1;
            let state = self.memory.entries[stack.0 as usize].0;
            match only {
                Some(terminal) => {
                    let target = tables.shift(state, terminal);
                    found.extend(target.map(|target| (terminal, stack, target)));
                }
                None => {
                    let all = tables.shifts(state).iter();
                    found.extend(all.map(|&(terminal, target)| (terminal, stack, target)));
                }
            }
            // Without a terminal at hand lookaheads are not asked: what can be shifted after a reduction is in its own.
            for (rule, lookahead) in tables.reductions(state) {
                if only.zip(lookahead).is_some_and(|(terminal, set)| !set.contains(terminal)) {
                    continue;
                }
                let Some(base) = self.pop(stack, tables.rules().length(rule)) else { continue };
                let below = self.memory.entries[base.0 as usize].0;
                let Some(target) = tables.goto(below, tables.rules().head(rule)) else { continue };
                let next = self.push(target, base);
                if !work.contains(&next) {
                    work.push(next);
                }
            }
            if work.len() > MAX_TOPS {
                return Err(LimitError::new(MAX_TOPS));
            }
        }
        self.memory.work = work;
        Ok(())
    }

    /// The stack with `state` on top of `below`.
    pub(super) fn push(&mut self, state: StateId, below: TopId) -> TopId {
        let next = TopId(self.memory.entries.len() as u32);
        let id = *self.memory.ids.entry((state, below)).or_insert(next);
        if id == next {
            self.memory.entries.push((state, Some(below)));
        }
        id
    }

    /// The stack without its `count` topmost states; `None` when it has none left.
    fn pop(&mut self, stack: TopId, count: usize) -> Option<TopId> {
        let mut at = stack;
        for _ in 0..count {
            at = match self.memory.entries[at.0 as usize].1 {
                Some(below) => below,
                None => self.read_on(at)?,
            };
        }
        Some(at)
    }

    /// Reads one more state, below `at`.
    fn read_on(&mut self, at: TopId) -> Option<TopId> {
        debug_assert_eq!(at, self.lowest_id, "all else is above it");
        let next = self.lowest?.below().next()?;
        let id = TopId(self.memory.entries.len() as u32);
        self.memory.entries.push((next.state(), None));
        self.memory.entries[at.0 as usize].1 = Some(id);
        self.memory.read.push(next.state());
        (self.lowest, self.lowest_id) = (Some(next), id);
        Some(id)
    }
}

impl TopsMemory {
    /// The states that were read, from the top.
    pub(super) fn read(&self) -> &[StateId] {
        &self.read
    }
}
