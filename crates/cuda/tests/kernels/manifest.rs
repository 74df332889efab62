//! Machine code that is checked in: it is of the sources that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use palmette_cuda::{Kernel, Module};
use sha2::{Digest, Sha256};

fn sha256(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Headers that a source includes, and those that they include, by name.
fn headers(folder: &Path, source: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut headers = BTreeMap::new();
    let mut open = vec![source.to_vec()];
    while let Some(text) = open.pop() {
        for line in String::from_utf8(text).unwrap().lines() {
            let name = line.strip_prefix("#include \"").and_then(|name| name.strip_suffix('"'));
            let Some(name) = name.filter(|name| name.ends_with(".cuh")) else { continue };
            let text = fs::read(folder.join(name)).unwrap();
            if headers.insert(name.to_owned(), text.clone()).is_none() {
                open.push(text);
            }
        }
    }
    headers
}

#[test]
fn built_kernels_are_those_of_the_sources() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let read = |path: &str| fs::read(kernels.join(path)).unwrap_or_else(|_| panic!("no {path}"));
    let manifest = String::from_utf8(read("built/MANIFEST")).unwrap();
    let mut built = BTreeSet::new();
    for line in manifest.lines().filter(|line| line.starts_with("built ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let (file, target) = (words[1], words[2]);
        let source = read(&format!("{file}.cu"));
        let headers = headers(&kernels, &source);
        let mut parts = vec![&source[..]];
        parts.extend(headers.values().map(|header| &header[..]));
        let source = sha256(&parts);
        assert_eq!(source, words[3], "{file}.cu has changed: run crates/cuda/kernels/build.py");
        assert_eq!(sha256(&[&read(&format!("built/{file}.{target}.zst"))]), words[4], "{line}");
        for kernel in Kernel::ALL.iter().filter(|kernel| kernel.module().name() == file) {
            let registers = format!("{}=", kernel.name());
            let is_machine_code = !target.starts_with("compute");
            let is_there = words.iter().any(|word| word.starts_with(&registers));
            assert_eq!(is_there, is_machine_code, "{registers} {line}");
        }
        built.insert((file.to_owned(), target.to_owned()));
    }
    for module in Module::ALL {
        let targets = match module.is_of_hopper() {
            true => &["sm_90a"][..],
            false => &["sm_80", "sm_90", "sm_120", "compute_80"],
        };
        for &target in targets {
            let entry = (module.name().to_owned(), target.to_owned());
            assert!(built.contains(&entry), "{entry:?} is not built");
        }
    }
    assert_eq!(fs::read_dir(kernels.join("built")).unwrap().count(), built.len() + 1);
}
