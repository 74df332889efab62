//! The header declares what the sources define, in the same words.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The folder of this crate.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(folder().join(path)).unwrap()
}

/// A function's documentation in one line, and the names of its arguments.
#[derive(Debug, PartialEq, Eq)]
struct Declaration {
    documentation: String,
    arguments: Vec<String>,
}

/// Arguments of a list in brackets: the last word of each in C, the first in Rust.
fn names(list: &str, name: impl Fn(&str) -> String) -> Vec<String> {
    let list = list.trim().trim_end_matches(',');
    let arguments = list.split(',').map(str::trim);
    arguments.filter(|argument| !argument.is_empty() && *argument != "void").map(name).collect()
}

/// Functions of a text: `begins` finds a declaration's name and the rest behind its bracket.
fn declarations(
    text: &str,
    mark: &str,
    begins: impl Fn(&str) -> Option<String>,
    name: impl Fn(&str) -> String + Copy,
) -> BTreeMap<String, Declaration> {
    let (mut found, mut documentation) = (BTreeMap::new(), Vec::new());
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(words) = line.strip_prefix(mark) {
            documentation.push(words.trim());
            continue;
        }
        if let Some(function) = begins(line) {
            let rest = lines[at..].join(" ");
            let list = rest[rest.find('(').unwrap() + 1..].split(')').next().unwrap().to_owned();
            let documentation = documentation.join(" ").replace("  ", " ").trim().to_owned();
            let arguments = names(&list, name);
            found.insert(function, Declaration { documentation, arguments });
        }
        if !line.starts_with("#[") {
            documentation.clear();
        }
    }
    found
}

fn sources(within: &str) -> BTreeMap<String, Declaration> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder().join(within)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let begins = |line: &str| {
            let line = line.strip_prefix("pub ")?;
            let line = line.strip_prefix("unsafe ").unwrap_or(line);
            let line = line.strip_prefix("extern \"C\" fn ")?;
            Some(line[..line.find('(')?].to_owned())
        };
        let name = |argument: &str| argument.split(':').next().unwrap().trim().to_owned();
        all.extend(declarations(&text, "///", begins, name));
    }
    all
}

fn header(file: &str, prefix: &str) -> BTreeMap<String, Declaration> {
    let begins = |line: &str| {
        let name = &line[..line.find('(')?];
        let name = name.rsplit([' ', '*']).next()?;
        (name.starts_with(prefix) && !line.starts_with([' ', '/'])).then(|| name.to_owned())
    };
    let name = |argument: &str| argument.rsplit([' ', '*']).next().unwrap().to_owned();
    declarations(&read(file), "//", begins, name)
}

/// Headers, each with the folder of its sources, what its functions begin with and how it is made.
const HEADERS: [(&str, &str, &str, &[&str]); 2] = [
    ("include/palmette.h", "src", "palmette_", &["cbindgen.toml", "."]),
    ("include/llguidance.h", "src/llg", "llg_", &["cbindgen-llguidance.toml", "src/llg/mod.rs"]),
];

#[test]
fn headers_declare_every_function() {
    for (file, within, prefix, made) in HEADERS {
        let (sources, header) = (sources(within), header(file, prefix));
        assert!(sources.len() > 30, "{} functions", sources.len());
        let (ours, theirs): (Vec<_>, Vec<_>) = (sources.keys().collect(), header.keys().collect());
        assert_eq!(ours, theirs);
        for (name, declaration) in &sources {
            assert!(!declaration.documentation.is_empty(), "{name} has no documentation");
            assert_eq!(
                declaration, &header[name],
                "{name}: make the header again, see {}",
                made[0]
            );
        }
    }
}

/// Statuses and structures have no functions to be compared by: their numbers and members.
#[test]
fn the_header_has_the_numbers_of_statuses() {
    let header = read("include/palmette.h");
    for (name, number) in [
        ("OK", palmette_c::Status::Ok as i32),
        ("INVALID_ARGUMENT", palmette_c::Status::InvalidArgument as i32),
        ("LIMIT_EXCEEDED", palmette_c::Status::LimitExceeded as i32),
        ("NOT_ALLOWED", palmette_c::Status::NotAllowed as i32),
        ("PANIC", palmette_c::Status::Panic as i32),
    ] {
        assert!(header.contains(&format!("PALMETTE_STATUS_{name} = {number},")), "{name}");
    }
}

/// Whole headers, where their generator is at hand.
#[test]
fn headers_are_what_cbindgen_makes() {
    for (file, _, _, made) in HEADERS {
        let mut program = Command::new("cbindgen");
        program.args(["--quiet", "--config"]).args(made).current_dir(folder());
        match program.output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                assert_eq!(String::from_utf8(output.stdout).unwrap(), read(file));
            }
            Err(_) => eprintln!("SKIPPED headers_are_what_cbindgen_makes: there is no cbindgen"),
        }
    }
}
