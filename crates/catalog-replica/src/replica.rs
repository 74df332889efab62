//! One catalog of this process that follows its log, and adds to it.
//!
//! A thread of its own reads frames in their order and applies each once, adds what is to be
//! written, and tells those who wait when their own entries were applied here. Between two frames
//! nothing else changes the catalog, so that what is proposed is judged by exactly the state that
//! it will meet; where another process adds a frame first, that is applied and everything is judged
//! anew.
//!
//! While a frame is being added, what else is to be written waits, and goes into the next one
//! together (group commit).

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use palmette_catalog_live::replica::{Base, EntryDone, Proposal, Proposed};
use palmette_catalog_live::{
    BatchKey, KeyedApplied, LiveCatalog, LiveError, LiveOptions, SyncPolicy, Update,
};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::catalog_log::{Appended, CatalogLog, Position, system};
use crate::error::{Kind, LogError};
use crate::frame::{Frame, MAX_ENTRIES};
use crate::identity::Identity;

/// Bytes of a frame's entries after which no more are added to it.
const MAX_BYTES: usize = 1 << 20;
/// Changes that wait to be added, at most.
const MAX_WAITING: usize = 256;
/// Frames that are read at once where many are there.
const READ_AHEAD: usize = 16;
/// Time without a word from the store after which it is looked whether what follows was trimmed.
const STALE: Duration = Duration::from_secs(20);

/// Choices of a replica.
#[derive(Clone, Debug)]
pub struct ReplicaOptions {
    /// Time between looks whether the log has a gap, or was trimmed.
    pub check: Duration,
    /// Entries after which a base is made, by one of the replicas.
    pub base_entries: u64,
    /// Entries before the newest base that stay in the log, for replicas that were away.
    pub retain_entries: u64,
    /// Time that a change waits for a store that does not answer.
    pub patience: Duration,
    /// The directory's own log and segments.
    pub live: LiveOptions,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self {
            check: Duration::from_secs(2),
            base_entries: 1000,
            retain_entries: 1000,
            patience: Duration::from_secs(10),
            // The shared log is what outlives a failure of power; what this directory lost is
            // fetched again.
            live: LiveOptions { sync: SyncPolicy::Never, ..LiveOptions::default() },
        }
    }
}

/// A change of a catalog.
#[derive(Clone, Debug)]
pub enum Change {
    /// Updates, seen together or not at all; with a key they are applied once, however often they
    /// come.
    Batch {
        /// In their order.
        updates: Arc<Vec<Update>>,
        /// Name of the batch.
        key: Option<BatchKey>,
    },
    /// Wider codebooks.
    Widen {
        /// Their sizes.
        codes_per_level: Vec<u32>,
    },
    /// The newest items are kept, as the generation that this entry makes.
    Keep {
        /// For people.
        name: Option<String>,
    },
    /// A kept generation is let go of.
    Forget {
        /// Number of the generation.
        generation: u64,
    },
    /// The items of a kept generation come back.
    Rollback {
        /// Number of the generation.
        to: u64,
    },
}

/// A change that is in the log, and was applied here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The generation that it made.
    pub generation: u64,
    /// Result of a batch.
    pub batch: Option<KeyedApplied>,
}

/// A change that was not made, or of which that is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The change breaks a rule.
    #[error(transparent)]
    Refused(LiveError),
    /// The catalog is at another generation than the change was meant for.
    #[error("the catalog is at generation {now}")]
    Elsewhere {
        /// That one.
        now: u64,
    },
    /// The log cannot be reached, too much waits, or this replica cannot go on; nothing was added.
    #[error("{0}")]
    Unavailable(String),
    /// The log stopped to answer while the change was being added.
    #[error("{0}; it may be in the log or not: repeat it with its key, which applies it once")]
    Unknown(String),
}

