//! Recommendations for every history of a file.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::{check_refused, palmette, palmette_with_input, run, run_json, write};
use crate::shop::{Shop, with_recommender};

const NARROW: [&str; 4] = ["-k", "3", "--beam-width", "6"];

/// The first histories of the shop, one a line.
fn histories(count: usize) -> Vec<Value> {
    let text = std::fs::read_to_string(Shop::get().path("histories.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let all = all.as_object().unwrap().iter().take(count);
    all.map(|(user, items)| json!({"user": user, "items": items})).collect()
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

fn records(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An unknown item is the error of its record.
const STRICT: &[&str] = &["--unknown", "error"];

struct Run {
    dir: tempfile::TempDir,
    recommender: [String; 4],
}

impl Run {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, recommender: Shop::get().recommender() }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn args<'a>(&'a self, histories: &'a str, out: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        let files = ["--histories", histories, "--out", out];
        with_recommender("recommend", &self.recommender, &[&files, &NARROW[..], rest].concat())
    }
}

#[test]
fn each_history_is_answered_as_alone() {
    let run = Run::new();
    let mut all = histories(150);
    all[7]["items"].as_array_mut().unwrap().push("gone".into());
    all[9] = json!({"user": 9, "history": []});
    all[11] = json!({"uid": "by codes", "items": [[0, 2, 4, 0], "0-2-0-0"]});
    all[12] = json!({"user": "bad", "items": [1.5]});
    let text = lines(&all) + "garbage\n";
    let input = write(run.dir.path(), "in.jsonl", &text);
    let out = run.path("out.jsonl");
    let strict = ["--threads", "2", "--unknown", "error"];
    let report = run_json(&run.args(&input, &out, &strict));
    assert_eq!((&report["histories"], &report["answered"]), (&151.into(), &148.into()));
    assert_eq!((&report["errors"], &report["of_earlier_run"]), (&3.into(), &0.into()));
    assert!(!Path::new(&run.path("out.jsonl.partial")).exists());
    assert!(!Path::new(&run.path("out.jsonl.partial.json")).exists());
    let record = std::fs::read_to_string(run.path("_out.jsonl.run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!((&record["counts"]["histories"], &record["run"]["k"]), (&151.into(), &3.into()));

    let found = records(&out);
    assert_eq!(found.len(), 151);
    let error = |at: usize| found[at]["error"].as_str().unwrap().to_owned();
    assert!(error(7).contains("\"gone\" is not in the catalog"), "{}", error(7));
    assert!(error(12).contains("line 13") && error(12).contains("item 1.5"), "{}", error(12));
    assert!(error(150).contains("line 151") && found[150]["user"].is_null(), "{}", error(150));
    assert!(found[7].get("items").is_none() && found[0].get("error").is_none());
    for at in [0, 9, 11, 149] {
        let members = all[at].as_object().unwrap();
        let items = members.get("items").or(members.get("history")).unwrap().to_string();
        let alone = ["--history", &items];
        let rest = [&alone, &NARROW[..]].concat();
        let alone = run_json(&with_recommender("recommend", &run.recommender, &rest));
        let items = alone["items"].as_array().unwrap();
        let of = |name: &str| items.iter().map(|item| item[name].clone()).collect::<Vec<_>>();
        assert_eq!(found[at]["items"], Value::from(of("id")));
        assert_eq!(found[at]["codes"], Value::from(of("codes")));
        let score = |value: &Value| value.as_f64().unwrap() as f32;
        let scores: Vec<f32> = of("score").iter().map(score).collect();
        let given: Vec<f32> = found[at]["scores"].as_array().unwrap().iter().map(score).collect();
        assert_eq!(given, scores);
    }
    let user = |value: &Value| value["user"].as_str().map(str::to_owned);
    let given: Vec<_> = found.iter().take(7).map(user).collect();
    assert_eq!(given, all.iter().take(7).map(user).collect::<Vec<_>>());
    assert_eq!(found[9]["user"], "9");

    // Whatever the threads, the way in and the file that was there.
    let whole = std::fs::read_to_string(&out).unwrap();
    write(run.dir.path(), "one.jsonl", "something else");
    let one = run.path("one.jsonl");
    crate::command::run(&run.args(&input, &one, &["--threads", "1", "--unknown", "error"]));
    assert_eq!(std::fs::read_to_string(&one).unwrap(), whole);
    let piped = run.path("piped.jsonl");
    let output = palmette_with_input(&run.args("-", &piped, &strict[2..]), &text);
    assert!(output.status.success());
    assert_eq!(std::fs::read_to_string(&piped).unwrap(), whole);

    let skipped = run.path("skipped.jsonl");
    let report = run_json(&run.args(&input, &skipped, &["--unknown", "skip"]));
    assert_eq!(report["skipped"], json!({"items": 1, "histories": 1}));
    assert_eq!(records(&skipped)[7]["skipped"], 1);
}

/// Begins a run and ends it after its first answers, so that what it had is in `partial`. On a busy machine a run may be done before
/// it is ended: then it is begun anew.
fn end_in_the_middle(args: &[&str], out: &str, partial: &Path, end: fn(&mut Child)) {
    for _ in 0..TRIES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette"));
        let command = command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let has_answers = || std::fs::metadata(partial).is_ok_and(|file| file.len() > 0);
        while !has_answers() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        end(&mut child);
        let status = child.wait().unwrap();
        if partial.exists() {
            assert!(!status.success());
            return;
        }
        _ = std::fs::remove_file(out);
    }
    panic!("{TRIES} runs were done too soon to be ended");
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
}

/// SIGTERM, which ends a run as Ctrl-C does; programs in the background of a shell do not hear that one.
#[cfg(unix)]
fn terminate(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process};
    // Until it is waited for, its number is its own.
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

/// Runs that are begun until one is ended in its middle.
const TRIES: usize = 20;

#[test]
fn a_run_that_was_killed_goes_on() {
    let run = Run::new();
    let mut all = histories(600);
    all[3] = json!({"user": "bad", "items": [1.5]});
    let input = write(run.dir.path(), "in.jsonl", &lines(&all));
    let whole = run.path("whole.jsonl");
    crate::command::run(&run.args(&input, &whole, &[]));
    let whole = std::fs::read_to_string(&whole).unwrap();

    let (out, partial) = (run.path("out.jsonl"), run.dir.path().join("out.jsonl.partial"));
    let args = run.args(&input, &out, &["--resume", "--threads", "1"]);
    end_in_the_middle(&args, &out, &partial, kill);
    assert!(!Path::new(&out).exists(), "there is no file until all are answered");
    let so_far = std::fs::read_to_string(&partial).unwrap();
    assert!(so_far.len() < whole.len() && whole.starts_with(&so_far));

    // Another run is not gone on with, and a changed file of histories is told.
    let others = ["--resume", "--include-seen", "-k", "4"];
    let other = with_recommender(
        "recommend",
        &run.recommender,
        &[&["--histories", &input, "--out", &out, "--beam-width", "6"], &others[..]].concat(),
    );
    check_refused(&other, &["another exclude_seen", "another k", "leave out --resume"]);

    // A line that is torn, as a failure of the machine leaves it, is answered again.
    let torn = &so_far.as_bytes()[..so_far.len() - 20];
    std::fs::write(&partial, [torn, b"\0\0\0"].concat()).unwrap();
    let report = run_json(&run.args(&input, &out, &["--resume"]));
    let kept = so_far.lines().count() - 1;
    assert_eq!(report["of_earlier_run"], kept);
    assert_eq!((&report["histories"], &report["errors"]), (&600.into(), &1.into()));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), whole);
    assert!(!partial.exists());
}

#[test]
fn what_is_done_is_not_done_again() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(5)));
    let out = run.path("out.jsonl");
    let of_earlier = |rest: &[&str]| {
        let rest = [&["--resume"], rest].concat();
        run_json(&run.args(&input, &out, &rest))["of_earlier_run"].clone()
    };
    assert_eq!(of_earlier(&[]), 0);
    let whole = std::fs::read_to_string(&out).unwrap();
    assert_eq!(of_earlier(&[]), 5);
    assert!(
        crate::command::run(&run.args(&input, &out, &["--resume"]))
            .contains("5 of them by an earlier run")
    );
    // Unless other answers are wanted, or those that are there are not what was written.
    assert_eq!(of_earlier(&["--include-seen"]), 0);
    assert_eq!(of_earlier(&[]), 0);
    std::fs::write(&out, &whole[1..]).unwrap();
    assert_eq!(of_earlier(&[]), 0);
    std::fs::remove_file(&out).unwrap();
    assert_eq!(of_earlier(&[]), 0);
    assert_eq!(run_json(&run.args(&input, &out, &[]))["of_earlier_run"], 0);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), whole);
}

