//! Folder of saved grammars through which the processes of a machine share masks.
//!
//! Finding a grammar's masks takes many times what compiling it does, so masks are what processes
//! share: each compiles a grammar for itself, one of them finds its masks ahead of time and
//! [saves](GrammarConstraint::save) them, and the others read the file into the grammar that
//! they have. Nobody who asks for a grammar waits for that: reading a file of megabytes takes
//! longer than compiling, so that it, too, is the work of one thread a process, which lives while
//! it has work.
//!
//! | name | contents |
//! |---|---|
//! | `KEY.pmg` | a saved grammar; `KEY` is a hash of the program's and the format's version, the vocabulary and the source |
//! | `KEY.lock` | held by the process that finds the masks of `KEY`; the system lets go of it when the process ends |
//! | `.tmp…` | a file being written, which gets its name when it is whole |
//!
//! Other names are never touched. A file is used if all its checks hold and its source and
//! vocabulary are those asked for; one that is not is reported by its path, and made anew. Files
//! are read into memory and closed: one that is mapped would end the process if somebody cut it.
//!
//! Whoever can write a file decides what masks allow, so a folder that other users may write is
//! refused.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use palmette_grammar_masks::vocabulary::VocabularyFingerprint;
use palmette_mapped::write_atomically;

use crate::saved::{FORMAT, SaveError, SavedGrammar};
use crate::{GrammarConstraint, GrammarSource, PrecomputeLimits, ReopenError};

/// Folder of saved grammars that processes share, as a [`GrammarCache`](crate::GrammarCache) uses
/// it.
///
/// Threads share it. A failure of the system, such as a folder that cannot be written, is
/// [reported](Self::take_reports) once, and from then on the folder is not used.
#[derive(Debug)]
pub struct GrammarFolder {
    shared: Arc<Shared>,
}

/// Limits of a [`GrammarFolder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderLimits {
    /// Bytes of all files together; those written first go first.
    pub max_bytes: u64,
    /// Limits of finding out the masks of one grammar.
    pub ahead: PrecomputeLimits,
}

impl Default for FolderLimits {
    /// 1 GiB; a second or two of work and 16 MiB for a grammar, in which most schemas come to their
    /// end.
    fn default() -> Self {
        let ahead =
            PrecomputeLimits { steps: 50_000_000, bytes: 16 << 20, ..PrecomputeLimits::default() };
        Self { max_bytes: 1 << 30, ahead }
    }
}

/// Program that the thread of a [`GrammarFolder`] works in: one that forks says here when it may.
pub trait HostProgram: Send + Sync + fmt::Debug {
    /// A guard that is held on the thread while it may hold locks.
    fn at_work(&self) -> Box<dyn std::any::Any>;

    /// A moment at which the thread holds no lock.
    fn pause(&self);

    /// Runs what may be spread over threads.
    fn in_pool(&self, work: &mut (dyn FnMut() + Send));
}

/// Host that never forks.
#[derive(Debug)]
struct PlainHost;

impl HostProgram for PlainHost {
    fn at_work(&self) -> Box<dyn std::any::Any> {
        Box::new(())
    }

    fn pause(&self) {}

    fn in_pool(&self, work: &mut (dyn FnMut() + Send)) {
        work();
    }
}

/// Counters of a [`GrammarFolder`] in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderStatistics {
    /// Grammars whose masks were read from a file.
    pub opened: u64,
    /// Grammars whose masks were found ahead and written.
    pub saved: u64,
    /// Files that were refused: damaged, or of another grammar.
    pub refused: u64,
}

/// Place of one compiled grammar in its folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct FolderPlace(Arc<AtomicU8>);

/// State of a grammar about which nothing is being done.
const OPEN: u8 = 0;
/// State of a grammar in the queue of the thread.
const QUEUED: u8 = 1;
/// State of a grammar whose masks were read or written, or that has none to share.
const SETTLED: u8 = 2;

impl FolderPlace {
    fn is_open(&self) -> bool {
        self.0.load(Ordering::Acquire) == OPEN
    }

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Release);
    }
}

struct Shared {
    path: PathBuf,
    limits: FolderLimits,
    host: Arc<dyn HostProgram>,
    /// Set when the folder is dropped.
    cancelled: AtomicBool,
    desk: Mutex<Desk>,
    /// Told when the thread ends.
    ended: Condvar,
    listener: OnceLock<Listener>,
}

/// Function that reports are told to.
type Listener = Box<dyn Fn(&str) + Send + Sync>;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("path", &self.path)
            .field("desk", &self.desk)
            .finish_non_exhaustive()
    }
}

/// Work that waits, and what came of the rest.
#[derive(Debug, Default)]
struct Desk {
    queue: VecDeque<Job>,
    /// The process whose thread is at it: a child that is forked meanwhile has no such thread.
    thread_of: Option<u32>,
    statistics: FolderStatistics,
    reports: Vec<String>,
    is_off: bool,
}