/// A replica at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Time since it had everything that was in the log; `None` where that never was.
    pub lag: Option<Duration>,
    /// The reason why it does not go on.
    pub problem: Option<String>,
    /// True where that stops it for good: what the log has cannot be applied. Otherwise the store
    /// does not answer, or the disk fails.
    pub is_stopped: bool,
    /// Identity of the log.
    pub identity: Identity,
    /// Frames that this process added.
    pub appended: u64,
    /// Frames that others added first.
    pub conflicts: u64,
    /// Generation of the newest base that this process knows.
    pub base: u64,
}

struct Request {
    change: Change,
    /// Generations of which the catalog must be at one.
    condition: Option<Vec<u64>>,
    asked: Instant,
    reply: oneshot::Sender<Result<Changed, ChangeError>>,
}

/// A catalog that follows a log. Dropping it ends its thread.
pub struct Replica {
    live: Arc<LiveCatalog>,
    shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    identity: Identity,
    /// The last time that everything was there that was in the log.
    caught_up: Mutex<Option<Instant>>,
    /// The problem, and whether it stops the replica for good.
    problem: Mutex<Option<(String, bool)>>,
    appended: AtomicU64,
    conflicts: AtomicU64,
    base: AtomicU64,
    /// True once the replica is to end.
    closing: watch::Sender<bool>,
}

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replica").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Replica {
    /// Opens a replica in a directory below `root`, from what it has of the log, or else from the
    /// newest base, and begins to follow the log. Blocks; the thread's work on the store is done by
    /// the runtime.
    ///
    /// # Errors
    /// When there is nothing in the directory and the store cannot be reached, or a base is damaged
    /// or foreign.
    pub fn open(
        runtime: Handle,
        log: CatalogLog,
        name: &str,
        root: &Path,
        options: ReplicaOptions,
    ) -> Result<Self, LogError> {
        let identity = log.identity();
        let dir = root.join(format!("{name}-{identity}"));
        let live = Arc::new(open_live(&runtime, &log, &dir, root, &options)?);
        let shared = Arc::new(Shared {
            identity,
            caught_up: Mutex::default(),
            problem: Mutex::default(),
            appended: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            base: AtomicU64::new(0),
            closing: watch::Sender::new(false),
        });
        let (requests, receiver) = mpsc::channel(MAX_WAITING);
        let follower = Follower {
            log,
            live: Arc::clone(&live),
            shared: Arc::clone(&shared),
            options,
            root: root.to_owned(),
            position: None,
            is_checked: false,
            checked: Instant::now(),
            heard: Heard::now(),
            claimed: 0,
            base: None,
            runtime: runtime.clone(),
        };
        let run = move || {
            if let Some(base) = runtime.block_on(follower.run(receiver)) {
                // A thread that panicked has nothing left to end.
                _ = base.join();
            }
        };
        let thread = std::thread::Builder::new().name(format!("replica {name}")).spawn(run);
        let thread = thread.map_err(|error| Kind::System(error.to_string()))?;
        Ok(Self { live, shared, requests, thread: Mutex::new(Some(thread)) })
    }

    /// The catalog, to be read.
    pub fn live(&self) -> &Arc<LiveCatalog> {
        &self.live
    }

    /// Adds a change to the log; ready when it was applied here. With a condition, only at one of
    /// these generations. A change whose waiter goes away may be made all the same.
    ///
    /// # Errors
    /// See [`ChangeError`].
    pub async fn change(
        &self,
        change: Change,
        condition: Option<Vec<u64>>,
    ) -> Result<Changed, ChangeError> {
        let (reply, answer) = oneshot::channel();
        let request = Request { change, condition, asked: Instant::now(), reply };
        self.requests.try_send(request).map_err(|error| {
            ChangeError::Unavailable(match error {
                mpsc::error::TrySendError::Full(_) => {
                    format!("{MAX_WAITING} changes of this catalog wait already; repeat later")
                }
                mpsc::error::TrySendError::Closed(_) => "the replica was closed".to_owned(),
            })
        })?;
        answer.await.unwrap_or_else(|_| {
            Err(ChangeError::Unknown("the replica was closed meanwhile".to_owned()))
        })
    }

    /// State of the replica now.
    pub fn status(&self) -> ReplicaStatus {
        let shared = &self.shared;
        let caught_up = *shared.caught_up.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ReplicaStatus {
            lag: caught_up.map(|at| at.elapsed()),
            is_stopped: problem.as_ref().is_some_and(|(_, is_stopped)| *is_stopped),
            problem: problem.map(|(problem, _)| problem),
            identity: shared.identity,
            appended: shared.appended.load(Ordering::Relaxed),
            conflicts: shared.conflicts.load(Ordering::Relaxed),
            base: shared.base.load(Ordering::Relaxed),
        }
    }

    /// Ends the thread, after what it is doing; the catalog stays as it is. A base that is being
    /// made is left to the other replicas: when this returns nothing here holds the catalog.
    pub fn close(&self) {
        self.shared.closing.send_replace(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has nothing left to end.
            _ = thread.join();
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens the directory, or makes it from the newest base.
fn open_live(
    runtime: &Handle,
    log: &CatalogLog,
    dir: &Path,
    root: &Path,
    options: &ReplicaOptions,
) -> Result<LiveCatalog, LogError> {
    let identity = log.identity().to_string();
    match LiveCatalog::open_replica(dir, &identity, options.live.clone()) {
        Ok(live) => return Ok(live),
        Err(error) if error.is_missing() => {}
        Err(error) if error.is_damaged() => {
            tracing::warn!(%error, "the copy of a catalog is damaged; it is fetched again");
            std::fs::remove_dir_all(dir).map_err(|error| system(dir, &error))?;
        }
        Err(error) => return Err(error.into()),
    }
    let fetched = fetched_in(root)?;
    let base = runtime.block_on(log.fetch_base(fetched.path()))?;
    tracing::info!(generation = base.generation, dir = %dir.display(), "a replica begins from a base");
    Ok(LiveCatalog::create_replica(dir, &identity, &base, options.live.clone())?)
}

/// A directory for a base, on the file system of the replicas.
fn fetched_in(root: &Path) -> Result<tempfile::TempDir, LogError> {
    std::fs::create_dir_all(root).map_err(|error| system(root, &error))?;
    let made = tempfile::Builder::new().prefix(".base-").tempdir_in(root);
    made.map_err(|error| system(root, &error))
}

/// Last time that the store answered, by two clocks. One of them runs while the machine sleeps.
#[derive(Clone, Copy, Debug)]
struct Heard {
    steady: Instant,
    wall: SystemTime,
}

impl Heard {
    fn now() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }

    fn is_stale(&self) -> bool {
        // A clock that was set back says nothing.
        let wall = self.wall.elapsed().unwrap_or_default();
        self.steady.elapsed().max(wall) > STALE
    }
}

/// The thread of a replica.
struct Follower {
    log: CatalogLog,
    live: Arc<LiveCatalog>,
    shared: Arc<Shared>,
    options: ReplicaOptions,
    root: PathBuf,
    /// The place after what was applied; `None` until it was found in the log.
    position: Option<Position>,
    /// True once it is known that nothing after the position was trimmed.
    is_checked: bool,
    /// The last look for gaps.
    checked: Instant,
    heard: Heard,
    /// The last number of a base that somebody was found to make.
    claimed: u64,
    /// The thread that makes a base: it holds the catalog too.
    base: Option<JoinHandle<()>>,
    runtime: Handle,
}

impl Shared {
    fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Waits until the replica is to end.
    async fn closed(&self) {
        // The sender lives as long as this does.
        _ = self.closing.subscribe().wait_for(|is_closing| *is_closing).await;
    }
}

impl Follower {
    /// Follows the log until the replica is closed; gives the thread of a base that still runs.
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) -> Option<JoinHandle<()>> {
        let mut pending = VecDeque::new();
        let mut pause = Duration::ZERO;
        let folder = self.log.log_folder();
        let store = Arc::clone(self.log.store());
        while !self.shared.is_closing() {
            let advanced = self.advance(&mut pending).await;
            // Nothing is added to a log that may have a gap here.
            self.is_checked &= advanced.is_ok();
            let problem = match advanced {
                Ok(()) => {
                    pause = Duration::ZERO;
                    None
                }
                Err(error) => {
                    pause = (pause * 2).clamp(Duration::from_millis(100), Duration::from_secs(2));
                    Some((error.to_string(), !error.is_passing()))
                }
            };
            self.note(problem.as_ref());
            if let Some((problem, _)) = &problem {
                give_up(&mut pending, problem, self.options.patience);
            } else {
                self.make_base().await;
            }
            let room = MAX_WAITING.saturating_sub(pending.len());
            if pending.is_empty() || problem.is_some() {
                let poll = store.poll().max(pause);
                tokio::select! {
                    request = requests.recv(), if room > 0 => pending.extend(request),
                    () = store.wait(&folder, poll) => {}
                    () = self.shared.closed() => {}
                }
            }
            while pending.len() < MAX_WAITING
                && let Ok(request) = requests.try_recv()
            {
                pending.push_back(request);
            }
        }
        self.base
    }

    /// Shows a problem, and says so where it is another than before.
    fn note(&self, problem: Option<&(String, bool)>) {
        let mut shown = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref() == problem {
            return;
        }
        match problem {
            Some((problem, _)) => tracing::error!(problem, "a replica cannot follow its log"),
            None => {
                tracing::info!(folder = self.log.log_folder(), "a replica follows its log again")
            }
        }
        *shown = problem.cloned();
    }

    /// Applies everything that is in the log, and adds what waits.
    async fn advance(&mut self, pending: &mut VecDeque<Request>) -> Result<(), LogError> {
        match self.try_advance(pending).await {
            Err(error) if error.is_behind() => {
                tracing::warn!(%error, "a replica begins again from the newest base");
                let fetched = fetched_in(&self.root)?;
                let base = self.log.fetch_base(fetched.path()).await?;
                self.live.install_base(&base)?;
                self.position = None;
                self.try_advance(pending).await
            }
            other => other,
        }
    }

    async fn try_advance(&mut self, pending: &mut VecDeque<Request>) -> Result<(), LogError> {
        let mut at = match self.position {
            Some(at) => at,
            None => self.find_place().await?,
        };
        if self.heard.is_stale() {
            self.is_checked = false;
        }
        loop {
            if !self.is_checked {
                self.log.check_end(&at).await?;
                (self.is_checked, self.checked) = (true, Instant::now());
            }
            if !pending.is_empty() {
                at = self.add(&at, pending).await?;
            }
            // Whatever is there goes before what comes next.
            while let Some(next) = self.read_on(&at).await? {
                at = next;
            }
            self.heard = Heard::now();
            if self.checked.elapsed() >= self.options.check {
                self.log.check_end(&at).await?;
                self.checked = Instant::now();
            }
            *self.shared.caught_up.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Instant::now());
            if pending.is_empty() || self.shared.is_closing() {
                return Ok(());
            }
        }
    }

    /// Finds the place in the log after what was applied here, and ends a begun frame.
    async fn find_place(&mut self) -> Result<Position, LogError> {
        let generation = self.live.snapshot().generation();
        let (at, left) = self.log.place_of(generation).await?;
        self.apply(generation + 1, &left)?;
        self.position = Some(at);
        self.is_checked = false;
        Ok(at)
    }

    /// Applies the frames that follow a place, several where there are; `None` where there is none.
    async fn read_on(&mut self, at: &Position) -> Result<Option<Position>, LogError> {
        let Some((frame, next)) = self.log.next(at).await? else { return Ok(None) };
        if self.heard.is_stale() && !self.log.has_anchor(at).await? {
            return Err(self.log.behind(at));
        }
        self.heard = Heard::now();
        let mut frames = vec![(frame, next)];
        for (bytes, number) in self.log.read_ahead(&next, READ_AHEAD).await? {
            let last = frames[frames.len() - 1].1;
            if number != last.after + 1 {
                break;
            }
            match self.log.check(&last, &bytes) {
                Ok(frame) => frames.push(frame),
                // Those before it are applied first; it is read again then.
                Err(_) => break,
            }
        }
        for (frame, position) in frames {
            self.apply_frame(&frame, position)?;
        }
        Ok(self.position)
    }

    fn apply_frame(
        &mut self,
        frame: &Frame,
        position: Position,
    ) -> Result<Vec<EntryDone>, LogError> {
        let done = self.apply(frame.first, &frame.entries)?;
        self.position = Some(position);
        Ok(done)
    }

    fn apply(&mut self, first: u64, entries: &[Bytes]) -> Result<Vec<EntryDone>, LogError> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let entries: Vec<&[u8]> = entries.iter().map(|entry| &entry[..]).collect();
        self.live.apply_entries(first, &entries).map_err(|error| {
            // Some of them may have been applied.
            self.position = None;
            error.into()
        })
    }

    /// Adds a frame of what waits; returns the place after what was applied.
    async fn add(
        &mut self,
        at: &Position,
        pending: &mut VecDeque<Request>,
    ) -> Result<Position, LogError> {
        let mut proposal = self.live.proposal();
        let mut joined = VecDeque::new();
        while let Some(request) = pending.pop_front() {
            match propose(&self.live, &mut proposal, &request) {
                Ok(Proposed::Entry(_)) => joined.push_back(request),
                Ok(Proposed::Later) => {
                    pending.push_front(request);
                    break;
                }
                Ok(Proposed::Repeated(applied)) => {
                    let batch = Some(KeyedApplied { applied, is_repeated: true });
                    let changed = Changed { generation: applied.generation, batch };
                    // Whoever waited may be gone.
                    _ = request.reply.send(Ok(changed));
                }
                Err(error) => _ = request.reply.send(Err(error)),
            }
            if proposal.entries().len() == MAX_ENTRIES || proposal.bytes() >= MAX_BYTES {
                break;
            }
        }
        if joined.is_empty() {
            return Ok(*at);
        }
        let frame = Frame {
            identity: self.log.identity(),
            attempt: Identity::random()?,
            first: proposal.after() + 1,
            previous: at.previous,
            entries: proposal.entries().iter().cloned().map(Bytes::from).collect(),
        };
        let bytes = frame.write();
        let began = Instant::now();
        let appended = loop {
            match self.log.append(at, &bytes).await {
                Err(error)
                    if error.is_unreachable()
                        && began.elapsed() < self.options.patience
                        && !self.shared.is_closing() =>
                {
                    tracing::warn!(%error, "a frame was not added; trying again");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                other => break other,
            }
        };
        match appended {
            Ok(Appended::Made) => {
                self.shared.appended.fetch_add(1, Ordering::Relaxed);
                let (_, next) = self.log.check(at, &bytes)?;
                let done = match self.apply_frame(&frame, next) {
                    Ok(done) => done,
                    Err(error) => {
                        for request in joined {
                            _ = request.reply.send(Err(ChangeError::Unknown(error.to_string())));
                        }
                        return Err(error);
                    }
                };
                for ((generation, done), request) in (frame.first..).zip(done).zip(joined) {
                    let batch = match done {
                        EntryDone::Batch(applied) => Some(applied),
                        EntryDone::Other => None,
                    };
                    _ = request.reply.send(Ok(Changed { generation, batch }));
                }
                Ok(next)
            }
            Ok(Appended::Taken(theirs)) => {
                self.shared.conflicts.fetch_add(1, Ordering::Relaxed);
                put_back(joined, pending);
                if self.heard.is_stale() && !self.log.has_anchor(at).await? {
                    return Err(self.log.behind(at));
                }
                let (frame, next) = self.log.check(at, &theirs)?;
                self.apply_frame(&frame, next)?;
                Ok(next)
            }
            Err(error) if error.is_unreachable() => {
                // It may be there: the place is looked at again before anything is added.
                for request in joined {
                    _ = request.reply.send(Err(ChangeError::Unknown(error.to_string())));
                }
                Err(error)
            }
            Err(error) => {
                put_back(joined, pending);
                Err(error)
            }
        }
    }

    /// Has a base made, where it is due and nobody else does; one at a time.
    async fn make_base(&mut self) {
        let number = self.live.snapshot().generation() / self.options.base_entries.max(1);
        if number <= self.claimed || self.base.as_ref().is_some_and(|base| !base.is_finished()) {
            return;
        }
        match self.log.claim_base(number).await {
            Ok(true) => {
                let base = self.live.base();
                let (log, live) = (self.log.clone(), Arc::clone(&self.live));
                let (runtime, retain) = (self.runtime.clone(), self.options.retain_entries);
                let shared = Arc::clone(&self.shared);
                let make = move || {
                    let made = runtime.block_on(async {
                        tokio::select! {
                            made = put_and_trim(&log, &live, &base, number, retain) => made.map(|()| true),
                            () = shared.closed() => log.give_back(number).await.map(|()| false),
                        }
                    });
                    match made {
                        Ok(true) => shared.base.store(base.generation(), Ordering::Relaxed),
                        Ok(false) => {}
                        Err(error) => tracing::warn!(%error, "a base was not made"),
                    }
                };
                match std::thread::Builder::new().name("base".into()).spawn(make) {
                    Ok(thread) => self.base = Some(thread),
                    Err(error) => tracing::warn!(%error, "a base was not made"),
                }
            }
            Ok(false) => {}
            // It is asked again.
            Err(_) => return,
        }
        self.claimed = number;
    }
}

