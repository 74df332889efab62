//! Room for uploads: memory and disk that the large bodies of all requests share.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::ServeConfig;
use crate::problem::{Kind, Problem};

/// Uploads of the largest size that have room at once.
const WHOLE_UPLOADS: usize = 4;
/// Unit of room.
const UNIT: usize = 1024;

/// Room for the bodies that are being read or wait to be applied.
#[derive(Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new(config: &ServeConfig) -> Self {
        let units = config.max_upload.div_ceil(UNIT).saturating_mul(WHOLE_UPLOADS);
        Self(Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))))
    }

    /// Enlarges a permit to as many bytes as have arrived.
    pub(crate) fn take(&self, received: usize, held: &mut Option<Permit>) -> Result<(), Problem> {
        let units = held.as_ref().map_or(0, |held| held.0.num_permits());
        let more = received.div_ceil(UNIT).saturating_sub(units);
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).try_acquire_many_owned(more).map_err(|_| {
            let detail = "too many large bodies are on their way; repeat later";
            Problem::new(Kind::Unavailable, detail).retry_after(1000)
        })?;
        match held {
            Some(held) => held.0.merge(permit),
            None => *held = Some(Permit(permit)),
        }
        Ok(())
    }
}

/// Room that a body holds until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit(OwnedSemaphorePermit);