/// A grammar whose masks are to be shared.
#[derive(Debug)]
struct Job {
    source: GrammarSource,
    constraint: GrammarConstraint,
    place: FolderPlace,
    /// Looks at the file of another process that are left.
    looks: u32,
}

/// End of a look at a job.
enum Outcome {
    Settled,
    /// Another process finds its masks.
    Elsewhere,
}

/// Reports that are kept until they are taken; later ones are dropped.
const MAX_REPORTS: usize = 16;

/// Grammars that wait for the thread; more have their masks found as they are asked for, and come
/// here when they are asked for again.
const MAX_QUEUED: usize = 256;

/// Time between two looks at the files that other processes are to write.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Looks at one such file: half a minute, after which its process is taken for stuck.
const MAX_LOOKS: u32 = 1500;

/// Bytes of the smallest file, as the bound on all files counts it: so it bounds their number.
const FILE_BYTES_AT_LEAST: u64 = 64 << 10;

/// Age, by the file written last, from which a temporary file is one that a process which was
/// killed left.
const STALE: Duration = Duration::from_secs(3600);

impl GrammarFolder {
    /// Opens a folder, or makes it for this user alone.
    ///
    /// # Errors
    /// When it cannot be made or written, is no folder, or other users may write it.
    pub fn open(path: &Path, limits: FolderLimits) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        #[cfg(unix)]
        check_owner(path)?;
        let (host, path) = (Arc::new(PlainHost), path.to_owned());
        let (cancelled, desk, ended, listener) = Default::default();
        let shared = Shared { path, limits, host, cancelled, desk, ended, listener };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The folder in a program that forks.
    ///
    /// # Panics
    /// When it is in use.
    #[must_use]
    pub fn with_host(mut self, host: Arc<dyn HostProgram>) -> Self {
        Arc::get_mut(&mut self.shared).expect("a folder that is not in use yet").host = host;
        self
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Has what happens in it that somebody should know of told to one listener, as it happens: a
    /// sentence each, with its path. A second listener is not heard.
    pub fn on_report(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        _ = self.shared.listener.set(Box::new(listener));
    }

    /// Reports to which [nobody listened](Self::on_report), since this was asked last. Of many the
    /// first sixteen.
    pub fn take_reports(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.desk().reports)
    }

    /// Counters.
    pub fn statistics(&self) -> FolderStatistics {
        self.shared.desk().statistics
    }

    /// Waits at most this long for the thread to have nothing more to do; tells whether it has.
    pub fn wait(&self, at_most: Duration) -> bool {
        let is_busy = |desk: &mut Desk| desk.thread_of == Some(std::process::id());
        let waited = self.shared.ended.wait_timeout_while(self.shared.desk(), at_most, is_busy);
        let (mut desk, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_busy(&mut desk)
    }

    /// Has the thread see to a grammar, unless it was seen to.
    pub(crate) fn share(
        &self,
        source: &GrammarSource,
        constraint: &GrammarConstraint,
        place: &FolderPlace,
    ) {
        if !place.is_open() {
            return;
        }
        let mut desk = self.shared.desk();
        let is_here = desk.thread_of == Some(std::process::id());
        if desk.is_off || (is_here && desk.queue.len() >= MAX_QUEUED) || !place.is_open() {
            return;
        }
        if !is_here {
            // In a child, what the parent's thread was to do is done by that.
            desk.queue.drain(..).for_each(|job| job.place.set(OPEN));
        }
        let (source, constraint) = (source.clone(), constraint.clone());
        place.set(QUEUED);
        let place = place.clone();
        desk.queue.push_back(Job { source, constraint, place, looks: MAX_LOOKS });
        if !is_here {
            let shared = Arc::clone(&self.shared);
            let begun = std::thread::Builder::new()
                .name("masks-shared".to_owned())
                .spawn(move || shared.work());
            match begun {
                Ok(_) => desk.thread_of = Some(std::process::id()),
                Err(error) => {
                    desk.queue.clear();
                    drop(desk);
                    self.shared.turn_off(&self.shared.path, &error);
                }
            }
        }
    }
}

impl Drop for GrammarFolder {
    fn drop(&mut self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Refuses a folder of which another user decides what is in it: one that every user may write, or
/// whose owner is neither the user of this process nor the system's.
#[cfg(unix)]
fn check_owner(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::sync::atomic::AtomicU32;

    static NUM_PROBES: AtomicU32 = AtomicU32::new(0);
    let number = NUM_PROBES.fetch_add(1, Ordering::Relaxed);
    let probe = path.join(format!(".tmp-probe-{}-{number}", std::process::id()));
    remove(&probe)?;
    let own = File::options().write(true).create_new(true).open(&probe)?.metadata()?.uid();
    remove(&probe)?;
    let metadata = std::fs::metadata(path)?;
    let (owner, mode) = (metadata.uid(), metadata.permissions().mode() & 0o7777);
    let refused = match (owner == own || owner == 0, mode & 0o002 == 0) {
        (true, true) => return Ok(()),
        (false, _) => format!("user {owner} owns it"),
        (_, false) => format!("every user may write it (mode {mode:o})"),
    };
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{refused}, and whoever writes a saved grammar decides what its masks allow: take a folder of your own, or `chmod o-w` it"
        ),
    ))
}

