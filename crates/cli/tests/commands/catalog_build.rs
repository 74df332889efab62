//! `palmette catalog build` and `inspect`, from every format and with every option.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt16Builder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::command::{check_refused, palmette, run, run_json, write};

/// The same items as a batch and as text.
struct Items {
    ids: Vec<String>,
    codes: Vec<[u16; 3]>,
    brands: Vec<Option<&'static str>>,
    prices: Vec<f64>,
    in_stock: Vec<bool>,
    published: Vec<String>,
}

fn items() -> Items {
    let numbers = 0..100_u16;
    let brand = |n: u16| [Some("Acme"), Some("Zeta, Inc."), None][usize::from(n) % 3];
    Items {
        ids: numbers.clone().map(|n| format!("p{n}")).collect(),
        codes: numbers.clone().map(|n| [n * 7 % 16, n * 5 % 16, n / 4]).collect(),
        brands: numbers.clone().map(brand).collect(),
        prices: numbers.clone().map(|n| f64::from(n) / 4.0).collect(),
        in_stock: numbers.clone().map(|n| n % 5 != 0).collect(),
        published: numbers.map(|n| format!("2026-01-{:02}", 1 + n % 28)).collect(),
    }
}

impl Items {
    fn batch(&self) -> RecordBatch {
        let mut codes = ListBuilder::new(UInt16Builder::new());
        for id in &self.codes {
            codes.append_value(id.iter().map(|&code| Some(code)));
        }
        RecordBatch::try_from_iter_with_nullable([
            ("item_id", Arc::new(StringArray::from(self.ids.clone())) as ArrayRef, true),
            ("codes", Arc::new(codes.finish()), true),
            ("brand", Arc::new(StringArray::from(self.brands.clone())), true),
            ("price", Arc::new(Float64Array::from(self.prices.clone())), true),
            ("in_stock", Arc::new(BooleanArray::from(self.in_stock.clone())), true),
            ("published", Arc::new(StringArray::from(self.published.clone())), true),
        ])
        .unwrap()
    }

    fn parquet(&self) -> Vec<u8> {
        let batch = self.batch();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn arrow_file(&self) -> Vec<u8> {
        let batch = self.batch();
        let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    }

    fn arrow_stream(&self) -> Vec<u8> {
        let batch = self.batch();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    }

    fn json_lines(&self) -> String {
        let line = |at: usize| {
            let mut line = json!({"item_id": self.ids[at], "codes": self.codes[at]});
            if let Some(brand) = self.brands[at] {
                line["brand"] = brand.into();
            }
            line["price"] = self.prices[at].into();
            line["in_stock"] = self.in_stock[at].into();
            line["published"] = self.published[at].clone().into();
            line.to_string() + "\n"
        };
        (0..self.ids.len()).map(line).collect()
    }

    fn csv(&self) -> String {
        let line = |at: usize| {
            let [a, b, c] = self.codes[at];
            let brand = self.brands[at].map_or(String::new(), |brand| format!("\"{brand}\""));
            let (id, price) = (&self.ids[at], self.prices[at]);
            let (in_stock, published) = (self.in_stock[at], &self.published[at]);
            // As JSON writes it: 0.0, which is no integer.
            format!("{id},{a} {b} {c},{brand},{price:?},{in_stock},{published}\n")
        };
        let lines: String = (0..self.ids.len()).map(line).collect();
        format!("item_id,codes,brand,price,in_stock,published\n{lines}")
    }
}

fn build(items: &str, out: &Path, options: &[&str]) -> Value {
    let args = ["catalog", "build", items, "--out", out.to_str().unwrap()];
    run_json(&[&args, options].concat())
}

fn column<'a>(stats: &'a Value, name: &str) -> &'a Value {
    let columns = stats["columns"].as_array().unwrap();
    columns.iter().find(|column| column["name"] == name).expect("the attribute")
}

