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
    let archive = present(test, &format!("{name}.tar.xz"))?;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let status = Command::new("tar").arg("xJf").arg(&archive).arg("-C").arg(dir.path()).status();
    assert!(status.expect("tar runs").success(), "unpacking {}", archive.display());
    Some(dir)
}

/// The text of a file of the data folder, which is found as [`unpacked`] finds it; `None`, said
/// loudly on the error stream, where the folder lacks it.
///
/// # Panics
/// When the file is there but is no text.
pub fn text(test: &str, name: &str) -> Option<String> {
    let path = present(test, name)?;
    Some(
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    )
}

fn present(test: &str, name: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("PALMETTE_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
    };
    let path = folder.join(name);
    if !path.exists() {
        let path = path.display();
        // Not `eprintln!`: the test harness hides what that writes when a test passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no {path}; set PALMETTE_DATA");
        return None;
    }
    Some(path)
}
