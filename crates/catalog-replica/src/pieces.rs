//! Files piece by piece, read and written where that may wait.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::LogError;

/// A file of this machine.
#[derive(Debug)]
pub struct Pieces {
    path: PathBuf,
    file: Option<File>,
}

impl Pieces {
    /// Opens a file to be read.
    ///
    /// # Errors
    /// When it cannot be; so do the others.
    pub async fn open(path: &Path) -> Result<Self, LogError> {
        Self::begin(path, |path| File::open(path)).await
    }

    /// Makes a file to be written.
    pub async fn create(path: &Path) -> Result<Self, LogError> {
        Self::begin(path, |path| File::create(path)).await
    }

    async fn begin(
        path: &Path,
        open: impl FnOnce(&Path) -> std::io::Result<File> + Send + 'static,
    ) -> Result<Self, LogError> {
        let path = path.to_owned();
        let mut pieces = Self { path: path.clone(), file: None };
        pieces.file = Some(pieces.run(move || open(&path)).await?);
        Ok(pieces)
    }

    /// The next bytes, `most` of them but at the end; none after it.
    pub async fn next(&mut self, most: usize) -> Result<Bytes, LogError> {
        let Some(file) = self.file.take() else { return Ok(Bytes::new()) };
        let (file, bytes) = self
            .run(move || {
                let mut bytes = Vec::new();
                (&file).take(most as u64).read_to_end(&mut bytes)?;
                Ok((file, Bytes::from(bytes)))
            })
            .await?;
        self.file = Some(file);
        Ok(bytes)
    }

    /// Writes bytes after those before.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), LogError> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let file = self.run(move || file.write_all(&bytes).map(|()| file)).await?;
        self.file = Some(file);
        Ok(())
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, LogError> {
        let done = tokio::task::spawn_blocking(work).await;
        let failed = |problem: String| LogError::store(self.path.display().to_string(), problem);
        match done {
            Ok(done) => done.map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}
