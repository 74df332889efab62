//! Time between the requests of a connection, apart from the time in which a head must arrive.
//!
//! hyper has one time for both, from the end of an answer to the end of the next head. The timer
//! here is that of a connection: it goes by the idle time until a byte comes, and by the read time
//! from then on.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The moment at which the first byte came since the timer was set.
#[derive(Debug, Default)]
struct FirstByte(Mutex<Option<Instant>>);

impl FirstByte {
    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
    }

    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A stream, and the timer of the heads that come over it. The timer is to be set to the idle time.
pub(crate) fn watched<S>(stream: S, read_timeout: Duration) -> (Watched<S>, HeadTimer) {
    let first_byte = Arc::new(FirstByte::default());
    let is_set = Arc::default();
    let timer = HeadTimer { first_byte: Arc::clone(&first_byte), read_timeout, is_set };
    (Watched { stream, first_byte }, timer)
}

/// A stream that notes when bytes come.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    first_byte: Arc<FirstByte>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.first_byte.note();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Timer of the heads of a connection.
#[derive(Clone, Debug)]
pub(crate) struct HeadTimer {
    first_byte: Arc<FirstByte>,
    read_timeout: Duration,
    /// True once it was set. Before that the first head may have begun to come: its version is
    /// looked at first.
    is_set: Arc<AtomicBool>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        if self.is_set.swap(true, Ordering::Relaxed) {
            self.first_byte.forget();
        }
        Box::pin(HeadSleep {
            timer: self.clone(),
            sleep: Box::pin(tokio::time::sleep_until(deadline.into())),
            is_read: false,
        })
    }
}

/// Sleep until the idle time is over, or, once a byte has come, the read time.
struct HeadSleep {
    timer: HeadTimer,
    sleep: Pin<Box<tokio::time::Sleep>>,
    /// True once the sleep is that of the read time.
    is_read: bool,
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    // It is polled whenever bytes came and the head is not whole.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_read
            && let Some(at) = self.timer.first_byte.get()
        {
            let deadline = at + self.timer.read_timeout;
            self.sleep.as_mut().reset(deadline.into());
            self.is_read = true;
        }
        self.sleep.as_mut().poll(cx)
    }
}
