//! Positions of a [`GrammarConstraint`](crate::GrammarConstraint), each with those before it.

use std::fmt;
use std::sync::Arc;

use palmette_core::RollbackError;

use crate::constraint::Branch;

/// A position: the ways to read what was committed, and the positions before it.
///
/// A clone is one count more; clones share what was before they parted. Taking back `n` commits follows `n` pointers.
#[derive(Clone)]
pub struct GrammarState {
    last: Arc<Moment>,
}

/// A position without those after it.
pub(crate) struct Moment {
    before: Option<Arc<Moment>>,
    branches: Box<[Branch]>,
    ended: bool,
    len: usize,
}

impl GrammarState {
    pub(crate) fn new(first: Moment) -> Self {
        Self { last: Arc::new(first) }
    }

    /// How many commits led here.
    pub(crate) fn len(&self) -> usize {
        self.last.len
    }

    pub(crate) fn branches(&self) -> &[Branch] {
        &self.last.branches
    }

    /// Whether an end token was committed.
    pub(crate) fn is_ended(&self) -> bool {
        self.last.ended
    }

    pub(crate) fn push(&mut self, branches: Box<[Branch]>, ended: bool) {
        let len = self.last.len + 1;
        self.last = Arc::new(Moment { before: Some(self.last.clone()), branches, ended, len });
    }

    pub(crate) fn take_back(&mut self, num_tokens: usize) -> Result<(), RollbackError> {
        let committed = self.last.len;
        if num_tokens > committed {
            return Err(RollbackError { asked: num_tokens, committed });
        }
        let mut last = &self.last;
        for _ in 0..num_tokens {
            last = last.before.as_ref().expect("as many as were committed");
        }
        self.last = last.clone();
        Ok(())
    }
}

impl Moment {
    pub(crate) fn first(branches: Box<[Branch]>) -> Self {
        Self { before: None, branches, ended: false, len: 0 }
    }
}

/// Equal when all positions from the first on are.
impl PartialEq for GrammarState {
    fn eq(&self, other: &Self) -> bool {
        let (mut a, mut b) = (&self.last, &other.last);
        loop {
            if Arc::ptr_eq(a, b) {
                return true;
            }
            if a.len != b.len || a.ended != b.ended || a.branches != b.branches {
                return false;
            }
            match (&a.before, &b.before) {
                (Some(before_a), Some(before_b)) => (a, b) = (before_a, before_b),
                (None, None) => return true,
                _ => return false,
            }
        }
    }
}

impl fmt::Debug for GrammarState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarState")
            .field("len", &self.last.len)
            .field("ended", &self.last.ended)
            .field("branches", &self.last.branches)
            .finish()
    }
}

/// A long history must not be dropped by recursion.
impl Drop for Moment {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(moment) = before {
            before = Arc::into_inner(moment).and_then(|mut moment| moment.before.take());
        }
    }
}