#[test]
fn every_format_makes_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let items = items();
    let files: [(&str, Vec<u8>); 5] = [
        ("items.jsonl", items.json_lines().into()),
        ("items.csv", items.csv().into()),
        ("items.parquet", items.parquet()),
        ("items.arrow", items.arrow_file()),
        ("stream.arrow", items.arrow_stream()),
    ];
    let out = dir.path().join("out.palm");
    let mut expected = None;
    for (name, bytes) in &files {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let built = build(path.to_str().unwrap(), &out, &[]);
        assert_eq!(built["stats"]["num_items"], 100, "{name}");
        let written = fs::read(&out).unwrap();
        assert_eq!(built["file_bytes"], written.len(), "{name}");
        let expected = expected.get_or_insert_with(|| written.clone());
        assert!(*expected == written, "{name} makes another catalog");
    }
    // A table is known by its first bytes, and by --format.
    let nameless = dir.path().join("items");
    fs::write(&nameless, items.parquet()).unwrap();
    build(nameless.to_str().unwrap(), &out, &[]);
    assert!(expected == Some(fs::read(&out).unwrap()));
    fs::write(&nameless, items.csv()).unwrap();
    build(nameless.to_str().unwrap(), &out, &["--format", "csv"]);
    assert!(expected == Some(fs::read(&out).unwrap()));

    let out = out.to_str().unwrap();
    let item = run_json(&["catalog", "inspect", out, "--item", "p7"]);
    assert_eq!(item["codes"], json!([1, 3, 1]));
    let attributes = json!({
        "brand": "Zeta, Inc.", "price": 1.75, "in_stock": true, "published": "2026-01-08"
    });
    assert_eq!(item["attributes"], attributes);
}

#[test]
fn columns_of_a_kind_are_kept_and_filtered_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", &items().csv());
    let out = dir.path().join("out.palm");
    let kinds = |stats: &Value| {
        ["brand", "price", "published"].map(|name| column(stats, name)["kind"].clone())
    };
    let built = build(&items, &out, &[]);
    assert_eq!(kinds(&built["stats"]), ["keyword", "number", "keyword"]);
    let options = ["--column", "published=timestamp", "--column", "brand=json"];
    let built = build(&items, &out, &options);
    assert_eq!(kinds(&built["stats"]), ["json", "number", "timestamp"]);

    let out = out.to_str().unwrap();
    let january = r#"{"must": {"range": {"published": {"lt": "2026-01-03T00:00:00Z"}}}}"#;
    // Days 1 and 2 come round every 28 items: 0, 28, 56, 84 and the ones after.
    assert_eq!(run_json(&["catalog", "filter", out, january])["matching"], 8);
    let brand = r#"{"must": {"match": {"brand": "Acme"}}}"#;
    // Declared json, each value is compared by its own kind.
    assert_eq!(run_json(&["catalog", "filter", out, brand])["matching"], 34);
}

#[test]
fn inspect_shows_levels_and_attributes() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", &items().csv());
    let out = dir.path().join("out.palm");
    let built = build(&items, &out, &["--codes-per-level", "16,16,32"]);
    let out = out.to_str().unwrap();
    let stats = run_json(&["catalog", "inspect", out]);
    assert_eq!(stats, built["stats"]);
    let levels = stats["levels"].as_array().unwrap();
    let field = |name: &str| levels.iter().map(|level| level[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("codebook_size"), [16, 16, 32]);
    assert_eq!(field("codes_used"), [16, 16, 25]);
    // The second code follows from the first.
    assert_eq!(field("num_prefixes"), [16, 16, 100]);
    let brand = column(&stats, "brand");
    assert_eq!((&brand["num_distinct"], &brand["num_missing"]), (&2.into(), &33.into()));

    let text = run(&["catalog", "inspect", out]);
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).expect("a line");
    assert!(line("1 ").split_whitespace().take(4).eq(["1", "16", "16", "16"]), "{text}");
    assert!(line("brand").split_whitespace().take(4).eq(["brand", "keyword", "2", "33"]), "{text}");
    assert!(text.starts_with("100 items, 100 semantic IDs\n") && text.contains("index "), "{text}");
}