#[test]
#[cfg(unix)]
fn a_run_that_was_interrupted_goes_on_to_the_same_table() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(600)));
    let ending = if cfg!(feature = "tables") { "parquet" } else { "jsonl" };
    let (whole, out) = (run.path(&format!("whole.{ending}")), run.path(&format!("out.{ending}")));
    crate::command::run(&run.args(&input, &whole, &["--unknown", "skip"]));
    let args = run.args(&input, &out, &["--unknown", "skip", "--resume", "--threads", "1"]);
    let partial = format!("{out}.partial");
    end_in_the_middle(&args, &out, Path::new(&partial), terminate);
    let so_far = std::fs::read_to_string(&partial).unwrap();
    assert!(so_far.ends_with('\n') && so_far.lines().count() < 600);
    let report = run_json(&args);
    assert!(report["of_earlier_run"].as_u64() == Some(so_far.lines().count() as u64));
    assert!(std::fs::read(&out).unwrap() == std::fs::read(&whole).unwrap());
    assert!(!Path::new(&partial).exists());
}

#[test]
fn copies_are_gone_on_with_and_changes_are_not() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(200)));
    let rules = write(run.dir.path(), "rules.json", r#"{"must_exclude": ["P0074"]}"#);
    let (out, partial) = (run.path("out.jsonl"), run.dir.path().join("out.jsonl.partial"));
    let args = run.args(&input, &out, &["--resume", "--threads", "1", "--rules", &rules]);
    end_in_the_middle(&args, &out, &partial, kill);

    // Other rules, another item in the histories, another word in the model's directory.
    let other = write(run.dir.path(), "other.json", r#"{"must_exclude": ["P0075"]}"#);
    check_refused(
        &run.args(&input, &out, &["--resume", "--rules", &other]),
        &["another rules", "leave out --resume"],
    );
    let mut changed = histories(200);
    changed[150]["items"] = json!(["P0001"]);
    let changed = write(run.dir.path(), "changed.jsonl", &lines(&changed));
    let resumed = ["--resume", "--rules", &rules];
    check_refused(&run.args(&changed, &out, &resumed), &["another histories"]);
    let shop = Shop::get();
    let model = run.path("model");
    std::fs::create_dir(&model).unwrap();
    for entry in std::fs::read_dir(shop.path("model")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), Path::new(&model).join(entry.file_name())).unwrap();
    }
    let catalog = run.path("copy.palm");
    std::fs::copy(shop.path("shop.palm"), &catalog).unwrap();
    let copies = ["--model".into(), model.clone(), "--catalog".into(), catalog];
    let copied = write(run.dir.path(), "copied.jsonl", &lines(&histories(200)));
    let files = ["--histories", &copied, "--out", &out, "--rules", &rules, "--resume"];
    let of_copies = with_recommender("recommend", &copies, &[&files, &NARROW[..]].concat());
    std::fs::write(Path::new(&model).join("note.txt"), "new").unwrap();
    check_refused(&of_copies, &["another model;"]);
    std::fs::remove_file(Path::new(&model).join("note.txt")).unwrap();
    assert_ne!(run_json(&of_copies)["of_earlier_run"], 0);
}

