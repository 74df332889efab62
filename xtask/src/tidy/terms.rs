//! Terms of the page about masks: each row of its last table names what the files after it hold.

use std::path::Path;

use super::Tree;
use super::tree::has_ending;

/// Checks `docs/how-masks-work.md`.
pub(super) fn faults(tree: &Tree) -> Vec<String> {
    let page = tree.text(Path::new("docs/how-masks-work.md"));
    let table = page.split("## Terms and code").nth(1).expect("its table of terms");
    let (mut faults, mut num_names) = (Vec::new(), 0);
    for row in table.lines().filter(|line| line.starts_with("| ")) {
        let mut names = Vec::new();
        for code in row.split('`').skip(1).step_by(2) {
            if !code.contains('/') {
                names.extend(code.split("::"));
                continue;
            }
            let (krate, within) = code.split_once('/').expect("it has one");
            let path = tree.folder(krate).join(within);
            let files = tree.files().iter().filter(|file| file.starts_with(&path));
            let text: String =
                files.filter(|file| has_ending(file, "rs")).map(|file| tree.text(file)).collect();
            num_names += names.len();
            let absent = names.drain(..).filter(|name| !text.contains(name));
            faults.extend(absent.map(|name| format!("no `{name}` in {code}")));
        }
    }
    assert!(num_names > 20, "only {num_names} names were found");
    faults
}
