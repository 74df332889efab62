//! Bodies about operations that go on after their request was answered.

use serde::Serialize;
use utoipa::ToSchema;

use super::CatalogEntry;
use crate::problem::Problem;

/// List of operations.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Operations {
    /// The latest first, up to 64.
    pub operations: Vec<Operation>,
}

/// The making of a catalog, at a moment.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Operation {
    /// Path of it: ask there for its state.
    #[schema(example = "/v1/operations/066124c31d7ef1-00000007")]
    pub operation: String,
    /// Name of the catalog.
    pub catalog: String,
    /// State of it.
    pub state: OperationState,
    /// Seconds since it began, or that it took.
    pub seconds: f64,
    /// Parts of the body that were read.
    pub progress: OperationProgress,
    /// The catalog, once it has succeeded.
    pub result: Option<CatalogEntry>,
    /// The problem, once it has failed: the one that the request would have been answered with.
    pub problem: Option<Problem>,
}

/// State of an operation. All but the first are ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationState {
    /// Running: not at its end yet.
    Running,
    /// Ended with a result.
    Succeeded,
    /// Ended with a problem; nothing has changed.
    Failed,
    /// Broken off; nothing has changed.
    Cancelled,
}

/// Progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OperationProgress {
    /// Items that were read; those of a catalog file are not counted.
    pub items: u64,
    /// Bytes of the body that were read; of a table in proportion to its rows. Indexing comes after
    /// the last.
    pub bytes: u64,
    /// Bytes of the body.
    pub of_bytes: u64,
}
