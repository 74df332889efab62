//! Directories of live catalogs: log entries and manifests of any contents with right checksums,
//! and files with changed bytes. Each opens, with items that answer and a merge that keeps them, or
//! is an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::{LiveDirectory, ask_live};

fuzz_target!(|data: &[u8]| {
    let Some((&kind, rest)) = data.split_first() else { return };
    let directory = LiveDirectory::get();
    match kind % 3 {
        0 => directory.append_entry(rest),
        1 => directory.replace_manifest(rest),
        _ => directory.change_bytes(rest),
    }
    ask_live(directory.path());
    directory.restore();
});
