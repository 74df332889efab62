//! Operations that go on after their request was answered: their progress, their end, and a table
//! of the latest.
//!
//! The table holds [`MAX_OPERATIONS`], of which those that have ended make room for new ones, the
//! oldest first; where all of them run, no other is begun. An operation ends once, whatever happens
//! to the thread that runs it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::{Kind, Problem};
use crate::request_id;
use crate::wire::{CatalogEntry, Operation, OperationProgress, OperationState};

/// Operations that are remembered.
const MAX_OPERATIONS: usize = 64;

/// Work that can be watched and broken off; also that of a request which waits for it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    items: AtomicU64,
    bytes: AtomicU64,
    of_bytes: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// Sets the bytes that there are to read.
    pub(crate) fn begin(&self, of_bytes: u64) {
        self.of_bytes.store(of_bytes, Ordering::Relaxed);
    }

    /// Counts an item.
    pub(crate) fn add_item(&self) {
        self.items.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes.
    pub(crate) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Sets the bytes by a share of what there is, for readers that know no place in the file:
    /// those of tables.
    #[cfg(any(feature = "tables", test))]
    pub(crate) fn set_share(&self, done: u64, of: u64) {
        let of_bytes = u128::from(self.of_bytes.load(Ordering::Relaxed));
        let bytes = of_bytes * u128::from(done.min(of)) / u128::from(of.max(1));
        self.bytes.store(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Tells the work to stop; it looks between two items and between two stages.
    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Refuses to go on where the work is to stop.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match self.is_cancelled() {
            true => Err(Problem::new(Kind::Conflict, "the operation was cancelled")),
            false => Ok(()),
        }
    }

    fn shown(&self) -> OperationProgress {
        OperationProgress {
            items: self.items.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            of_bytes: self.of_bytes.load(Ordering::Relaxed),
        }
    }
}

/// The making of a catalog that nobody waits for.
#[derive(Debug)]
pub(crate) struct Making {
    id: String,
    catalog: String,
    began: Instant,
    pub(crate) progress: Progress,
    ended: OnceLock<(Duration, Outcome)>,
}

#[derive(Debug)]
enum Outcome {
    Succeeded(Box<CatalogEntry>),
    Failed(Box<Problem>),
    Cancelled,
}

impl Making {
    /// Ends it with what its work gave.
    fn end(&self, made: Result<CatalogEntry, Problem>) {
        let ended = match made {
            Ok(entry) => Outcome::Succeeded(Box::new(entry)),
            Err(_) if self.progress.is_cancelled() => Outcome::Cancelled,
            Err(problem) => Outcome::Failed(Box::new(problem)),
        };
        // The first end counts.
        _ = self.ended.set((self.began.elapsed(), ended));
    }

    /// Path of it on the server.
    pub(crate) fn path(&self) -> String {
        format!("/v1/operations/{}", self.id)
    }

    /// Name of the catalog.
    pub(crate) fn catalog(&self) -> &str {
        &self.catalog
    }

    /// State of it now.
    pub(crate) fn shown(&self) -> Operation {
        let (took, ended) = match self.ended.get() {
            None => (self.began.elapsed(), None),
            Some((took, ended)) => (*took, Some(ended)),
        };
        let (state, result, problem) = match ended {
            None => (OperationState::Running, None, None),
            Some(Outcome::Succeeded(entry)) => {
                (OperationState::Succeeded, Some(CatalogEntry::clone(entry)), None)
            }
            Some(Outcome::Failed(problem)) => {
                (OperationState::Failed, None, Some(Problem::clone(problem)))
            }
            Some(Outcome::Cancelled) => (OperationState::Cancelled, None, None),
        };
        Operation {
            operation: self.path(),
            catalog: self.catalog.clone(),
            state,
            seconds: (took.as_secs_f64() * 1e3).round() / 1e3,
            progress: self.progress.shown(),
            result,
            problem,
        }
    }
}

/// Handle of a running operation, for the thread that runs it. Dropped without an end it has
/// failed: the thread panicked.
#[derive(Debug)]
pub(crate) struct Running(Arc<Making>);

impl Running {
    pub(crate) fn making(&self) -> &Making {
        &self.0
    }

    /// Ends it with what its work gave.
    pub(crate) fn end(self, made: Result<CatalogEntry, Problem>) {
        self.0.end(made);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.end(Err(Problem::new(Kind::Internal, "the operation panicked; the log has more")));
    }
}

/// The latest operations, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Operations(Mutex<VecDeque<Arc<Making>>>);

impl Operations {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Making>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the making of a catalog.
    pub(crate) fn begin(&self, catalog: &str) -> Result<Running, Problem> {
        let mut all = self.lock();
        if all.len() == MAX_OPERATIONS {
            let Some(place) = all.iter().position(|of| of.ended.get().is_some()) else {
                let detail = format!("{MAX_OPERATIONS} operations run already; repeat later");
                return Err(Problem::new(Kind::Unavailable, detail).retry_after(1000));
            };
            all.remove(place);
        }
        let making = Arc::new(Making {
            id: request_id::new(),
            catalog: catalog.to_owned(),
            began: Instant::now(),
            progress: Progress::default(),
            ended: OnceLock::new(),
        });
        all.push_back(Arc::clone(&making));
        Ok(Running(making))
    }

    /// All that are remembered, the latest first.
    pub(crate) fn all(&self) -> Vec<Arc<Making>> {
        self.lock().iter().rev().cloned().collect()
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Making>> {
        self.lock().iter().find(|of| of.id == id).cloned()
    }

    /// Tells one to stop, or forgets it where it has ended.
    pub(crate) fn end(&self, making: &Arc<Making>) {
        match making.ended.get() {
            None => making.progress.cancel(),
            Some(_) => self.lock().retain(|of| !Arc::ptr_eq(of, making)),
        }
    }

    /// Tells all to stop.
    pub(crate) fn cancel_all(&self) {
        self.lock().iter().for_each(|of| of.progress.cancel());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed() -> Result<CatalogEntry, Problem> {
        Err(Problem::new(Kind::Invalid, "line 3: no id"))
    }

    #[test]
    fn the_oldest_that_has_ended_makes_room() {
        let operations = Operations::default();
        let mut running: VecDeque<Running> =
            (0..MAX_OPERATIONS).map(|n| operations.begin(&n.to_string()).unwrap()).collect();
        assert_eq!(operations.begin("more").unwrap_err().status, 503);
        let third = running.remove(2).unwrap();
        let id = third.making().id.clone();
        third.end(failed());
        assert_eq!(operations.find(&id).unwrap().shown().state, OperationState::Failed);
        let more = operations.begin("more").unwrap();
        assert!(operations.find(&id).is_none());
        let all = operations.all();
        let catalogs: Vec<&str> = all.iter().map(|of| of.catalog()).collect();
        assert_eq!((catalogs.len(), &catalogs[..2]), (MAX_OPERATIONS, &["more", "63"][..]));
        let mut ids: Vec<&str> = all.iter().map(|of| of.id.as_str()).collect();
        ids.dedup();
        assert_eq!(ids.len(), MAX_OPERATIONS);
        assert_eq!(operations.begin("another").unwrap_err().status, 503);
        drop(more);
    }

    #[test]
    fn an_end_is_one_and_comes_whatever_happens() {
        let operations = Operations::default();
        let shown = |id: &str| operations.find(id).unwrap().shown();
        let begin = || {
            let running = operations.begin("a").unwrap();
            let id = running.making().id.clone();
            (running, id)
        };
        let (running, id) = begin();
        running.making().progress.begin(300);
        running.making().progress.add_item();
        running.making().progress.set_share(1, 3);
        let progress = shown(&id).progress;
        assert_eq!((progress.items, progress.bytes, progress.of_bytes), (1, 100, 300));
        assert_eq!(shown(&id).state, OperationState::Running);
        running.end(failed());
        let failed_one = shown(&id);
        assert_eq!(failed_one.problem.unwrap().detail, "line 3: no id");
        // One that ended is forgotten by its end's end.
        operations.end(&operations.find(&id).unwrap());
        assert!(operations.find(&id).is_none());

        let (running, id) = begin();
        operations.end(&operations.find(&id).unwrap());
        assert_eq!(shown(&id).state, OperationState::Running, "until it looks");
        assert!(running.making().progress.check().is_err());
        running.end(failed());
        assert_eq!(shown(&id).state, OperationState::Cancelled);

        let (running, id) = begin();
        drop(running);
        assert_eq!(shown(&id).problem.unwrap().status, 500);
        let (running, id) = begin();
        operations.cancel_all();
        drop(running);
        assert_eq!(shown(&id).state, OperationState::Cancelled);
    }
}
