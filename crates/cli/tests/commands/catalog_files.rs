//! `palmette catalog` on files as shops and data sets have them: odd lines, cells, attributes, and
//! nothing at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::command::{check_refused, palmette, palmette_with_input, run, run_json, write};

/// A folder with a catalog to be built in it.
struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().expect("UTF-8").to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        write(self.dir.path(), name, text)
    }

    /// Builds `a.palm`; what was said on the error stream.
    #[track_caller]
    fn build(&self, items: &str, options: &[&str]) -> String {
        let out = self.path("a.palm");
        let args = [&["catalog", "build", items, "--out", &out], options].concat();
        let output = palmette(&args);
        let notes = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(output.status.success(), "{args:?}: {notes}");
        notes
    }

    #[track_caller]
    fn check_refused(&self, items: &str, options: &[&str], words: &[&str]) {
        let out = self.path("refused.palm");
        check_refused(&[&["catalog", "build", items, "--out", &out], options].concat(), words);
        assert!(!Path::new(&out).exists());
    }

    #[track_caller]
    fn attributes(&self, id: &str) -> Value {
        run_json(&["catalog", "inspect", &self.path("a.palm"), "--item", id])["attributes"].clone()
    }

    /// The ids of the items that a filter lets through, as they are listed.
    #[track_caller]
    fn filter(&self, catalog: &str, filter: &Value) -> Vec<String> {
        let filter = filter.to_string();
        let found = run_json(&["catalog", "filter", catalog, &filter, "--limit", "100"]);
        let first = found["first"].as_array().expect("items").iter();
        first.map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
    }
}

#[test]
fn nothing_takes_the_place_of_a_catalog_only_when_asked() {
    let folder = Folder::new();
    let items = folder.write("items.csv", "item_id,codes\nA,1-2\n");
    folder.build(&items, &[]);
    let before = fs::read(folder.path("a.palm")).unwrap();
    let out = folder.path("a.palm");
    for (name, text) in
        [("a.jsonl", ""), ("b.csv", "item_id,codes\n"), ("c.json", "{}"), ("d.jsonl", "\n \n")]
    {
        let empty = folder.write(name, text);
        check_refused(
            &["catalog", "build", &empty, "--out", &out],
            &["there are no items", "a.palm would be replaced", "--allow-empty"],
        );
        assert_eq!(fs::read(&out).unwrap(), before, "{name}");
        let fresh = folder.path("fresh.palm");
        let output = palmette(&["catalog", "build", &empty, "--out", &fresh]);
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("there are no items"));
        fs::remove_file(fresh).unwrap();
    }
    let live = folder.path("live");
    run(&["catalog", "live", "init", &live]);
    check_refused(&["catalog", "live", "export", &live, "--out", &out], &["--allow-empty"]);
    assert_eq!(fs::read(&out).unwrap(), before);
    let empty = folder.path("a.jsonl");
    assert!(folder.build(&empty, &["--allow-empty"]).contains("is an empty catalog"));
    run(&["catalog", "live", "export", &live, "--out", &out, "--allow-empty"]);
}

