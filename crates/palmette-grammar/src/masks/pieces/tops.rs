//! The top of a stack, and what the parser puts on it.

use hashbrown::HashMap;

use super::Unread;
use crate::lr::{StateId, Tables};
use crate::{LimitError, NonterminalId, TerminalId};

/// A stack. A number into [`Tops`]; equal numbers are equal stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopId(u32);

/// Stacks above one of which only the topmost state is known.
#[derive(Debug)]
pub(super) struct Tops {
    memory: TopsMemory,
}

/// What is asked for is below what is known of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deeper;

/// A reduction that pops more than is known of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Unfinished {
    pub(super) head: NonterminalId,
    /// So many states are to be read, the last of which is that on which the head goes.
    pub(super) missing: u32,
}

/// A stack after the reductions that need no lookahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    On(TopId),
    /// There is no such stack.
    Nowhere,
    /// One of the reductions pops more than is known.
    After(Unfinished),
}

/// The memory of [`Tops`], kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct TopsMemory {
    /// By id: the top state and the stack without it; `None` for the one that is known.
    entries: Vec<(StateId, Option<TopId>)>,
    ids: HashMap<(StateId, TopId), TopId>,
    work: Vec<TopId>,
    unfinished: Vec<Unfinished>,
}

/// A terminal that may be shifted: on which stack, and to which state.
pub(super) type Shift = (TerminalId, TopId, StateId);

/// As many tops as there may be before one terminal.
const MAX_TOPS: usize = 10_000;

impl Tops {
    /// The stack with this state on top.
    pub(super) fn new(mut memory: TopsMemory, top: StateId) -> Self {
        memory.entries.clear();
        memory.ids.clear();
        memory.entries.push((top, None));
        Self { memory }
    }

    /// The whole stack.
    pub(super) fn whole(&self) -> TopId {
        TopId(0)
    }

    /// The topmost state of a stack.
    pub(super) fn state(&self, stack: TopId) -> StateId {
        self.memory.entries[stack.0 as usize].0
    }

    /// The stack without its topmost state; `None` when it has no other.
    ///
    /// # Errors
    /// Where that is not known.
    pub(super) fn below(&self, stack: TopId) -> Result<Option<TopId>, Deeper> {
        match self.memory.entries[stack.0 as usize] {
            (_, Some(below)) => Ok(Some(below)),
            (StateId::START, None) => Ok(None),
            (_, None) => Err(Deeper),
        }
    }

    /// The memory.
    pub(super) fn finish(self) -> TopsMemory {
        self.memory
    }

    /// Adds all ways to shift a terminal (`only`, or any) on a stack, as far as that is known: those after other reductions are told by
    /// [`unfinished`](Self::unfinished).
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn shifts(
        &mut self,
        tables: &Tables,
        stack: TopId,
        only: Option<TerminalId>,
        found: &mut Vec<Shift>,
    ) -> Result<(), Unread> {
        let mut work = std::mem::take(&mut self.memory.work);
        work.clear();
        work.push(stack);
        self.memory.unfinished.clear();
        let mut done = 0;
        while let Some(&stack) = work.get(done) {
            done += 1;
            let state = self.state(stack);
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
                let head = tables.rules().head(rule);
                let base = match self.pop(stack, tables.rules().length(rule)) {
                    Ok(Some(base)) => base,
                    Ok(None) => continue,
                    Err(missing) => {
                        self.memory.unfinished.push(Unfinished { head, missing });
                        continue;
                    }
                };
                let Some(target) = tables.goto(self.state(base), head) else { continue };
                let next = self.push(target, base);
                if !work.contains(&next) {
                    work.push(next);
                }
            }
            if work.len() > MAX_TOPS {
                return Err(LimitError::new(MAX_TOPS).into());
            }
        }
        self.memory.work = work;
        Ok(())
    }

    /// The stack after all reductions that need no lookahead.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn settled(&mut self, tables: &Tables, stack: TopId) -> Result<Settled, Unread> {
        let mut stack = stack;
        for _ in 0..MAX_TOPS {
            let Some(rule) = tables.sole_reduction(self.state(stack)) else {
                return Ok(Settled::On(stack));
            };
            let head = tables.rules().head(rule);
            let base = match self.pop(stack, tables.rules().length(rule)) {
                Ok(Some(base)) => base,
                Ok(None) => return Ok(Settled::Nowhere),
                Err(missing) => return Ok(Settled::After(Unfinished { head, missing })),
            };
            match tables.goto(self.state(base), head) {
                Some(target) => stack = self.push(target, base),
                None => return Ok(Settled::Nowhere),
            }
        }
        Err(LimitError::new(MAX_TOPS).into())
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

    /// The reductions that the last [`shifts`](Self::shifts) could not end.
    pub(super) fn unfinished(&self) -> &[Unfinished] {
        &self.memory.unfinished
    }

    /// The stack without its `count` topmost states; `None` when it has none left.
    ///
    /// # Errors
    /// How many states are to be read for that, where they are not known.
    fn pop(&self, stack: TopId, count: usize) -> Result<Option<TopId>, u32> {
        let mut at = stack;
        for popped in 0..count {
            match self.below(at) {
                Ok(Some(below)) => at = below,
                Ok(None) => return Ok(None),
                Err(Deeper) => return Err((count - popped) as u32),
            }
        }
        Ok(Some(at))
    }
}
