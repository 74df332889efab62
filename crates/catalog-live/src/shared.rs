//! State that readers, the writer and the threads in the background share.

use std::fs::File;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::checkpoint::Checkpoints;
use crate::options::LiveOptions;
use crate::snapshot::Snapshot;
use crate::status::LiveStatus;
use crate::writer::Writer;

/// Locks are taken in this order: `checkpoints`, then `writer`.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: PathBuf,
    pub(crate) options: LiveOptions,
    /// Snapshot of readers, who take it without a lock.
    pub(crate) current: ArcSwap<Snapshot>,
    /// Numbers as of the last time that the writer's lock was let go of: looking at them waits for
    /// no batch.
    pub(crate) status: ArcSwap<LiveStatus>,
    writer: Mutex<Writer>,
    /// Told of every publication and of the end of every merge.
    pub(crate) changed: Condvar,
    pub(crate) checkpoints: Mutex<Checkpoints>,
    pub(crate) is_closing: AtomicBool,
    /// Identity of the shared log that is followed; `None` where this catalog has the only log.
    pub(crate) shared_log: Option<String>,
    /// Locked for as long as it is open.
    lock_file: File,
}

impl Shared {
    pub(crate) fn new(
        writer: Writer,
        checkpoints: Checkpoints,
        shared_log: Option<String>,
        lock_file: File,
    ) -> Self {
        Self {
            dir: writer.state.dir.clone(),
            options: writer.state.options.clone(),
            current: ArcSwap::from_pointee(writer.state.snapshot()),
            status: ArcSwap::from_pointee(writer.status()),
            writer: Mutex::new(writer),
            changed: Condvar::new(),
            checkpoints: Mutex::new(checkpoints),
            is_closing: AtomicBool::new(false),
            shared_log,
            lock_file,
        }
    }

    /// The writer's lock. A panic under it leaves a state that was not published; what was
    /// published stays right, so others go on.
    pub(crate) fn lock(&self) -> WriterGuard<'_> {
        self.guard(self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits, without the lock, until something changed.
    pub(crate) fn wait<'a>(&'a self, mut writer: WriterGuard<'a>) -> WriterGuard<'a> {
        writer.show();
        let waiting = writer.guard.take().expect("held until it is dropped");
        self.guard(self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner))
    }

    /// [`wait`](Self::wait), for no longer than this.
    pub(crate) fn wait_for<'a>(
        &'a self,
        mut writer: WriterGuard<'a>,
        most: Duration,
    ) -> WriterGuard<'a> {
        writer.show();
        let waiting = writer.guard.take().expect("held until it is dropped");
        let waited = self.changed.wait_timeout(waiting, most);
        self.guard(waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn guard<'a>(&'a self, guard: MutexGuard<'a, Writer>) -> WriterGuard<'a> {
        WriterGuard { shared: self, guard: Some(guard), is_changed: false }
    }

    /// Shows readers the newest state.
    pub(crate) fn publish(&self, writer: &Writer) {
        self.current.store(Arc::new(writer.state.snapshot()));
        self.changed.notify_all();
    }
}

/// The writer's lock, held. Letting go of it shows the numbers of what was changed under it.
#[derive(Debug)]
pub(crate) struct WriterGuard<'a> {
    shared: &'a Shared,
    /// `None` once it was handed on to wait.
    guard: Option<MutexGuard<'a, Writer>>,
    is_changed: bool,
}

impl WriterGuard<'_> {
    /// Makes what was changed ready for others: a merge, a checkpoint or a reader that comes next
    /// takes the memory segment as its index has it.
    fn show(&mut self) {
        if let Some(writer) = self.guard.as_deref_mut()
            && !writer.state.is_indexed()
            && writer.check_sound().is_ok()
        {
            // After an error the writer takes nothing more, and says why.
            _ = writer.index_memory();
        }
        if let Some(writer) = self.guard.as_deref().filter(|_| self.is_changed) {
            self.shared.status.store(Arc::new(writer.status()));
            if writer.counts.write_error.is_some() {
                // Somebody is to look when it can be written again.
                self.shared.changed.notify_all();
            }
        }
    }
}

impl Deref for WriterGuard<'_> {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        self.guard.as_deref().expect("held until it is dropped")
    }
}

impl DerefMut for WriterGuard<'_> {
    fn deref_mut(&mut self) -> &mut Writer {
        self.is_changed = true;
        self.guard.as_deref_mut().expect("held until it is dropped")
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        // What a panic left is not shown.
        if !std::thread::panicking() {
            self.show();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closing the file would not do while a process that is being started still has a copy of
        // it. Where unlocking fails, closing is what is left.
        _ = self.lock_file.unlock();
    }
}
