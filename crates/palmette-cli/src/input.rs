//! Files that commands read, `-` being standard input.

use std::io::Read;
use std::path::Path;

use anyhow::Context;

/// Whether a path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The bytes of a file, or of standard input to its end.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if !is_stdin(path) {
        return std::fs::read(path).with_context(|| path.display().to_string());
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("standard input")?;
    Ok(bytes)
}
