//! Runs that go on: interruptions, copies, and changes that are refused.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::{NARROW, Run, histories, lines};
use crate::command::{check_refused, run_json, write};
use crate::shop::{Shop, with_recommender};

/// Begins a run over `histories` and ends it after its first answers, so that what it had is in
/// `partial`; how many lines of it are whole. On a busy machine a run may be done before it is
/// ended: then it is begun anew.
///
/// The last line may be torn: a system ends a write between two pages of a process that dies.
fn end_in_the_middle(
    args: &[&str],
    out: &str,
    partial: &Path,
    histories: usize,
    end: fn(&mut Child),
) -> usize {
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
            let so_far = std::fs::read(partial).unwrap();
            let lines = so_far.iter().filter(|byte| **byte == b'\n').count();
            if lines < histories {
                return lines;
            }
            std::fs::remove_file(partial).unwrap();
        }
        _ = std::fs::remove_file(out);
    }
    panic!("{TRIES} runs were done too soon to be ended");
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
}

/// SIGTERM, which ends a run as Ctrl-C does; programs in the background of a shell do not hear that
/// one.
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
    end_in_the_middle(&args, &out, &partial, 600, kill);
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
    let kept = torn.iter().filter(|byte| **byte == b'\n').count();
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
    let input = write(run.dir.path(), "in.jsonl", &lines(&histories(1800)));
    let ending = if cfg!(feature = "tables") { "parquet" } else { "jsonl" };
    let (whole, out) = (run.path(&format!("whole.{ending}")), run.path(&format!("out.{ending}")));
    crate::command::run(&run.args(&input, &whole, &["--unknown", "skip"]));
    let args = run.args(&input, &out, &["--unknown", "skip", "--resume", "--threads", "1"]);
    let partial = format!("{out}.partial");
    let kept = end_in_the_middle(&args, &out, Path::new(&partial), 1800, terminate);
    let report = run_json(&args);
    assert!(report["of_earlier_run"].as_u64() == Some(kept as u64));
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
    end_in_the_middle(&args, &out, &partial, 200, kill);

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
    end_in_the_middle(&args, &out, &partial, 200, kill);
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
    end_in_the_middle(&args, &out, &partial, 200, kill);
    let text = std::fs::read_to_string(&partial).unwrap().replacen("U0002", "X0002", 1);
    std::fs::write(&partial, text).unwrap();
    check_refused(&run.args(&input, &out, &["--resume"]), &["X0002", "U0002", "they have changed"]);
    std::fs::remove_file(run.path("out.jsonl.partial.json")).unwrap();
    check_refused(&run.args(&input, &out, &["--resume"]), &["is not known", "begin anew"]);
}
