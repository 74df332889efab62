//! Catalog files whose checksums are right: what opens answers without panics, and what was checked
//! whole obeys every law of decoding.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use palmette_catalog::{Catalog, Check};
use palmette_fuzz::{CATALOG, ask_everything, catalog_file, check_laws, mutate_sections};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate_sections(data, size, max_size, seed, CATALOG, catalog_file)
});

fuzz_target!(|data: &[u8]| {
    if let Ok(catalog) = Catalog::from_bytes("frame", data.to_vec(), Check::Frame) {
        ask_everything(catalog);
    }
    if let Ok(catalog) = Catalog::from_bytes("whole", data.to_vec(), Check::Whole) {
        check_laws(catalog);
    }
});
