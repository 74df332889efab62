//! Frames of a shared log: what is read is written again as the same bytes, or it is refused with a
//! reason.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

/// Ends a frame by the checksum that it should have.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if let Some(end) = bytes.len().checked_sub(4) {
        let sum = crc32fast::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if seed % 4 != 0 {
        let sealed = sealed(&data[..size]);
        data[..size].copy_from_slice(&sealed);
    }
    size
});

fuzz_target!(|data: &[u8]| {
    match palmette_catalog_replica::frame_again(data.to_vec().into()) {
        Ok(again) => assert_eq!(&again[..], data),
        Err(reason) => assert!(!reason.is_empty()),
    }
});
