//! Published data sets, which are not part of this repository.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacks `<name>.tar.xz` of the data folder; `None`, said loudly on the error stream, where the
/// folder lacks it. The environment variable `PALMETTE_DATA` names the folder; without it, it is
/// looked for beside the repository, as `shared/data`.
///
/// # Panics
/// When the archive is there but cannot be unpacked.
pub fn unpacked(test: &str, name: &str) -> Option<tempfile::TempDir> {
    let folder = match std::env::var_os("PALMETTE_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let archive = folder.join(name).with_extension("tar.xz");
    if !archive.exists() {
        let archive = archive.display();
        // Not `eprintln!`: the test harness hides what that writes when a test passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no {archive}; set PALMETTE_DATA");
        return None;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let status = Command::new("tar").arg("xJf").arg(&archive).arg("-C").arg(dir.path()).status();
    assert!(status.expect("tar runs").success(), "unpacking {}", archive.display());
    Some(dir)
}
