//! Partial stack: an LR stack of which only the first states from the top are known, and what the
//! parser makes of it.
//!
//! Masks are read from the top of a stack, as deep as they need. So reductions are followed as far
//! as what they pop is known; one that pops more is [open](OpenReduction), and goes on when the
//! missing states are [revealed](PartialStack::reveal) or elsewhere on the state that they end at.
//! All stacks that shifts and reductions lead to share the entries below, as in a graph-structured
//! stack, and equal ones are one number.

use hashbrown::HashMap;

use crate::lr::{StateId, Tables};
use crate::{LimitError, NonterminalId, TerminalId, TerminalSet};

/// One of the stacks that the parser makes of a partial stack: a number into [`PartialStack`];
/// equal numbers are equal stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopId(u32);

impl TopId {
    /// The partial stack as it is.
    pub const WHOLE: Self = Self(0);
}

/// A stack whose first states are known, with the stacks that shifts and reductions make of it.
#[derive(Debug)]
pub struct PartialStack {
    /// Stacks by id: the state on top and the stack without it; `None` for the lowest that is
    /// known.
    entries: Vec<(StateId, Option<TopId>)>,
    ids: HashMap<(StateId, TopId), TopId>,
    /// The lowest entry that is known.
    lowest: TopId,
    max_tops: usize,
    work: Vec<TopId>,
    open: Vec<OpenReduction>,
}

/// Error of a question about what is below what is known of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownBelow;

/// A reduction that pops more than is known of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenReduction {
    /// Head of the rule.
    pub head: NonterminalId,
    /// Number of states to be read, the last of which is that on which the head goes.
    pub missing: u32,
}

/// A stack after the reductions that need no lookahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// This stack.
    On(TopId),
    /// No such stack.
    Nowhere,
    /// One of the reductions pops more than is known.
    After(OpenReduction),
}

/// The terminals that may come next on a stack.
#[derive(Clone, Copy, Debug)]
pub enum Lookahead<'a> {
    /// Any.
    Any,
    /// This one.
    Terminal(TerminalId),
    /// One of these.
    OneOf(&'a TerminalSet),
}

impl Lookahead<'_> {
    fn contains(self, terminal: TerminalId) -> bool {
        match self {
            Self::Any => true,
            Self::Terminal(only) => terminal == only,
            Self::OneOf(terminals) => terminals.contains(terminal),
        }
    }

    fn intersects(self, lookahead: &TerminalSet) -> bool {
        match self {
            Self::Any => true,
            Self::Terminal(only) => lookahead.contains(only),
            Self::OneOf(terminals) => lookahead.intersects(terminals),
        }
    }
}

/// A terminal that may be shifted: on which stack, and to which state.
pub type Shift = (TerminalId, TopId, StateId);

/// Limit on the stacks before one terminal unless told otherwise.
const MAX_TOPS: usize = 10_000;

impl Default for PartialStack {
    fn default() -> Self {
        Self::with_max_tops(MAX_TOPS)
    }
}

