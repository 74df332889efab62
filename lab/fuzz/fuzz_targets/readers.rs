//! Item files in every text format: what is read builds, or is refused with an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_catalog::index::MAX_CODE;
use palmette_catalog::readers::{Format, parse_items};
use palmette_catalog::{BuildOptions, Catalog};

fuzz_target!(|data: &[u8]| {
    for format in Format::ALL {
        let source = match parse_items("items", data, format) {
            Ok(source) => source,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                continue;
            }
        };
        for item in &source.items {
            assert!(!item.id.is_empty() && !item.codes.is_empty());
            assert!(item.codes.iter().all(|&code| code <= MAX_CODE));
        }
        let items = source.items.clone();
        match Catalog::build(source, &BuildOptions::default()) {
            Ok(catalog) => {
                for item in &items {
                    let rank = catalog.rank_of(&item.id).expect("every item is in");
                    assert_eq!(catalog.codes(rank), item.codes);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
