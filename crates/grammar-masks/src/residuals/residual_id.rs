//! Number of a residual.

/// Residual of a terminal. A number into [`Residuals`](super::Residuals); equal numbers are equal
/// residuals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ResidualId(pub(super) u32);
