//! Border of the library: no error is lost and no panic passes.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::arguments::Place;
use crate::error::{Error, Status};

/// Runs the work of a call; writes its error where the caller wants it, and null where there is
/// none.
pub(crate) fn call(
    error: Place<'_, *mut Error>,
    work: impl FnOnce() -> Result<(), Error>,
) -> Status {
    // What a panic leaves behind is a position that was not moved and a scratch that is dropped.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    let failed = match outcome {
        Ok(outcome) => outcome.err(),
        Err(panic) => Some(Error::new(Status::Panic, message_of(&*panic))),
    };
    let status = failed.as_ref().map_or(Status::Ok, Error::status);
    if let Some(error) = error {
        let failed = failed.map(|failed| Box::into_raw(Box::new(failed)));
        error.write(failed.unwrap_or(std::ptr::null_mut()));
    }
    status
}

/// Runs a question that has an answer for everything; `otherwise` after a panic.
pub(crate) fn ask<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!(
        "a fault of this library, please report it: {}",
        text.unwrap_or("a panic without a message")
    )
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    #[test]
    fn panics_are_errors() {
        let mut error = MaybeUninit::uninit();
        let status = call(Some(&mut error), || panic!("at {}", 3));
        assert_eq!(status, Status::Panic);
        // SAFETY: `call` writes it, and it is the handle of a box.
        let error = unsafe { Box::from_raw(error.assume_init()) };
        assert!(error.message().ends_with("please report it: at 3"), "{}", error.message());
        assert_eq!(ask(7, || panic!("no answer")), 7);
    }

    #[test]
    fn without_an_error_the_place_is_null() {
        let mut error = MaybeUninit::uninit();
        assert_eq!(call(Some(&mut error), || Ok(())), Status::Ok);
        // SAFETY: `call` writes it.
        assert!(unsafe { error.assume_init() }.is_null());
    }
}
