//! Errors of a model on a device.

use palmette_model::{LoadError, SequencesError, SessionError};

use crate::DeviceError;

/// Failure to put a model on a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The kernels do not compute such a model.
    #[error("{family} with {what} is not computed on a device yet; --device cpu computes it")]
    Unsupported {
        /// The `model_type`.
        family: String,
        /// Part of it that is not.
        what: String,
    },
    /// The model's files.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A device's failure as that of a request.
impl From<DeviceError> for SessionError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::PagesTaken { .. }
            | DeviceError::SlotsTaken { .. }
            | DeviceError::OutOfMemory { .. } => Self::NoRoom(error.to_string()),
            _ => Self::Engine(error.to_string()),
        }
    }
}

/// A device's failure as that of sequences.
impl From<DeviceError> for SequencesError {
    fn from(error: DeviceError) -> Self {
        Self::Engine(error.to_string())
    }
}
