//! Version of the library.

use std::ffi::{CStr, c_char};

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version without NUL"),
    };

/// The version of the library, such as "0.1.0". It lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_version() -> *const c_char {
    VERSION.as_ptr()
}
