//! Turns of those that change a catalog, and the answers that repeated batches get again.
//!
//! One writes at a time, so that a condition on the generation holds until the write is done. A turn is held by the work itself and
//! not by the connection: a client that goes away does not let another in between.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::problem::{Kind, Problem};
use crate::wire::ItemsApplied;

/// Writes of one catalog that wait for their turn, at most.
const MAX_WAITING: usize = 64;
/// Keys of one catalog whose answers are remembered, the latest.
const MAX_KEYS: usize = 10_000;
/// The longest key.
const MAX_KEY_BYTES: usize = 128;

/// Writes of one catalog.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    waiting: AtomicUsize,
    written: Arc<Mutex<Written>>,
}

/// The sole right to change a catalog.
pub(crate) type Turn = OwnedMutexGuard<Written>;

/// Writes so far.
#[derive(Debug, Default)]
pub(crate) struct Written {
    answers: HashMap<String, (BodyHash, ItemsApplied)>,
    /// Keys of `answers`, the oldest first.
    keys: VecDeque<String>,
}

/// SHA-256 of a body.
pub(crate) type BodyHash = [u8; 32];

pub(crate) fn hash_of(body: &[u8]) -> BodyHash {
    Sha256::digest(body).into()
}

impl Writes {
    /// Waits for the turn; refused where too many wait already.
    pub(crate) async fn turn(&self) -> Result<Turn, Problem> {
        let waits = Waits(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            let detail =
                format!("{MAX_WAITING} changes of this catalog wait already; repeat later");
            return Err(Problem::new(Kind::Unavailable, detail).retry_after(1000));
        }
        let turn = Arc::clone(&self.written).lock_owned().await;
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

impl Written {
    /// The answer that a key's first batch got; a problem where that batch was another.
    pub(crate) fn first_answer(
        &self,
        key: &str,
        body: &BodyHash,
    ) -> Result<Option<ItemsApplied>, Problem> {
        match self.answers.get(key) {
            None => Ok(None),
            Some((of, answer)) if of == body => Ok(Some(*answer)),
            Some((_, answer)) => {
                let detail = format!(
                    "Idempotency-Key {key:?} came with another body, which made generation {}; a new batch needs a new key",
                    answer.generation
                );
                Err(Problem::new(Kind::Invalid, detail))
            }
        }
    }

    pub(crate) fn remember(&mut self, key: String, body: BodyHash, answer: ItemsApplied) {
        if self.keys.len() == MAX_KEYS
            && let Some(oldest) = self.keys.pop_front()
        {
            self.answers.remove(&oldest);
        }
        self.keys.push_back(key.clone());
        self.answers.insert(key, (body, answer));
    }
}

/// Refuses what is no key.
pub(crate) fn check_key(key: &str) -> Result<(), Problem> {
    let is_sound = (1..=MAX_KEY_BYTES).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    match is_sound {
        true => Ok(()),
        false => Err(Problem::new(
            Kind::Invalid,
            format!(
                "Idempotency-Key has {} bytes; it must be 1 to {MAX_KEY_BYTES} of printable ASCII",
                key.len()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(generation: u64) -> ItemsApplied {
        ItemsApplied { generation, ..ItemsApplied::default() }
    }

    #[test]
    fn the_latest_keys_are_remembered() {
        let mut written = Written::default();
        for generation in 0..MAX_KEYS as u64 + 5 {
            written.remember(format!("k{generation}"), hash_of(b"a"), answer(generation));
        }
        assert_eq!((written.keys.len(), written.answers.len()), (MAX_KEYS, MAX_KEYS));
        let of = |key: &str| written.first_answer(key, &hash_of(b"a")).unwrap();
        assert_eq!(of("k4"), None);
        assert_eq!(of("k5"), Some(answer(5)));
        assert!(written.first_answer("k5", &hash_of(b"b")).is_err());
    }

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
