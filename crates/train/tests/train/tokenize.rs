//! `palmette-train tokenize` as people run it, up to a catalog of what it wrote.

use std::fs;
use std::process::{Command, Output};

use npyz::WriterBuilder;
use palmette_catalog::readers::{Format, parse_items};
use tempfile::TempDir;

const NUM_ITEMS: usize = 120;

/// Twelve groups of ten vectors that lie close together, and their names.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let spread = |at: usize| ((at * 7919) % 101) as f32 / 1010.0;
    let value = |item: usize, column: usize| {
        let corner = if (item / 10) >> column & 1 == 1 { 1.0 } else { -1.0 };
        corner + spread(item * 4 + column)
    };
    let values: Vec<f32> = (0..NUM_ITEMS * 4).map(|at| value(at / 4, at % 4)).collect();
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(&[NUM_ITEMS as u64, 4]);
    let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values).unwrap();
    writer.finish().unwrap();
    fs::write(folder.path().join("items.npy"), bytes).unwrap();
    let names: Vec<String> = (0..NUM_ITEMS).map(|item| format!("item \"{item}\"")).collect();
    fs::write(folder.path().join("names.txt"), names.join("\n")).unwrap();
    folder
}

fn run(folder: &TempDir, arguments: &[&str]) -> Output {
    let usual = ["tokenize", "--embeddings=items.npy", "--items=names.txt", "--codes=12"];
    Command::new(env!("CARGO_BIN_EXE_palmette-train"))
        .current_dir(folder.path())
        .args(usual)
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn ids(folder: &TempDir, arguments: &[&str]) -> Vec<Vec<u32>> {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read(folder.path().join("out.json")).unwrap();
    let source = parse_items("out.json", &*text, Format::IndexJson).unwrap();
    let names: Vec<String> = source.items.iter().map(|item| item.id.clone()).collect();
    let wanted: Vec<String> = (0..NUM_ITEMS).map(|item| format!("item \"{item}\"")).collect();
    assert_eq!(names, wanted);
    source.items.into_iter().map(|item| item.codes).collect()
}

fn num_distinct(ids: &[Vec<u32>]) -> usize {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

#[test]
fn groups_share_their_first_code_and_no_two_items_all() {
    let folder = folder();
    let found = ids(&folder, &["--out=out.json", "--levels=2"]);
    for group in found.chunks(10) {
        assert!(group.iter().all(|id| id[0] == group[0][0]), "{group:?}");
    }
    assert_eq!(num_distinct(&found), NUM_ITEMS);
    let one_thread = ids(&folder, &["--out=out.json", "--levels=2", "--overwrite", "--threads=1"]);
    assert_eq!(one_thread, found);
    let appended = ["--out=out.json", "--overwrite", "--levels=1", "--collisions=append"];
    let appended = ids(&folder, &appended);
    assert_eq!((appended[0].len(), num_distinct(&appended)), (2, NUM_ITEMS));
    let kept = ids(&folder, &["--out=out.json", "--overwrite", "--levels=1", "--collisions=keep"]);
    assert_eq!(num_distinct(&kept), 12);
}

#[test]
fn kept_codebooks_give_the_same_ids() {
    let folder = folder();
    let fit = [
        "--out=out.json",
        "--levels=2",
        "--method=rq-vae",
        "--hidden=8",
        "--latent=3",
        "--steps=60",
        "--normalize",
        "--save=kept.safetensors",
        "--collisions=keep",
        "--json",
    ];
    let found = ids(&folder, &fit);
    fs::remove_file(folder.path().join("out.json")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_palmette-train"))
        .current_dir(folder.path())
        .args(["tokenize", "--embeddings=items.npy", "--items=names.txt", "--out=out.json"])
        .args(["--tokenizer=kept.safetensors", "--collisions=keep", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["quality"]["items"], NUM_ITEMS);
    assert_eq!(document["quality"]["levels"].as_array().unwrap().len(), 2);
    let text = fs::read(folder.path().join("out.json")).unwrap();
    let again = parse_items("out.json", &*text, Format::IndexJson).unwrap();
    assert!(again.items.iter().map(|item| &item.codes).eq(&found));
}

#[test]
fn nothing_is_overwritten_unasked_and_errors_say_what_to_do() {
    let folder = folder();
    fs::write(folder.path().join("there.json"), "mine").unwrap();
    let error = |arguments: &[&str]| {
        let output = run(&folder, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(error(&["--out=there.json"]).contains("--overwrite"));
    assert!(error(&["--out=x.json", "--save=there.json"]).contains("--overwrite"));
    assert_eq!(fs::read(folder.path().join("there.json")).unwrap(), b"mine");
    assert!(error(&["--out=x.json", "--levels=0"]).contains("levels"));
    assert!(error(&["--out=x.json", "--learning-rate=-1"]).contains("--learning-rate is -1"));
    assert!(error(&["--out=x.json", "--tokenizer=none", "--levels=2"]).contains("--levels"));
    assert!(error(&["--out=x.json", "--levels=1"]).contains("append a code"));
    assert!(!folder.path().join("x.json").exists());
}
