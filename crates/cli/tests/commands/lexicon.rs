//! `palmette lexicon` as a user types it.

use serde_json::json;

use crate::command::{check_refused, palmette, palmette_with_input, run, run_json, write};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self, name: &str, text: &str) -> String {
        write(self.0.path(), name, text)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("UTF-8").to_owned()
    }
}

#[test]
fn lists_become_lexicons_that_tell_what_is_in_them() {
    let files = Folder::new();
    let list = files.file("companies.txt", "\u{feff}Zeta\r\nAcme Tools\r\n\r\nAcme Toys\r\nZeta");
    let out = files.path("companies.palm");
    let said = run(&["lexicon", "build", &list, "--out", &out]);
    assert!(said.starts_with("3 values; 1 came again; 1 lines have none\n"), "{said}");
    let report = run_json(&["lexicon", "info", &out]);
    assert_eq!(
        [&report["values"], &report["first"], &report["last"], &report["text_bytes"]],
        [&json!(3), &json!("Acme Tools"), &json!("Zeta"), &json!(23)]
    );
    assert!(run(&["lexicon", "info", &out]).contains("last    Zeta"));

    let said = run(&["lexicon", "check", &out, "--value", "Zeta", "--prefix", "Acme "]);
    let expected = format!(
        "{out}: sound, 3 values\n\"Zeta\" is a value\n\
         \"Acme \" begins 2 values: \"Acme Tools\", \"Acme Toys\""
    );
    assert_eq!(said.trim_end(), expected);
    let missing = palmette(&["lexicon", "check", &out, "--value", "Acme Tols"]);
    let said = String::from_utf8(missing.stdout).expect("UTF-8");
    assert!(!missing.status.success());
    assert!(
        said.contains("\"Acme Tols\" is no value; the nearest are \"Acme Tools\", \"Acme Toys\""),
        "{said}"
    );

    // Objects, standard input, and files in any order.
    let objects = files.file(
        "items.jsonl",
        "{\"title\": \"Tent\", \"n\": 7}\n\n{\"title\": [\"Mat\", 12]}\n{\"other\": 1}\n",
    );
    let report = run_json(&["lexicon", "build", &objects, "--field", "title", "--out", &out]);
    assert_eq!((&report["values"], &report["lines_without"]), (&json!(3), &json!(2)));
    let piped = palmette_with_input(&["lexicon", "build", "-", "--out", &out], "b\na\n");
    assert!(piped.status.success());
    assert_eq!(run_json(&["lexicon", "info", &out])["first"], "a");
}

#[test]
fn bad_lists_are_errors_that_name_the_line() {
    let files = Folder::new();
    let out = files.path("out.palm");
    let refused = |text: &[u8], more: &[&str], words: &[&str]| {
        let list = files.path("list.txt");
        std::fs::write(&list, text).expect("a file");
        check_refused(&[&["lexicon", "build", &list, "--out", &out], more].concat(), words);
        assert!(!std::path::Path::new(&out).exists());
    };
    refused(b"a\nb\xFF\n", &[], &["list.txt, line 2", "UTF-8"]);
    let long = [b"a\n", &[b'x'; (1 << 16) + 1][..], b"\nb\n"].concat();
    refused(&long, &[], &["list.txt, line 2", "longer than the limit of 65,536 bytes"]);
    refused(b"a\n", &["--field", "title"], &["line 1", "no JSON object", "--field"]);
    refused(b"{\"title\": {}}\n", &["--field", "title"], &["line 1", "\"title\" is {}"]);
    refused(b"{\"name\": \"a\"}\n", &["--field", "title"], &["no line has a value in \"title\""]);
    let longest = [&[b'x'; 1 << 16][..], b"\n"].concat();
    let list = files.path("list.txt");
    std::fs::write(&list, longest).expect("a file");
    run(&["lexicon", "build", &list, "--out", &out]);
    std::fs::write(&list, b"").expect("a file");
    check_refused(&["lexicon", "build", &list, "--out", &out], &["--allow-empty"]);
    check_refused(&["lexicon", "build", &out, "--out", &out], &["would be lost"]);
    check_refused(&["lexicon", "info", &list], &["is not a lexicon file", "PALMLEX"]);
    let mut bytes = std::fs::read(&out).expect("a file");
    *bytes.last_mut().expect("bytes") ^= 1;
    std::fs::write(&out, bytes).expect("a file");
    check_refused(&["lexicon", "check", &out], &["out.palm", "damaged"]);
}