/// The generation's number is not what is in it.
#[test]
fn another_live_catalog_of_one_generation_is_not_gone_on_with() {
    let run = Run::new();
    let shop = Shop::get();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(3)));
    let (out, model) = (run.path("out.jsonl"), shop.path("model"));
    let patched = |name: &str, stock: u32| {
        let dir = run.path(name);
        crate::command::run(&["catalog", "live", "init", &dir, "--from", &shop.path("shop.palm")]);
        let update = format!("{{\"item_id\": \"P0001\", \"stock\": {stock}}}\n");
        let updates = write(run.dir.path(), "updates.jsonl", &update);
        crate::command::run(&["catalog", "live", "apply", &dir, &updates]);
        dir
    };
    let (one, other) = (patched("one", 1), patched("other", 2));
    let args = |catalog| {
        let of = ["recommend", "--model", &model, "--catalog", catalog, "--histories", &input];
        [&of[..], &["--out", &out, "--beam-width", "6", "--resume"]].concat()
    };
    let first = run_json(&args(&one));
    assert_eq!((&first["answered"], &first["of_earlier_run"]), (&3.into(), &0.into()));
    assert_eq!(run_json(&args(&one))["of_earlier_run"], 3);
    assert_eq!(run_json(&args(&other))["of_earlier_run"], 0);
}

#[test]
fn shards_have_each_history_once() {
    let run = Run::new();
    let mut all = histories(11);
    all[4]["items"] = json!(["gone"]);
    let text = lines(&all) + "garbage\n";
    let input = write(run.dir.path(), "in.jsonl", &text);
    let whole = run.path("whole.jsonl");
    crate::command::run(&run.args(&input, &whole, &[]));
    let whole: Vec<String> =
        std::fs::read_to_string(&whole).unwrap().lines().map(str::to_owned).collect();
    let out = run.path("out.jsonl");
    for (name, shards) in [(input.as_str(), 3), ("-", 5)] {
        for index in 0..shards {
            let shard = format!("{index}/{shards}");
            let output = palmette_with_input(&run.args(name, &out, &["--shard", &shard]), &text);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let path = run.path(&format!("out-{index:05}-of-{shards:05}.jsonl"));
            let own = std::fs::read_to_string(path).unwrap();
            let expected = whole.iter().skip(index).step_by(shards);
            assert!(own.lines().eq(expected), "{own}");
        }
    }
    assert!(!Path::new(&out).exists());
    // Another number of shards has other files; a shard is not gone on with as another.
    let report = run_json(&run.args(&input, &out, &["--shard", "1/3", "--resume"]));
    assert_eq!((&report["of_earlier_run"], &report["shard"]), (&4.into(), &"1/3".into()));
    check_refused(&run.args(&input, &out, &["--shard", "3/3"]), &["numbered from 0 to 2"]);
    let alone =
        with_recommender("recommend", &run.recommender, &["--history", "", "--shard", "0/1"]);
    check_refused(&alone, &["--histories"]);
}

/// The moment of rules is that of the run that is gone on with.
#[test]
fn rules_of_validity_keep_their_moment() {
    let run = Run::new();
    let items = run.path("items.jsonl");
    let text = std::fs::read_to_string(Shop::get().path("items.jsonl")).unwrap();
    let dated: String = text
        .lines()
        .map(|line| {
            let mut item: Value = serde_json::from_str(line).unwrap();
            item["until"] = "2099-01-01T00:00:00Z".into();
            format!("{item}\n")
        })
        .collect();
    std::fs::write(&items, dated).unwrap();
    let catalog = run.path("dated.palm");
    crate::command::run(&[
        "catalog",
        "build",
        &items,
        "--out",
        &catalog,
        "--column",
        "until=timestamp",
    ]);
    let recommender = ["--model".into(), Shop::get().path("model"), "--catalog".into(), catalog];
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(200)));
    let rules = write(run.dir.path(), "rules.json", r#"{"valid": {"to": "until"}}"#);
    let (out, partial) = (run.path("out.jsonl"), run.dir.path().join("out.jsonl.partial"));
    let files = ["--histories", &input, "--out", &out, "--rules", &rules, "--resume"];
    let args = with_recommender("recommend", &recommender, &[&files, &NARROW[..]].concat());
    end_in_the_middle(&args, &out, &partial, kill);
    let about = std::fs::read_to_string(run.path("out.jsonl.partial.json")).unwrap();
    let about: Value = serde_json::from_str(&about).unwrap();
    assert!(about["now"].as_f64().is_some_and(|now| now > 1.7e9), "{about}");
    assert_ne!(run_json(&args)["of_earlier_run"], 0);
    let record = std::fs::read_to_string(run.path("_out.jsonl.run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["run"]["now"], about["now"]);
    // Another night has another moment.
    assert_eq!(run_json(&args)["of_earlier_run"], 0);
}

#[test]
fn answers_of_other_users_are_not_gone_on_with() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(200)));
    let (out, partial) = (run.path("out.jsonl"), run.dir.path().join("out.jsonl.partial"));
    let args = run.args(&input, &out, &["--threads", "1"]);
    end_in_the_middle(&args, &out, &partial, kill);
    let text = std::fs::read_to_string(&partial).unwrap().replacen("U0002", "X0002", 1);
    std::fs::write(&partial, text).unwrap();
    check_refused(&run.args(&input, &out, &["--resume"]), &["X0002", "U0002", "they have changed"]);
    std::fs::remove_file(run.path("out.jsonl.partial.json")).unwrap();
    check_refused(&run.args(&input, &out, &["--resume"]), &["is not known", "begin anew"]);
}