/// True where a file would say something of a grammar's masks: those that are found by walking are
/// not written, nor those of grammars that leave sets open, and a source with limits of its own is
/// read with others from a file.
fn has_masks_to_share(source: &GrammarSource, constraint: &GrammarConstraint) -> bool {
    let is_the_same = |text: Vec<u8>| serde_json::from_slice(&text).ok().as_ref() == Some(source);
    constraint.mask_automaton().is_some()
        && constraint.recognizer().source().slots().is_empty()
        && serde_json::to_vec(source).is_ok_and(is_the_same)
}

impl Shared {
    fn report(&self, message: String) {
        if let Some(listener) = self.listener.get() {
            return listener(&message);
        }
        let reports = &mut self.desk().reports;
        if reports.len() < MAX_REPORTS {
            reports.push(message);
        }
    }

    fn turn_off(&self, path: &Path, error: &io::Error) {
        let was_off = std::mem::replace(&mut self.desk().is_off, true);
        if !was_off {
            self.report(format!(
                "{}: {error}; masks are not shared through this folder any more, and every process finds its own",
                path.display()
            ));
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // Nothing here panics halfway.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Path of a grammar's file.
    fn file(&self, source: &GrammarSource, vocabulary: VocabularyFingerprint) -> PathBuf {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        hasher.update(&FORMAT.version.to_le_bytes());
        // Another version may number the parser's states otherwise.
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        hasher.update(&vocabulary.0.to_le_bytes());
        hasher.update(&serde_json::to_vec(source).expect("strings and numbers"));
        self.path.join(format!("{:032x}.pmg", hasher.digest128()))
    }

    /// Reads the masks of a grammar from its file; false where there is none that is sound.
    fn read(&self, source: &GrammarSource, constraint: &GrammarConstraint) -> bool {
        let path = self.file(source, constraint.prepared_vocabulary().fingerprint());
        if self.desk().is_off {
            return false;
        }
        let refusal = match self.bytes_of(&path) {
            Ok(Some(bytes)) => match restore(bytes, source, constraint) {
                Ok(()) => {
                    self.desk().statistics.opened += 1;
                    return true;
                }
                Err(refusal) => refusal,
            },
            Ok(None) => return false,
            Err(error) => {
                self.turn_off(&path, &error);
                return false;
            }
        };
        // So that nobody looks at it again.
        let removed = remove(&path);
        self.desk().statistics.refused += 1;
        self.report(format!(
            "{}: {refusal}; it is removed, and the masks are found anew",
            path.display()
        ));
        if let Err(error) = removed {
            self.turn_off(&path, &error);
        }
        false
    }

    /// The bytes of a file, of which there are no more than all files may have; `None` where there
    /// is no file.
    fn bytes_of(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= self.limits.max_bytes => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(file) => file.take(self.limits.max_bytes).read_to_end(&mut bytes).map(drop)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(bytes))
    }

    /// The thread: sees to the grammars of the queue, round by round, until there is none.
    fn work(&self) {
        let host = Arc::clone(&self.host);
        let _at_work = host.at_work();
        let _in_panic = EndInPanic(self);
        loop {
            let round = {
                let mut desk = self.desk();
                if desk.is_off || self.cancelled.load(Ordering::Relaxed) {
                    desk.queue.clear();
                }
                if desk.queue.is_empty() {
                    desk.thread_of = None;
                    self.ended.notify_all();
                    return;
                }
                std::mem::take(&mut desk.queue)
            };
            let mut is_waiting = true;
            for mut job in round {
                host.pause();
                match self.find(&job) {
                    Ok(Outcome::Elsewhere) if job.looks > 0 => {
                        job.looks -= 1;
                        self.desk().queue.push_back(job);
                        continue;
                    }
                    // Whoever asks for the grammar again tries again.
                    Ok(Outcome::Elsewhere) => job.place.set(OPEN),
                    Ok(Outcome::Settled) => job.place.set(SETTLED),
                    Err(error) => self.turn_off(&self.path, &error),
                }
                is_waiting = false;
            }
            if is_waiting {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
    }

    /// Reads the masks of a grammar, or finds and writes them.
    fn find(&self, job: &Job) -> io::Result<Outcome> {
        let Job { source, constraint, .. } = job;
        if !has_masks_to_share(source, constraint) || self.in_pool(|| self.read(source, constraint))
        {
            return Ok(Outcome::Settled);
        }
        let path = self.file(source, constraint.prepared_vocabulary().fingerprint());
        let lock_path = path.with_extension("lock");
        let lock = File::options().create(true).append(true).open(&lock_path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Outcome::Elsewhere),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let found = self.find_locked(job, &path);
        // Whoever opened it before, and holds it next, looks for the file first. Said aloud: a
        // child that was forked meanwhile has the lock too.
        let removed = std::fs::remove_file(&lock_path);
        lock.unlock()?;
        found?;
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Outcome::Settled),
        }
    }

    fn find_locked(&self, job: &Job, path: &Path) -> io::Result<()> {
        let Job { source, constraint, .. } = job;
        if path.is_file() && self.in_pool(|| self.read(source, constraint)) {
            return Ok(());
        }
        // A limit of the grammar that is met here is met by the texts that come there: the rest is
        // known, and worth keeping.
        let ahead = &self.limits.ahead;
        let _ = constraint.precompute_reporting(ahead, &self.cancelled, |_, _| self.host.pause());
        if self.cancelled.load(Ordering::Relaxed) {
            return Ok(());
        }
        let written = self.in_pool(|| match constraint.to_bytes(source) {
            Ok(bytes) if bytes.len() as u64 > self.limits.max_bytes => Ok(false),
            Ok(bytes) => write_atomically(path, |file| file.write_all(&bytes)).map(|()| true),
            Err(SaveError::Io(error)) => Err(error),
            Err(SaveError::Source) => Ok(false),
        })?;
        if written {
            self.desk().statistics.saved += 1;
            self.remove_oldest(path)?;
        }
        Ok(())
    }

    fn in_pool<T: Send>(&self, work: impl Fn() -> T + Sync) -> T {
        let mut done = None;
        self.host.in_pool(&mut || done = Some(work()));
        done.expect("the host runs what it is given")
    }

    /// Removes the files that were written first until the others are no more than all may be, and
    /// what processes left that were killed. `written` stays.
    fn remove_oldest(&self, written: &Path) -> io::Result<()> {
        let now = modified(written).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            // Another process may have removed it by now.
            let (Some(kind), Some(time)) = (Kind::of(&path), modified(&path)) else { continue };
            match kind {
                Kind::Grammar if path == written => {}
                Kind::Grammar => {
                    let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
                    files.push((time, path, bytes.max(FILE_BYTES_AT_LEAST)));
                }
                Kind::Temporary => {
                    if now.duration_since(time).is_ok_and(|age| age > STALE) {
                        remove(&path)?;
                    }
                }
                Kind::Lock => {
                    let is_held = File::open(&path).is_ok_and(|lock| lock.try_lock().is_err());
                    if !is_held && path != written.with_extension("lock") {
                        remove(&path)?;
                    }
                }
            }
        }
        files.sort_unstable();
        let own = std::fs::metadata(written).map_or(0, |metadata| metadata.len());
        let mut total = own.max(FILE_BYTES_AT_LEAST);
        total += files.iter().map(|&(.., bytes)| bytes).sum::<u64>();
        for (_, path, bytes) in files {
            if total <= self.limits.max_bytes {
                break;
            }
            remove(&path)?;
            total -= bytes;
        }
        Ok(())
    }
}