#[test]
fn dense_levels_are_as_asked_and_change_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", &items().csv());
    let out = dir.path().join("out.palm");
    let path = out.to_str().unwrap();
    let mut answers = Vec::new();
    for dense in 0..=3 {
        let built = build(&items, &out, &["--dense", &dense.to_string()]);
        let levels = built["stats"]["levels"].as_array().unwrap();
        let forms: Vec<bool> = levels.iter().map(|level| level["form"] == "dense").collect();
        assert_eq!(forms, [0, 1, 2].map(|level| level < dense), "--dense {dense}");
        let cheap = r#"{"must": {"range": {"price": {"lt": 2}}}}"#;
        answers.push((
            run(&["catalog", "inspect", path, "--prefix", "", "--json"]),
            run(&["catalog", "inspect", path, "--prefix", "1,3", "--json"]),
            run_json(&["catalog", "filter", path, cheap])["first"].clone(),
        ));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1);
    let args = ["catalog", "build", &items, "--out", path, "--dense", "4"];
    check_refused(&args, &["--dense", "4 dense levels", "at most 3"]);
}

#[test]
fn threads_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", &items().csv());
    let out = dir.path().join("out.palm");
    let built = |threads: &str| {
        build(&items, &out, &["--threads", threads]);
        fs::read(&out).unwrap()
    };
    assert!(built("1") == built("5"));
    let args = ["catalog", "build", &items, "--out", "x.palm", "--threads", "0"];
    check_refused(&args, &["--threads is 0", "from 1 to 1024"]);
}

#[test]
fn columns_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", &items().csv());
    let out = dir.path().join("out.palm");
    let path = out.to_str().unwrap();
    let check = |columns: &[&str], words: &[&str]| {
        let options = columns.iter().flat_map(|&column| ["--column", column]);
        let args = ["catalog", "build", &items, "--out", path].into_iter().chain(options);
        check_refused(&args.collect::<Vec<_>>(), words);
        assert!(!out.exists(), "a refused build writes nothing");
    };
    check(&["price"], &["--column", "NAME=KIND", "price=number"]);
    check(&["=number"], &["--column", "no attribute is named"]);
    check(&["price=integer"], &["unknown kind \"integer\"", "keyword", "timestamp"]);
    check(&["price=number", "price=keyword"], &["--column", "\"price\"", "declare it once"]);
    let words = [
        "items.csv",
        "line 2",
        "\"p0\" cannot be kept: attribute \"brand\" was declared number",
        "\"Acme\"",
    ];
    check(&["brand=number"], &words);

    // A name that no item has may be meant, but is mostly spelled wrong.
    let args = ["catalog", "build", &items, "--out", path, "--column", "pulished=timestamp"];
    let output = palmette(&args);
    assert!(output.status.success());
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("no item has the attribute \"pulished\""), "{notes}");
    assert!(!notes.contains("\"price\""), "{notes}");
}