#[test]
fn what_cannot_be_run_is_said_at_once() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(3)));
    let out = run.path("out.jsonl");
    let refused = |histories: &str, out: &str, rest: &[&str], words: &[&str]| {
        check_refused(&run.args(histories, out, rest), words);
    };
    refused(&input, &run.path("out.xlsx"), &[], &["out.xlsx", ".jsonl, .parquet or .arrow"]);
    refused(&input, run.dir.path().to_str().unwrap(), &[], &["tells no format"]);
    refused(&input, &input, &[], &["would be lost"]);
    refused("-", &out, &["--resume"], &["standard input"]);
    refused(&run.path("none.jsonl"), &out, &[], &["none.jsonl"]);
    refused(&input, &out, &["--history", "P0001"], &["cannot be used with"]);
    refused(&input, &out, &["--filter", "{\"must\": 7}"], &["must"]);
    let untold = write(run.dir.path(), "histories", "{}");
    refused(&untold, &out, &[], &["tells no format of histories", "--histories-format"]);
    let shop = &run.recommender;
    check_refused(&with_recommender("recommend", shop, &["--histories", &input]), &["--out"]);
    check_refused(&with_recommender("recommend", shop, &[]), &["--history"]);
    let document = write(run.dir.path(), "broken.json", "{\"1\": [\"P0001\"]");
    refused(&document, &out, &[], &["broken.json", "is not {user:"]);
    assert!(!Path::new(&out).exists());
}

/// Answers of an earlier night stay where a night has none.
#[test]
fn a_run_that_answers_nothing_fails_and_keeps_the_file() {
    let run = Run::new();
    let yesterday = "yesterday's answers\n";
    let out = write(run.dir.path(), "out.jsonl", yesterday);
    let refused = |name: &str, text: &str, rest: &[&str], words: &[&str]| {
        let input = write(run.dir.path(), name, text);
        check_refused(&run.args(&input, &out, rest), words);
        assert_eq!(std::fs::read_to_string(&out).unwrap(), yesterday, "{name}");
        for left in ["out.jsonl.partial", "out.jsonl.partial.json", "_out.jsonl.run.json"] {
            assert!(!Path::new(&run.path(left)).exists(), "{left}");
        }
    };
    // A line of reviews that is taken for one document, users and their items.
    let review =
        r#"{"reviewerID": "A1", "asin": "P0060", "overall": 5.0, "unixReviewTime": 1252800000}"#;
    let none = &[
        "none of the 4 histories",
        "\"reviewerID\" has \"A1\", which is no list",
        "jsonl",
        "--allow-empty",
    ];
    refused("reviews.json", review, &[], none);
    refused("reviews.json", review, &["--resume"], none);
    refused("empty.jsonl", "\n", &[], &["empty.jsonl: it has no histories", "--allow-empty"]);
    let gone = "{\"user\": 1, \"items\": [\"gone\"]}\n";
    let unknown = ["none of the 1 histories has an item of the catalog", "\"gone\""];
    refused("gone.jsonl", gone, &[], &unknown);
    let strict = ["--unknown", "error"];
    refused("gone.jsonl", gone, &strict, &["none of the 1 histories could", "\"gone\""]);
    let where_none = ["--where", "user=7"];
    refused("gone.jsonl", gone, &where_none, &["it has no histories"]);

    // By its layout the line is read.
    let review = write(run.dir.path(), "reviews.json", review);
    let report = run_json(&run.args(&review, &out, &["--layout", "amazon2018"]));
    assert_eq!((&report["answered"], &report["errors"]), (&1.into(), &0.into()));
    assert_eq!(records(&out)[0]["user"], "A1");
    // Where it is asked for the reasons are written.
    let gone = write(run.dir.path(), "gone.jsonl", gone);
    let report = run_json(&run.args(&gone, &out, &["--allow-empty", "--unknown", "error"]));
    assert_eq!((&report["answered"], &report["errors"]), (&0.into(), &1.into()));
    assert!(records(&out)[0]["error"].as_str().unwrap().contains("gone"));
    // One that is answered is enough.
    let one = format!("{}{}", std::fs::read_to_string(&gone).unwrap(), lines(&histories(1)));
    let one = write(run.dir.path(), "one.jsonl", &one);
    assert_eq!(run_json(&run.args(&one, &out, &strict))["answered"], 1);
    assert_eq!(run_json(&run.args(&one, &out, &[]))["answered"], 2);
    // A part may have none of the histories.
    run_json(&run.args(&one, &out, &["--shard", "4/5"]));
}

