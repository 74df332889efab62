//! Errors of shared logs.

use palmette_catalog_live::LiveError;

/// A shared log that cannot be reached, or has what it must not have. The message names the object,
/// the rule and the way out.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct LogError(Box<Kind>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error(
        "{address}: {problem}; a log is file://DIRECTORY, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or postgres://…"
    )]
    Address { address: String, problem: String },
    #[error("{object}: {problem}")]
    Store { object: String, problem: String },
    #[error("{object}: {problem}")]
    Damaged { object: String, problem: String },
    #[error(
        "{object}: the entries that follow generation {generation} were trimmed from the log; a base has them"
    )]
    Behind { object: String, generation: u64 },
    #[error(transparent)]
    Live(LiveError),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    System(String),
}

impl LogError {
    /// True where the store did not answer, so that the same may succeed later.
    pub fn is_unreachable(&self) -> bool {
        matches!(&*self.0, Kind::Store { .. })
    }

    /// True where the store did not answer, or this machine failed, its disk for one: the same may
    /// succeed later.
    pub fn is_passing(&self) -> bool {
        match &*self.0 {
            Kind::Store { .. } | Kind::System(_) => true,
            Kind::Live(error) => error.is_passing(),
            _ => false,
        }
    }

    /// True where entries are gone that a base stands for.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(&*self.0, Kind::Behind { .. })
    }

    /// The refusal of a change by the catalog's rules.
    pub fn live(&self) -> Option<&LiveError> {
        match &*self.0 {
            Kind::Live(error) => Some(error),
            _ => None,
        }
    }

    /// An object that the store did not give or take.
    pub fn store(object: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Kind::Store { object: object.into(), problem: problem.to_string() }.into()
    }

    pub(crate) fn damaged(object: impl Into<String>, problem: impl Into<String>) -> Self {
        Kind::Damaged { object: object.into(), problem: problem.into() }.into()
    }

    /// An address that means no store.
    pub fn address(address: impl Into<String>, problem: impl Into<String>) -> Self {
        Kind::Address { address: address.into(), problem: problem.into() }.into()
    }
}

impl From<Kind> for LogError {
    fn from(kind: Kind) -> Self {
        Self(Box::new(kind))
    }
}

impl From<LiveError> for LogError {
    fn from(error: LiveError) -> Self {
        Kind::Live(error).into()
    }
}