impl PartialStack {
    /// A stack of which nothing is known, that may become so many before one terminal.
    pub fn with_max_tops(max_tops: usize) -> Self {
        Self {
            entries: Vec::new(),
            ids: HashMap::new(),
            lowest: TopId::WHOLE,
            max_tops,
            work: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Begins anew with a stack whose states, from the top, begin with `states`; [`TopId::WHOLE`]
    /// is that stack.
    ///
    /// # Panics
    /// When there are no states.
    pub fn begin(&mut self, states: &[StateId]) {
        self.entries.clear();
        self.ids.clear();
        self.lowest = TopId(states.len().checked_sub(1).expect("a stack has a top") as u32);
        let entry = |(&state, at)| (state, (at < self.lowest.0).then_some(TopId(at + 1)));
        self.entries.extend(states.iter().zip(0..).map(entry));
    }

    /// Makes one state more of the stack known, below the lowest so far.
    pub fn reveal(&mut self, state: StateId) {
        let below = TopId(self.entries.len() as u32);
        self.entries.push((state, None));
        self.entries[self.lowest.0 as usize].1 = Some(below);
        self.lowest = below;
    }

    /// The topmost state of a stack.
    #[inline]
    pub fn state(&self, stack: TopId) -> StateId {
        self.entries[stack.0 as usize].0
    }

    /// The stack without its topmost state; `None` when it has no other.
    ///
    /// # Errors
    /// Where that is not known.
    #[inline]
    pub fn below(&self, stack: TopId) -> Result<Option<TopId>, UnknownBelow> {
        match self.entries[stack.0 as usize] {
            (_, Some(below)) => Ok(Some(below)),
            (StateId::START, None) => Ok(None),
            (_, None) => Err(UnknownBelow),
        }
    }

    /// The stack with `state` on top of `below`.
    #[inline]
    pub fn push(&mut self, state: StateId, below: TopId) -> TopId {
        let next = TopId(self.entries.len() as u32);
        let id = *self.ids.entry((state, below)).or_insert(next);
        if id == next {
            self.entries.push((state, Some(below)));
        }
        id
    }

    /// Adds all ways to shift a terminal on some stacks, as far as that is known: others come after
    /// the [open reductions](Self::open_reductions).
    ///
    /// # Errors
    /// When there are too many.
    pub fn shifts(
        &mut self,
        tables: &Tables,
        stacks: &[TopId],
        next: Lookahead<'_>,
        found: &mut Vec<Shift>,
    ) -> Result<(), LimitError> {
        let mut work = std::mem::take(&mut self.work);
        work.clear();
        work.extend_from_slice(stacks);
        self.open.clear();
        let mut done = 0;
        while let Some(&stack) = work.get(done) {
            done += 1;
            let state = self.state(stack);
            match next {
                Lookahead::Terminal(terminal) => {
                    let target = tables.shift(state, terminal);
                    found.extend(target.map(|target| (terminal, stack, target)));
                }
                Lookahead::Any | Lookahead::OneOf(_) => {
                    let all = tables.shifts(state).iter();
                    let all = all.filter(|&&(terminal, _)| next.contains(terminal));
                    found.extend(all.map(|&(terminal, target)| (terminal, stack, target)));
                }
            }
            // What can be shifted after a reduction is in its lookahead.
            for (rule, lookahead) in tables.reductions(state) {
                if lookahead.is_some_and(|lookahead| !next.intersects(lookahead)) {
                    continue;
                }
                let head = tables.rules().head(rule);
                let base = match self.pop(stack, tables.rules().length(rule)) {
                    Ok(Some(base)) => base,
                    Ok(None) => continue,
                    Err(missing) => {
                        self.open.push(OpenReduction { head, missing });
                        continue;
                    }
                };
                let Some(target) = tables.goto(self.state(base), head) else { continue };
                let next = self.push(target, base);
                if !work.contains(&next) {
                    work.push(next);
                }
            }
            if work.len() > self.max_tops {
                return Err(LimitError::new(self.max_tops));
            }
        }
        self.work = work;
        Ok(())
    }

    /// The reductions that the last [`shifts`](Self::shifts) could not end.
    pub fn open_reductions(&self) -> &[OpenReduction] {
        &self.open
    }

    /// The stack after all reductions that need no lookahead.
    ///
    /// # Errors
    /// When there are too many.
    pub fn settled(&mut self, tables: &Tables, stack: TopId) -> Result<Settled, LimitError> {
        let mut stack = stack;
        for _ in 0..self.max_tops {
            let Some(rule) = tables.sole_reduction(self.state(stack)) else {
                return Ok(Settled::On(stack));
            };
            let head = tables.rules().head(rule);
            let base = match self.pop(stack, tables.rules().length(rule)) {
                Ok(Some(base)) => base,
                Ok(None) => return Ok(Settled::Nowhere),
                Err(missing) => return Ok(Settled::After(OpenReduction { head, missing })),
            };
            match tables.goto(self.state(base), head) {
                Some(target) => stack = self.push(target, base),
                None => return Ok(Settled::Nowhere),
            }
        }
        Err(LimitError::new(self.max_tops))
    }

    /// The stack without its `count` topmost states; `None` when it has none left.
    ///
    /// # Errors
    /// Number of states to be read for that, where they are not known.
    fn pop(&self, stack: TopId, count: usize) -> Result<Option<TopId>, u32> {
        let mut at = stack;
        for popped in 0..count {
            match self.below(at) {
                Ok(Some(below)) => at = below,
                Ok(None) => return Ok(None),
                Err(UnknownBelow) => return Err((count - popped) as u32),
            }
        }
        Ok(Some(at))
    }
}