async fn put_and_trim(
    log: &CatalogLog,
    live: &LiveCatalog,
    base: &Base,
    number: u64,
    retain: u64,
) -> Result<(), LogError> {
    log.put_bases(live, base).await?;
    log.trim(retain).await?;
    log.forget_claims(number).await
}

/// Puts requests before those that wait.
fn put_back(mut joined: VecDeque<Request>, pending: &mut VecDeque<Request>) {
    joined.append(pending);
    *pending = joined;
}

/// Answers those that wait for longer than they should.
fn give_up(pending: &mut VecDeque<Request>, problem: &str, patience: Duration) {
    for _ in 0..pending.len() {
        let Some(request) = pending.pop_front() else { return };
        match request.asked.elapsed() < patience {
            true => pending.push_back(request),
            false => {
                let unavailable = ChangeError::Unavailable(problem.to_owned());
                _ = request.reply.send(Err(unavailable));
            }
        }
    }
}

fn propose(
    live: &LiveCatalog,
    proposal: &mut Proposal,
    request: &Request,
) -> Result<Proposed, ChangeError> {
    // A repetition is known before the condition is looked at: the first attempt has moved the
    // generation on.
    if let Change::Batch { key: Some(key), .. } = &request.change
        && let Some(applied) = live.first_applied(key).map_err(ChangeError::Refused)?
    {
        return Ok(Proposed::Repeated(applied));
    }
    let now = proposal.next() - 1;
    if request.condition.as_ref().is_some_and(|condition| !condition.contains(&now)) {
        return Err(ChangeError::Elsewhere { now });
    }
    match &request.change {
        Change::Batch { updates, key } => live.propose_batch(proposal, updates, key.as_ref()),
        Change::Widen { codes_per_level } => live.propose_widen(proposal, codes_per_level),
        Change::Keep { name } => live.propose_keep(proposal, name.as_deref()),
        Change::Forget { generation } => live.propose_forget(proposal, *generation),
        Change::Rollback { to } => live.propose_rollback(proposal, *to),
    }
    .map_err(ChangeError::Refused)
}
