//! A week of a shop over a live catalog: every answer equals that over a catalog built from a plain
//! list of the same items.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::command::{check_refused, palmette, run, run_json};
use crate::shop::Shop;

/// Times that a bit of the largest segment was flipped, and flipped back: odd while it is damaged.
static FLIPS: AtomicU64 = AtomicU64::new(0);

/// The contents of the catalog by definition: items in the order in which they came.
struct Week {
    dir: PathBuf,
    model: String,
    items: Vec<Map<String, Value>>,
    /// Options of every question.
    more: &'static [&'static str],
}

impl Week {
    fn path(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    fn place(&self, id: &str) -> Option<usize> {
        self.items.iter().position(|item| item["item_id"] == id)
    }

    /// Applies an update to the list.
    fn note(&mut self, update: &Value) {
        if let Some(id) = update.get("delete") {
            if let Some(place) = self.place(id.as_str().unwrap()) {
                self.items.remove(place);
            }
            return;
        }
        let update = update.as_object().unwrap();
        let place = self.place(update["item_id"].as_str().unwrap());
        if update.contains_key("codes") {
            place.map(|place| self.items.remove(place));
            self.items.push(update.clone());
            return;
        }
        let mut item = self.items[place.expect("patches are of items that are there")].clone();
        item.extend(update.clone());
        item.retain(|_, value| !value.is_null());
        if item != self.items[place.unwrap()] {
            self.items.remove(place.unwrap());
            self.items.push(item);
        }
    }

    fn write_lines(&self, updates: &[Value]) -> String {
        let path = self.path("updates.jsonl");
        let lines = updates.iter().map(|update| format!("{update}\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        path
    }

    fn apply(&mut self, updates: &[Value], rest: &[&str]) -> Value {
        let path = self.write_lines(updates);
        updates.iter().for_each(|update| self.note(update));
        let live = self.path("live");
        run_json(&[&["catalog", "live", "apply", &live, &path], rest].concat())
    }

    /// Compares answers with those over a catalog built from the list.
    #[track_caller]
    fn check(&self, day: &str) {
        let (source, built) = (self.path("items.jsonl"), self.path("built.palm"));
        let lines = self.items.iter().map(|item| format!("{}\n", Value::Object(item.clone())));
        std::fs::write(&source, lines.collect::<String>()).unwrap();
        let sizes = ["--codes-per-level", "15,16,64,64"];
        run(&[&["catalog", "build", &source, "--out", &built][..], &sizes].concat());
        let in_stock = r#"{"must": {"range": {"stock": {"gt": 0}}}}"#;
        for rest in [
            &["--history", "P0002,P0060"][..],
            &["--history", "", "-k", "300", "--filter", in_stock],
            &["--history", "P0060", "--filter", r#"{"must": {"match": {"department": "Garden"}}}"#],
        ] {
            let ask = |catalog: &str| {
                let args = ["recommend", "--model", &self.model, "--catalog", catalog];
                let output = palmette(&[&args[..], &["--json"], self.more, rest].concat());
                let document = serde_json::from_slice::<Value>(&output.stdout).ok();
                // An attribute that is new since is unknown to a list without it, on either side.
                document.map(|document| document["items"].clone())
            };
            assert_eq!(ask(&self.path("live")), ask(&built), "{day}: {rest:?}");
        }
    }
}

fn id(item: &Map<String, Value>) -> &str {
    item["item_id"].as_str().unwrap()
}

/// Flips a bit in the middle of a file; once more puts it back.
fn flip(path: &Path) {
    let bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(middle as u64)).unwrap();
    file.write_all(&[bytes[middle] ^ 0x20]).unwrap();
}

#[test]
fn a_week_of_a_shop() {
    let shop = Shop::get();
    let dir = tempfile::tempdir().unwrap();
    let items = std::fs::read_to_string(shop.path("items.jsonl")).unwrap();
    let items = items.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut week = Week { dir: dir.path().to_owned(), model: shop.path("model"), items, more: &[] };
    let live = week.path("live");
    let init = ["catalog", "live", "init", &live, "--from", &shop.path("shop.palm")];
    // The model has room for more codes than the first items use.
    run(&[&init[..], &["--codes-per-level", "15,9,48,54"]].concat());

    // Readers throughout: each look finds a catalog, whatever is going on, but while a bit is
    // flipped.
    let (is_over, num_looks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let before = FLIPS.load(Ordering::SeqCst);
                    let output = palmette(&["catalog", "live", "status", &live, "--json"]);
                    let after = FLIPS.load(Ordering::SeqCst);
                    match serde_json::from_slice::<Value>(&output.stdout) {
                        Ok(status) if output.status.success() => {
                            assert!(status["num_items"].as_u64() > Some(3000));
                        }
                        _ => {
                            let was_damaged = before % 2 == 1 || before != after;
                            assert!(was_damaged, "{output:?}");
                        }
                    }
                    num_looks.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        // A panic must end the readers too.
        let days =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| days(&mut week, &live)));
        is_over.store(true, Ordering::Relaxed);
        days.unwrap();
    });
    assert!(num_looks.into_inner() > 5);
}

