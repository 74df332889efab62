//! Names of the facade: every type of its signatures can be named through it, and its examples need
//! no other crate.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Names of the standard library and of type parameters, which the facade does not export.
const OTHERS: &str = "Arc AsRef AtomicBool B Clone ControlFlow Debug Error ExactSizeIterator FnMut Formatter From I Into \
    IntoIterator Item Iterator L Option Path Result Self String Vec";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn sources(name: &str) -> Vec<(String, String)> {
    let files = std::fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    let source =
        |file: PathBuf| (file.display().to_string(), std::fs::read_to_string(file).unwrap());
    files.map(source).collect()
}

/// Words of a text that begin as types do.
fn types(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_uppercase())).collect()
}

/// Code without comments.
fn code(source: &str) -> String {
    let lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Heads of the public functions, public fields and trait implementations of a file.
fn signatures(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in source.match_indices("\n") {
        let rest = &source[start + 1..];
        let line = rest.lines().next().unwrap_or_default();
        let head = line.trim_start();
        let is_function = head.starts_with("pub fn ");
        let is_implementation = line.starts_with("impl") && line.contains(" for ");
        let is_field = head.starts_with("pub ") && head.contains(": ") && head.ends_with(',');
        if is_function || is_implementation {
            found.push(rest.split(['{', ';']).next().unwrap_or_default().to_owned());
        } else if is_field {
            found.push(line.to_owned());
        }
    }
    found
}

#[test]
fn every_type_of_a_signature_can_be_named() {
    let facade = std::fs::read_to_string(folder("src/lib.rs")).unwrap();
    let exported = code(&facade);
    let exported: BTreeSet<&str> = exported
        .split(';')
        .filter(|statement| statement.contains("pub use"))
        .flat_map(types)
        .collect();
    let (mut seen, mut missing) = (0, Vec::new());
    for (file, source) in sources("src") {
        for signature in signatures(&code(&source)) {
            for name in types(&signature) {
                seen += 1;
                // Exported under the name that users know it by.
                let alias = match name {
                    "CacheError" => "GrammarError",
                    "MaskRef" => "Mask",
                    name => name,
                };
                if !exported.contains(alias) && !types(OTHERS).contains(name) {
                    missing.push(format!("{file}: {name} in {signature}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(seen > 100, "{seen} names");
}

#[test]
fn examples_import_the_facade_alone() {
    for (file, source) in sources("examples") {
        let crates = source.lines().filter_map(|line| line.strip_prefix("use "));
        let foreign: Vec<&str> = crates
            .filter(|path| !path.starts_with("std::") && !path.starts_with("palmette::"))
            // The invented shop, which stands for a user's files.
            .filter(|path| *path != "palmette_demo::Demo;")
            .collect();
        assert!(foreign.is_empty(), "{file}: {foreign:?}");
    }
    let search = std::fs::read_to_string(folder("examples/beam_search.rs")).unwrap();
    let imports = search.split("use palmette::{").nth(1).unwrap().split('}').next().unwrap();
    assert!(imports.split(',').filter(|name| !name.trim().is_empty()).count() <= 6, "{imports}");
}