/// Guard of the thread: one that panics is known to be gone, so that another begins for the
/// grammars that come next.
struct EndInPanic<'a>(&'a Shared);

impl Drop for EndInPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.desk().thread_of = None;
            self.0.ended.notify_all();
        }
    }
}

/// A file of the folder, by its name.
enum Kind {
    Grammar,
    Lock,
    Temporary,
}

impl Kind {
    /// `None` for files of others.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        if name.starts_with(".tmp") {
            return Some(Self::Temporary);
        }
        let (key, ending) = name.split_once('.')?;
        let is_key = key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
        match ending {
            "pmg" if is_key => Some(Self::Grammar),
            "lock" if is_key => Some(Self::Lock),
            _ => None,
        }
    }
}

/// Time of a regular file's last change.
fn modified(path: &Path) -> Option<SystemTime> {
    let metadata = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    metadata.modified().ok()
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Takes the masks of a file over, or says why it is not used.
fn restore(
    bytes: Vec<u8>,
    source: &GrammarSource,
    constraint: &GrammarConstraint,
) -> Result<(), String> {
    let describe = |error: ReopenError| error.to_string();
    let saved = SavedGrammar::from_bytes(bytes.into()).map_err(describe)?;
    if saved.source() != source {
        return Err("is of another grammar".to_owned());
    }
    match saved.restore_into(constraint).map_err(describe)? {
        Some(_) => Ok(()),
        None => Err("is of another version of the program".to_owned()),
    }
}
