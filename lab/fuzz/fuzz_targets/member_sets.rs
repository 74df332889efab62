//! Sets of any strings, raw and as JSON, under any vocabulary: those of their definition along all
//! texts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::check_member_set;

fuzz_target!(|data: &[u8]| check_member_set(data));
