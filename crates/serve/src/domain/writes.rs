//! Turns of those that change a catalog.
//!
//! One writes at a time, so that a condition on the generation holds until the write is done. A
//! turn is held by the work itself and not by the connection: a client that goes away does not let
//! another in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palmette_catalog_live::MAX_BATCH_KEY_BYTES;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::problem::{Kind, Problem};

/// Writes of one catalog that wait for their turn, at most.
const MAX_WAITING: usize = 64;

/// Writes of one catalog.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    waiting: AtomicUsize,
    turn: Arc<Mutex<()>>,
}

/// The sole right to change a catalog.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Writes {
    /// Waits for the turn; refused where too many wait already.
    pub(crate) async fn turn(&self) -> Result<Turn, Problem> {
        let waits = Waits(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            let detail =
                format!("{MAX_WAITING} changes of this catalog wait already; repeat later");
            return Err(Problem::new(Kind::Unavailable, detail).retry_after(1000));
        }
        let turn = Arc::clone(&self.turn).lock_owned().await;
        drop(waits);
        Ok(turn)
    }
}

/// Counts down when the wait ends, by a turn or by the client's leaving.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Refuses what is no key of a batch.
pub(crate) fn check_key(key: &str) -> Result<(), Problem> {
    let is_sound = (1..=MAX_BATCH_KEY_BYTES).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    match is_sound {
        true => Ok(()),
        false => Err(Problem::new(
            Kind::Invalid,
            format!(
                "Idempotency-Key has {} bytes; it must be 1 to {MAX_BATCH_KEY_BYTES} of printable ASCII",
                key.len()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_than_so_many_wait() {
        let writes = Arc::new(Writes::default());
        let held = writes.turn().await.unwrap();
        let wait = |_| {
            let writes = Arc::clone(&writes);
            tokio::spawn(async move { writes.turn().await.map(drop) })
        };
        let waiting: Vec<_> = (0..MAX_WAITING).map(wait).collect();
        while writes.waiting.load(Ordering::Relaxed) < MAX_WAITING {
            tokio::task::yield_now().await;
        }
        assert_eq!(writes.turn().await.unwrap_err().status, 503);
        // One that leaves makes room for another.
        waiting[0].abort();
        while writes.waiting.load(Ordering::Relaxed) == MAX_WAITING {
            tokio::task::yield_now().await;
        }
        let late = wait(0);
        drop(held);
        for waiting in waiting.into_iter().skip(1).chain([late]) {
            waiting.await.unwrap().unwrap();
        }
        assert_eq!(writes.waiting.load(Ordering::Relaxed), 0);
    }
}