#[test]
fn lines_and_quotes_are_read_as_they_stand() {
    let folder = Folder::new();
    let returns = folder.write("cr.csv", "item_id,codes,title\rA,1-2,x\rB,1-3,y\r");
    folder.build(&returns, &[]);
    assert_eq!(folder.attributes("B"), json!({"title": "y"}));
    let output = palmette_with_input(
        &["catalog", "build", "-", "--out", &folder.path("a.palm")],
        "item_id,codes\rA,1-2\r",
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let text = "item_id\tcodes\ttitle\nA\t1-2\t\"Quoth the raven\nB\t1-3\tlamp\nC\t1-4\tlast\"\n";
    for name in ["q.tsv", "q.txt"] {
        let items = folder.write(name, text);
        folder.build(&items, &[]);
        assert_eq!(folder.attributes("A"), json!({"title": "\"Quoth the raven"}));
        assert_eq!(folder.attributes("C"), json!({"title": "last\""}));
    }
    let quoted =
        folder.write("r.tsv", "\"item_id\"\t\"codes\"\t\"title\"\n\"A\"\t\"1-2\"\t\"a\tb\"\n");
    folder.check_refused(&quoted, &[], &["\"item_id\"", "quoted"]);
    folder.build(&quoted, &["--quotes"]);
    assert_eq!(folder.attributes("A"), json!({"title": "a\tb"}));
}

#[test]
fn cells_are_read_as_they_are_declared() {
    let folder = Folder::new();
    let items = folder.write(
        "items.csv",
        "item_id,codes,zip,sku,flag,price,labels,categories,brand\n\
         A,1-2,90210,12,True,\"1.234,50\",\"{\"\"genre\"\":[\"\"fiction\"\"]}\",computer|science,NA\n\
         B,1-3,01234,AB-12,False,\"0,5\",,science,Acme\n",
    );
    let options = "--column zip=keyword --column sku=keyword --column flag=boolean --column price=number --column labels=json \
        --column categories=keywords --list-separator | --decimal , --thousands . --null NA";
    folder.build(&items, &options.split_whitespace().collect::<Vec<_>>());
    assert_eq!(
        folder.attributes("A"),
        json!({
            "zip": "90210", "sku": "12", "flag": true, "price": 1234.5, "labels": {"genre": ["fiction"]},
            "categories": ["computer", "science"],
        })
    );
    let catalog = folder.path("a.palm");
    for (filter, ids) in [
        (json!({"match": {"zip": "90210"}}), &["A"][..]),
        (json!({"match": {"flag": false}}), &["B"]),
        (json!({"match": {"categories": "science"}}), &["A", "B"]),
        (json!({"match": {"labels.genre": "fiction"}}), &["A"]),
        (json!({"range": {"price": {"lt": 1}}}), &["B"]),
        (json!({"exists": "brand"}), &["B"]),
    ] {
        assert_eq!(folder.filter(&catalog, &filter), ids, "{filter}");
    }
    folder.check_refused(
        &items,
        &["--column", "categories=keywords"],
        &["\"A\"", "computer|science", "--list-separator"],
    );
    folder.check_refused(&items, &["--column", "price=number"], &["1.234,50", "number"]);
    folder.check_refused(&items, &["--decimal", "5"], &["--decimal", "'5'"]);
    folder.check_refused(&items, &["--thousands", "."], &["--thousands", "fraction"]);

    let lines = folder.write(
        "nan.jsonl",
        "{\"id\": \"A\", \"codes\": [1], \"x\": NaN, \"tags\": [\"a\", null]}\n",
    );
    folder.check_refused(&lines, &[], &["NaN is no JSON"]);
    for null in [&["--null", "NaN"][..], &["--null", "NaN", "--null", "null"]] {
        folder.build(&lines, null);
        assert_eq!(folder.attributes("A"), json!({"tags": ["a"]}));
    }
    let lists =
        folder.write("lists.jsonl", "{\"id\": \"A\", \"codes\": [1], \"tags\": [\"a\", null]}\n");
    folder.build(&lists, &["--null", "null"]);
    assert_eq!(folder.attributes("A"), json!({"tags": ["a"]}));
}

#[test]
fn numbers_that_are_hardly_times_are_said() {
    let folder = Folder::new();
    let items =
        folder.write("items.csv", "item_id,codes,at,year\nA,1-2,20180707,2018\nB,1-3,20260101,\n");
    let notes = folder.build(&items, &["--column", "at=timestamp", "--column", "year=timestamp"]);
    assert!(notes.contains("line 2 (item \"A\"): the timestamp \"at\" is \"20180707\""), "{notes}");
    assert!(notes.contains("and 1 more are so"), "{notes}");
    assert!(
        notes.contains("\"year\" is \"2018\", which as seconds since 1970 lies before 1971"),
        "{notes}"
    );
    assert_eq!(folder.attributes("A")["at"], "2018-07-07T00:00:00Z");
    assert_eq!(folder.attributes("A")["year"], "1970-01-01T00:33:38Z");
}

#[test]
fn attributes_are_read_as_items_are() {
    let folder = Folder::new();
    let sids = folder.write("sids.json", r#"{"X": [1, 2], "Y": [1, 3]}"#);
    let lines = "{\"parent_asin\": \"X\", \"title\": \"Tent\", \"images\": [1], \"n\": NaN}\n\
        {\"parent_asin\": \"Z\", \"title\": \"?\"}\n";
    let json_lines = folder.write("meta.jsonl", lines);
    // Objects a line under another name.
    let json = folder.write("meta.json", lines);
    let gz = folder.path("meta.jsonl.gz");
    let mut writer =
        flate2::write::GzEncoder::new(fs::File::create(&gz).unwrap(), Default::default());
    writer.write_all(lines.as_bytes()).unwrap();
    writer.finish().unwrap();
    let csv = folder.write("meta.csv", "parent_asin,title,images\nX,Tent,1\n");
    let tsv = folder.write("meta.tsv", "title\tparent_asin\timages\nTent\tX\t\"\n");
    let options = ["--id-column", "parent_asin", "--leave-out", "images", "--null", "NaN"];
    for attributes in [&json_lines, &json, &gz, &csv, &tsv] {
        let notes = folder.build(&sids, &[&options[..], &["--attributes", attributes]].concat());
        assert!(notes.contains("has nothing on 1 items, such as Y"), "{notes}");
        assert_eq!(folder.attributes("X"), json!({"title": "Tent"}), "{attributes}");
    }
    let out = folder.path("a.palm");
    let args =
        [&["catalog", "build", &sids, "--out", &out, "--attributes", "-"], &options[..]].concat();
    let output = palmette_with_input(&args, lines);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.attributes("X"), json!({"title": "Tent"}));
    // Items and attributes may name their ids otherwise.
    let items = folder.write("items.csv", "item_id,codes\nX,1-2\n");
    folder.build(&items, &[&options[..], &["--attributes", &csv]].concat());
    assert_eq!(folder.attributes("X"), json!({"title": "Tent"}));
    folder.check_refused(
        &sids,
        &["--attributes", &json_lines, "--null", "NaN"],
        &["meta.jsonl, line 1", "--id-column"],
    );
}

#[test]
fn cells_of_tables_are_parted_by_what_is_named() {
    let folder = Folder::new();
    for (name, mark, given) in
        [("a.csv", ';', ";"), ("b.csv", '\t', "tab"), ("c.txt", '|', "|"), ("d", ';', ";")]
    {
        let text = format!("item_id{mark}codes{mark}title\nA{mark}1 2{mark}x, y\n");
        let items = folder.write(name, &text);
        folder.build(&items, &["--separator", given]);
        assert_eq!(folder.attributes("A"), json!({"title": "x, y"}), "{name}");
        let words: &[&str] = match name {
            "d" => &["neither name nor first bytes"],
            _ => &[name, "the first line is one column", "--separator"],
        };
        folder.check_refused(&items, &[], words);
    }
    let sids = folder.write("sids.json", r#"{"A": [1]}"#);
    let more = folder.write("more.csv", "item_id;title\nA;x\n");
    folder.build(&sids, &["--attributes", &more, "--separator", ";"]);
    assert_eq!(folder.attributes("A"), json!({"title": "x"}));
    folder.check_refused(&sids, &["--attributes", &more], &["more.csv, line 1", "--separator"]);
    folder.check_refused(
        &sids,
        &["--separator", ";"],
        &["--separator", "the format is index-json"],
    );
    for wrong in ["ab", "", "\"", "7", "."] {
        folder.check_refused(&sids, &["--separator", wrong], &["is no separator"]);
    }
}

#[test]
fn names_to_leave_out_are_names_of_fields() {
    let folder = Folder::new();
    let sids = folder.write("sids.json", r#"{"A": [1], "B": [2]}"#);
    let more = folder
        .write("more.jsonl", "{\"id\": \"A\", \"title\": 1, \"image\": 2}\n{\"id\": \"B\"}\n");
    let lines =
        folder.write("a.jsonl", "{\"id\": \"A\", \"codes\": [1], \"title\": 1, \"image\": 2}\n");
    let table = folder.write("a.csv", "item_id,codes,title,image\nA,1,1,\n");
    let map = folder.write("map.json", r#"{"1": [{"pid": "A", "title": 1, "image": 2}]}"#);
    for (items, options) in [
        (&sids, &["--attributes", &more][..]),
        (&lines, &[]),
        (&table, &[]),
        (&map, &["--format", "inverse-json"]),
    ] {
        folder.build(items, &[options, &["--leave-out", "image"]].concat());
        assert_eq!(folder.attributes("A"), json!({"title": 1}), "{items}");
        let wrong = [options, &["--leave-out", "image,titel"]].concat();
        folder.check_refused(items, &wrong, &["\"titel\""]);
    }
    folder.check_refused(
        &lines,
        &["--leave-out", "titel"],
        &["--leave-out: no item has a field \"titel\" (did you mean \"title\"?)", "title, image"],
    );
}

#[test]
fn lists_in_cells_are_read_as_programs_print_them() {
    let folder = Folder::new();
    let text = "item_id;codes;tags\nA;1;['a', \"b's\"]\nB;2;['a' 'c']\nC;3;[\"a\"]\nD;4;('d',)\n";
    let items = folder.write("items.csv", text);
    for options in [&[][..], &["--list-separator", ","]] {
        let options = [&["--separator", ";", "--column", "tags=keywords"], options].concat();
        folder.build(&items, &options);
        assert_eq!(folder.attributes("A"), json!({"tags": ["a", "b's"]}));
        let with_a = folder.filter(&folder.path("a.palm"), &json!({"match": {"tags": "a"}}));
        assert_eq!(with_a, ["A", "B", "C"]);
    }
    for (cell, word) in [("['a' ... 'z']", "cut off"), ("{a,b}", "braces"), ("[a, b]", "JSON")] {
        let items = folder.write("bad.csv", &format!("item_id;codes;tags\nA;1;{cell}\n"));
        let options = ["--separator", ";", "--column", "tags=keywords", "--list-separator", ","];
        folder.check_refused(&items, &options, &["line 2", "\"tags\"", word]);
    }
}

#[test]
fn nothing_within_an_item_is_lost() {
    let folder = Folder::new();
    let lines =
        folder.write("a.jsonl", "{\"id\": \"A\", \"codes\": [1], \"v\": [{\"x\": 1, \"x\": 2}]}\n");
    folder.check_refused(&lines, &[], &["line 1", "\"x\" appears twice"]);
    let map = folder.write("map.json", r#"{"1": {"A": 3, "A": 4}}"#);
    folder.check_refused(&map, &["--format", "inverse-json"], &["\"A\" appears twice"]);
    // Whole numbers with a point, as programs write columns that had missing values.
    let floats = folder.write("b.csv", "item_id,code_0,code_1\nA,1.0,2.0\nB,3.0,\n");
    folder.build(&floats, &[]);
    let codes = run_json(&["catalog", "inspect", &folder.path("a.palm"), "--item", "B"]);
    assert_eq!(codes["codes"], json!([3]));
}

/// An array file of NumPy.
fn npy(descr: &str, is_fortran: bool, shape: &str, elements: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), elements].concat()
}

#[test]
fn arrays_are_read_in_any_order_of_bytes_and_numbers() {
    let folder = Folder::new();
    let path = folder.path("codes.npy");
    let codes = [[1_u8, 2, 3], [4, 5, 6]];
    let big: Vec<u8> =
        codes.as_flattened().iter().flat_map(|&c| i64::from(c).to_be_bytes()).collect();
    let floats: Vec<u8> =
        codes.as_flattened().iter().flat_map(|&c| f32::from(c).to_le_bytes()).collect();
    let columns: Vec<u8> = (0..3)
        .flat_map(|level| codes.iter().flat_map(move |row| u16::from(row[level]).to_le_bytes()))
        .collect();
    for array in [
        npy("|u1", false, "(2, 3)", codes.as_flattened()),
        npy(">i8", false, "(2, 3)", &big),
        npy("<f4", false, "(2, 3)", &floats),
        npy("<u2", true, "(2, 3)", &columns),
    ] {
        fs::write(&path, array).unwrap();
        let notes = folder.build(&path, &[]);
        assert!(notes.contains("its shape is (2, 3): 2 items of 3 codes each"), "{notes}");
        let item = run_json(&["catalog", "inspect", &folder.path("a.palm"), "--item", "1"]);
        assert_eq!(item["codes"], json!([4, 5, 6]));
    }
    fs::write(&path, npy("<f8", false, "(1, 1)", &0.5_f64.to_le_bytes())).unwrap();
    folder.check_refused(&path, &[], &["item \"0\"", "0.5"]);
    fs::write(&path, npy("<u2", true, "(2, 3)", &columns[..7])).unwrap();
    folder.check_refused(&path, &[], &["it says that it has 2 rows"]);
    fs::write(&path, npy("<u2", false, "(2, 900)", &[])).unwrap();
    folder.check_refused(&path, &[], &["(2, 900)", "codes.T"]);
}

/// A live catalog of these lines, begun with nothing.
fn live(folder: &Folder, options: &[&str], lines: &str) -> String {
    let live = folder.path("live");
    run(&[&["catalog", "live", "init", &live], options].concat());
    let updates = folder.write("updates.jsonl", lines);
    run(&["catalog", "live", "apply", &live, &updates]);
    live
}

#[test]
fn items_expire_by_timestamps_alone() {
    let folder = Folder::new();
    let live = live(
        &folder,
        &["--column", "until=timestamp"],
        "{\"item_id\": \"A\", \"codes\": [1], \"price\": 10.5, \"brand\": \"x\", \"until\": \"2026-01-01T00:00:00Z\"}\n\
         {\"item_id\": \"B\", \"codes\": [2], \"price\": 20, \"until\": \"2099-01-01\"}\n\
         {\"item_id\": \"C\", \"codes\": [3], \"price\": 20}\n",
    );
    let expire = |options: &[&str]| -> Vec<String> {
        let options = options.iter().map(|&option| option.to_owned());
        ["catalog", "live", "expire", &live].map(str::to_owned).into_iter().chain(options).collect()
    };
    let expired = |now: &str| {
        let args = expire(&["--by", "until", "--now", now]);
        run_json(&args.iter().map(String::as_str).collect::<Vec<_>>())["expired"].clone()
    };
    let refused = |options: &[&str], words: &[&str]| {
        let args = expire(options);
        check_refused(&args.iter().map(String::as_str).collect::<Vec<_>>(), words);
    };
    refused(
        &["--by", "price"],
        &["items expire by a timestamp", "\"price\" is number", "--column"],
    );
    refused(&["--by", "brand", "--now", "2026-01-01"], &["\"brand\" is keyword"]);
    refused(&["--by", "untill"], &["did you mean \"until\"?"]);
    refused(&["--by", "until", "--now", "z"], &["\"z\" is no point in time"]);
    let updates = folder.write("more.jsonl", "{\"item_id\": \"D\", \"codes\": [4]}\n");
    for by in ["price", "brand", "nothing"] {
        check_refused(
            &["catalog", "live", "apply", &live, &updates, "--expire-by", by],
            &["--expire-by", "items expire by a timestamp"],
        );
    }
    let all = json!({});
    assert_eq!(folder.filter(&live, &all), ["A", "B", "C"], "nothing was applied");
    // What would be gone at once is said.
    let dates = folder.write("dates.jsonl", "{\"item_id\": \"C\", \"until\": 20260601}\n");
    let output = palmette(&["catalog", "live", "apply", &live, &dates]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("dates.jsonl, line 1: the timestamp \"until\" is 20260601"), "{notes}");
    assert!(notes.contains("which is read as the date that its digits write"), "{notes}");
    let of_c = run_json(&["catalog", "inspect", &live, "--item", "C"]);
    assert_eq!(of_c["attributes"]["until"], "2026-06-01T00:00:00Z");
    refused(&["--by", "until", "--now", "20260601"], &["\"20260601\" is no point in time"]);
    check_refused(
        &["catalog", "filter", &live, r#"{"range": {"until": {"gte": 20260601}}}"#],
        &["20260601", "\"until\"", "compare it with a date"],
    );
    let early = folder.write("early.jsonl", "{\"item_id\": \"C\", \"until\": 2026}\n");
    let output = palmette(&["catalog", "live", "apply", &live, &early]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("is 2026, which as seconds since 1970 lies before 1971"), "{notes}");
    let undo = folder.write("undo.jsonl", "{\"item_id\": \"C\", \"until\": null}\n");
    run(&["catalog", "live", "apply", &live, &undo]);
    // At the moment itself an item is over.
    assert_eq!(expired("2025-12-31T23:59:59Z"), 0);
    assert_eq!(expired("2026-01-01T00:00:00Z"), 1);
    let applied = run_json(&["catalog", "live", "apply", &live, &updates, "--expire-by", "until"]);
    assert_eq!(applied["expired"], 0);
    assert_eq!(folder.filter(&live, &all), ["B", "C", "D"]);
}

#[test]
fn updates_are_read_from_files_as_they_come() {
    let folder = Folder::new();
    let live = live(&folder, &[], "{\"item_id\": \"A\", \"codes\": [1]}\n");
    let line = |id: &str| format!("{{\"item_id\": \"{id}\", \"codes\": [2]}}\n");
    let marked = folder.write("marked.jsonl", &format!("\u{feff}{}", line("B")));
    run(&["catalog", "live", "apply", &live, &marked]);
    let gz = folder.path("c.jsonl.gz");
    let mut writer =
        flate2::write::GzEncoder::new(fs::File::create(&gz).unwrap(), Default::default());
    writer.write_all(line("C").as_bytes()).unwrap();
    writer.finish().unwrap();
    run(&["catalog", "live", "apply", &live, &gz]);
    assert_eq!(folder.filter(&live, &json!({})), ["A", "B", "C"]);
    let wide = folder.path("wide.jsonl");
    let bytes: Vec<u8> = line("D").encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&wide, bytes).unwrap();
    check_refused(&["catalog", "live", "apply", &live, &wide], &["UTF-16LE", "iconv"]);
}

#[test]
fn a_live_catalog_answers_as_its_file_does() {
    let folder = Folder::new();
    let lines = "{\"item_id\": \"1\", \"codes\": [3], \"title\": \"t1\", \"variants\": [{\"c\": \"red\", \"s\": 1}, {\"c\": \"blue\"}]}\n\
        {\"item_id\": \"2\", \"codes\": [2], \"title\": \"t2\", \"variants\": [{\"c\": \"red\", \"s\": 5}], \"geo\": {\"lat\": 52.5}}\n\
        {\"item_id\": \"3\", \"codes\": [1], \"variants\": {\"c\": \"blue\"}, \"geo\": null}\n";
    let items = folder.write("items.jsonl", lines);
    folder.build(&items, &[]);
    let frozen = folder.path("a.palm");
    let live = live(&folder, &[], lines);
    for (filter, ids) in [
        (json!({"match": {"variants.c": "red"}}), &["2", "1"][..]),
        (json!({"range": {"geo.lat": {"gt": 50}}}), &["2"]),
        (json!({"nested": {"path": "variants", "query": {"term": {"variants.s": 5}}}}), &["2"]),
        (json!({"term": {"title.keyword": "t1"}}), &["1"]),
        (json!({"must_not": {"exists": "geo.lat"}}), &["3", "1"]),
    ] {
        assert_eq!(folder.filter(&frozen, &filter), ids, "{filter}");
        assert_eq!(folder.filter(&live, &filter), ids, "{filter}");
    }
    for catalog in [&frozen, &live] {
        check_refused(
            &["catalog", "filter", catalog, r#"{"match": {"variants.colour": "red"}}"#],
            &["variants.colour"],
        );
        check_refused(
            &["catalog", "filter", catalog, r#"{"match": {"title.de": "x"}}"#],
            &["write \"title\""],
        );
        check_refused(&["catalog", "filter", catalog, r#"{"term": {"_id": "1"}}"#], &["\"ids\""]);
    }
}

#[test]
fn a_live_catalog_that_begins_with_nothing_takes_kinds() {
    let folder = Folder::new();
    let live = live(
        &folder,
        &["--column", "until=timestamp", "--column", "tags=json"],
        "{\"item_id\": \"A\", \"codes\": [1], \"until\": \"2026-06-01T02:00:00+02:00\", \"tags\": []}\n\
         {\"item_id\": \"B\", \"codes\": [2], \"until\": 1893456000, \"tags\": [1]}\n",
    );
    assert_eq!(folder.filter(&live, &json!({"range": {"until": {"lt": "2027-01-01"}}})), ["A"]);
    assert_eq!(folder.filter(&live, &json!({"match": {"tags": 1}})), ["B"]);
    let items = folder.write("items.csv", "item_id,codes,until\nA,1,x\n");
    folder.build(&items, &[]);
    let other = folder.path("other");
    let from = folder.path("a.palm");
    let args = ["catalog", "live", "init", &other, "--from", &from, "--column"];
    check_refused(
        &[&args[..], &["until=timestamp"]].concat(),
        &["\"until\"", "keyword", "timestamp"],
    );
    check_refused(
        &[&args[..], &["x=number", "--column", "x=json"]].concat(),
        &["attribute \"x\" is declared number and json"],
    );
    run(&[&args[..], &["x=number"]].concat());
}
