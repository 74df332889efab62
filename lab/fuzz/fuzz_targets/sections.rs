//! Files of sections, right or not: what opens hands out its sections, and writes the same file.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use palmette_fuzz::{CATALOG, catalog_file, mutate_sections};
use palmette_mapped::{Check, SectionsIn, SectionsOut};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // The checksum of header and table is made right again half of the time.
    match seed % 2 {
        0 => fuzzer_mutate(data, size, max_size),
        _ => mutate_sections(data, size, max_size, seed, CATALOG, catalog_file),
    }
});

fuzz_target!(|data: &[u8]| {
    let open = |data: &[u8], check| SectionsIn::from_bytes(data.to_vec().into(), CATALOG, check);
    // Once as it is, once with the checksum of the header that it should have, so that what the
    // table says is believed.
    for bytes in [data.to_vec(), with_header_checksum(data)] {
        let frame = open(&bytes, Check::Frame);
        if let Ok(file) = &frame {
            for number in (0..70).chain([u32::MAX]) {
                let len = file.section(number).map_or(0, |section| section.len() as u64);
                _ = file.array::<u8>(number, len);
                _ = file.array::<u64>(number, len / 8);
                assert!(file.array::<u64>(number, u64::MAX - len).is_err());
            }
        }
        if let Ok(file) = open(&bytes, Check::Whole) {
            assert!(frame.is_ok(), "checked whole but not its frame");
            let mut out = SectionsOut::default();
            let sections = (0..).map_while(|number| file.section(number).ok());
            sections.for_each(|section| _ = out.add(section));
            let again = open(&out.to_bytes(CATALOG), Check::Whole).expect("its own file");
            for number in 0..64 {
                assert_eq!(again.section(number), file.section(number));
            }
        }
    }
});

/// The file with the checksum of its header and table put right, where there are such.
fn with_header_checksum(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    if bytes.len() < 64 {
        return bytes;
    }
    bytes[..8].copy_from_slice(&CATALOG.magic);
    bytes[8..12].copy_from_slice(&CATALOG.version.to_le_bytes());
    let len = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&len.to_le_bytes());
    let num_sections = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes"));
    let end = 64 + 32 * u64::from(num_sections);
    bytes[24..28].fill(0);
    let sum = crc32fast::hash(&bytes[..end.min(len) as usize]);
    bytes[24..28].copy_from_slice(&sum.to_le_bytes());
    bytes
}