#[test]
fn options_of_files_go_with_files() {
    let shop = Shop::get().recommender();
    let alone = |rest: &[&str], words: &[&str]| {
        let args = [&["--history", "P0001"], rest].concat();
        check_refused(&with_recommender("recommend", &shop, &args), words);
    };
    alone(&["--out", "o.jsonl"], &["--out o.jsonl goes with --histories"]);
    alone(&["--allow-empty"], &["--histories"]);
    alone(&["--time-column", "date"], &["--histories", "leave them out"]);
    alone(&["--where", "a=b"], &["--histories"]);
    alone(&["--layout", "netflix"], &["\"netflix\"", "movielens, amazon2018"]);
    check_refused(&with_recommender("recommend", &shop, &["--out", "o.jsonl"]), &["--histories"]);
}

/// Columns of other names are told, and what is not read is said once.
#[test]
fn columns_are_told_and_what_is_not_read_is_said() {
    let run = Run::new();
    let csv = "user_id,item_id,date\n0,P0060,20220408\n0,P0001,20220407\n1,P0002,20220407\n";
    let input = write(run.dir.path(), "times.csv", csv);
    let out = run.path("out.jsonl");
    let noted = |rest: &[&str]| {
        let output = palmette(&run.args(&input, &out, rest));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stderr).unwrap(), records(&out))
    };
    let (said, by_file) = noted(&[]);
    assert_eq!(said.matches("not read: date").count(), 1, "{said}");
    let (said, by_time) = noted(&["--time-column", "date"]);
    assert!(!said.contains("not read") && said.contains("read as dates"), "{said}");
    let alone = |history: &str| {
        let rest = [&["--history", history], &NARROW[..]].concat();
        let answer = run_json(&with_recommender("recommend", &run.recommender, &rest));
        let ids = answer["items"].as_array().unwrap().iter().map(|item| item["id"].clone());
        ids.collect::<Value>()
    };
    assert_eq!(by_file[0]["items"], alone("P0060,P0001"));
    assert_eq!(by_time[0]["items"], alone("P0001,P0060"));
    assert_ne!(by_file[0]["items"], by_time[0]["items"]);
    let (said, one) = noted(&["--where", "user_id=1"]);
    assert!(said.contains("2 rows do not match --where"), "{said}");
    assert_eq!((one.len(), &one[0]["user"]), (1, &"1".into()));
    // A run that reads otherwise is another run.
    let args = run.args(&input, &out, &["--resume", "--time-column", "date"]);
    assert_eq!(run_json(&args)["of_earlier_run"], 0);
    assert_eq!(run_json(&args)["of_earlier_run"], 2);
}

/// Floors do not know the answers of rows whose histories hold those of others.
#[test]
fn notes_are_members_of_documents() {
    let run = Run::new();
    let rows = "user_id,item_id,country\nU1,P0001,de\nU1,P0002,de\nU1,P0003,de\n";
    let input = write(run.dir.path(), "in.csv", rows);
    let out = run.path("out.jsonl");
    let args = run.args(&input, &out, &["--json"]);
    let eval = ["--histories", &input, "--no-unconstrained", "--json", "-k", "1"];
    for args in [args, with_recommender("eval", &run.recommender, &eval)] {
        let output = palmette(&args);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let notes: Vec<&str> =
            report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].ends_with("in.csv: not read: country"), "{notes:?}");
        assert!(notes[1].contains("no column has times"), "{notes:?}");
    }
}

#[test]
fn counts_that_are_none_say_their_rule() {
    let run = Run::new();
    for k in ["-1", "2.5", "x"] {
        let args = with_recommender("recommend", &run.recommender, &["--history", "", "-k", k]);
        check_refused(&args, &[k, "-k <K>", "a whole number, at least 1"]);
    }
    let width = ["--history", "", "--beam-width", "-4"];
    let args = with_recommender("recommend", &run.recommender, &width);
    check_refused(&args, &["'-4'", "--beam-width", "a whole number, 0 or more"]);
    // An id may look like a number.
    let named = ["--history", "-5", "--unknown", "error"];
    let args = with_recommender("recommend", &run.recommender, &named);
    check_refused(&args, &["item \"-5\" is not in the catalog"]);
}

#[test]
fn floors_of_rows_that_overlap() {
    let shop = Shop::get().recommender();
    let dir = tempfile::tempdir().unwrap();
    let all = histories(60);
    let (mut sliding, mut last, mut nameless) = (String::new(), String::new(), String::new());
    for history in &all {
        let items = history["items"].as_array().unwrap();
        for end in 2..items.len() {
            let user = &history["user"];
            let row = json!({"user": user, "history": items[..end], "target": items[end]});
            sliding += &format!("{row}\n");
            nameless += &format!("{}\n", json!({"history": items[..end], "target": items[end]}));
            if end + 1 == items.len() {
                last += &format!("{row}\n");
            }
        }
    }
    let evaluated = |name: &str, text: &str| {
        let path = write(dir.path(), name, text);
        let rest = ["--histories", &path, "--beam-width", "10", "--no-unconstrained"];
        run_json(&with_recommender("eval", &shop, &rest))
    };
    let hit_rate = |document: &Value| document["metrics"]["item-item"]["hit_rate@10"].as_f64();
    let (sliding, last) = (evaluated("sliding.jsonl", &sliding), evaluated("last.jsonl", &last));
    let whole = evaluated("whole.jsonl", &lines(&all));
    // One row a user is what whole histories are; with all rows, an answer is known in nine of ten where they know.
    assert_eq!(hit_rate(&last), hit_rate(&whole));
    assert!(hit_rate(&sliding).unwrap() < 0.3, "{sliding}");
    assert!(last["no_floors"].is_null() && sliding["no_floors"].is_null());
    let nameless = evaluated("nameless.jsonl", &nameless);
    assert_eq!(hit_rate(&nameless), None);
    assert!(nameless["no_floors"].as_str().unwrap().contains("--user-column"), "{nameless}");
    assert_eq!(nameless["metrics"]["model"], sliding["metrics"]["model"]);
}

