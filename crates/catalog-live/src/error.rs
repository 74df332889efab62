//! Errors of a live catalog.

use std::io;
use std::path::{Path, PathBuf};

use palmette_catalog::{BuildError, FileError};
use palmette_mapped::OpenError;

use crate::update::RefusedUpdate;

/// An operation that was refused or failed. The message names the value or the file, the rule, and
/// the way out.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LiveError(Box<Kind>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("update {index}{}: {rule}; nothing of the batch was applied", of_item(.id))]
    Update { index: usize, id: Option<String>, rule: String },
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{path}: {problem}", path = path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("{path}: is missing; the manifest counts on it; restore it from a copy", path = path.display())]
    MissingFile { path: PathBuf },
    #[error("{path}: another process writes to this live catalog; end it first (readers need not wait)", path = path.display())]
    Locked { path: PathBuf },
    #[error("{path}: there is a live catalog already; open it, or choose an empty directory", path = path.display())]
    Exists { path: PathBuf },
    #[error(
        "{path}: there is no live catalog; make one with `palmette catalog live init`",
        path = path.display()
    )]
    Missing { path: PathBuf },
    #[error("{name:?} could be a generation's number; give a name with a letter, or none")]
    GenerationName { name: String },
    #[error("generation {generation} is not kept; {kept}")]
    NotKept { generation: String, kept: String },
    #[error(
        "{path}: cannot write the log: {error}; nothing was applied, and readers go on; the next change is tried again",
        path = path.display()
    )]
    NotLogged { path: PathBuf, error: io::Error },
    #[error(
        "{path}: no more updates are taken since one could not be indexed: {problem}; readers go on; \
        open the catalog again once the cause is gone",
        path = path.display()
    )]
    Poisoned { path: PathBuf, problem: String },
    #[error(
        "key {name:?} came with another batch, which made generation {generation}; a new batch needs a new key"
    )]
    OtherBatch { name: String, generation: u64 },
    #[error("{path}: the catalog was closed and takes no more changes; readers go on; open it again to change it", path = path.display())]
    Closed { path: PathBuf },
    #[error("{path}: {}", other_log(.found, .wanted), path = path.display())]
    OtherLog { path: PathBuf, found: Option<String>, wanted: Option<String> },
    #[error("{path}: this catalog follows the shared log {log}, and changes only by its entries; add one to the log", path = path.display())]
    Replica { path: PathBuf, log: String },
    #[error("{path}: this catalog follows no shared log, so that no entry of one can be applied", path = path.display())]
    NoReplica { path: PathBuf },
    #[error("entry {generation} was applied before; the catalog is at generation {now}")]
    Repeated { generation: u64, now: u64 },
    #[error(
        "entry {generation} does not follow generation {now}, at which the catalog is: those between are missing"
    )]
    Gap { generation: u64, now: u64 },
    #[error("entry {generation} cannot be applied: {problem}")]
    Entry { generation: u64, problem: String },
    #[error("{0}")]
    Options(String),
    #[error("{0}; the system has no thread to give")]
    Threads(rayon::ThreadPoolBuildError),
    #[error(transparent)]
    Build(BuildError),
    #[error(transparent)]
    File(FileError),
}

