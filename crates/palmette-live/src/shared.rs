//! What readers, the writer and the threads in the background share.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;

use crate::checkpoint::Checkpoints;
use crate::options::LiveOptions;
use crate::snapshot::Snapshot;
use crate::writer::Writer;

/// Locks are taken in this order: `checkpoints`, then `writer`.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) options: LiveOptions,
    /// What readers see: they take it without a lock.
    pub(crate) current: ArcSwap<Snapshot>,
    writer: Mutex<Writer>,
    /// Told of every publication and of the end of every merge.
    pub(crate) changed: Condvar,
    pub(crate) checkpoints: Mutex<Checkpoints>,
    pub(crate) is_closing: AtomicBool,
    /// Locked for as long as it is open.
    lock_file: File,
}

impl Shared {
    pub(crate) fn new(writer: Writer, checkpoints: Checkpoints, lock_file: File) -> Self {
        Self {
            dir: writer.state.dir.clone(),
            options: writer.state.options.clone(),
            current: ArcSwap::from_pointee(writer.state.snapshot()),
            writer: Mutex::new(writer),
            changed: Condvar::new(),
            checkpoints: Mutex::new(checkpoints),
            is_closing: AtomicBool::new(false),
            lock_file,
        }
    }

    /// The writer's lock. A panic under it leaves a state that was not published; what was published
    /// stays right, so others go on.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, without the lock, until something changed.
    pub(crate) fn wait<'a>(&self, writer: MutexGuard<'a, Writer>) -> MutexGuard<'a, Writer> {
        self.changed.wait(writer).unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows readers the newest state.
    pub(crate) fn publish(&self, writer: &Writer) {
        self.current.store(Arc::new(writer.state.snapshot()));
        self.changed.notify_all();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closing the file would not do while a process that is being started still has a copy of it. Where
        // unlocking fails, closing is what is left.
        _ = self.lock_file.unlock();
    }
}