#[test]
#[cfg(feature = "tables")]
fn tables_in_and_out() {
    use arrow_array::{ArrayRef, Float32Array, ListArray, RecordBatch, StringArray};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::fs::File;
    use std::sync::Arc;

    let run = Run::new();
    let mut all = histories(5);
    all[1]["items"] = json!(["gone"]);
    let input = write(run.dir.path(), "in.jsonl", &lines(&all));
    let out = run.path("out.jsonl");
    crate::command::run(&run.args(&input, &out, STRICT));
    let expected = records(&out);

    // One thing done a row, the last first; times restore the order.
    let mut rows: Vec<(String, String, i64)> = Vec::new();
    for history in &all {
        for (time, item) in history["items"].as_array().unwrap().iter().enumerate().rev() {
            let user = history["user"].as_str().unwrap().to_owned();
            rows.push((user, item.as_str().unwrap().to_owned(), time as i64));
        }
    }
    let column = |of: fn(&(String, String, i64)) -> &str| -> ArrayRef {
        Arc::new(StringArray::from(rows.iter().map(of).collect::<Vec<_>>()))
    };
    let times = arrow_array::Int64Array::from(rows.iter().map(|row| row.2).collect::<Vec<_>>());
    let batch = RecordBatch::try_from_iter([
        ("user_id", column(|row| &row.0)),
        ("item_id", column(|row| &row.1)),
        ("timestamp", Arc::new(times) as ArrayRef),
    ])
    .unwrap();
    let events = run.path("events.parquet");
    let file = File::create(&events).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();

    for (name, histories) in [("a.parquet", &input), ("b.parquet", &events)] {
        let out = run.path(name);
        crate::command::run(&run.args(histories, &out, STRICT));
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&out).unwrap()).unwrap();
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        let [rows] = batches.as_slice() else { panic!("one batch") };
        let texts = |name: &str| rows.column_by_name(name).unwrap().clone();
        let users = texts("user");
        let users = users.as_any().downcast_ref::<StringArray>().unwrap();
        let errors = texts("error");
        let errors = errors.as_any().downcast_ref::<StringArray>().unwrap();
        let scores = texts("scores");
        let scores = scores.as_any().downcast_ref::<ListArray>().unwrap();
        for (at, record) in expected.iter().enumerate() {
            assert_eq!(users.value(at), record["user"].as_str().unwrap());
            let Some(wanted) = record.get("scores") else {
                use arrow_array::Array;
                assert!(scores.is_null(at) && errors.value(at).contains("gone"));
                continue;
            };
            let found = scores.value(at);
            let found = found.as_any().downcast_ref::<Float32Array>().unwrap();
            let wanted = wanted.as_array().unwrap().iter().map(|s| s.as_f64().unwrap() as f32);
            assert_eq!(found.values().to_vec(), wanted.collect::<Vec<_>>());
        }
    }
    shards_of_tables(&run, &expected);
    // Back in, as Arrow.
    let arrow = run.path("c.arrow");
    crate::command::run(&run.args(&events, &arrow, STRICT));
    let again = run.path("again.jsonl");
    let report = run_json(&run.args(&arrow, &again, STRICT));
    assert_eq!((&report["histories"], &report["errors"]), (&5.into(), &1.into()));
}

/// Runs of rows, whatever the row groups, one after another give the whole; users of events are dealt out.
#[cfg(feature = "tables")]
fn shards_of_tables(run: &Run, expected: &[Value]) {
    use arrow_array::RecordBatch;
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use std::fs::File;
    use std::sync::Arc;

    let all = histories(5);
    let mut items = ListBuilder::new(StringBuilder::new());
    for (at, history) in all.iter().enumerate() {
        let ids = history["items"].as_array().unwrap().iter();
        ids.for_each(|id| {
            items.values().append_value(if at == 1 { "gone" } else { id.as_str().unwrap() })
        });
        items.append(true);
    }
    let users = all.iter().map(|history| history["user"].as_str().unwrap());
    let users = arrow_array::StringArray::from_iter_values(users);
    let batch = RecordBatch::try_from_iter([
        ("user", Arc::new(users) as arrow_array::ArrayRef),
        ("items", Arc::new(items.finish())),
    ])
    .unwrap();
    let path = run.path("rows.parquet");
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None)
            .unwrap();
    for (start, len) in [(0, 3), (3, 2)] {
        writer.write(&batch.slice(start, len)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    for shards in [1, 2, 4, 7] {
        let mut found = Vec::new();
        for index in 0..shards {
            let out = run.path("shard.jsonl");
            let shard = format!("{index}/{shards}");
            run_json(&run.args(&path, &out, &["--shard", &shard, STRICT[0], STRICT[1]]));
            found.extend(records(&run.path(&format!("shard-{index:05}-of-{shards:05}.jsonl"))));
        }
        let user = |record: &Value| record["user"].clone();
        assert_eq!(
            found.iter().map(user).collect::<Vec<_>>(),
            expected.iter().map(user).collect::<Vec<_>>()
        );
        assert_eq!(found[4], expected[4]);
        assert!(found[1]["error"].as_str().unwrap().contains("gone"));
    }
    let dealt = run.path("dealt.jsonl");
    run_json(&run.args(
        &run.path("events.parquet"),
        &dealt,
        &["--shard", "1/2", STRICT[0], STRICT[1]],
    ));
    let dealt = records(&run.path("dealt-00001-of-00002.jsonl"));
    assert_eq!(dealt, [expected[1].clone(), expected[3].clone()]);
}

#[test]
#[cfg(not(feature = "tables"))]
fn a_build_without_tables_says_so_before_it_answers() {
    let run = Run::new();
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(1)));
    check_refused(&run.args(&input, &run.path("out.parquet"), &[]), &["--features tables"]);
    let table = write(run.dir.path(), "in.parquet", "PAR1");
    check_refused(&run.args(&table, &run.path("out.jsonl"), &[]), &["--features tables"]);
}

