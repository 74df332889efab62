//! Substrings of documents by any rule, raw and as JSON, under any vocabulary: those of their
//! definition along all texts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::check_substrings;

fuzz_target!(|data: &[u8]| check_substrings(data));