fn days(week: &mut Week, live: &str) {
    // Monday: prices and stock, as patches; applied again they change nothing.
    let patches: Vec<Value> = week.items.iter().step_by(7).take(300).enumerate().map(|(number, item)| {
        json!({"item_id": id(item), "price": 5.0 + number as f64, "stock": number % 4})
    }).collect();
    week.apply(&patches, &["--batch", "100"]);
    let again = week.apply(&patches, &[]);
    assert_eq!((&again["patched"], &again["unchanged"]), (&json!(0), &json!(300)));
    week.check("Monday");

    // Tuesday: deletions, and a customer who bought what is gone.
    let gone: Vec<String> =
        week.items.iter().skip(3).step_by(40).take(60).map(|i| id(i).to_owned()).collect();
    let deletes: Vec<Value> = gone.iter().map(|id| json!({"delete": id})).collect();
    week.apply(&deletes, &[]);
    week.check("Tuesday");
    run(&["catalog", "live", "keep", live, "--name", "tuesday"]);

    // Wednesday: a new department, with codes that nothing had; first the codebooks must be wider.
    let garden = |number: u32| {
        json!({
            "item_id": format!("G{number}"), "codes": [number % 15, 9 + number % 3, 50, number % 64],
            "title": format!("Rake {number}"), "department": "Garden", "stock": 1, "price": 9.5,
        })
    };
    let garden: Vec<Value> = (0..200).map(garden).collect();
    let updates = week.write_lines(&garden);
    check_refused(
        &["catalog", "live", "apply", live, &updates],
        &["line 1", "has code 9 at level 1"],
    );
    run(&["catalog", "live", "widen", live, "--codes-per-level", "15,16,64,64"]);
    week.apply(&garden[..150], &[]);

    // Thursday: a crash in the midst of a batch, and bad lines put aside.
    crash(live, week, &garden[150..]);
    let letters = week.path("letters.jsonl");
    let mixed = [
        json!({"item_id": "B1", "codes": [0, 0, 0, 99]}),
        json!({"item_id": "P0002", "stock": 77}),
    ];
    let path = week.write_lines(&mixed);
    week.note(&mixed[1]);
    let applied = run_json(&["catalog", "live", "apply", live, &path, "--dead-letters", &letters]);
    assert_eq!((&applied["refused"], &applied["patched"]), (&json!(1), &json!(1)));
    let letter: Value = serde_json::from_str(&std::fs::read_to_string(&letters).unwrap()).unwrap();
    assert_eq!((&letter["line"], &letter["update"]), (&json!(1), &mixed[0]));
    week.check("Thursday");

    // Friday: a flipped bit in a segment. It is found, by verify and by every reader; then the copy
    // is back.
    let segment = largest_segment(live);
    FLIPS.fetch_add(1, Ordering::SeqCst);
    flip(&segment);
    let name = segment.file_name().unwrap().to_str().unwrap();
    check_refused(&["catalog", "inspect", live], &[name, "is damaged"]);
    let verified = palmette(&["catalog", "verify", live]);
    let text = String::from_utf8(verified.stdout).unwrap();
    assert!(!verified.status.success() && text.contains(name), "{text}");
    flip(&segment);
    FLIPS.fetch_add(1, Ordering::SeqCst);
    run(&["catalog", "verify", live]);
    week.check("Friday");

    // Saturday: a full disk. Nothing that was acknowledged is lost.
    full_disk(live, week);
    week.check("Saturday");

    // Sunday: IDs of a model that was trained anew, then a look back.
    let shifted: Vec<Value> = {
        let codes: Vec<Value> = week.items.iter().map(|item| item["codes"].clone()).collect();
        let ids = week.items.iter().zip(codes.iter().cycle().skip(17));
        ids.map(|(item, codes)| {
            let mut item = item.clone();
            item.insert("codes".to_owned(), codes.clone());
            Value::Object(item)
        })
        .collect()
    };
    week.apply(&shifted, &[]);
    let ask = ["recommend", "--model", &week.model, "--catalog", live, "--history", "P0002"];
    check_refused(&ask, &["semantic IDs are not the model's", "--force-ids"]);
    week.more = &["--force-ids"];
    week.check("Sunday");
    run(&["catalog", "live", "merge", live]);
    week.check("Sunday, merged");
    let tuesday = run_json(&["catalog", "inspect", live, "--generation", "tuesday"]);
    assert_eq!(tuesday["num_items"], 4034 - 60);
}

fn largest_segment(live: &str) -> PathBuf {
    let files = std::fs::read_dir(live).unwrap().map(|file| file.unwrap().path());
    let segments =
        files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("segment-"));
    segments.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap()
}

/// Ends a writer by force while it applies single lines; what it acknowledged is there, and it goes
/// on from the next.
fn crash(live: &str, week: &mut Week, updates: &[Value]) {
    let mut writer = Command::new(env!("CARGO_BIN_EXE_palmette"))
        .args(["catalog", "live", "apply", live, "-", "--batch", "1", "--progress"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(writer.stdout.take().unwrap()));
    let (first, rest) = updates.split_at(updates.len() / 2);
    for update in first {
        writeln!(input, "{update}").unwrap();
        assert!(lines.next().unwrap().is_ok(), "it is acknowledged");
        week.note(update);
    }
    input.write_all(&rest[0].to_string().as_bytes()[..20]).unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    week.apply(rest, &[]);
}

/// Applies with a limit on the size of files, which fails as a full disk does.
fn full_disk(live: &str, week: &mut Week) {
    let updates: Vec<Value> = (0..3000)
        .map(|number| json!({"item_id": format!("F{number}"), "codes": [number % 15, number % 16, 1, 2], "title": "x".repeat(200)}))
        .collect();
    let path = week.write_lines(&updates);
    let script = "trap '' XFSZ; ulimit -f 400 && exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_palmette"), "catalog", "live", "apply"])
        .args([live, &path, "--batch", "10", "--progress"])
        .output()
        .unwrap();
    assert!(!output.status.success(), "there was room after all");
    let acknowledged = String::from_utf8(output.stdout).unwrap().lines().count() * 10;
    assert!((10..3000).contains(&acknowledged), "{acknowledged}");
    updates[..acknowledged].iter().for_each(|update| week.note(update));
}
