//! Shared logs in a directory: for one machine, and for file systems that several mount.
//!
//! An object is written to a name of its own in `.making`, forced to the disk, and linked to its
//! place: a link is made by one of those that try, and refused where there is a file already. The
//! file system must have hard links, and show a file that was made to everybody (NFS does with
//! `noac` or version 4).

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::LogError;
use crate::identity::Identity;
use crate::shared_log::SharedLog;

const MAKING: &str = ".making";
/// Age of a file there at which nobody makes it any more.
const LEFT: Duration = Duration::from_secs(24 * 3600);

/// A directory.
#[derive(Clone, Debug)]
pub struct DirectoryLog {
    root: PathBuf,
    address: String,
}

impl DirectoryLog {
    /// Opens a directory, which is made where it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(root: &Path) -> Result<Self, LogError> {
        let address = format!("file://{}", root.display());
        std::fs::create_dir_all(root.join(MAKING))
            .map_err(|error| LogError::store(&address, error))?;
        let root = root.canonicalize().map_err(|error| LogError::store(&address, error))?;
        remove_left(&root.join(MAKING));
        Ok(Self { root, address })
    }

    /// Runs work on files where it may wait.
    async fn run<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Self, &Path) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, LogError> {
        let (this, path) = (self.clone(), self.root.join(name));
        let done = tokio::task::spawn_blocking(move || work(&this, &path)).await;
        let failed = |problem: String| LogError::store(format!("{}/{name}", self.address), problem);
        match done {
            Ok(done) => done.map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Writes a file beside its place, and hands its path to `place`.
    fn make(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
        place: impl FnOnce(&Path) -> std::io::Result<bool>,
    ) -> std::io::Result<bool> {
        let name = Identity::random().map_err(std::io::Error::other)?;
        let making = self.root.join(MAKING).join(name.to_string());
        let mut file = OpenOptions::new().write(true).create_new(true).open(&making)?;
        let made = write(&mut file).and_then(|()| file.sync_all()).and_then(|()| {
            let folder = path.parent().unwrap_or(&self.root);
            let is_new = !folder.exists();
            if is_new {
                std::fs::create_dir_all(folder)?;
            }
            let made = place(&making)?;
            // Folders that were new are on the disk with their names.
            let depth = if is_new { usize::MAX } else { 1 };
            let ours = folder.ancestors().take_while(|folder| folder.starts_with(&self.root));
            for folder in ours.take(depth) {
                File::open(folder)?.sync_all()?;
            }
            Ok(made)
        });
        match std::fs::remove_file(&making) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => made,
        }
    }
}

/// Removes what processes left that were killed while they made an object. Others may be at work,
/// and remove the same.
fn remove_left(making: &Path) {
    for entry in std::fs::read_dir(making).into_iter().flatten().flatten() {
        let made = entry.metadata().and_then(|about| about.modified());
        let is_left = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > LEFT));
        if is_left && let Err(error) = std::fs::remove_file(entry.path()) {
            tracing::debug!(%error, path = %entry.path().display(), "a file that was left stays");
        }
    }
}

/// `None` of what is not there.
fn found<T>(result: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[async_trait]
impl SharedLog for DirectoryLog {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<bool, LogError> {
        let create = move |this: &Self, path: &Path| {
            // The common case of a race, without a file that is written in vain.
            if path.exists() {
                return Ok(false);
            }
            this.make(
                path,
                |file| file.write_all(&bytes),
                |making| match std::fs::hard_link(making, path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                    other => other.map(|()| true),
                },
            )
        };
        self.run(name, create).await
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, LogError> {
        self.run(name, |_, path| Ok(found(std::fs::read(path))?.map(Bytes::from))).await
    }

    async fn names(
        &self,
        folder: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, LogError> {
        let after = after.to_owned();
        self.run(folder, move |_, path| {
            let Some(entries) = found(std::fs::read_dir(path))? else { return Ok(Vec::new()) };
            let mut names = Vec::new();
            for entry in entries {
                let Ok(name) = entry?.file_name().into_string() else { continue };
                if name > after {
                    names.push(name);
                }
            }
            names.sort_unstable();
            names.truncate(limit);
            Ok(names)
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<(), LogError> {
        self.run(name, |this, path| {
            if found(std::fs::remove_file(path))?.is_none() {
                return Ok(());
            }
            // A folder that is empty now goes too; others say that they are not.
            if let Some(folder) = path.parent().filter(|folder| *folder != this.root) {
                _ = std::fs::remove_dir(folder);
            }
            Ok(())
        })
        .await
    }

    async fn put_file(&self, name: &str, from: &Path) -> Result<(), LogError> {
        let from = from.to_owned();
        let put = move |this: &Self, path: &Path| {
            let copy = |file: &mut File| std::io::copy(&mut File::open(&from)?, file).map(drop);
            let place = |making: &Path| std::fs::rename(making, path).map(|()| true);
            this.make(path, copy, place).map(drop)
        };
        self.run(name, put).await
    }

    async fn get_file(&self, name: &str, to: &Path) -> Result<bool, LogError> {
        let to = to.to_owned();
        self.run(name, move |_, path| {
            let Some(mut from) = found(File::open(path))? else { return Ok(false) };
            std::io::copy(&mut from, &mut File::create(&to)?)?;
            Ok(true)
        })
        .await
    }

    async fn exists(&self, name: &str) -> Result<bool, LogError> {
        self.run(name, |_, path| Ok(found(std::fs::metadata(path))?.is_some())).await
    }

    fn poll(&self) -> Duration {
        Duration::from_millis(20)
    }

    fn address(&self) -> &str {
        &self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_was_making_goes_after_a_day() {
        let dir = tempfile::tempdir().unwrap();
        DirectoryLog::open(dir.path()).unwrap();
        let [old, new] = ["old", "new"].map(|name| dir.path().join(MAKING).join(name));
        let file = File::create(&old).unwrap();
        file.set_modified(std::time::SystemTime::now() - LEFT * 2).unwrap();
        File::create(&new).unwrap();
        DirectoryLog::open(dir.path()).unwrap();
        assert!(!old.exists() && new.exists());
    }
}
