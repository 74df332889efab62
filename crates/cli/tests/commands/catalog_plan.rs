//! `palmette catalog plan` against catalogs that are built.

use serde_json::Value;

use crate::command::{check_refused, run, run_json, write};

/// Items with every code as likely as any other, as CSV.
fn uniform_items(num_items: u64, sizes: &[u64]) -> String {
    let mut random = 1_u64;
    let mut below = |bound: u64| {
        const STEP: u64 = 6_364_136_223_846_793_005;
        random = random.wrapping_mul(STEP).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 32) * bound) >> 32
    };
    let mut csv = "item_id,codes\n".to_owned();
    for item in 0..num_items {
        let codes: Vec<String> = sizes.iter().map(|&size| below(size).to_string()).collect();
        csv += &format!("{item:08},{}\n", codes.join(" "));
    }
    csv
}

#[track_caller]
fn check(num_items: u64, sizes: &[u64], vocab: &str, options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", &uniform_items(num_items, sizes));
    let out = dir.path().join("out.palm");
    let each: Vec<String> = sizes.iter().map(u64::to_string).collect();
    let args = ["catalog", "build", &items, "--out", out.to_str().unwrap(), "--codes-per-level"];
    let built = run_json(&[&args[..], &[&each.join(",")], options].concat());
    let (items, levels) = (num_items.to_string(), sizes.len().to_string());
    let args = ["catalog", "plan", "--items", &items, "--levels", &levels, "--vocab", vocab];
    let plan = run_json(&[&args, options].concat());

    let number = |value: &Value| value.as_f64().expect("a number");
    let close = |planned: &Value, built: &Value| {
        let (planned, built) = (number(planned), number(built));
        assert!((planned - built).abs() <= 0.02 * built, "planned {planned}, built {built}");
    };
    let stats = &built["stats"];
    close(&plan["index"]["bytes"], &stats["index_bytes"]);
    close(&plan["id_bytes"], &stats["id_bytes"]);
    assert!(number(&plan["index"]["most_bytes"]) >= number(&stats["index_bytes"]));
    // The file has a header, a table and a description too.
    let total = number(&plan["total_bytes"]);
    let file = number(&built["file_bytes"]);
    assert!((total - file).abs() <= 0.02 * file + 4000.0, "planned {total}, a file of {file}");
    let forms = |levels: &Value| -> Vec<Value> {
        levels.as_array().unwrap().iter().map(|level| level["form"].clone()).collect()
    };
    assert_eq!(forms(&plan["index"]["levels"]), forms(&stats["levels"]));
}

#[test]
fn plans_are_what_builds_take() {
    check(40_000, &[256; 4], "256", &[]);
    check(40_000, &[256; 4], "256,256,256,256", &["--dense", "2"]);
    check(40_000, &[1000, 40, 40, 40], "1000,40,40,40", &[]);
    check(20_000, &[64; 5], "64", &["--dense", "0"]);
    check(30_000, &[2048; 8], "2048", &[]);
}

#[test]
fn one_size_stands_for_all() {
    let plan = |vocab: &str, more: &[&str]| {
        let args = ["catalog", "plan", "--items", "1000000", "--levels", "3", "--vocab", vocab];
        run(&[&args, more].concat())
    };
    assert_eq!(plan("500", &["--json"]), plan("500,500,500", &["--json"]));
    assert_ne!(plan("500", &["--json"]), plan("500,500,50", &["--json"]));
    let text = plan("500", &["--id-bytes", "20", "--attribute-bytes", "7"]);
    assert_eq!(text.lines().filter(|line| line.starts_with(['0', '1', '2'])).count(), 3, "{text}");
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).expect("a line");
    assert!(line("attributes").contains("7.0 MB"), "{text}");
    for name in ["index, codes drawn evenly", "ids", "catalog, in memory", "peak of a build"] {
        assert!(line(name).contains("bytes an item"), "{text}");
    }
}

#[test]
fn numbers_of_which_there_is_no_catalog_are_refused() {
    for (args, words) in [
        (&["--vocab", "1,2"][..], &["--vocab has 2 sizes for 3 levels", "one for each"][..]),
        (&["--vocab", "0"], &["size 0"]),
        (&["--vocab", "x"], &["--vocab"]),
        (&["--vocab", ""], &["--vocab"]),
        (&["--levels", "0"], &["0 levels"]),
        (&["--levels", "65"], &["65 levels", "1 to 64"]),
        (&["--items", "0"], &["--items is 0"]),
        (&["--items", "5000000000"], &["5000000000 items", "one catalog holds"]),
        (&["--dense", "4"], &["4 dense levels", "at most 3"]),
        (&["--id-bytes", "9999999999999999999"], &["ids of 9999999999999999999 bytes"]),
        (&["--attribute-bytes", "99999999999"], &["attributes of 99999999999 bytes"]),
    ] {
        let sizes = [("--items", "1000"), ("--levels", "3"), ("--vocab", "100")];
        let missing = sizes.iter().filter(|(name, _)| !args.contains(name));
        let missing = missing.flat_map(|&(name, value)| [name, value]);
        let base = ["catalog", "plan"].into_iter();
        check_refused(&base.chain(missing).chain(args.iter().copied()).collect::<Vec<_>>(), words);
    }
}
