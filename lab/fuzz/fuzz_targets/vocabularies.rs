//! Vocabularies: a file of a tokenizer is loaded, twice the same, and tokens spell what is cut into
//! them, or it is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::check_vocabularies;

fuzz_target!(|data: &[u8]| check_vocabularies(data));
