//! Masks over random grammars and vocabularies: those of the automaton, and of a file of it, are
//! the definition's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::check_masks;

fuzz_target!(|data: &[u8]| check_masks(data));
