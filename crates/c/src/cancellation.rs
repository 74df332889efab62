//! Cancellation of work by another thread.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::border;

/// A wish that work ends: any thread may have it while another works.
#[derive(Debug, Default)]
pub struct Cancellation {
    pub(crate) flag: AtomicBool,
}

/// Makes a cancellation that nobody wishes for yet.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_cancellation_new() -> *mut Cancellation {
    border::ask(std::ptr::null_mut(), || Box::into_raw(Box::default()))
}

/// Calls off the work that was given this cancellation, which then ends soon with
/// PALMETTE_STATUS_CANCELLED. Any thread may call it. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_cancellation_cancel(cancellation: Option<&Cancellation>) {
    if let Some(cancellation) = cancellation {
        cancellation.flag.store(true, Ordering::Relaxed);
    }
}

/// Frees a cancellation, which no work may have any more. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_cancellation_free(cancellation: Option<Box<Cancellation>>) {
    border::ask((), || drop(cancellation));
}