#[test]
fn tables_of_items_and_of_attributes_keep_their_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let batch = RecordBatch::try_from_iter([
        ("item_id", Arc::new(StringArray::from(vec!["a"])) as ArrayRef),
        ("codes", Arc::new(StringArray::from(vec!["1-2"]))),
        ("since", Arc::new(arrow_array::Date32Array::from(vec![20_000]))),
    ]);
    let batch = batch.unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    fs::write(path("table.parquet"), writer.into_inner().unwrap()).unwrap();
    let ids = write(dir.path(), "ids.json", r#"{"a": [1, 2]}"#);
    let titles = write(dir.path(), "titles.json", r#"{"a": {"title": "Tent"}}"#);
    let (table, out) = (path("table.parquet"), dir.path().join("a.palm"));
    for (items, attributes, options) in
        [(&ids, &table, &["--leave-out", "codes"][..]), (&table, &titles, &[])]
    {
        let options = [&["--attributes", attributes], options].concat();
        let built = build(items, &out, &options);
        assert_eq!(column(&built["stats"], "since")["kind"], "timestamp", "{items}");
        let item = run_json(&["catalog", "inspect", out.to_str().unwrap(), "--item", "a"]);
        assert_eq!(item["attributes"]["since"], "2024-10-04T00:00:00Z");
    }
}

#[test]
fn damaged_tables_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.palm");
    let items = items();
    for (name, bytes) in [("cut.parquet", items.parquet()), ("cut.arrow", items.arrow_file())] {
        let path = dir.path().join(name);
        // Nothing at all would be a file without items.
        for keep in [3, 8, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&path, &bytes[..keep]).unwrap();
            let args = ["catalog", "build", path.to_str().unwrap(), "--out", out.to_str().unwrap()];
            check_refused(&args, &[name]);
            assert!(!out.exists(), "a refused build writes nothing");
        }
    }
    let folder = dir.path().to_str().unwrap();
    let args = ["catalog", "build", folder, "--out", out.to_str().unwrap()];
    check_refused(&args, &[folder, "is a folder"]);
}

#[test]
fn catalog_files_that_are_not_whole_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let items = write(dir.path(), "items.csv", &items().csv());
    let path = dir.path().join("out.palm");
    build(&items, &path, &[]);
    let whole = fs::read(&path).unwrap();
    let check = |bytes: &[u8], words: &[&str]| {
        fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        let words = [&["out.palm", "`palmette catalog build`"][..1], words].concat();
        check_refused(&["catalog", "inspect", path], &words);
        check_refused(&["catalog", "filter", path, "{}"], &words);
    };
    let mut old = whole.clone();
    old[8] = 1;
    check(&old, &["format version 1", "reads version 2", "build the catalog again"]);
    check(&whole[..whole.len() - 1], &["is cut short", "build the catalog again"]);
    check(&whole[..whole.len() / 2], &["is cut short"]);
    check(&whole[..20], &["is cut short"]);
    check(&[], &["not a catalog file"]);
    check(&[whole.as_slice(), b"!"].concat(), &["has grown"]);
    check(items.as_bytes(), &["not a catalog file", "`palmette catalog build`"]);
    for at in (0..whole.len()).step_by(whole.len() / 60).chain([whole.len() - 1]) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        check(&flipped, &[]);
    }
}

/// Feeds a named pipe from a thread, as another program would.
#[cfg(unix)]
fn pipe(path: &Path, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
    let path = path.to_owned();
    std::thread::spawn(move || fs::write(path, bytes).unwrap())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A pipe cannot be opened twice, and is read whole: from a file, a pipe with a name and one
/// without, and standard input come the same catalog.
#[cfg(unix)]
#[test]
fn pipes_are_read_from_their_first_byte() {
    let dir = tempfile::tempdir().unwrap();
    let items = items();
    let info = b"12-3-45\tTitle one\t1\n55-66-77\tTitle two\t2\n".to_vec();
    let index = b"{\"a\": [1, 2], \"b\": [3, 4]}".to_vec();
    let files: [(&str, Vec<u8>); 6] = [
        ("items.jsonl", items.json_lines().into()),
        ("items.csv", items.csv().into()),
        ("items.parquet", items.parquet()),
        ("items.arrow", items.arrow_file()),
        ("info.txt", info),
        ("index.json", index),
    ];
    let out = dir.path().join("out.palm");
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::write(&path, &bytes).unwrap();
        build(path.to_str().unwrap(), &out, &[]);
        let expected = fs::read(&out).unwrap();
        for (fifo, bytes) in [
            (format!("pipe-{name}"), bytes.clone()),
            (format!("{}-pipe", name.replace('.', "-")), bytes.clone()),
            (format!("pipe-{name}.gz"), gzip(&bytes)),
            (format!("{}-gz", name.replace('.', "-")), gzip(&bytes)),
        ] {
            let fifo = dir.path().join(fifo);
            let writer = pipe(&fifo, bytes);
            build(fifo.to_str().unwrap(), &out, &[]);
            writer.join().unwrap();
            assert!(fs::read(&out).unwrap() == expected, "{}", fifo.display());
        }
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_palmette"))
            .args(["catalog", "build", "-", "--out", out.to_str().unwrap()])
            .stdin(fs::File::open(&path).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::read(&out).unwrap() == expected, "{name} from standard input");
    }
}