#[test]
fn unknown_items_and_items_by_codes() {
    let shop = Shop::get().recommender();
    let recommend = |rest: &[&str]| run_json(&with_recommender("recommend", &shop, rest));
    let by_id = recommend(&["--history", "P0086,P0074"]);
    let by_codes = recommend(&["--history", "0-2-4-0,0-2-0-0"]);
    assert_eq!(by_id["items"], by_codes["items"]);
    assert_eq!(by_codes["history"][0], json!({"codes": [0, 2, 4, 0], "items": ["P0086"]}));
    let as_lists = recommend(&["--history", "[[0, 2, 4, 0], [0, 2, 0, 0]]"]);
    assert_eq!(as_lists, by_codes);
    assert!(by_id["items"][0]["attributes"]["price"].is_number());
    assert_eq!((&by_id["fewer"], &by_id["k"]), (&Value::Null, &10.into()));

    let strict = ["--history", "P0086,gone", "--unknown", "error"];
    let unknown = with_recommender("recommend", &shop, &strict);
    check_refused(&unknown, &["--history: item \"gone\"", "not in the catalog"]);
    let skipped = recommend(&["--history", "P0086,gone,0-99-0-0"]);
    assert_eq!(skipped["unknown"], json!(["gone", "0-99-0-0"]));
    assert_eq!(skipped["items"], recommend(&["--history", "P0086"])["items"]);
    let wrong =
        with_recommender("recommend", &shop, &["--history", "0-99-0-0", "--unknown", "error"]);
    check_refused(&wrong, &["code 99 at level 1"]);
}

#[test]
fn the_reason_why_fewer_came() {
    let shop = Shop::get().recommender();
    let filter = r#"{"must": {"ids": ["P0001", "P0002", "P0003"]}}"#;
    let rest = ["--history", "P0001,P0002,P0099", "--filter", filter, "-k", "5"];
    let args = with_recommender("recommend", &shop, &rest);
    let fewer = &run_json(&args)["fewer"];
    assert_eq!(fewer["asked"], 5);
    assert_eq!((&fewer["found"], &fewer["matching"]), (&1.into(), &3.into()));
    assert_eq!(fewer["seen"], 2);
    let text = run(&args);
    let why = "only 1 items may be recommended: 3 match the filter, of which 2 are in the history (--include-seen recommends them too)";
    assert!(text.contains(why), "{text}");
}

