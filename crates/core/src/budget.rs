//! Budgets: bounds on the work of a compilation or a mask, and flags that call it off.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Units between two looks at the flag.
const UNITS_BETWEEN_LOOKS: u64 = 1 << 12;
/// Units between two looks of work that gives way to others, who wait meanwhile.
const UNITS_BETWEEN_LOOKS_AT_OTHERS: u64 = 1 << 8;

/// Sleep of work that gave way, between two looks at whether it may go on.
const BETWEEN_LOOKS_AT_OTHERS: Duration = Duration::from_micros(20);

/// Number of times that work is begun that has to give way each time.
const MAX_TRIES: u32 = 4;

/// The work that a compilation or a mask may still do.
///
/// A unit is a step of an inner loop, some nanoseconds; no clock is read, so the same input always
/// stops at the same place. A flag, where one is given, calls the work off from another thread.
#[derive(Debug)]
pub struct Budget<'a> {
    left: u64,
    limit: u64,
    until_look: u64,
    cancelled: Option<&'a AtomicBool>,
    others: Option<&'a Askers>,
}

/// Count of the threads that ask for something that work ahead of time may hold at the moment.
#[derive(Debug, Default)]
pub struct Askers(AtomicUsize);

/// A thread that asks, until this is dropped.
#[derive(Debug)]
pub struct Asker<'a>(&'a Askers);

impl Askers {
    /// Counts a thread.
    pub fn begin(&self) -> Asker<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Asker(self)
    }

    fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The reason for which work stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Interrupted {
    /// The budget is used up.
    #[error("the work budget of {limit} steps is used up; raise it or simplify the grammar")]
    OutOfBudget {
        /// Size of the budget.
        limit: u64,
    },
    /// Too much memory is needed for what has to be remembered.
    #[error(
        "what one answer needs takes more than {limit} bytes; raise the limit or simplify the grammar"
    )]
    OutOfBytes {
        /// Limit in bytes.
        limit: usize,
    },
    /// An ambiguous text has too many parses that differ in what may follow.
    #[error(
        "one mask depends on more than {limit} ways through the parser's stacks; make the grammar less ambiguous"
    )]
    TooManyWays {
        /// Limit on their number.
        limit: usize,
    },
    /// A grammar's terminals have too many residuals, or too large ones, to be remembered.
    #[error("the grammar's terminals have too many residuals; simplify their expressions")]
    TooManyResiduals,
    /// The flag was set.
    #[error("the work was cancelled")]
    Cancelled,
}

impl Interrupted {
    /// True when what was asked may be computed in another way that takes less.
    pub fn is_limit(self) -> bool {
        !matches!(self, Self::Cancelled)
    }
}

impl Budget<'static> {
    /// A budget without end.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// This many units.
    pub fn new(units: u64) -> Self {
        Self { left: units, limit: units, until_look: 0, cancelled: None, others: None }
    }
}

impl<'a> Budget<'a> {
    /// This many units, or fewer when `cancelled` becomes true.
    pub fn cancellable(units: u64, cancelled: &'a AtomicBool) -> Self {
        Self { left: units, limit: units, until_look: 0, cancelled: Some(cancelled), others: None }
    }

    /// A budget for work that nobody waits for: it ends as if it were called off while others ask,
    /// so that they need not wait for what it holds. `gave_way` tells whether that was why.
    pub fn giving_way_to(self, others: &'a Askers) -> Self {
        Self { others: Some(others), ..self }
    }

    /// True when it is for work that gives way.
    pub fn gives_way(&self) -> bool {
        self.others.is_some()
    }

    /// Waits until no others ask, where the work gives way to them, or it was called off: to be
    /// called before something is taken hold of, since locks do not go round in turns.
    pub fn let_others_pass(&self) {
        let Some(others) = self.others else { return };
        while others.is_any() && !self.is_cancelled() {
            std::thread::sleep(BETWEEN_LOOKS_AT_OTHERS);
        }
    }

    /// True when work that ended with [`Interrupted::Cancelled`] only gave way and may be begun
    /// again. Waits until no others ask.
    pub(crate) fn gave_way(&self) -> bool {
        self.let_others_pass();
        self.gives_way() && !self.is_cancelled()
    }

