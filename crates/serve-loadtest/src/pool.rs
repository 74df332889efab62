//! Pool of connections: bounds requests at once, and takes the one used last first.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::Connection;

/// Connections of one driver.
///
/// Invariant: leases that live are `busy`, and `busy ≤ limit`; `idle` has no more than `limit`
/// connections, since each was a lease's.
#[derive(Debug)]
pub(crate) struct Pool {
    limit: usize,
    state: Mutex<State>,
    /// A lease has ended.
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Connection>,
    busy: usize,
}

/// The right to have one request on its way, with the connection that it may use.
#[derive(Debug)]
pub(crate) struct Lease {
    pool: Arc<Pool>,
    pub(crate) connection: Option<Connection>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.busy -= 1;
        state.idle.extend(self.connection.take());
        drop(state);
        self.pool.freed.notify_all();
    }
}

impl Pool {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default(), freed: Condvar::new() })
    }

    /// A lease, if one is free.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Lease> {
        let mut state = self.lock();
        if state.busy == self.limit {
            return None;
        }
        state.busy += 1;
        Some(Lease { pool: Arc::clone(self), connection: state.idle.pop() })
    }

    /// Sleeps until `done` says so of the number of leases, at most for `time`.
    pub(crate) fn sleep_until(&self, time: Duration, done: impl Fn(usize) -> bool) -> bool {
        let until = Instant::now() + time;
        let mut state = self.lock();
        while !done(state.busy) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Leases that live.
    pub(crate) fn busy(&self) -> usize {
        self.lock().busy
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing between the changes of a state can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
