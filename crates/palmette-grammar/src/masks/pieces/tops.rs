//! The top of a stack, read as deep as reductions ask.

use hashbrown::HashMap;

use super::Unread;
use crate::glr::StackNode;
use crate::lr::{StateId, Tables};
use crate::{LimitError, NonterminalId, TerminalId};

/// A stack. A number into [`Tops`]; equal numbers are equal stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopId(u32);

/// Stacks above one that is known as far as it was read. What is below is read when a reduction gets there.
pub(super) struct Tops<'s> {
    memory: TopsMemory,
    /// What is below the lowest entry that was read.
    below: Below<'s>,
    lowest: TopId,
}

/// What is below a stack that is known only in part.
pub(super) enum Below<'s> {
    /// What is below an entry of a parser's stacks, down one way where they part; nothing below none.
    Entry(Option<StackNode<'s>>),
    /// That is not known.
    Unknown,
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

/// The memory of [`Tops`], kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct TopsMemory {
    /// By id: the top state and the stack without it; `None` at the bottom and below what was read.
    entries: Vec<(StateId, Option<TopId>)>,
    ids: HashMap<(StateId, TopId), TopId>,
    /// The states that were read, from the top.
    read: Vec<StateId>,
    work: Vec<TopId>,
    unfinished: Vec<Unfinished>,
}

/// A terminal that may be shifted: on which stack, and to which state.
pub(super) type Shift = (TerminalId, TopId, StateId);

/// As many tops as there may be before one terminal.
const MAX_TOPS: usize = 10_000;

impl<'s> Tops<'s> {
    /// The stack that begins with `states`, below the last of which is `below`.
    pub(super) fn new(mut memory: TopsMemory, states: &[StateId], below: Below<'s>) -> Self {
        memory.entries.clear();
        memory.ids.clear();
        memory.read.clear();
        memory.read.extend_from_slice(states);
        for (&state, at) in states.iter().zip(1..) {
            let below = (at < states.len()).then_some(TopId(at as u32));
            memory.entries.push((state, below));
        }
        Self { memory, below, lowest: TopId(states.len() as u32 - 1) }
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
    pub(super) fn below(&mut self, stack: TopId) -> Result<Option<TopId>, Deeper> {
        match self.memory.entries[stack.0 as usize].1 {
            Some(below) => Ok(Some(below)),
            None => self.read_on(stack),
        }
    }

    /// The memory, with the states that were read.
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
    fn pop(&mut self, stack: TopId, count: usize) -> Result<Option<TopId>, u32> {
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

    /// Reads one more state, below `at`.
    fn read_on(&mut self, at: TopId) -> Result<Option<TopId>, Deeper> {
        debug_assert_eq!(at, self.lowest, "all else is above it");
        let Below::Entry(entry) = &mut self.below else { return Err(Deeper) };
        *entry = entry.and_then(|entry| entry.below().next());
        let Some(state) = entry.map(StackNode::state) else { return Ok(None) };
        let id = TopId(self.memory.entries.len() as u32);
        self.memory.entries.push((state, None));
        self.memory.entries[at.0 as usize].1 = Some(id);
        self.memory.read.push(state);
        self.lowest = id;
        Ok(Some(id))
    }
}

impl TopsMemory {
    /// The states that were read, from the top.
    pub(super) fn read(&self) -> &[StateId] {
        &self.read
    }
}