impl LiveError {
    /// The place in its batch, from 0, of an update that cannot be applied. `None` when no update
    /// is at fault.
    pub fn update_index(&self) -> Option<usize> {
        match &*self.0 {
            Kind::Update { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// Rule that the update breaks.
    pub fn rule(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Update { rule, .. } => Some(rule),
            _ => None,
        }
    }

    /// True if what was given breaks a rule; otherwise a file or the system failed.
    pub fn is_refusal(&self) -> bool {
        matches!(
            &*self.0,
            Kind::Update { .. }
                | Kind::GenerationName { .. }
                | Kind::NotKept { .. }
                | Kind::OtherBatch { .. }
                | Kind::Options(_)
                | Kind::Build(_)
        )
    }

    /// True if the system failed, such as the disk, so that a retry may succeed.
    pub fn is_passing(&self) -> bool {
        match &*self.0 {
            Kind::Io { .. } | Kind::NotLogged { .. } | Kind::Threads(_) => true,
            Kind::File(error) => error.is_io(),
            _ => false,
        }
    }

    /// True if another process has the catalog open.
    pub fn is_locked(&self) -> bool {
        matches!(&*self.0, Kind::Locked { .. })
    }

    /// True if a generation was named that is not kept.
    pub fn is_not_kept(&self) -> bool {
        matches!(&*self.0, Kind::NotKept { .. })
    }

    /// True where an entry of a shared log comes again that was applied before.
    pub fn is_repeated_entry(&self) -> bool {
        matches!(&*self.0, Kind::Repeated { .. })
    }

    /// True where entries of a shared log are missing before one.
    pub fn is_gap(&self) -> bool {
        matches!(&*self.0, Kind::Gap { .. })
    }

    /// True where a directory is of another log than the one that was named.
    pub fn is_other_log(&self) -> bool {
        matches!(&*self.0, Kind::OtherLog { .. })
    }

    /// True where a directory holds no live catalog.
    pub fn is_missing(&self) -> bool {
        matches!(&*self.0, Kind::Missing { .. })
    }

    /// True where a file of the catalog is damaged or missing.
    pub fn is_damaged(&self) -> bool {
        matches!(&*self.0, Kind::Damaged { .. } | Kind::MissingFile { .. })
    }

    /// True where a file is not there that a manifest names: a later manifest may not need it.
    pub(crate) fn is_missing_file(&self) -> bool {
        match &*self.0 {
            Kind::MissingFile { .. } => true,
            Kind::Io { error, .. } => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    pub(crate) fn missing_file(path: &Path) -> Self {
        Kind::MissingFile { path: path.to_owned() }.into()
    }

    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Kind::Io { path: path.to_owned(), error }.into()
    }

    /// The error of a catalog's file that the live catalog counts on.
    pub(crate) fn of_file(path: &Path, error: &FileError) -> Self {
        let problem = error.problem();
        match error.is_missing() {
            true => Self::missing_file(path),
            false => Self::damaged(path, format!("{problem}; restore it from a copy")),
        }
    }

    /// The error of a file of sections that the live catalog counts on. One that is not there may
    /// have been deleted by a checkpoint, after its manifest was read.
    pub(crate) fn of_sections(path: &Path, error: &OpenError) -> Self {
        match error {
            OpenError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                Self::missing_file(path)
            }
            error => Self::damaged(path, format!("{error}; restore it from a copy")),
        }
    }

    pub(crate) fn damaged(path: &Path, problem: impl Into<String>) -> Self {
        Kind::Damaged { path: path.to_owned(), problem: problem.into() }.into()
    }
}

impl From<Kind> for LiveError {
    fn from(kind: Kind) -> Self {
        Self(Box::new(kind))
    }
}

impl From<RefusedUpdate> for LiveError {
    fn from(RefusedUpdate { index, id, rule }: RefusedUpdate) -> Self {
        Kind::Update { index, id, rule }.into()
    }
}

impl From<BuildError> for LiveError {
    fn from(error: BuildError) -> Self {
        Kind::Build(error).into()
    }
}

impl From<rayon::ThreadPoolBuildError> for LiveError {
    fn from(error: rayon::ThreadPoolBuildError) -> Self {
        Kind::Threads(error).into()
    }
}

impl From<FileError> for LiveError {
    fn from(error: FileError) -> Self {
        Kind::File(error).into()
    }
}

fn other_log(found: &Option<String>, wanted: &Option<String>) -> String {
    match (found, wanted) {
        (Some(found), None) => format!(
            "the directory follows the shared log {found} and is nobody's to write; change the catalog through a server of that log"
        ),
        (Some(found), Some(wanted)) => format!(
            "the directory follows the shared log {found}, not {wanted}; give another directory, or the log that it follows"
        ),
        (None, _) => {
            "the directory holds a catalog that follows no shared log; give a directory of its own to what follows one".to_owned()
        }
    }
}

fn of_item(id: &Option<String>) -> String {
    id.as_ref().map_or_else(String::new, |id| format!(", item {id:?}"))
}
