//! Lines of a file of JSON, with their numbers.

use std::path::Path;

use anyhow::Context;

/// The lines of a text file with their numbers, blank ones left out.
pub(super) fn lines(path: &Path) -> anyhow::Result<Vec<(usize, String)>> {
    let bytes = crate::input::read(path)?;
    let text = String::from_utf8(bytes)
        .with_context(|| format!("{}: must be JSON lines in UTF-8", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    Ok(lines.map(|(number, line)| (number + 1, line.to_owned())).collect())
}
