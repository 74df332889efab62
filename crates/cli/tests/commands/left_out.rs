//! Features: `--version` lists them, and what a build leaves out is an error that names its
//! feature.

use crate::command::run;

#[test]
fn the_version_lists_the_features() {
    let version = run(&["--version"]);
    let (with, without) = version.split_once("; without ").unwrap_or((&version, ""));
    assert!(
        with.starts_with(concat!("palmette ", env!("CARGO_PKG_VERSION"), " (with ")),
        "{version}"
    );
    for (name, is_in) in [
        ("bench", cfg!(feature = "bench")),
        ("demo", cfg!(feature = "demo")),
        ("encodings", cfg!(feature = "encodings")),
        ("hf-tokenizers", cfg!(feature = "hf-tokenizers")),
        ("otel", cfg!(feature = "otel")),
        ("postgres", cfg!(feature = "postgres")),
        ("server", cfg!(feature = "server")),
        ("tables", cfg!(feature = "tables")),
    ] {
        assert_eq!([with.contains(name), without.contains(name)], [is_in, !is_in], "{version}");
    }
}

#[cfg(not(feature = "tables"))]
#[test]
fn tables_are_told_and_refused() {
    use crate::command::{check_refused, write};
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.palm");
    let out = out.to_str().unwrap();
    let words = ["this build reads no Parquet or Arrow", "--features tables"];
    for (name, text) in [("items.parquet", "PAR1"), ("items.feather", ""), ("items.csv", "ARROW1")]
    {
        let items = write(dir.path(), name, text);
        check_refused(&["catalog", "build", &items, "--out", out], &[&words[..], &[name]].concat());
    }
    let items = write(dir.path(), "items", "");
    let args = ["catalog", "build", &items, "--out", out, "--format", "parquet"];
    check_refused(&args, &words);
}

#[cfg(not(feature = "bench"))]
#[test]
fn benches_are_refused() {
    use crate::command::check_refused;
    let words = ["this build measures nothing", "--features bench"];
    check_refused(&["bench", "catalog", "--items", "5", "--json"], &words);
    check_refused(&["bench"], &words);
    assert!(run(&["--help"]).contains("not in this build"));
}

#[cfg(not(feature = "bench"))]
#[test]
fn rows_of_a_mask_store_are_refused() {
    use crate::command::{check_refused, write};
    let dir = tempfile::tempdir().unwrap();
    let grammar = write(dir.path(), "sum.lark", "start: /[0-9]+/");
    let words = ["this build has no mask store", "--features bench"];
    check_refused(&["grammar", "stats", &grammar, "--vocab", "pieces.json", "--store"], &words);
}

#[cfg(not(feature = "demo"))]
#[test]
fn the_demo_is_refused() {
    use crate::command::check_refused;
    check_refused(&["demo", "-k", "3"], &["this build has no built-in shop", "--features demo"]);
}

#[cfg(not(feature = "server"))]
#[test]
fn load_tests_are_refused() {
    use crate::command::check_refused;
    let words = ["this build puts no load on servers", "--features server"];
    check_refused(&["loadtest", "--url", "http://127.0.0.1:1", "--json"], &words);
    check_refused(&["loadtest"], &words);
}

#[cfg(not(feature = "encodings"))]
#[test]
fn encodings_are_refused() {
    use crate::command::{check_refused, write};
    let dir = tempfile::tempdir().unwrap();
    let grammar = write(dir.path(), "sum.lark", "start: /[0-9]+/");
    let mask = |vocab| ["grammar", "mask", &grammar, "--vocab", vocab].map(str::to_owned);
    let refused = |vocab, words: &[&str]| {
        check_refused(&mask(vocab).each_ref().map(String::as_str), words);
    };
    refused(
        "o200k_base",
        &["o200k_base", "this build carries no encodings", "--features encodings"],
    );
    refused("no_such_base", &["no_such_base", "none in this build"]);
}
