//! The repository's sources and Markdown files, read once.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of which nothing is tracked.
const UNTRACKED: [&str; 6] = ["target", ".git", "shared", "venv", "lines", "node_modules"];
/// Folders of crates.
const HOMES: [&str; 2] = ["crates", "lab"];

/// Files of the repository.
pub(crate) struct Tree {
    root: PathBuf,
    /// All files, relative to the root, sorted.
    files: Vec<PathBuf>,
}

/// A source file of a crate.
pub(crate) struct Source {
    /// Its path from the root, with `/` between folders.
    pub(crate) shown: String,
    /// The crate's folder.
    pub(crate) krate: String,
    /// Its path below the crate's `src`.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) text: String,
}

impl Tree {
    /// Lists the repository that this program was compiled in.
    pub(crate) fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().expect("the folder above this crate");
        let mut files = Vec::new();
        list(&root, &mut files);
        let below = |file: &PathBuf| file.strip_prefix(&root).expect("listed below it").to_owned();
        let mut files: Vec<PathBuf> = files.iter().map(below).collect();
        files.sort();
        Self { root, files }
    }

    /// The root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// All files, relative to the root, sorted.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Text of a file.
    pub(crate) fn text(&self, file: &Path) -> String {
        let text = fs::read_to_string(self.root.join(file));
        text.unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// Folder of a crate, by its name without the common prefix.
    pub(crate) fn folder(&self, krate: &str) -> PathBuf {
        let folders = HOMES.iter().map(|home| Path::new(home).join(krate));
        let mut known = folders.filter(|folder| self.root.join(folder).is_dir());
        known.next().unwrap_or_else(|| panic!("no crate lies in a folder {krate}"))
    }

    /// Sources of all crates: what lies below their `src`.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> {
        self.files.iter().filter_map(|file| {
            let mut parts = file.iter().map(|part| part.to_str().expect("a name in UTF-8"));
            let (home, krate, src) = (parts.next()?, parts.next()?, parts.next()?);
            let is_source = HOMES.contains(&home) && src == "src" && has_ending(file, "rs");
            is_source.then(|| Source {
                shown: shown(file),
                krate: krate.to_owned(),
                path: file.iter().skip(3).collect(),
                text: self.text(file),
            })
        })
    }
}

/// A path with `/` between its folders.
pub(crate) fn shown(file: &Path) -> String {
    file.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Membership of a file among those with this ending.
pub(crate) fn has_ending(file: &Path, ending: &str) -> bool {
    file.extension().is_some_and(|own| own == ending)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let is_skipped = path.file_name().is_some_and(|n| UNTRACKED.iter().any(|skip| n == *skip));
        if path.is_dir() && !path.is_symlink() && !is_skipped {
            list(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}
