//! The data directory: one process writes it, and what it left half done goes at the next start.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::catalog_files;
use super::load_error::LoadError;

/// File that is locked by the process that writes.
const LOCK: &str = "lock";

/// The sole right to write a data directory, while it is held.
#[derive(Debug)]
pub(crate) struct DataLock(File);

impl DataLock {
    /// Takes the right, and removes what a process before was writing when it ended.
    pub(crate) fn take(data: &Path) -> Result<Self, LoadError> {
        let path = data.join(LOCK);
        let system = |path: &Path, error: std::io::Error| {
            LoadError::System(format!("{}: {error}", path.display()))
        };
        std::fs::create_dir_all(data).map_err(|error| system(data, error))?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| system(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LoadError::System(format!(
                    "{}: another server has this data directory; end it first, give this one another, or let it follow (--read-only)",
                    data.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(system(&path, error)),
        }
        let held = Self(file);
        palmette_mapped::remove_temporary_files(data).map_err(|error| system(data, error))?;
        catalog_files::clean(data).map_err(|error| system(data, error))?;
        Ok(held)
    }
}

impl Drop for DataLock {
    fn drop(&mut self) {
        // Closing the file would not do while a process that is being started still has a copy of
        // it. Where unlocking fails, closing is what is left.
        _ = self.0.unlock();
    }
}
