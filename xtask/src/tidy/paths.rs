//! Link checker: every relative link and every path of the repository that a Markdown file names
//! exists.
//!
//! A path is a word in code that begins with a folder of the repository, or ends as a source file
//! does (`lr/tables.rs`).

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::Tree;
use super::tree::has_ending;

const ENDINGS: [&str; 5] = [".rs", ".sh", ".py", ".md", ".toml"];
const FOLDERS: [&str; 5] = ["crates/", "lab/", "docs/", "deploy/", "examples/"];

/// The fragment by which a heading is linked to.
fn fragment(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

fn broken_link(file: &Path, text: &str, target: &str) -> bool {
    let (path, wanted) = target.split_once('#').map_or((target, None), |(p, f)| (p, Some(f)));
    let linked = match path {
        "" => file.to_owned(),
        _ => file.parent().expect("a folder").join(path),
    };
    let has_heading = |wanted: &str| {
        let own = fs::read_to_string(&linked).unwrap_or_else(|_| text.to_owned());
        own.lines().any(|line| line.starts_with('#') && fragment(line) == wanted)
    };
    !linked.exists() || wanted.is_some_and(|wanted| !has_heading(wanted))
}

/// Checks every Markdown file.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    // Every end of every path, folders included.
    let mut known = HashSet::new();
    for path in tree.files().iter().flat_map(|file| file.ancestors()) {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        known.extend((0..parts.len()).map(|first| parts[first..].join("/")));
    }
    let mut faults = Vec::new();
    for file in tree.files().iter().filter(|file| has_ending(file, "md")) {
        let text = tree.text(file);
        let path = tree.root().join(file);
        let links =
            text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        let relative = links.filter(|link| !link.contains("://") && !link.contains(' '));
        let broken = relative.filter(|link| broken_link(&path, &text, link));
        faults.extend(broken.map(|link| format!("{}: no link {link}", file.display())));
        let is_end = |c: char| c.is_whitespace() || "`\"'()[],;:=|…".contains(c);
        for word in text.split('`').skip(1).step_by(2).flat_map(|code| code.split(is_end)) {
            let word = word.trim_end_matches(['.', '/']);
            let is_file = word.contains('/') && ENDINGS.iter().any(|ending| word.ends_with(ending));
            let is_path = is_file || FOLDERS.iter().any(|folder| word.starts_with(folder));
            // `fuzz/corpus/TARGET` and `bench_*.rs` stand for others.
            let is_pattern = word.contains(['*', '{', '$', '<', '@', '~'])
                || word.split('/').any(|part| part.bytes().all(|b| b.is_ascii_uppercase()));
            if is_path && !is_pattern && !known.contains(word) {
                faults.push(format!("{}: no path {word}", file.display()));
            }
        }
    }
    faults
}
