//! Circles: files of a crate that use one another, found as strongly connected groups.
//!
//! A file uses another where its imports or its paths name something of it. A name that a file only
//! re-exports is its origin's; methods are not followed. Tests within files are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::Tree;

/// Largest number of files in a circle: a type and its two helpers may know one another, a heap of
/// files may not.
const MAX_CIRCLE: usize = 3;

/// Circles that are larger, by a file of theirs, each with the reason.
const EXCEPTIONS: &[(&str, &str)] =
    &[("python/grammar/compiled.rs", "classes of Python that make one another")];

/// Path of a module from the root of its crate.
type Module = Vec<String>;

/// Checks every crate for circles of more files than are allowed.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    let (mut faults, mut num_uses) = (Vec::new(), 0);
    let mut unneeded: BTreeSet<&str> = EXCEPTIONS.iter().map(|(file, _)| *file).collect();
    let mut crates = BTreeMap::<String, Vec<(String, String)>>::new();
    for source in tree.sources() {
        let file = super::tree::shown(&source.path);
        crates.entry(source.krate).or_default().push((file, source.text));
    }
    for (name, sources) in crates {
        let uses = Uses::find(sources.into_iter());
        num_uses += uses.edges.values().map(BTreeMap::len).sum::<usize>();
        for circle in uses.circles() {
            let shown: Vec<String> =
                circle.iter().map(|module| format!("{name}/{}", uses.files[*module])).collect();
            let exception = EXCEPTIONS.iter().find(|(file, _)| shown.iter().any(|of| of == file));
            match exception {
                Some((file, _)) => _ = unneeded.remove(file),
                None => faults.push(format!(
                    "{name}: a circle of {} files:\n{}",
                    circle.len(),
                    uses.within(&circle).join("\n")
                )),
            }
        }
    }
    faults.extend(unneeded.iter().map(|file| format!("{file} is in no circle any more")));
    assert!(num_uses > 2000, "only {num_uses} uses were found");
    faults
}

/// Uses between the files of a crate.
struct Uses {
    /// Files by module.
    files: BTreeMap<Module, String>,
    /// Used modules, each with a path that names it.
    edges: BTreeMap<Module, BTreeMap<Module, String>>,
}

/// Names that modules import or export, with the paths that they stand for.
type Imports = BTreeMap<Module, BTreeMap<String, Vec<String>>>;

impl Uses {
    fn find(sources: impl Iterator<Item = (String, String)>) -> Self {
        let mut files = BTreeMap::new();
        let mut codes = BTreeMap::new();
        for (file, source) in sources {
            let mut module: Module =
                file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            module.pop_if(|last| matches!(&**last, "mod" | "lib" | "main"));
            codes.insert(module.clone(), code(&source));
            files.insert(module, file);
        }
        let mut imports = Imports::new();
        for (module, code) in &codes {
            let all = statements(code).into_iter().flat_map(|(_, tree)| expand(tree));
            imports.insert(
                module.clone(),
                all.filter_map(|(path, name)| Some((name?, path))).collect(),
            );
        }
        let mut this = Self { files, edges: BTreeMap::new() };
        for (module, code) in &codes {
            let (mut paths, mut body) = (Vec::new(), code.clone());
            for (is_export, tree) in statements(code) {
                body = body.replacen(tree, "", 1);
                if !is_export {
                    paths.extend(expand(tree).into_iter().map(|(path, _)| path));
                }
            }
            paths.extend(paths_of(&body).into_iter().filter_map(|path| {
                let import = imports[module].get(&path[0]);
                let is_module = |to: &Module| to.last() == Some(&path[0]);
                match import {
                    // The functions of a module that is imported, not those of a type.
                    Some(of)
                        if this.origin(&imports, module, of, 0).as_ref().is_some_and(is_module) =>
                    {
                        Some([&of[..], &path[1..]].concat())
                    }
                    Some(_) => None,
                    None => Some(path),
                }
            }));
            let mut used = BTreeMap::new();
            for path in paths {
                if let Some(to) = this.origin(&imports, module, &path, 0)
                    && !to.is_empty()
                    && to != *module
                {
                    used.entry(to).or_insert_with(|| path.join("::"));
                }
            }
            this.edges.insert(module.clone(), used);
        }
        this
    }

