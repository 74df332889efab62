//! Readers of a live catalog in other processes than the writer's: followers of its manifest and
//! log.
//!
//! A reader takes no lock and writes nothing. It maps the segments of the newest manifest, applies
//! the entries of the log since, and looks for more of both: [`LiveReader::refresh`], which a
//! thread calls every [`ReaderOptions::poll`]. Files that a newer manifest does not need may go
//! away under its hands; then that manifest is read instead. Segments that it has open are not read
//! again.
//!
//! Cost: mapping and summing up the files once; for each new generation what the writer pays to
//! index the memory segment.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arc_swap::ArcSwap;
use palmette_mapped::Check;

use crate::error::{Kind, LiveError};
use crate::manifest::{Contents, Manifest, named_place, newest_number};
use crate::open::logs;
use crate::options::LiveOptions;
use crate::schema::Schema;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::status::{KeptGeneration, LiveStatus};
use crate::wal::WalTail;

/// Times that files may go away while they are opened: each time another process made a checkpoint.
const MAX_RETRIES: usize = 20;

/// Choices of a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderOptions {
    /// The time between looks for new generations; `None` for none, but by [`LiveReader::refresh`].
    pub poll: Option<Duration>,
    /// The part of the files that is checked before it is served.
    pub check: Check,
    /// Going on without segments whose files are damaged. Snapshots tell which ones:
    /// [`Snapshot::damaged`].
    pub degraded: bool,
    /// Bytes of compiled filters kept for each segment.
    pub filter_bytes: usize,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        let LiveOptions { check, filter_bytes, .. } = LiveOptions::default();
        Self { poll: Some(Duration::from_millis(20)), check, degraded: false, filter_bytes }
    }
}

/// A live catalog that another process may be writing. Any number of readers go on beside one
/// writer.
#[derive(Debug)]
pub struct LiveReader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    current: ArcSwap<Snapshot>,
    /// Numbers as of the last look for new generations.
    status: ArcSwap<LiveStatus>,
    follower: Mutex<Follower>,
    /// The problem of the last look for new generations.
    problem: Mutex<Option<String>>,
    is_closing: AtomicBool,
    closing: Condvar,
}

/// State as of the last look, and the places from which it continues.
#[derive(Debug)]
struct Follower {
    manifest: u64,
    tail: WalTail,
    state: State,
}

impl LiveReader {
    /// Opens the newest generation with the default options: it sees others some 20 ms after they
    /// were published.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, LiveError> {
        Self::open_with(dir.as_ref(), ReaderOptions::default())
    }

    /// Opens the newest generation. Nothing in the directory is written or locked.
    ///
    /// # Errors
    /// When there is no live catalog, or a file is missing or damaged; the message names the file
    /// and the place.
    pub fn open_with(dir: &Path, options: ReaderOptions) -> Result<Self, LiveError> {
        let ReaderOptions { poll, check, degraded, filter_bytes } = options;
        let options = LiveOptions { check, filter_bytes, ..LiveOptions::default() };
        let mut start = State::new(dir, options, Schema::default(), Vec::new(), 0)?;
        start.is_degraded = degraded;
        let follower = Follower::open(&start)?;
        let shared = Arc::new(Shared {
            current: ArcSwap::from_pointee(follower.state.snapshot()),
            status: ArcSwap::from_pointee(follower.status()),
            follower: Mutex::new(follower),
            problem: Mutex::new(None),
            is_closing: AtomicBool::new(false),
            closing: Condvar::new(),
        });
        let thread = poll.map(|poll| {
            let shared = shared.clone();
            let follow = move || shared.follow(poll);
            thread::Builder::new().name("live reader".into()).spawn(follow)
        });
        let thread = thread.transpose().map_err(|e| LiveError::io(dir, e))?;
        Ok(Self { shared, thread })
    }

    /// The newest generation that was seen. It stays as it is for as long as the `Arc` is held.
    /// Never waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.current.load_full()
    }

    /// Looks for new generations now; returns the newest one's number.
    ///
    /// # Errors
    /// When a file is damaged or cannot be read: the snapshot before stands.
    pub fn refresh(&self) -> Result<u64, LiveError> {
        self.shared.refresh()
    }

    /// A kept generation, by its number or name.
    ///
    /// # Errors
    /// When it is not kept; the message names those that are. When its files cannot be opened.
    pub fn generation(&self, name: &str) -> Result<Arc<Snapshot>, LiveError> {
        self.shared.lock().generation(name).map(Arc::new)
    }

    /// The generations that are kept, in the order in which they were. Never waits.
    pub fn generations(&self) -> Vec<KeptGeneration> {
        self.shared.status.load().kept.clone()
    }

    /// Numbers for people and metrics, as of the last look for new generations; never waits for one
    /// that is going on. What the writer does in the background is not known here.
    pub fn status(&self) -> LiveStatus {
        let problem = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let status = LiveStatus::clone(&self.shared.status.load());
        LiveStatus { background_error: problem, ..status }
    }
}

