//! Shared logs in object stores: Amazon S3 and what speaks like it, Google Cloud Storage, Azure
//! Blob Storage.
//!
//! An object is made by a conditional put (`If-None-Match: *`, a generation of 0), which is in S3
//! since August 2024 and in the others for long. Keys come from the environment, as the tools of
//! each cloud have it: `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`,
//! `AZURE_STORAGE_ACCOUNT_NAME` and so on, or from the machine that it runs on.
//!
//! ```no_run
//! palmette_clouds::add_homes();
//! // From here on `palmette_catalog_replica::open("s3://bucket/prefix")` opens one.
//! ```
//!
//! Hints: replicas tell one another of new objects over the NATS server that `PALMETTE_LOG_HINTS`
//! names, `nats://HOST:PORT` (`HintedLog`, with the feature `nats`).
#![forbid(unsafe_code)]

#[cfg(feature = "nats")]
mod hints;

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
#[cfg(feature = "nats")]
pub use hints::HintedLog;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use palmette_catalog_replica::{LogError, Pieces, SharedLog};

/// Bytes of a file that are sent at once.
const PART: usize = 8 << 20;

/// Adds the stores that this was built with to the homes of logs that
/// [`palmette_catalog_replica::open`] knows.
pub fn add_homes() {
    // Where another part of the program has chosen one already, that is used.
    _ = rustls::crypto::ring::default_provider().install_default();
    let open = |address: &str| hinted(Arc::new(ObjectLog::open(address)?));
    for (scheme, is_built) in [
        ("s3", cfg!(feature = "aws")),
        ("gs", cfg!(feature = "gcp")),
        ("az", cfg!(feature = "azure")),
    ] {
        if is_built {
            palmette_catalog_replica::add_home(scheme, open);
        }
    }
}

/// The variable that names the server of hints.
const HINTS: &str = "PALMETTE_LOG_HINTS";

/// The log, with hints where the environment has a server for them.
fn hinted(log: Arc<dyn SharedLog>) -> Result<Arc<dyn SharedLog>, LogError> {
    match std::env::var(HINTS) {
        Ok(server) if !server.is_empty() => by_nats(log, &server),
        _ => Ok(log),
    }
}

#[cfg(feature = "nats")]
fn by_nats(log: Arc<dyn SharedLog>, server: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    Ok(Arc::new(HintedLog::new(log, server)?))
}

#[cfg(not(feature = "nats"))]
fn by_nats(log: Arc<dyn SharedLog>, _: &str) -> Result<Arc<dyn SharedLog>, LogError> {
    let problem = format!(
        "{HINTS} is set, and this program was built without the feature nats; unset it, or build it with that"
    );
    Err(LogError::address(log.address(), problem))
}

/// A bucket, and a prefix in it.
#[derive(Debug)]
pub struct ObjectLog {
    store: Box<dyn ObjectStore>,
    prefix: String,
    address: String,
}

impl ObjectLog {
    /// Opens `SCHEME://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// When the address is none, or the environment has what cannot be understood.
    pub fn open(address: &str) -> Result<Self, LogError> {
        let (scheme, rest) = address.split_once("://").unwrap_or_default();
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(LogError::address(address, "it names no bucket"));
        }
        let store = make(scheme, bucket, address)?;
        Ok(Self::new(store, prefix, address))
    }

    /// A log in any store that takes conditional puts.
    pub fn new(store: Box<dyn ObjectStore>, prefix: &str, address: &str) -> Self {
        let prefix = prefix.trim_matches('/').to_owned();
        Self { store, prefix, address: address.trim_end_matches('/').to_owned() }
    }

    fn path(&self, name: &str) -> Path {
        match self.prefix.is_empty() {
            true => Path::from(name),
            false => Path::from(format!("{}/{name}", self.prefix)),
        }
    }

    fn failed(&self, name: &str, error: &dyn std::fmt::Display) -> LogError {
        LogError::store(format!("{}/{name}", self.address), error)
    }
}

fn make(scheme: &str, bucket: &str, address: &str) -> Result<Box<dyn ObjectStore>, LogError> {
    let wrong = |error: Error| LogError::address(address, error.to_string());
    match scheme {
        #[cfg(feature = "aws")]
        "s3" => {
            let builder = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket);
            Ok(Box::new(builder.build().map_err(wrong)?))
        }
        #[cfg(feature = "gcp")]
        "gs" => {
            let builder = object_store::gcp::GoogleCloudStorageBuilder::from_env();
            Ok(Box::new(builder.with_bucket_name(bucket).build().map_err(wrong)?))
        }
        #[cfg(feature = "azure")]
        "az" => {
            let builder = object_store::azure::MicrosoftAzureBuilder::from_env();
            Ok(Box::new(builder.with_container_name(bucket).build().map_err(wrong)?))
        }
        other => {
            _ = (bucket, wrong);
            Err(LogError::address(address, format!("this program was built without {other}://")))
        }
    }
}

#[async_trait]
impl SharedLog for ObjectLog {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<bool, LogError> {
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&self.path(name), PutPayload::from(bytes), options).await;
        match put {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, LogError> {
        let bytes = async { self.store.get(&self.path(name)).await?.bytes().await };
        match bytes.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    async fn names(
        &self,
        folder: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, LogError> {
        let prefix = self.path(folder);
        let begin = format!("{prefix}/");
        let mut listed = match after.is_empty() {
            true => self.store.list(Some(&prefix)),
            false => {
                self.store.list_with_offset(Some(&prefix), &self.path(&format!("{folder}/{after}")))
            }
        };
        let mut names = Vec::new();
        while let Some(object) = listed.next().await {
            let object = object.map_err(|error| self.failed(folder, &error))?;
            let Some(name) = object.location.as_ref().strip_prefix(&begin) else { continue };
            if !name.contains('/') && name > after {
                names.push(name.to_owned());
            }
            // The stores of clouds list in the order of names.
            if names.len() >= limit {
                break;
            }
        }
        names.sort_unstable();
        names.truncate(limit);
        Ok(names)
    }

    async fn delete(&self, name: &str) -> Result<(), LogError> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    async fn put_file(&self, name: &str, from: &FilePath) -> Result<(), LogError> {
        let mut file = Pieces::open(from).await?;
        let path = self.path(name);
        let failed = |error: Error| self.failed(name, &error);
        let mut piece = file.next(PART).await?;
        if piece.len() < PART {
            self.store.put(&path, PutPayload::from(piece)).await.map_err(failed)?;
            return Ok(());
        }
        let mut upload = self.store.put_multipart(&path).await.map_err(failed)?;
        while !piece.is_empty() {
            upload.put_part(PutPayload::from(piece)).await.map_err(failed)?;
            piece = file.next(PART).await?;
        }
        upload.complete().await.map(drop).map_err(failed)
    }

    async fn get_file(&self, name: &str, to: &FilePath) -> Result<bool, LogError> {
        let found = match self.store.get(&self.path(name)).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(self.failed(name, &error)),
        };
        let mut file = Pieces::create(to).await?;
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            file.write(piece.map_err(|error| self.failed(name, &error))?).await?;
        }
        Ok(true)
    }

    fn poll(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn exists(&self, name: &str) -> Result<bool, LogError> {
        match self.store.head(&self.path(name)).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(name, &error)),
        }
    }

    fn address(&self) -> &str {
        &self.address
    }
}
