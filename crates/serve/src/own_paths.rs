//! Paths of this machine, which errors name and clients need not know.
//!
//! Whatever opens a file for the server says where it lies; what leaves the process has the name in
//! place of the path.

use std::borrow::Cow;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

/// A path and what stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnPath {
    path: String,
    name: String,
}

/// All of the process: several servers of one share their errors' words.
static OWN: RwLock<Vec<OwnPath>> = RwLock::new(Vec::new());

/// Lets a name stand for a path, and for it with its links resolved.
pub(crate) fn hide(path: &Path, name: &str) {
    add(path, name);
    if let Ok(real) = path.canonicalize() {
        add(&real, name);
    }
}

fn add(path: &Path, name: &str) {
    let path = path.to_string_lossy().trim_end_matches('/').to_owned();
    let own = OwnPath { path, name: name.to_owned() };
    let mut all = OWN.write().unwrap_or_else(PoisonError::into_inner);
    if own.path.is_empty() || own.path == own.name || all.contains(&own) {
        return;
    }
    // The longest first: a path within another has a name of its own.
    let at = all.partition_point(|other| other.path.len() >= own.path.len());
    all.insert(at, own);
}

/// The text with names in place of paths.
pub(crate) fn without(text: &str) -> Cow<'_, str> {
    let all = OWN.read().unwrap_or_else(PoisonError::into_inner);
    let mut text = Cow::Borrowed(text);
    for own in all.iter() {
        if let Some(replaced) = replaced(&text, own) {
            text = Cow::Owned(replaced);
        }
    }
    text
}

/// The text with one name in place of its path; `None` where it does not stand there.
fn replaced(text: &str, own: &OwnPath) -> Option<String> {
    let mut written = String::new();
    let mut rest = text;
    let mut is_changed = false;
    while let Some(at) = rest.find(&own.path) {
        let (before, after) = (&rest[..at], &rest[at + own.path.len()..]);
        let begins = before
            .chars()
            .next_back()
            .or_else(|| written.chars().next_back())
            .is_none_or(|c| !is_of_path(c));
        // A single name may be any word, but as the first part of a path.
        let is_word = !own.path.contains('/');
        let ends = match after.chars().next() {
            Some('/') => true,
            next => !is_word && next.is_none_or(|c| !is_of_path(c) || is_end(after)),
        };
        written.push_str(before);
        match begins && ends {
            true => written.push_str(&own.name),
            false => written.push_str(&own.path),
        }
        is_changed |= begins && ends;
        rest = after;
    }
    written.push_str(rest);
    is_changed.then_some(written)
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || "/._-".contains(c)
}

/// True if a point ends a sentence there.
fn is_end(after: &str) -> bool {
    after.strip_prefix('.').is_some_and(|rest| !rest.starts_with(is_of_path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_paths() {
        let own = |path: &str, name: &str| OwnPath { path: path.into(), name: name.into() };
        let data = own("/srv/palmette/data", "DATA");
        for (text, wanted) in [
            ("/srv/palmette/data: no room", Some("DATA: no room")),
            (
                "in \"/srv/palmette/data/models/a\" and /srv/palmette/data.",
                Some("in \"DATA/models/a\" and DATA."),
            ),
            ("/srv/palmette/data/x/srv/palmette/data", Some("DATA/x/srv/palmette/data")),
            ("/srv/palmette/database", None),
            ("/srv/palmette/data.bak", None),
            ("x/srv/palmette/data", None),
            ("nothing", None),
        ] {
            assert_eq!(replaced(text, &data).as_deref(), wanted, "{text}");
        }
        let short = own("data", "DATA");
        assert_eq!(
            replaced("no data; see data/models", &short).as_deref(),
            Some("no data; see DATA/models")
        );
        assert_eq!(replaced("metadata/x", &short), None);
    }

    #[test]
    fn the_longest_path_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a");
        std::fs::create_dir(&inner).unwrap();
        hide(dir.path(), "OUTER");
        hide(&inner, "INNER");
        let text = format!("{}/x {}/b", inner.display(), dir.path().display());
        assert_eq!(without(&text), "INNER/x OUTER/b");
    }
}
