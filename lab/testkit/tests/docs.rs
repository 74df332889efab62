//! Link checker: every relative link and every path of the repository that a Markdown file names exists.
//!
//! A path is a word in code that begins with a folder of the repository, or ends as a source file does (`lr/tables.rs`).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const ENDINGS: [&str; 5] = [".rs", ".sh", ".py", ".md", ".toml"];
const FOLDERS: [&str; 5] = ["crates/", "docs/", "benches/", "fuzz/", "examples/"];
/// Folders of which nothing is tracked.
const UNTRACKED: [&str; 6] = ["target", ".git", "shared", "venv", "lines", "node_modules"];

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        let is_skipped = path.file_name().is_some_and(|n| UNTRACKED.iter().any(|skip| n == *skip));
        if path.is_dir() && !path.is_symlink() && !is_skipped {
            files_below(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

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

#[test]
fn every_path_and_relative_link_named_in_markdown_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("a root");
    let mut files = Vec::new();
    files_below(&root, &mut files);
    // Every end of every path, folders included.
    let mut known = HashSet::new();
    for path in
        files.iter().flat_map(|file| file.ancestors()).filter_map(|p| p.strip_prefix(&root).ok())
    {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        known.extend((0..parts.len()).map(|first| parts[first..].join("/")));
    }
    let mut missing = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        let text = fs::read_to_string(file).expect("UTF-8");
        let links =
            text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
        let relative = links.filter(|link| !link.contains("://") && !link.contains(' '));
        let broken = relative.filter(|link| broken_link(file, &text, link));
        missing.extend(broken.map(|link| format!("{}: link {link}", file.display())));
        let is_end = |c: char| c.is_whitespace() || "`\"'()[],;:=|…".contains(c);
        for word in text.split('`').skip(1).step_by(2).flat_map(|code| code.split(is_end)) {
            let word = word.trim_end_matches(['.', '/']);
            let is_file = word.contains('/') && ENDINGS.iter().any(|ending| word.ends_with(ending));
            let is_path = is_file || FOLDERS.iter().any(|folder| word.starts_with(folder));
            // `lab/fuzz/corpus/TARGET` and `bench_*.rs` stand for others.
            let is_pattern = word.contains(['*', '{', '$', '<', '@', '~'])
                || word.split('/').any(|part| part.bytes().all(|b| b.is_ascii_uppercase()));
            if is_path && !is_pattern && !known.contains(word) {
                missing.push(format!("{}: path {word}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "Markdown names what is not there:\n{}", missing.join("\n"));
}
