//! Arguments as C passes them, as slices and texts.
//!
//! The one file where pointers of callers are read. Null with a length of 0 is an empty slice; null
//! with another length, and text that is no UTF-8, are errors.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::slice;

use palmette_core::TokenId;

use crate::error::{Error, Status};

/// The place where a caller wants an answer; null is an error, or for an [`Error`] no wish.
pub(crate) type Place<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// A handle or place that a call cannot do without.
pub(crate) fn needed<T>(given: Option<T>, name: &str) -> Result<T, Error> {
    given.ok_or_else(|| invalid(format!("{name} is NULL; give a pointer to one")))
}

/// An error of an argument.
pub(crate) fn invalid(message: String) -> Error {
    Error::new(Status::InvalidArgument, message)
}

fn checked<T>(is_null: bool, len: usize, name: &str) -> Result<bool, Error> {
    match (is_null, len) {
        (_, 0) => Ok(false),
        (true, _) => Err(invalid(format!("{name} is NULL with a length of {len}"))),
        (false, _) if len > isize::MAX as usize / size_of::<T>().max(1) => {
            Err(invalid(format!("{name} has a length of {len}, more than memory holds")))
        }
        (false, _) => Ok(true),
    }
}

/// An array of the caller's.
///
/// # Safety
/// `from` is null or points at `len` values that nobody writes while the slice is used.
pub(crate) unsafe fn array<'a, T>(
    from: *const T,
    len: usize,
    name: &str,
) -> Result<&'a [T], Error> {
    match checked::<T>(from.is_null(), len, name)? {
        // SAFETY: it is not null, its size is less than `isize::MAX`, and the rest is the caller's
        // promise.
        true => Ok(unsafe { slice::from_raw_parts(from, len) }),
        false => Ok(&[]),
    }
}

/// An array that is written.
///
/// # Safety
/// `from` is null or points at `len` values that nobody else reads or writes while it is used.
pub(crate) unsafe fn array_mut<'a, T>(
    from: *mut T,
    len: usize,
    name: &str,
) -> Result<&'a mut [T], Error> {
    match checked::<T>(from.is_null(), len, name)? {
        // SAFETY: as in `array`, and nobody else has it.
        true => Ok(unsafe { slice::from_raw_parts_mut(from, len) }),
        false => Ok(&mut []),
    }
}

/// Tokens of the caller's.
///
/// # Safety
/// As [`array`].
pub(crate) unsafe fn tokens<'a>(from: *const u32, len: usize) -> Result<&'a [TokenId], Error> {
    // SAFETY: a `TokenId` is a `u32` (`repr(transparent)`).
    unsafe { array(from.cast::<TokenId>(), len, "tokens") }
}

/// Text of a length.
///
/// # Safety
/// As [`array`].
pub(crate) unsafe fn text<'a>(
    from: *const c_char,
    len: usize,
    name: &str,
) -> Result<&'a str, Error> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { array(from.cast::<u8>(), len, name)? };
    utf8(bytes, name)
}

/// Text up to its NUL, where there is one.
///
/// # Safety
/// `from` is null or points at bytes that end with NUL, which nobody writes while it is used.
pub(crate) unsafe fn word<'a>(from: *const c_char, name: &str) -> Result<Option<&'a str>, Error> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not null; the rest is the caller's promise.
    let bytes = unsafe { CStr::from_ptr(from) };
    utf8(bytes.to_bytes(), name).map(Some)
}

fn utf8<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        invalid(format!("{name} is no UTF-8 from byte {} on", error.valid_up_to()))
    })
}

/// Writes as many values as there is room for, and tells how many there are.
pub(crate) fn write_all<T: Copy>(
    values: impl ExactSizeIterator<Item = T>,
    room: &mut [T],
    count: &mut MaybeUninit<usize>,
) {
    count.write(values.len());
    room.iter_mut().zip(values).for_each(|(to, value)| *to = value);
}