impl Drop for LiveReader {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
        // Under the lock, so that the thread is not between looking and waiting.
        drop(self.shared.problem.lock());
        self.shared.closing.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to end.
            _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Follower> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refresh(&self) -> Result<u64, LiveError> {
        let mut follower = self.lock();
        if follower.refresh()? {
            self.status.store(Arc::new(follower.status()));
            self.current.store(Arc::new(follower.state.snapshot()));
        }
        Ok(follower.state.generation)
    }

    /// Refreshes until the reader is closed; after a problem ten times as seldom.
    fn follow(&self, poll: Duration) {
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_closing.load(Ordering::Relaxed) {
            let pause = if problem.is_some() { poll * 10 } else { poll };
            problem = match self.closing.wait_timeout(problem, pause) {
                Ok((problem, _)) => problem,
                Err(poisoned) => poisoned.into_inner().0,
            };
            if self.is_closing.load(Ordering::Relaxed) {
                return;
            }
            drop(problem);
            let found = self.refresh().err().map(|e| e.to_string());
            problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
            *problem = found;
        }
    }
}

impl Follower {
    /// Opens the newest manifest with the log after it; segments of the state before are not read
    /// again.
    fn open(before: &State) -> Result<Self, LiveError> {
        let dir = &before.dir;
        if !dir.is_dir() {
            return Err(Kind::Missing { path: dir.to_owned() }.into());
        }
        let mut tries = 0;
        loop {
            let number = newest_number(dir)?;
            match Self::open_manifest(before) {
                // Another process made a checkpoint meanwhile, which needs other files.
                Err(e) if e.is_missing_file() && tries < MAX_RETRIES => {
                    tries += 1;
                    if newest_number(dir)? == number {
                        // The checkpoint's manifest may be there in a moment, or a file is gone for
                        // good.
                        thread::sleep(Duration::from_millis(tries as u64));
                    }
                }
                other => return other,
            }
        }
    }

    fn open_manifest(before: &State) -> Result<Self, LiveError> {
        let dir = &before.dir;
        let manifest = Manifest::newest(dir)?;
        let Manifest { number, schema, contents, kept, next_file_number, .. } = manifest;
        let mut state = State::new(dir, before.options.clone(), schema, kept, next_file_number)?;
        state.is_degraded = before.is_degraded;
        state.install(before.open(&contents)?);
        state.generation = contents.generation;
        let logs = logs(dir, contents.generation + 1)?;
        let tail = WalTail::open(dir, logs[0])?;
        let mut follower = Self { manifest: number, tail, state };
        follower.read_log()?;
        follower.state.index_memory()?;
        Ok(follower)
    }

    /// Advances to the newest generation; true if there is anything new.
    fn refresh(&mut self) -> Result<bool, LiveError> {
        if newest_number(&self.state.dir)? != Some(self.manifest) {
            *self = Self::open(&self.state)?;
            return Ok(true);
        }
        match self.read_log() {
            Ok(false) => Ok(false),
            Ok(true) => {
                self.state.index_memory()?;
                Ok(true)
            }
            // The log, or a kept generation that was gone back to, was deleted by a checkpoint.
            Err(e) if e.is_missing_file() => {
                *self = Self::open(&self.state)?;
                Ok(true)
            }
            Err(e) => Err(e),
        }
    }

    /// Applies the entries of the log that are new; whether there were any.
    fn read_log(&mut self) -> Result<bool, LiveError> {
        let before = self.state.generation;
        loop {
            for (generation, entry) in self.tail.read()? {
                if generation > self.state.generation {
                    self.state.replay(generation, entry, |_| {})?;
                }
            }
            // A later file begins where this one ends.
            let next = self.tail.generation();
            if self.tail.begins_with(next)
                || !self.state.dir.join(crate::wal::file_name(next)).exists()
            {
                return Ok(self.state.generation > before);
            }
            self.tail = WalTail::open(&self.state.dir, next)?;
        }
    }

    fn status(&self) -> LiveStatus {
        LiveStatus { wal_bytes: self.tail.bytes(), ..LiveStatus::of(&self.state) }
    }

    fn generation(&self, name: &str) -> Result<Snapshot, LiveError> {
        let place = named_place(&self.state.kept, name)?;
        let contents: &Contents = &self.state.kept[place].contents;
        let State { dir, options, schema, kept, .. } = &self.state;
        let mut state =
            State::new(dir, options.clone(), Schema::clone(schema), kept.clone(), u64::MAX >> 1)?;
        state.generation = contents.generation;
        state.install(self.state.open(contents)?);
        state.index_memory()?;
        Ok(state.snapshot())
    }
}
