//! Shared logs in memory: for tests, with faults.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::LogError;
use crate::shared_log::SharedLog;

/// Objects in memory, whose users are threads of one process.
#[derive(Debug, Default)]
pub struct MemoryLog {
    objects: Mutex<BTreeMap<String, Bytes>>,
    lost_answers: AtomicU32,
    is_down: AtomicBool,
}

impl MemoryLog {
    /// The next calls of `create` that make an object answer with an error, as if the connection
    /// broke after it.
    pub fn lose_answers(&self, count: u32) {
        self.lost_answers.store(count, Ordering::Relaxed);
    }

    /// Makes every call fail from now on, or none.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    /// The objects, to be looked at and damaged.
    pub fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, name: &str) -> Result<(), LogError> {
        match self.is_down.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(LogError::store(name, "it is told to be down")),
        }
    }
}

#[async_trait]
impl SharedLog for MemoryLog {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<bool, LogError> {
        self.check(name)?;
        let mut objects = self.objects();
        if objects.contains_key(name) {
            return Ok(false);
        }
        objects.insert(name.to_owned(), bytes);
        let lose = |left: u32| left.checked_sub(1);
        match self.lost_answers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lose) {
            Ok(_) => Err(LogError::store(name, "the answer was lost")),
            Err(_) => Ok(true),
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, LogError> {
        self.check(name)?;
        Ok(self.objects().get(name).cloned())
    }

    async fn names(
        &self,
        folder: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, LogError> {
        self.check(folder)?;
        let (folder, from) = (format!("{folder}/"), format!("{folder}/{after}"));
        let objects = self.objects();
        let following = objects.range::<str, _>((Bound::Excluded(from.as_str()), Bound::Unbounded));
        let names = following.map_while(|(name, _)| name.strip_prefix(&folder));
        Ok(names.filter(|name| !name.contains('/')).take(limit).map(str::to_owned).collect())
    }

    async fn delete(&self, name: &str) -> Result<(), LogError> {
        self.check(name)?;
        self.objects().remove(name);
        Ok(())
    }

    async fn put_file(&self, name: &str, from: &Path) -> Result<(), LogError> {
        self.check(name)?;
        let bytes = std::fs::read(from).map_err(|error| LogError::store(name, error))?;
        self.objects().insert(name.to_owned(), bytes.into());
        Ok(())
    }

    async fn get_file(&self, name: &str, to: &Path) -> Result<bool, LogError> {
        let Some(bytes) = self.read(name).await? else { return Ok(false) };
        std::fs::write(to, bytes).map_err(|error| LogError::store(name, error))?;
        Ok(true)
    }

    fn poll(&self) -> Duration {
        Duration::from_millis(2)
    }

    fn address(&self) -> &str {
        "memory"
    }
}
