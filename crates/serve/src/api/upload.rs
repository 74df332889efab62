//! Large bodies: read at a pace, within a length, and within the memory and disk of all that are on
//! their way.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use tempfile::NamedTempFile;
use tokio::sync::mpsc;

use crate::app::App;
use crate::domain::background::blocking;
use crate::domain::catalog_files::UPLOAD;
use crate::domain::upload_room::Permit;
use crate::problem::{Kind, Problem};

/// Bytes a second that a body must arrive by, once the first read timeout is over: one that
/// trickles holds its room for ever.
const LEAST_PACE: f64 = 65536.0;
/// A body on its way.
pub(crate) struct Upload<'a> {
    app: &'a Arc<App>,
    body: Body,
    /// Bytes, at most.
    most: usize,
    began: Instant,
    received: usize,
    held: Option<Permit>,
}

/// A body in memory; its room is free again when it is dropped.
#[derive(Debug)]
pub(crate) struct BufferedBody {
    pub(crate) bytes: Vec<u8>,
    _room: Option<Permit>,
}

/// A body in a file, which goes when this is dropped.
#[derive(Debug)]
pub(crate) struct HeldFile {
    pub(crate) file: NamedTempFile,
    _room: Option<Permit>,
}

impl<'a> Upload<'a> {
    /// A body that says to be too long is refused before it is read.
    pub(crate) fn new(app: &'a Arc<App>, headers: &HeaderMap, body: Body) -> Result<Self, Problem> {
        Self::up_to(app.config.max_upload, app, headers, body)
    }

    /// A body of at most so many bytes; [`new`](Self::new) takes the most.
    pub(crate) fn up_to(
        most: usize,
        app: &'a Arc<App>,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self, Problem> {
        let length: Option<usize> =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let upload = Self { app, body, most, began: Instant::now(), received: 0, held: None };
        match length {
            Some(length) if length > most => Err(upload.too_large()),
            _ => Ok(upload),
        }
    }

    fn too_large(&self) -> Problem {
        let detail = format!(
            "the body has more than {} bytes; send it in parts, or start the server with room for more",
            self.most
        );
        Problem::new(Kind::TooLarge, detail)
    }

    /// The next piece; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let by_now = self.app.config.read_timeout
                + Duration::from_secs_f64(self.received as f64 / LEAST_PACE);
            let left = by_now.saturating_sub(self.began.elapsed());
            let frame = match tokio::time::timeout(left, self.body.frame()).await {
                Err(_) => {
                    let detail = format!(
                        "{} bytes of the body arrived in {:.0} s; it must come faster",
                        self.received,
                        self.began.elapsed().as_secs_f32()
                    );
                    return Err(Problem::new(Kind::SlowRequest, detail));
                }
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    let detail = format!("the body broke off: {error}");
                    return Err(Problem::new(Kind::NotJson, detail));
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            self.received = self.received.saturating_add(data.len());
            if self.received > self.most {
                return Err(self.too_large());
            }
            self.app.room.take(self.received, &mut self.held)?;
            return Ok(Some(data));
        }
    }

    pub(crate) async fn into_memory(mut self) -> Result<BufferedBody, Problem> {
        let mut bytes = Vec::new();
        while let Some(data) = self.chunk().await? {
            bytes.extend_from_slice(&data);
        }
        Ok(BufferedBody { bytes, _room: self.held })
    }

    /// Writes it to a file of this directory.
    pub(crate) async fn into_file(mut self, dir: &Path) -> Result<HeldFile, Problem> {
        let dir = dir.to_owned();
        let (sender, mut chunks) = mpsc::channel::<Bytes>(8);
        let writing = blocking(move || {
            std::fs::create_dir_all(&dir)?;
            let mut file = tempfile::Builder::new().prefix(UPLOAD).tempfile_in(&dir)?;
            while let Some(data) = chunks.blocking_recv() {
                file.write_all(&data)?;
            }
            Ok(file)
        });
        let reading = async {
            while let Some(data) = self.chunk().await? {
                // The writer has ended: its error says more.
                if sender.send(data).await.is_err() {
                    break;
                }
            }
            drop(sender);
            Ok::<(), Problem>(())
        };
        let (read, written) = tokio::join!(reading, writing);
        read?;
        let file = written?.map_err(|error: std::io::Error| {
            tracing::error!(%error, "an upload was not written");
            let detail = format!("the upload cannot be kept: {error}");
            Problem::new(Kind::Unavailable, detail).retry_after(1000)
        })?;
        Ok(HeldFile { file, _room: self.held })
    }
}
