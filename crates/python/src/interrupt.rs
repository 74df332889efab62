//! The one door for calls that may take long: the interpreter is released, and Ctrl-C calls the
//! work off.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use pyo3::prelude::*;

use crate::process::{AtWork, in_pool};

/// Pause between two looks at signals.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Stack of a program's first thread: front ends recurse as deep as their limits say.
const STACK_BYTES: usize = 8 << 20;

/// Runs work on a thread of its own, without the interpreter, while this one looks for signals.
/// When a handler raises, as Python's own does at Ctrl-C, the flag is set, and the work has to end
/// soon; then that exception is raised.
///
/// # Errors
/// Exception that a signal's handler raised; `RuntimeError` when the system has no thread to give.
pub(crate) fn interruptible<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> R + Send,
) -> PyResult<R> {
    let cancelled = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel::<()>();
    // A receiver alone may not be lent to work without the interpreter.
    let receiver = Mutex::new(receiver);
    std::thread::scope(|scope| {
        let cancelled = &cancelled;
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let worker = builder.spawn_scoped(scope, move || {
            // Dropped at the end, and when unwinding: the wait below ends then.
            let _sender = sender;
            let _at_work = AtWork::begin();
            in_pool(|| work(cancelled))
        })?;
        let mut raised = None;
        loop {
            let ended = py.detach(|| {
                let receiver: &Mutex<mpsc::Receiver<()>> = &receiver;
                let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
                receiver.recv_timeout(BETWEEN_LOOKS) != Err(mpsc::RecvTimeoutError::Timeout)
            });
            if ended {
                break;
            }
            if raised.is_none()
                && let Err(error) = py.check_signals()
            {
                cancelled.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
        }
        let result = py.detach(|| worker.join());
        match (raised, result) {
            (Some(error), _) => Err(error),
            (None, Ok(result)) => Ok(result),
            (None, Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}