/// A command that fails under `--json` prints one document on standard output and nothing else.
#[track_caller]
fn check_json_error(args: &[&str], words: &[&str]) {
    let output = palmette(&[args, &["--json"]].concat());
    assert!(!output.status.success(), "{args:?} passed");
    assert!(output.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let message = document["error"].as_str().expect("a message");
    for word in words {
        assert!(message.contains(word), "{args:?} lacks {word:?}: {message}");
    }
    assert_eq!(document.as_object().unwrap().len(), 1);
}

#[test]
fn errors_under_json_are_documents() {
    let shop = Shop::get();
    let (model, palm) = (shop.path("model"), shop.path("shop.palm"));
    let of_shop = shop.recommender();
    let dir = tempfile::tempdir().unwrap();
    let grammar = write(dir.path(), "g.lark", "start: missing\n");
    check_json_error(
        &with_recommender("recommend", &of_shop, &["--history", "gone", "--unknown", "error"]),
        &["\"gone\""],
    );
    check_json_error(
        &with_recommender("recommend", &of_shop, &["--history", "", "-k", "0"]),
        &["k is 0"],
    );
    check_json_error(
        &with_recommender("eval", &of_shop, &["--histories", "none.json"]),
        &["none.json"],
    );
    check_json_error(&["catalog", "inspect", "none.palm"], &["none.palm"]);
    check_json_error(&["catalog", "inspect", &palm, "--item", "gone"], &["\"gone\""]);
    check_json_error(&["catalog", "filter", &palm, "{\"must\": 7}"], &["must"]);
    check_json_error(&["catalog", "build", "none.jsonl", "--out", "x.palm"], &["none.jsonl"]);
    check_json_error(&["catalog", "live", "merge", "none"], &["none"]);
    check_json_error(&["grammar", "check", &grammar], &["missing"]);
    check_json_error(&["vocabulary", "no_such_encoding"], &["no_such_encoding"]);
    // Arguments that make no command.
    check_json_error(&["recommend", "--model", &model, "--catalog", &palm], &["--history"]);
    check_json_error(&["recommend", "--no-such"], &["--no-such"]);
    // Without --json it is text on standard error.
    check_refused(
        &with_recommender("recommend", &of_shop, &["--history", "gone", "--unknown", "error"]),
        &["error: ", "\"gone\""],
    );
}

/// The report says what is wrong: it is the document, and there is no second one.
#[test]
fn a_report_of_failures_is_the_only_document() {
    let dir = tempfile::tempdir().unwrap();
    let grammar = write(dir.path(), "g.lark", "start: \"a\"\n");
    let text = write(dir.path(), "t.txt", "b");
    let output = palmette(&["grammar", "check", &grammar, "--text", &text, "--json"]);
    assert!(!output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(document["texts"][0]["accepted"], false);
}

#[test]
fn formats_of_histories_are_evaluated_alike() {
    let shop = Shop::get().recommender();
    let dir = tempfile::tempdir().unwrap();
    let all = histories(40);
    let ids = |history: &Value| -> Vec<String> {
        let ids = history["items"].as_array().unwrap().iter();
        ids.map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    let user = |history: &Value| history["user"].as_str().unwrap().to_owned();
    let texts: String = all.iter().map(|h| format!("{} {}\n", user(h), ids(h).join(" "))).collect();
    let mut inter = "user_id:token\titem_id:token\ttimestamp:float\n".to_owned();
    let mut rows = "user_id,history_item_id,item_id\n".to_owned();
    for history in &all {
        let of = ids(history);
        for (time, id) in of.iter().enumerate().rev() {
            inter += &format!("{}\t{id}\t{time}\n", user(history));
        }
        let (target, before) = of.split_last().unwrap();
        let list: Vec<String> = before.iter().map(|id| format!("'{id}'")).collect();
        rows += &format!("{},\"[{}]\",{target}\n", user(history), list.join(", "));
    }
    let evaluated = |name: &str, text: &str| {
        let path = write(dir.path(), name, text);
        let rest = [
            "--histories",
            &path,
            "--beam-width",
            "10",
            "--no-unconstrained",
            "--segment-by",
            "category",
        ];
        let mut document = run_json(&with_recommender("eval", &shop, &rest));
        for differs in ["seconds", "notes"] {
            document.as_object_mut().unwrap().remove(differs);
        }
        document
    };
    let expected = evaluated("h.jsonl", &lines(&all));
    assert_eq!(expected["users"], 40);
    for (name, text) in [("h.txt", &texts), ("h.inter", &inter), ("h.csv", &rows)] {
        assert_eq!(evaluated(name, text), expected, "{name}");
    }
    let spread = &expected["spread"];
    let of = |name: &str| spread[name].as_f64().unwrap();
    assert!(of("coverage@5") > 0.0 && of("coverage@5") < of("coverage@10"), "{spread}");
    assert!(of("coverage@10") <= 400.0 / 4034.0, "{spread}");
    assert!(of("gini@10") > 0.5 && of("gini@10") < 1.0, "{spread}");
    assert!((0.0..=1.0).contains(&of("new_items_asked_for")), "{spread}");
    let segments = expected["segmented"]["segments"].as_array().unwrap();
    let users: u64 = segments.iter().map(|one| one["users"].as_u64().unwrap()).sum();
    assert_eq!(users, 40, "one department an item");
    let hits: f64 = segments
        .iter()
        .map(|one| one["users"].as_f64().unwrap() * one["metrics"]["hit_rate@10"].as_f64().unwrap())
        .sum();
    let all_hits = 40.0 * expected["metrics"]["model"]["hit_rate@10"].as_f64().unwrap();
    assert!((hits - all_hits).abs() < 1e-9);

    let path = write(dir.path(), "v.csv", &rows);
    let rest = ["--histories", &path, "--split", "validation"];
    check_refused(&with_recommender("eval", &shop, &rest), &["--split validation", "v.csv"]);
    let path = write(dir.path(), "s.jsonl", &lines(&all));
    let rest = ["--histories", &path, "--users", "1", "--segment-by", "colour"];
    check_refused(
        &with_recommender("eval", &shop, &rest),
        &["colour", "category", "history-length"],
    );
}

#[test]
fn unknown_items_of_an_evaluation() {
    let shop = Shop::get().recommender();
    let dir = tempfile::tempdir().unwrap();
    let mut all = histories(10);
    all[0]["items"].as_array_mut().unwrap().insert(0, "gone".into());
    all[1]["items"] = json!(["P0001", "gone", "gone too"]);
    let path = write(dir.path(), "h.jsonl", &lines(&all));
    let rest = ["--histories", &path, "--beam-width", "10", "--no-unconstrained"];
    check_refused(&with_recommender("eval", &shop, &rest), &["\"gone\"", "--unknown skip"]);
    let skip = [&rest[..], &["--unknown", "skip", "--segment-by", "history-length"]].concat();
    let document = run_json(&with_recommender("eval", &shop, &skip));
    assert_eq!(document["skipped"], json!({"items": 3, "histories": 2, "questions": 0}));
    let counts = (&document["histories"], &document["users"], &document["asking_nothing"]);
    assert_eq!(counts, (&10.into(), &9.into(), &1.into()));
    let text = run(&with_recommender("eval", &shop, &skip));
    for word in [
        "left out as unknown: 3 items of 2 histories",
        "1 histories of fewer than 3",
        "history-length",
    ] {
        assert!(text.contains(word), "{text}");
    }
}
