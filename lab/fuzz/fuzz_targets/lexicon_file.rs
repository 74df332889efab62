//! Lexicon files whose checksums are right: what opens answers without panics, and what was checked
//! whole is the lexicon of its strings.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use palmette_fuzz::{LEXICON, ask_lexicon, lexicon_file, mutate_sections};
use palmette_lexicon::{Check, Lexicon};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_sections(data, size, max_size, seed, LEXICON, lexicon_file)
});

fuzz_target!(|data: &[u8]| {
    if let Ok(lexicon) = Lexicon::from_bytes("frame", data.to_vec(), Check::Frame) {
        ask_lexicon(lexicon);
    }
    if let Ok(lexicon) = Lexicon::from_bytes("whole", data.to_vec(), Check::Whole) {
        let mut texts = Vec::new();
        lexicon.for_each(|_, text| texts.push(text.to_vec()));
        assert!(Lexicon::from_sorted(&texts).expect("they ascend") == lexicon);
        for (rank, text) in texts.iter().enumerate() {
            assert_eq!(lexicon.rank(text), Some(rank));
        }
        ask_lexicon(lexicon);
    }
});
