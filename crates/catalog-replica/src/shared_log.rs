//! The home of shared logs: named objects, each made once.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::LogError;

/// A place that many processes reach: a directory, an object store, a database.
///
/// All that is asked of it is that an object of a name can be **made** by one of several that try
/// at once, and that what was made, or deleted, is seen by everybody from then on. Order, retries,
/// checks and clearing up are the same for all places and stand above this trait
/// ([`CatalogLog`](crate::CatalogLog)).
///
/// Names are parts of `A-Z a-z 0-9 . _ -` with slashes between.
#[async_trait]
pub trait SharedLog: Send + Sync + fmt::Debug {
    /// Makes an object; false where there is one of this name already, which stays as it is. Once
    /// it is made it outlives a failure of power.
    ///
    /// After an error it may have been made or not.
    async fn create(&self, name: &str, bytes: Bytes) -> Result<bool, LogError>;

    /// The bytes of an object, whole; `None` where there is none.
    async fn read(&self, name: &str) -> Result<Option<Bytes>, LogError>;

    /// Names of the objects directly in a folder that come after `after`, ascending, the first
    /// `limit` of them.
    async fn names(&self, folder: &str, after: &str, limit: usize)
    -> Result<Vec<String>, LogError>;

    /// Deletes an object; one that is not there is no error.
    async fn delete(&self, name: &str) -> Result<(), LogError>;

    /// Makes an object of a file, in place of one of its name. Nobody else makes one of this name.
    async fn put_file(&self, name: &str, from: &Path) -> Result<(), LogError>;

    /// Writes an object into a file; false where there is none.
    async fn get_file(&self, name: &str, to: &Path) -> Result<bool, LogError>;

    /// Waits until an object may have been made in a folder, or for `most`. It may be told of none.
    async fn wait(&self, folder: &str, most: Duration) {
        _ = folder;
        tokio::time::sleep(most).await;
    }

    /// The time between looks for new objects where nothing tells of them.
    fn poll(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// The place, for messages: without secrets.
    fn address(&self) -> &str;

    /// True where there is an object of this name.
    async fn exists(&self, name: &str) -> Result<bool, LogError> {
        Ok(self.read(name).await?.is_some())
    }
}
