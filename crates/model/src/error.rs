//! Errors of loading a model.

use std::path::{Path, PathBuf};

/// A model directory that cannot be used; the message names the file, the value and the rule.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {kind}", path = path.display())]
pub struct LoadError {
    path: PathBuf,
    kind: LoadErrorKind,
}

#[derive(Debug, thiserror::Error)]
enum LoadErrorKind {
    #[error("cannot be read: {0}")]
    Io(#[source] std::io::Error),
    #[error("{0}")]
    Config(String),
    #[error("{0}")]
    Weights(String),
}

impl LoadError {
    pub(crate) fn io(path: &Path, error: std::io::Error) -> Self {
        Self { path: path.to_owned(), kind: LoadErrorKind::Io(error) }
    }

    pub(crate) fn config(path: &Path, reason: String) -> Self {
        Self { path: path.to_owned(), kind: LoadErrorKind::Config(reason) }
    }

    pub(crate) fn weights(path: &Path, reason: String) -> Self {
        Self { path: path.to_owned(), kind: LoadErrorKind::Weights(reason) }
    }

    /// True if the file itself could not be opened or read.
    pub fn is_io(&self) -> bool {
        matches!(self.kind, LoadErrorKind::Io(_))
    }
}
