//! Errors of offline runs and of the files that they write.

use std::io;
use std::path::{Path, PathBuf};

/// Failure of a run as a whole. A history that cannot be answered is none: its record has the
/// reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OfflineError {
    /// A file that a run is of, or its answers so far, cannot be read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file of answers, or what stands beside it, cannot be written.
    #[error("{}: cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Answers that are to be forgotten cannot be removed.
    #[error("{}: cannot be removed", path.display())]
    Remove {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another process is writing the same answers.
    #[error(
        "{}: another run is writing it; wait for that one or choose another --out",
        path.display()
    )]
    InUse {
        /// The file of answers so far.
        path: PathBuf,
    },
    /// The description of the interrupted run is not there.
    #[error(
        "{}: what run these answers are of is not known; leave out --resume to begin anew",
        path.display()
    )]
    NoDescription {
        /// The file of the description.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The description of the interrupted run is no JSON object.
    #[error("{}: is damaged; leave out --resume to begin anew", path.display())]
    DamagedDescription {
        /// The file of the description.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// The interrupted run was one of other histories, another model or other options.
    #[error(
        "{}: the run that was interrupted had another {}; {way_out}, or leave out --resume to begin anew",
        path.display(),
        members.join(", another ")
    )]
    OtherRun {
        /// The file of answers so far.
        path: PathBuf,
        /// Members of the description that differ.
        members: Vec<String>,
        /// Advice on how to make them equal.
        way_out: String,
    },
    /// The interrupted run answered another user at the same place.
    #[error(
        "{}: it answers {answered:?} where the histories have {read:?}: they have changed; leave out --resume to begin anew",
        path.display()
    )]
    OtherUser {
        /// The file of answers so far.
        path: PathBuf,
        /// The user that it answers.
        answered: Option<String>,
        /// The user of the history.
        read: Option<String>,
    },
    /// The caller ended the run.
    #[error("the run was cancelled")]
    Cancelled,
}

impl OfflineError {
    /// Adapter for [`Result::map_err`] at a file that is read.
    pub(super) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    /// Adapter for [`Result::map_err`] at a file that is written.
    pub(super) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
