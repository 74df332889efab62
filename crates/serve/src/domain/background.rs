//! Work in the background: threads for what takes long, which a request waits for.

use tokio::task::JoinHandle;

use super::permissions;
use crate::problem::{Kind, Problem};
use crate::request_id;

/// Starts what takes long on a thread where nobody waits for it. Problems made there have the
/// request's id too, and its permissions hold.
pub(crate) fn start_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let (id, grant) = (request_id::current(), permissions::current());
    let span = tracing::Span::current();
    let work = move || span.in_scope(work);
    let work =
        || request_id::CURRENT.sync_scope(id, || permissions::CURRENT.sync_scope(grant, work));
    tokio::task::spawn_blocking(work)
}

/// Runs what takes long on a thread where nobody waits for it, and waits for its end.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    start_blocking(work).await.map_err(|_| {
        Problem::new(Kind::Internal, "a part of the request panicked; the log has more")
    })
}