    /// The module that a path leads to, re-exports followed; `None` where that is of another crate.
    fn origin(
        &self,
        imports: &Imports,
        from: &Module,
        path: &[String],
        depth: usize,
    ) -> Option<Module> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let child = [&from[..], &path[..1]].concat();
        let (mut module, rest) = match &*path[0] {
            _ if depth > 8 => return None,
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.clone(), &path[1..]),
            "super" => (from[..from.len().checked_sub(supers)?].to_vec(), &path[supers..]),
            _ if self.files.contains_key(&child) => (child, &path[1..]),
            _ => return None,
        };
        for (at, name) in rest.iter().enumerate() {
            let child = [&module[..], std::slice::from_ref(name)].concat();
            if self.files.contains_key(&child) {
                module = child;
                continue;
            }
            let export = imports.get(&module).and_then(|all| all.get(name));
            let found = export.and_then(|export| {
                let path = [&export[..], &rest[at + 1..]].concat();
                self.origin(imports, &module, &path, depth + 1)
            });
            return Some(found.unwrap_or(module));
        }
        Some(module)
    }

    /// Circles of more files than are allowed.
    fn circles(&self) -> Vec<Vec<&Module>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.edges.keys().map(|from| (from, self.reached(from))).collect();
        let mut circles = Vec::new();
        let mut seen = BTreeSet::new();
        for (from, to) in &reached {
            if !to.contains(from) || seen.contains(from) {
                continue;
            }
            let circle: Vec<&Module> =
                to.iter().copied().filter(|other| reached[other].contains(from)).collect();
            seen.extend(circle.iter().copied());
            if circle.len() > MAX_CIRCLE {
                circles.push(circle);
            }
        }
        circles
    }

    /// The modules that a module uses, directly or through others.
    fn reached<'s>(&'s self, from: &'s Module) -> BTreeSet<&'s Module> {
        let mut reached = BTreeSet::new();
        let mut work = vec![from];
        while let Some(module) = work.pop() {
            work.extend(self.edges[module].keys().filter(|to| reached.insert(*to)));
        }
        reached
    }

    /// The uses that make a circle, a line a file.
    fn within(&self, circle: &[&Module]) -> Vec<String> {
        let line = |from: &&Module| {
            let to = self.edges[*from].iter().filter(|(to, _)| circle.contains(to));
            let to: Vec<String> =
                to.map(|(to, path)| format!("{} ({path})", self.files[to])).collect();
            format!("    {} -> {}", self.files[*from], to.join(", "))
        };
        circle.iter().map(line).collect()
    }
}

