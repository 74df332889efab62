//! Keep-alive connection: HTTP/1.1, one request after the other.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::answer::{MAX_ANSWER_BYTES, Outcome};
use crate::requests::message;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
}

impl Drop for Connection {
    /// Closes the socket whatever is on its way: an answer that came too late must not be taken for
    /// the next one's.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self, String> {
        let error = |error: io::Error| format!("connecting: {error}");
        let stream = TcpStream::connect(address).await.map_err(error)?;
        // A body in a packet of its own must not wait for the acknowledgement of the head.
        stream.set_nodelay(true).map_err(error)?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|e| format!("connecting: {e}"))?;
        // Its errors are those of the request on it.
        let task = tokio::spawn(async move { _ = connection.await });
        Ok(Self { sender, task })
    }

    /// True where another request can follow.
    pub(crate) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

/// Head of a request: all but its body.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) address: SocketAddr,
    pub(crate) path: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) keep_items: bool,
}

/// The bytes of an answer, before they are looked into.
pub(crate) struct Received {
    status: hyper::StatusCode,
    media_type: String,
    body: Bytes,
}

impl Received {
    /// True for errors as this API words them (RFC 9457).
    pub(crate) fn is_problem(&self) -> bool {
        self.media_type.starts_with("application/problem+json")
    }

    pub(crate) fn outcome(&self, keep_items: bool) -> Outcome {
        Outcome::of(self.status, &self.media_type, &self.body, keep_items)
    }
}

impl Asking {
    /// Sends one request over the connection in `kept` and reads the answer to its end. The
    /// connection is made where there is none or the server has closed it. The connection stays in
    /// `kept` if it can be used again.
    ///
    /// `opened` is called for each that is made.
    pub(crate) async fn ask(
        &self,
        kept: &mut Option<Connection>,
        body: Bytes,
        opened: impl Fn(),
    ) -> Result<Received, String> {
        let mut request = message(&self.path, &self.headers, body);
        loop {
            let (mut connection, is_new) = match kept.take().filter(Connection::is_open) {
                Some(connection) => (connection, false),
                None => {
                    opened();
                    (Connection::open(self.address).await?, true)
                }
            };
            match connection.sender.try_send_request(request).await {
                Ok(response) => {
                    let received = read(response).await?;
                    *kept = Some(connection).filter(Connection::is_open);
                    return Ok(received);
                }
                Err(mut error) => match error.take_message() {
                    // The server closed an idle connection, and nothing has been sent.
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(said(error.error())),
                },
            }
        }
    }
}

async fn read(response: hyper::Response<hyper::body::Incoming>) -> Result<Received, String> {
    let status = response.status();
    let media_type = response.headers().get(CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
    let limited = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
    let body = limited.map_err(|error| match error.downcast_ref::<hyper::Error>() {
        Some(error) => said(error),
        None => format!("the answer has more than {MAX_ANSWER_BYTES} bytes"),
    })?;
    Ok(Received { status, media_type, body: body.to_bytes() })
}

/// An error with what caused it.
fn said(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("the connection: {error}{}", cause.unwrap_or_default())
}
