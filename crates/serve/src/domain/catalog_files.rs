//! Names of the files of catalogs below the data directory, hidden ones while they are made or
//! removed.

use std::path::Path;

/// Directory of the catalogs below the data directory.
pub(crate) const CATALOGS: &str = "catalogs";
/// Beginnings of names of what is being made or removed there.
pub(crate) const NEW: &str = ".new-";
pub(crate) const DELETED: &str = ".deleted-";
pub(crate) const UPLOAD: &str = ".upload-";
pub(crate) const EXPORT: &str = ".export-";
const HIDDEN: [&str; 4] = [NEW, DELETED, UPLOAD, EXPORT];

/// Removes what a process before left half done in the data directory.
pub(crate) fn clean(data: &Path) -> std::io::Result<()> {
    let root = data.join(CATALOGS);
    if !root.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if !HIDDEN.iter().any(|hidden| name.starts_with(hidden)) {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir_all(entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
