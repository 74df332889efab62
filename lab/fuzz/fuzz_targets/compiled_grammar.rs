//! Files of compiled grammars whose checksums are right: what opens answers or says why not, and is
//! written again.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use palmette_fuzz::{COMPILED_GRAMMAR, ask_compiled, compiled_grammar_file, mutate_sections};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_sections(data, size, max_size, seed, COMPILED_GRAMMAR, compiled_grammar_file)
});

fuzz_target!(|data: &[u8]| ask_compiled(data));