/// A source without comments, texts and tests.
fn code(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        let skipped = match next {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '"' => 1 + end_of_text(&rest[1..]),
            'r' if !code.ends_with(|c: char| c.is_alphanumeric() || c == '_') => raw_text(rest),
            '\'' => character(rest),
            _ => 0,
        };
        if skipped > 0 {
            code.push(' ');
            rest = &rest[skipped..];
        } else {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    let tests = code.match_indices("#[cfg(").find(|(at, _)| {
        let attribute = &code[*at..];
        let end = attribute.find(']').unwrap_or(attribute.len());
        let is_test = attribute[..end].contains("test") && !attribute[..end].contains("not(test");
        let item = attribute[end..].trim_start_matches(']').trim_start();
        is_test && item.starts_with("mod ") && item.find('{') < item.find(';')
    });
    if let Some((at, _)) = tests {
        code.truncate(at);
    }
    code
}

/// Length of a text up to its closing quote.
fn end_of_text(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Length of a raw text; 0 where none begins.
fn raw_text(source: &str) -> usize {
    let hashes = source[1..].bytes().take_while(|&byte| byte == b'#').count();
    if !source[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = hashes + 2;
    source[begin..].find(&end).map_or(source.len(), |at| begin + at + end.len())
}

/// Length of a character in quotes; 0 for a lifetime.
fn character(source: &str) -> usize {
    let mut inner = source[1..].char_indices();
    match inner.next() {
        Some((_, '\\')) => {
            let closing = source[3..].find('\'');
            closing.map_or(0, |at| 3 + at + 1)
        }
        Some(_) => match inner.next() {
            Some((at, '\'')) => 1 + at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Trees of the imports, each with whether it is an export.
fn statements(code: &str) -> Vec<(bool, &str)> {
    let mut found = Vec::new();
    for (at, begin) in code.match_indices("use ") {
        let before = code[..at].trim_end_matches(' ');
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some(end) = code[at..].find(';') else { continue };
        let is_export = before.ends_with("pub") || before.ends_with(')');
        found.push((is_export, &code[at + begin.len()..at + end]));
    }
    found
}

/// The paths of a tree of imports, each with the name that it has here; none for `*`.
fn expand(tree: &str) -> Vec<(Vec<String>, Option<String>)> {
    fn add(tree: &str, prefix: &[String], found: &mut Vec<(Vec<String>, Option<String>)>) {
        let tree = tree.trim();
        if tree.is_empty() {
            return;
        }
        let (head, group) =
            tree.split_once('{').map_or((tree, None), |(head, group)| (head, Some(group)));
        let mut names = head.split("::").map(str::trim).filter(|name| !name.is_empty());
        let mut path = prefix.to_vec();
        let Some(group) = group else {
            let mut alias = None;
            for name in names {
                let (name, other) =
                    name.split_once(" as ").map_or((name, None), |(a, b)| (a, Some(b)));
                alias = Some(other.unwrap_or(name).trim().to_owned());
                path.push(name.trim().to_owned());
            }
            if path.len() > 1
                && path.pop_if(|last| last == "self").is_some()
                && alias.as_deref() == Some("self")
            {
                alias = path.last().cloned();
            }
            path.pop_if(|last| last == "*");
            found.push((path, alias.filter(|alias| alias != "*")));
            return;
        };
        path.extend(names.by_ref().map(str::to_owned));
        let (mut open, mut begin) = (0, 0);
        for (at, byte) in group.bytes().enumerate() {
            match byte {
                b'{' => open += 1,
                b'}' if open > 0 => open -= 1,
                b',' | b'}' if open == 0 => {
                    add(&group[begin..at], &path, found);
                    begin = at + 1;
                    if byte == b'}' {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    add(tree, &[], &mut found);
    found
}

/// Paths of at least two names that begin with a small letter, as those of modules do.
fn paths_of(body: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in body.match_indices("::") {
        let begin = body[..at].rfind(|c| !is_name(c)).map_or(0, |at| at + 1);
        let is_first = begin < at && !body[..begin].ends_with("::");
        if !is_first || !body[begin..].starts_with(|c: char| c.is_lowercase() || c == '_') {
            continue;
        }
        let end =
            body[begin..].find(|c| !is_name(c) && c != ':').map_or(body.len(), |end| begin + end);
        let names = body[begin..end].split("::").take_while(|name| !name.is_empty());
        let path: Vec<String> = names.map(|name| name.trim_end_matches(':').to_owned()).collect();
        if path.len() > 1 {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_found_through_imports_paths_and_exports() {
        let sources = [
            ("lib.rs", "mod a;\nmod b;\npub use b::Made;\n"),
            (
                "a.rs",
                "use crate::Made;\n// use crate::b::d::Deep;\nfn f() { \"crate::b::c::x()\" }",
            ),
            ("b/mod.rs", "mod c;\npub mod d;\npub use c::Made;\nuse d::Deep;\nuse crate::a;\n"),
            (
                "b/c.rs",
                "use super::{self as b, d::{Deep, Other}};\nfn f() { b::f(); crate::a::f() }",
            ),
            ("b/d.rs", "#[cfg(test)]\nmod tests { use crate::a; }\n"),
        ];
        let sources = sources.map(|(file, text)| (file.to_owned(), text.to_owned()));
        let uses = Uses::find(sources.into_iter());
        let shown = |module: &Module| uses.files[module].clone();
        let edges: Vec<(String, Vec<String>)> = uses
            .edges
            .iter()
            .map(|(from, to)| (shown(from), to.keys().map(shown).collect()))
            .filter(|(_, to): &(_, Vec<_>)| !to.is_empty())
            .collect();
        let of = |from: &str, to: &[&str]| {
            (from.to_owned(), to.iter().map(|to| (*to).to_owned()).collect())
        };
        assert_eq!(
            edges,
            [
                of("a.rs", &["b/c.rs"]),
                of("b/mod.rs", &["a.rs", "b/d.rs"]),
                of("b/c.rs", &["a.rs", "b/mod.rs", "b/d.rs"]),
            ]
        );
        assert!(uses.circles().is_empty(), "of three files");
    }
}