#[test]
fn several_files_make_one_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| write(dir.path(), name, text);
    let a = file("a.jsonl", "{\"asin\": \"x\", \"c0\": 1, \"c1\": 2, \"price\": 3}\n\n");
    let b = file("b.csv", "c1,c0,asin,price\n5,4,y,low\n");
    let c = file("c.json", "[{\"asin\": \"x\", \"c0\": 1}]");
    let out = dir.path().join("out.palm");
    let out = out.to_str().unwrap();
    let options = ["--id-column", "asin", "--codes-column", "c0,c1", "--out", out];
    fn args<'a>(files: &[&'a str], options: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        [&["catalog", "build"], files, options, more].concat()
    }
    let built = run_json(&args(&[&a, &b], &options, &[]));
    assert_eq!(built["stats"]["num_items"], 2);
    assert_eq!(run_json(&["catalog", "inspect", out, "--item", "y"])["codes"], json!([4, 5]));
    assert_eq!(
        built["conflicts"],
        json!([{"attribute": "price", "file": b, "line": 2, "value": "low", "kind": "text",
            "first_file": a, "first_line": 1, "first_value": 3, "first_kind": "numbers"}])
    );
    check_refused(
        &args(&[&a, &b], &options, &["--strict-columns"]),
        &[&format!(
            "{b}, line 2: attribute \"price\" is \"low\" (text), and 3 (numbers) in {a}, line 1; \
            declare it, --column price=KIND"
        )],
    );
    run_json(&args(&[&a, &b], &options, &["--strict-columns", "--column", "price=json"]));
    check_refused(
        &args(&[&a, &b, &c], &options, &[]),
        &[&format!(
            "{c}, line 1: item \"x\" stands twice, first in {a}, line 1; ids must be unique"
        )],
    );
    let tagged = file("d.jsonl", "{\"asin\": \"z\", \"c0\": \"<a_1>\"}");
    check_refused(
        &args(&[&a, &tagged], &options, &[]),
        &[&format!(
            "{tagged}: codes are spelled <a_number>, and as plain numbers in the files before"
        )],
    );
    check_refused(
        &["catalog", "build", &a, "--out", out],
        &["no field \"item_id\" or \"id\"; the fields are \"asin\"", "--id-column names others"],
    );
    check_refused(
        &["catalog", "build", &a, "--out", out, "--id-column", "asin"],
        &["no field \"codes\"", "--codes-column names others"],
    );
}

#[test]
fn files_of_no_text_are_told_by_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.palm");
    for (name, bytes, message) in [
        ("codes.pt", &b"PK\x03\x04"[..], "write codes with numpy.save"),
        ("items.pkl", b"\x80\x04\x95\0", "a Python pickle"),
        ("items.jsonl", b"\xff\xfe{\0", "UTF-16LE; convert it: iconv -f UTF-16LE"),
        ("items.csv.zst", b"\x28\xb5\x2f\xfd\0\0", "decompress it: zstd -d"),
        ("items.dat", b"1;2;3\n", "say --format"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (path, out) = (path.to_str().unwrap(), out.to_str().unwrap());
        check_refused(&["catalog", "build", path, "--out", out], &[path, message]);
    }
}
