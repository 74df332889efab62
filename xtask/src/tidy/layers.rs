//! Layers: the modules of the crates and the arrows that their sources may have to one another.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Tree;

/// Modules of a crate, each with those that it may use, all of them above it: arrows point one way.
type Layers = &'static [(&'static str, &'static [&'static str])];

/// Crates below the facade, and the server, with their modules. Arrows between crates are those of
/// their manifests.
///
/// Tests within a module may use more: many write their grammars with a front end.
const CRATES: &[(&str, Layers)] = &[
    (
        "grammar-parser",
        &[
            ("span", &[]),
            ("grammar", &["span"]),
            ("rules", &["grammar"]),
            ("lr", &["grammar", "rules"]),
            ("analysis", &["span", "grammar", "rules", "lr"]),
            ("glr", &["grammar", "lr"]),
            ("lexer", &["grammar", "rules"]),
            ("blocks", &["grammar", "glr"]),
            ("names", &["grammar", "lexer"]),
            ("scopes", &["grammar", "lr", "glr"]),
            (
                "recognizer",
                &["span", "grammar", "rules", "lr", "glr", "lexer", "blocks", "names", "scopes"],
            ),
            ("completion", &["grammar", "lr", "glr", "lexer", "names", "recognizer"]),
        ],
    ),
    (
        "grammar-syntax",
        &[
            ("catalog_references", &[]),
            ("substring_references", &["catalog_references"]),
            ("chunks", &[]),
            ("free_text", &[]),
            ("misspelling", &[]),
            ("named_tokens", &[]),
            ("token_references", &[]),
            (
                "json_schema",
                &[
                    "catalog_references",
                    "substring_references",
                    "free_text",
                    "misspelling",
                    "named_tokens",
                ],
            ),
            ("regex", &["json_schema"]),
            (
                "gbnf",
                &[
                    "catalog_references",
                    "substring_references",
                    "token_references",
                    "free_text",
                    "chunks",
                    "regex",
                ],
            ),
            ("lark", &["catalog_references", "token_references", "chunks", "json_schema"]),
            (
                "structural_tag",
                &[
                    "free_text",
                    "misspelling",
                    "named_tokens",
                    "json_schema",
                    "regex",
                    "gbnf",
                    "lark",
                ],
            ),
        ],
    ),
    // The definition and an engine, none of which knows the other.
    (
        "grammar-masks",
        &[
            ("vocabulary", &[]),
            ("member_walk", &[]),
            ("walk", &[]),
            ("token_cut", &[]),
            ("tables", &[]),
            ("stack_automaton", &["tables"]),
            ("predecessors", &[]),
            (
                "residuals",
                &["vocabulary", "tables", "stack_automaton", "predecessors", "mask_pool"],
            ),
            ("mask_pool", &["tables", "residuals"]),
            (
                "automaton",
                &[
                    "vocabulary",
                    "tables",
                    "stack_automaton",
                    "predecessors",
                    "mask_pool",
                    "residuals",
                ],
            ),
        ],
    ),
    (
        "grammar",
        &[
            ("source", &[]),
            ("common_json", &[]),
            ("constraint", &[]),
            ("saved", &["source", "constraint"]),
            ("limits", &[]),
            ("grammar_folder", &["source", "constraint", "saved"]),
            ("cache", &["limits", "source", "constraint", "grammar_folder"]),
            ("pattern_search", &["limits", "source"]),
            // Names of the inside for tests and benches.
            ("engine", &[]),
        ],
    ),
    (
        "serve",
        &[
            ("model_loader", &[]),
            ("config", &["model_loader"]),
            ("own_paths", &[]),
            ("request_id", &[]),
            ("wall_clock", &[]),
            ("text_times", &[]),
            ("idle", &[]),
            ("audit", &[]),
            ("problem", &["own_paths", "request_id"]),
            ("gzip", &["problem"]),
            ("wire", &["own_paths", "problem"]),
            ("engine", &["wire"]),
            // Knows no handler, no state of the server, no route.
            (
                "domain",
                &[
                    "audit",
                    "config",
                    "engine",
                    "model_loader",
                    "problem",
                    "request_id",
                    "wall_clock",
                    "wire",
                ],
            ),
            ("telemetry", &["audit", "domain"]),
            ("document", &["domain", "wire"]),
            ("app", &["config", "domain", "engine", "own_paths", "telemetry"]),
            ("authorisation", &["app", "audit", "domain", "problem"]),
            ("callers", &["app", "config", "domain", "problem"]),
            ("cors", &["app"]),
            (
                "api",
                &[
                    "app",
                    "audit",
                    "domain",
                    "engine",
                    "own_paths",
                    "problem",
                    "request_id",
                    "text_times",
                    "wall_clock",
                    "wire",
                ],
            ),
            (
                "server",
                &[
                    "api",
                    "app",
                    "audit",
                    "authorisation",
                    "callers",
                    "config",
                    "cors",
                    "document",
                    "domain",
                    "engine",
                    "gzip",
                    "idle",
                    "own_paths",
                    "problem",
                    "request_id",
                    "telemetry",
                ],
            ),
        ],
    ),
];

/// Two modules may use each other: sets of tokens are told by the pool's rows, and the pool by
/// suffix sets.
const MUTUAL: (&str, &str) = ("residuals", "mask_pool");

