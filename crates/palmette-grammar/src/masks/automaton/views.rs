//! The tops of stacks, parsed without knowing what is below.

use hashbrown::HashMap;

use crate::lr::{StateId, Tables};
use crate::{LimitError, TerminalId};

/// The top of a stack: some states, and below them whatever there is. A number into [`Views`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ViewId(u32);

/// What is known of a terminal before the whole stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It cannot follow, whatever is below.
    No,
    /// It can, whatever is below.
    Yes,
    /// That depends on what is below.
    Deeper,
}

/// What a shift leads to.
#[derive(Clone, Debug)]
pub(super) struct Shifted {
    /// The tops after it, for all that could be told.
    pub(super) views: Box<[ViewId]>,
    /// Whether there may be others, depending on what is below.
    pub(super) deeper: bool,
}

/// Views, each stored once, with what has been found out about them.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// By id: the top state, and the view without it (`None` where that is not known).
    views: Vec<(StateId, Option<ViewId>)>,
    ids: HashMap<(StateId, Option<ViewId>), ViewId>,
    shifts: HashMap<(ViewId, TerminalId), Shifted>,
    work: Vec<ViewId>,
    seen: Vec<ViewId>,
}

/// As many tops as there may be before one terminal.
const MAX_TOPS: usize = 100_000;

impl Views {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.views.clear();
        self.ids.clear();
        self.shifts.clear();
    }

    /// The view of a stack whose states, from the top, begin with `states`.
    pub(super) fn of(&mut self, states: &[StateId]) -> Option<ViewId> {
        states.iter().rev().fold(None, |below, &state| Some(self.push(state, below)))
    }

    /// Whether `terminal` can follow.
    ///
    /// # Errors
    /// When there are too many ways to parse what is above.
    pub(super) fn answer(
        &mut self,
        tables: &Tables,
        view: ViewId,
        terminal: TerminalId,
    ) -> Result<Answer, LimitError> {
        let shifted = self.shift(tables, view, terminal)?;
        Ok(match (shifted.views.is_empty(), shifted.deeper) {
            (false, _) => Answer::Yes,
            (true, true) => Answer::Deeper,
            (true, false) => Answer::No,
        })
    }

    /// The views after `terminal`.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub(super) fn shift(
        &mut self,
        tables: &Tables,
        view: ViewId,
        terminal: TerminalId,
    ) -> Result<&Shifted, LimitError> {
        if !self.shifts.contains_key(&(view, terminal)) {
            let shifted = self.find(tables, view, terminal)?;
            self.shifts.insert((view, terminal), shifted);
        }
        Ok(&self.shifts[&(view, terminal)])
    }

    /// All reductions before `terminal`, then its shifts.
    fn find(
        &mut self,
        tables: &Tables,
        view: ViewId,
        terminal: TerminalId,
    ) -> Result<Shifted, LimitError> {
        let mut work = std::mem::take(&mut self.work);
        let mut seen = std::mem::take(&mut self.seen);
        work.clear();
        seen.clear();
        work.push(view);
        seen.push(view);
        let (mut views, mut deeper) = (Vec::new(), false);
        while let Some(view) = work.pop() {
            let state = self.top(view);
            if let Some(target) = tables.shift(state, terminal) {
                views.push(self.push(target, Some(view)));
            }
            for (rule, lookahead) in tables.reductions(state) {
                if lookahead.is_some_and(|set| !set.contains(terminal)) {
                    continue;
                }
                let Some(base) = self.pop(view, tables.rules().length(rule)) else {
                    deeper = true;
                    continue;
                };
                let below = self.top(base);
                let Some(target) = tables.goto(below, tables.rules().head(rule)) else { continue };
                let next = self.push(target, Some(base));
                if !seen.contains(&next) {
                    seen.push(next);
                    work.push(next);
                }
            }
            if seen.len() > MAX_TOPS {
                return Err(LimitError::new(MAX_TOPS));
            }
        }
        views.sort_unstable();
        views.dedup();
        (self.work, self.seen) = (work, seen);
        Ok(Shifted { views: views.into(), deeper })
    }

    /// The view after the reductions that are done whatever follows; `None` where these go below what is known.
    pub(super) fn reduced(&mut self, tables: &Tables, mut view: ViewId) -> Option<ViewId> {
        while let Some(rule) = tables.sole_reduction(self.top(view)) {
            let base = self.pop(view, tables.rules().length(rule))?;
            let target = tables.goto(self.top(base), tables.rules().head(rule))?;
            view = self.push(target, Some(base));
        }
        Some(view)
    }

    /// The state on top.
    pub(super) fn top(&self, view: ViewId) -> StateId {
        self.views[view.0 as usize].0
    }

    /// The view without its `count` topmost states; `None` when that is nothing known.
    fn pop(&self, view: ViewId, count: usize) -> Option<ViewId> {
        (0..count).try_fold(view, |view, _| self.views[view.0 as usize].1)
    }

    fn push(&mut self, state: StateId, below: Option<ViewId>) -> ViewId {
        let next = ViewId(self.views.len() as u32);
        let id = *self.ids.entry((state, below)).or_insert(next);
        if id == next {
            self.views.push((state, below));
        }
        id
    }
}
