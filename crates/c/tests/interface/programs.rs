//! Programs in C and C++, compiled and run against the library as it was built.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder in which this test and the libraries of the crate were built.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Libraries of the system that a static library of Rust needs, as `rustc --print
/// native-static-libs` names them on Linux.
const SYSTEM: [&str; 4] = ["-lgcc_s", "-lpthread", "-ldl", "-lm"];

/// Compiles a program; `None` where there is no compiler.
fn compile(
    compiler: (&str, &str),
    source: &str,
    library: &[&str],
) -> Option<(tempfile::TempDir, PathBuf)> {
    let (variable, usual) = compiler;
    let compiler = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let (folder, crate_folder) =
        (tempfile::tempdir().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")));
    let program = folder.path().join("program");
    let mut command = Command::new(&compiler);
    command.args(if variable == "CXX" { &["-std=c++17"][..] } else { &["-std=c11"] });
    command.args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(crate_folder.join("include"));
    command.arg(crate_folder.join(source)).arg("-o").arg(&program).args(library).args(SYSTEM);
    match command.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{compiler} {source}: {said}");
            Some((folder, program))
        }
        Err(error) => {
            eprintln!("SKIPPED {source}: {compiler} cannot be run: {error}");
            None
        }
    }
}

fn run(program: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).env("LD_LIBRARY_PATH", built()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {:?} {said}", program.display(), output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Both libraries, as a linker takes them.
fn libraries() -> [Vec<String>; 2] {
    let (file, folder) = (built().join("libpalmette_c.a"), built());
    [
        vec![file.display().to_string()],
        vec![format!("-L{}", folder.display()), "-lpalmette_c".to_owned()],
    ]
}

/// Runs a program with either library, where there is a compiler.
fn check(compiler: (&str, &str), source: &str, arguments: &[&str], says: impl Fn(&str) -> bool) {
    for library in libraries() {
        let library: Vec<&str> = library.iter().map(String::as_str).collect();
        if let Some((_folder, program)) = compile(compiler, source, &library) {
            let said = run(&program, arguments);
            assert!(says(&said), "{source} says {said:?}");
        }
    }
}

const C: (&str, &str) = ("CC", "cc");
const CPP: (&str, &str) = ("CXX", "c++");

#[cfg(target_os = "linux")]
#[test]
fn every_handle_is_made_used_and_freed_in_c() {
    check(C, "tests/smoke.c", &[], |said| said == "masks from C are as they should be\n");
}

#[cfg(all(target_os = "linux", feature = "llguidance"))]
#[test]
fn a_program_for_llguidance_runs() {
    let says = "masks by the names of llguidance are as they should be\n";
    check(C, "tests/llguidance.c", &[], |said| said == says);
}

#[cfg(target_os = "linux")]
#[test]
fn examples_run() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.json");
    std::fs::write(&tokens, r#"["\"", "r", "e", "d", "green", "</s>"]"#).unwrap();
    let schema = r#"{"enum": ["red", "green"]}"#;
    let arguments = [tokens.to_str().unwrap(), schema, "8"];
    let is_member = |said: &str| ["\"red\"\n", "\"green\"\n"].contains(&said);
    check(C, "examples/mask.c", &arguments, is_member);
    let rows = "row 0 may begin with one of: 7\" \nrow 1 may begin with one of: [\nrow 2 may begin with one of: abcdef\n";
    check(CPP, "examples/mask.cpp", &[], |said| said == rows);
}