    /// True when work that was interrupted is not to be begun again: it had to give way so many
    /// times, which `tries` counts, that it is left to whoever asks for it. Waits until no others
    /// ask.
    ///
    /// # Errors
    /// When it did not give way, but was interrupted otherwise.
    pub fn gives_up(&self, why: Interrupted, tries: &mut u32) -> Result<bool, Interrupted> {
        if why != Interrupted::Cancelled || !self.gave_way() {
            return Err(why);
        }
        *tries = (*tries + 1) % MAX_TRIES;
        Ok(*tries == 0)
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// A budget of what is left here, for work that keeps it with what it borrows;
    /// [`join`](Self::join) ends that.
    pub fn split_off(&self) -> Self {
        Self { ..*self }
    }

    /// Leaves as much as `lent` has left.
    pub fn join(&mut self, lent: &Budget<'_>) {
        (self.left, self.until_look) = (lent.left, lent.until_look);
    }

    /// Units left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes `units` off.
    ///
    /// # Errors
    /// When that many are not left, or the flag was seen set: it is looked at every few thousand
    /// units.
    #[inline]
    pub fn spend(&mut self, units: u64) -> Result<(), Interrupted> {
        if units > self.left {
            return Err(Interrupted::OutOfBudget { limit: self.limit });
        }
        self.left -= units;
        if self.cancelled.is_some() || self.others.is_some() {
            if self.until_look <= units {
                return self.look();
            }
            self.until_look -= units;
        }
        Ok(())
    }

    /// [`spend`](Self::spend) for work that holds nothing which others could wait for: where it has
    /// to give way it waits and goes on.
    ///
    /// # Errors
    /// As [`spend`](Self::spend), but that it gave way.
    pub fn spend_holding_nothing(&mut self, units: u64) -> Result<(), Interrupted> {
        match self.spend(units) {
            Err(Interrupted::Cancelled) if self.gave_way() => Ok(()),
            spent => spent,
        }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Interrupted> {
        self.until_look = match self.others {
            Some(_) => UNITS_BETWEEN_LOOKS_AT_OTHERS,
            None => UNITS_BETWEEN_LOOKS,
        };
        if self.is_cancelled() || self.others.is_some_and(Askers::is_any) {
            return Err(Interrupted::Cancelled);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_where_it_says() {
        let mut budget = Budget::new(3);
        assert_eq!(budget.spend(3), Ok(()));
        assert_eq!(budget.spend(1), Err(Interrupted::OutOfBudget { limit: 3 }));
    }

    #[test]
    fn stops_when_cancelled() {
        let cancelled = AtomicBool::new(false);
        let mut budget = Budget::cancellable(u64::MAX, &cancelled);
        assert_eq!(budget.spend(1), Ok(()));
        cancelled.store(true, Ordering::Relaxed);
        assert_eq!(budget.spend(UNITS_BETWEEN_LOOKS), Err(Interrupted::Cancelled));
    }

    #[test]
    fn gives_way_while_others_ask() {
        let (cancelled, others) = (AtomicBool::new(false), Askers::default());
        let mut budget = Budget::cancellable(u64::MAX, &cancelled).giving_way_to(&others);
        assert_eq!(budget.spend(1), Ok(()));
        let asked = others.begin();
        assert_eq!(budget.spend(UNITS_BETWEEN_LOOKS_AT_OTHERS), Err(Interrupted::Cancelled));
        drop(asked);
        assert!(budget.gave_way());
        assert_eq!(budget.spend(UNITS_BETWEEN_LOOKS_AT_OTHERS), Ok(()));
        assert_eq!(budget.spend_holding_nothing(UNITS_BETWEEN_LOOKS_AT_OTHERS), Ok(()));
        let _asked = others.begin();
        cancelled.store(true, Ordering::Relaxed);
        assert_eq!(budget.spend(UNITS_BETWEEN_LOOKS_AT_OTHERS), Err(Interrupted::Cancelled));
        assert!(!budget.gave_way(), "it was called off");
        let called_off = budget.spend_holding_nothing(UNITS_BETWEEN_LOOKS_AT_OTHERS);
        assert_eq!(called_off, Err(Interrupted::Cancelled));
    }
}
