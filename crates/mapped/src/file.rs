//! Files that are replaced whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file by `write`: to a temporary file beside it, synced, then renamed, so that at every
/// moment there is the old file or the new one, after a crash too. Where `path` is a symbolic link,
/// the file it leads to is replaced and the link stays. On Unix the file may be read and written by
/// everyone whom the umask lets.
///
/// # Errors
/// When the folder cannot be written to, or `write` fails; the file is then as it was.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let target = without_links(path)?;
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = temporary_file(folder)?;
    write(file.as_file_mut())?;
    file.as_file_mut().flush()?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|e| e.error)?;
    // The new name is on disk only when the folder is.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// The path that `path` leads to over symbolic links; it need not exist.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        // An error means that this is no link: a file, or nothing yet.
        let Ok(target) = std::fs::read_link(&path) else { return Ok(path) };
        // A relative target starts from the folder of the link.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Beginning of the names of temporary files.
const TEMPORARY: &str = ".tmp";

/// Removes the temporary files of [`write_atomically`] in a folder, which a process that was killed
/// left; returns their number. Only where nobody writes into the folder.
///
/// # Errors
/// When the folder cannot be read or a file cannot be removed.
pub fn remove_temporary_files(folder: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes());
        if is_ours && entry.file_type()?.is_file() {
            std::fs::remove_file(entry.path())?;
            count += 1;
        }
    }
    Ok(count)
}

/// A new file with the permissions of any new file, where temporary files are only their owner's.
fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}