/// Checks the arrows of the sources against the table, and that the table has no arrow back.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    let (mut num_used, mut faults) = (0, arrows_back());
    for &(name, layers) in CRATES {
        let library = tree.text(&tree.folder(name).join("src/lib.rs"));
        let exports = exports(&library);
        let allowed: BTreeMap<&str, &[&str]> = layers.iter().copied().collect();
        let mut used = BTreeSet::new();
        for source in tree.sources().filter(|source| source.krate == name) {
            let module = module_of(&source.path);
            if module == "lib" {
                continue;
            }
            let Some(&may_use) = allowed.get(&*module) else {
                faults.push(format!("{}: `{module}` is not in the table", source.shown));
                continue;
            };
            for (line, named) in names_from_the_root(&source.text, depth_of(&source.path)) {
                let place = format!("{}:{line}", source.shown);
                let target = match exports.get(&named) {
                    // Another crate's.
                    Some(target) if target.starts_with("palmette_") => continue,
                    Some(target) => target,
                    None if allowed.contains_key(&*named) => &named,
                    None => {
                        faults.push(format!("{place}: `crate::{named}` is of no known module"));
                        continue;
                    }
                };
                if *target == module {
                    continue;
                }
                used.insert((module.clone(), target.clone()));
                if !may_use.contains(&&**target) {
                    faults.push(format!("{place}: `{module}` may not use `{target}` (`{named}`)"));
                }
            }
        }
        for (module, targets) in layers {
            for &target in *targets {
                if !used.contains(&((*module).to_owned(), target.to_owned())) {
                    faults.push(format!(
                        "{name}: `{module}` does not use `{target}`: take it out of the table"
                    ));
                }
            }
        }
        num_used += used.len();
    }
    assert!(num_used > 30, "only {num_used} arrows were found");
    faults
}

/// Arrows of the table to a module that is not above.
fn arrows_back() -> Vec<String> {
    let mut faults = Vec::new();
    for &(name, layers) in CRATES {
        for (at, (module, targets)) in layers.iter().enumerate() {
            for target in *targets {
                let above = layers[..at].iter().any(|(earlier, _)| earlier == target);
                if !above && (*module, *target) != MUTUAL {
                    faults.push(format!(
                        "{name}: `{module}` may use `{target}`, which is not above it"
                    ));
                }
            }
        }
    }
    faults
}

/// The module at the root of the crate that a file belongs to.
fn module_of(path: &Path) -> String {
    let first = path.iter().next().expect("not empty").to_str().expect("an identifier");
    first.trim_end_matches(".rs").to_owned()
}

/// Depth of a file's module below the root.
fn depth_of(path: &Path) -> usize {
    path.iter().count() - 1 - usize::from(path.file_name().is_some_and(|name| name == "mod.rs"))
}

/// Names that `lib.rs` exports or imports, with the modules or crates that they are from.
fn exports(library: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for (at, use_) in library.match_indices("\nuse ").chain(library.match_indices("\npub use ")) {
        let exported = &library[at + use_.len()..];
        let exported = &exported[..exported.find(';').expect("an end")];
        // A crate under another name has none to tell.
        let Some((module, names)) = exported.split_once("::") else { continue };
        for name in names.split(|at: char| !(at.is_alphanumeric() || at == '_')) {
            if !name.is_empty() {
                exports.insert(name.to_owned(), module.to_owned());
            }
        }
    }
    exports
}

/// The first names of all paths that begin at the root of the crate, with their lines: after
/// `crate::`, and after more `super::` than the file is deep. Comments and what follows
/// `#[cfg(test)]` are left out.
fn names_from_the_root(source: &str, depth: usize) -> Vec<(usize, String)> {
    let to_root = "super::".repeat(depth + 1);
    let mut names = Vec::new();
    let end = source.find("#[cfg(test)]").unwrap_or(source.len());
    let code = without_comments(&source[..end]);
    for root in ["crate::", &*to_root] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            let goes_on = before.is_some_and(|at| at.is_alphanumeric() || at == '_' || at == ':');
            if !goes_on {
                let line = 1 + code[..at].matches('\n').count();
                let firsts = first_names(&code[at + root.len()..]);
                names.extend(firsts.into_iter().map(|name| (line, name)));
            }
        }
    }
    names.sort();
    names
}

/// Lines of a source without comments.
fn without_comments(source: &str) -> String {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    source.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// The first name of each path of a tree of imports, or of the one path that begins here.
fn first_names(tree: &str) -> Vec<String> {
    let name = |path: &str| -> String {
        path.trim_start().chars().take_while(|at| at.is_alphanumeric() || *at == '_').collect()
    };
    let Some(group) = tree.strip_prefix('{') else { return vec![name(tree)] };
    let (mut names, mut open, mut begin) = (Vec::new(), 0, 0);
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' if open > 0 => open -= 1,
            b',' | b'}' if open == 0 => {
                names.push(name(&group[begin..at]));
                begin = at + 1;
                if byte == b'}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_every_form_of_path() {
        let source = "use crate::lr::{Tables, StateId};\n\
            // crate::commented\n\
            use crate::{\n    Budget,\n    regex::{Regex, parse::{self, Flags}},\n};\n\
            use super::super::store;\n\
            fn f() -> crate::glr::Stacks { super::own() }\n\
            #[cfg(test)]\nmod tests { use crate::frontends; }\n";
        let names = names_from_the_root(source, 1);
        let named = |line, name: &str| (line, name.to_owned());
        let expected = [
            named(1, "lr"),
            named(3, "Budget"),
            named(3, "regex"),
            named(7, "store"),
            named(8, "glr"),
        ];
        assert_eq!(names, expected);
    }
}
