//! Tidiness: arrows between modules, circles of files, words of the documentation, names on the page about masks.

mod circles;
mod layers;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// All Rust files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the crate") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}
