//! `palmette-train train` as people run it: the built binary, files in, files out.
//!
//! The data is a circle of 20 items that every user walks along, so the right next item is known.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_recommend::{History, PromptFormat, Recommender, Request, Worker};
use palmette_train::{Params, Trainer, VecDataset};
use serde_json::{Map, Value, json};

const NUM_ITEMS: usize = 20;

/// What is said unless a test says otherwise: the data, and a model of a few thousand weights.
const USUAL: &[&str] = &[
    "--catalog=shop.palm",
    "--histories=histories.json",
    "--layers=1",
    "--hidden=16",
    "--intermediate=32",
    "--heads=2",
    "--kv-heads=1",
    "--head-dim=8",
    "--max-history=10",
    "--batch-size=8",
    "--warmup-steps=10",
    "--learning-rate=0.01",
    "--threads=2",
];

/// A run so long that a kill at the first checkpoint falls far before its end.
const LONG: &[&str] = &["--epochs=60", "--validate-every=2", "--patience=0", "--average-decay=0.9"];

/// A folder with a catalog and histories.
struct Shop {
    dir: tempfile::TempDir,
}

impl Shop {
    /// 40 users who took 9 items each, one after another along the circle.
    fn new() -> Self {
        Self::with_histories(&walks(9))
    }

    fn with_histories(histories: &Value) -> Self {
        let item = |i: usize| Item {
            id: format!("item-{i}"),
            codes: vec![i as u32 / 5, i as u32 % 5],
            attributes: Map::new(),
        };
        let items: Vec<Item> = (0..NUM_ITEMS).map(item).collect();
        let catalog = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
        let shop = Self { dir: tempfile::tempdir().unwrap() };
        catalog.save(shop.path("shop.palm")).unwrap();
        shop.write_histories(histories);
        shop
    }

    fn write_histories(&self, histories: &Value) {
        std::fs::write(self.path("histories.json"), histories.to_string()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, out: &str, options: &[&str]) -> Command {
        let name = |option: &str| option.split('=').next().unwrap().to_owned();
        let is_unsaid = |usual: &&&str| options.iter().all(|option| name(option) != name(usual));
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette-train"));
        command.current_dir(self.dir.path()).args(["train", "--out", out]);
        command.args(USUAL.iter().filter(is_unsaid)).args(options);
        command
    }

    #[track_caller]
    fn train(&self, out: &str, options: &[&str]) -> Output {
        let output = self.command(out, options).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    }

    #[track_caller]
    fn check_refused(&self, out: &str, options: &[&str], code: i32, parts: &[&str]) {
        let output = self.command(out, options).output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
        assert_eq!(text(&output.stdout), "");
    }

    /// Starts a run and kills it as soon as it has written a checkpoint.
    #[track_caller]
    fn train_and_kill(&self, out: &str, options: &[&str]) {
        let mut command = self.command(out, options);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until(|| self.path(out).join("checkpoint").exists());
        process.kill().unwrap();
        let status = process.wait().unwrap();
        assert!(!status.success(), "the run was over before it could be killed");
    }

    fn weights(&self, out: &str) -> Vec<u8> {
        std::fs::read(self.path(out).join("model.safetensors")).unwrap()
    }

    /// `training.json` without the time, which differs from run to run.
    fn log(&self, out: &str) -> Value {
        let text = std::fs::read_to_string(self.path(out).join("training.json")).unwrap();
        let mut log: Value = serde_json::from_str(&text).unwrap();
        assert!(log.as_object_mut().unwrap().remove("seconds").unwrap().as_f64() > Some(0.0));
        log
    }

    fn num_epochs(&self, out: &str) -> usize {
        self.log(out)["epochs"].as_array().unwrap().len()
    }

    /// The names of the files and folders in `out`.
    fn names(&self, out: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(out)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The model in `out`, as it is served.
    #[track_caller]
    fn recommender(&self, out: &str) -> Recommender {
        let out = self.path(out);
        let catalog = Arc::new(Catalog::open(self.path("shop.palm")).unwrap());
        let format = PromptFormat::read(&out).unwrap();
        Recommender::new(Model::load(&out).unwrap(), catalog, format).unwrap()
    }
}

fn walks(length: usize) -> Value {
    let item = |user: usize, at: usize| json!(format!("item-{}", (user + at) % NUM_ITEMS));
    let walk = |user| (0..length).map(|at| item(user, at)).collect::<Vec<_>>();
    let users = (0..2 * NUM_ITEMS).map(|user| (format!("user-{user}"), json!(walk(user))));
    Value::Object(users.collect())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn wait_until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_trained_model_recommends_the_obvious_item() {
    let shop = Shop::new();
    let sure = ["--hidden=32", "--epochs=60", "--patience=0", "--dropout=0", "--drop-items=0"];
    let output = shop.train("new/model", &[&sure[..], &["--dtype=bf16"]].concat());
    assert!(text(&output.stderr).contains("epoch   60"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("best validation at epoch"));
    let names = [
        "checkpoint",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "semantic_ids.json",
        "training.json",
    ];
    assert_eq!(shop.names("new/model"), names);

    let recommender = shop.recommender("new/model");
    let mut worker = Worker::new(Arc::new(recommender), 1);
    for first in 0..NUM_ITEMS {
        let id = |at| format!("item-{}", (first + at) % NUM_ITEMS);
        let ids: Vec<String> = (0..7).map(id).collect();
        let history: Vec<&str> = ids.iter().map(String::as_str).collect();
        let request = Request { beam_width: NUM_ITEMS, ..Request::new(History::Ids(&history), 1) };
        let answer = worker.recommend(&request, &mut run_on).unwrap();
        assert!(answer.unknown.is_empty());
        assert_eq!(
            answer.id(&answer.items[0]),
            id(7),
            "after item {first} and the six that follow; {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let shop = Shop::new();
    let output = shop.train("model", &["--epochs=3", "--validate-every=2", "--json"]);
    assert_eq!(text(&output.stderr), "");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["out"], "model");
    let epochs = document["epochs"].as_array().unwrap().iter();
    let validated: Vec<bool> = epochs.map(|epoch| epoch.get("validation").is_some()).collect();
    assert_eq!(validated, [false, true, true]);
    let log = shop.log("model");
    for field in ["epochs", "best", "parameters"] {
        assert_eq!(log[field], document[field], "{field}");
    }
}

#[test]
fn the_seed_decides_and_the_number_of_threads_does_not() {
    let shop = Shop::new();
    let weights = |out: &str, option: &str| {
        shop.train(out, &["--epochs=4", option]);
        shop.weights(out)
    };
    let one = weights("one", "--threads=1");
    for (out, option) in [("again", "--threads=1"), ("two", "--threads=2"), ("5", "--threads=5")] {
        assert!(one == weights(out, option), "other weights in {out}");
    }
    assert!(one != weights("seed", "--seed=1"), "the same weights");
}

#[test]
fn killed_and_resumed_is_as_straight_through() {
    let shop = Shop::new();
    shop.train("straight", LONG);
    shop.train_and_kill("broken", LONG);
    shop.recommender("broken"); // Whatever was going on, OUT holds a model.

    // As if killed between the log and its checkpoint, and in the middle of writing files.
    std::fs::copy(shop.path("straight/training.json"), shop.path("broken/training.json")).unwrap();
    std::fs::create_dir_all(shop.path("broken/candidate")).unwrap();
    std::fs::create_dir_all(shop.path("broken/.checkpoint.partial")).unwrap();
    for file in ["candidate/.model.safetensors.partial", ".training.json.partial"] {
        std::fs::write(shop.path("broken").join(file), "half").unwrap();
    }
    let output = shop.train("broken", &[LONG, &["--resume"]].concat());
    assert!(text(&output.stderr).contains("of them taken"), "{}", text(&output.stderr));

    assert_eq!(shop.names("broken"), shop.names("straight"));
    assert!(shop.weights("broken") == shop.weights("straight"), "other weights");
    assert_eq!(shop.log("broken"), shop.log("straight"));
    let last = |out| std::fs::read(shop.path(out).join("checkpoint/weights.safetensors")).unwrap();
    assert!(last("broken") == last("straight"), "another checkpoint");
}

#[test]
fn a_model_is_in_out_at_every_moment() {
    let shop = Shop::new();
    let mut command = shop.command("model", LONG);
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| shop.path("model/model.safetensors").exists());
    let mut loads = 0;
    while process.try_wait().unwrap().is_none() {
        shop.recommender("model");
        loads += 1;
    }
    assert!(loads > 3, "the run was over too soon to see anything");
}

#[test]
fn a_finished_run_is_resumed_to_nothing_new() {
    let shop = Shop::new();
    shop.train("model", &["--epochs=4"]);
    let (weights, log) = (shop.weights("model"), shop.log("model"));
    let output = shop.train("model", &["--epochs=4", "--resume", "--json"]);
    assert!(shop.weights("model") == weights, "other weights");
    assert_eq!(shop.log("model"), log);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["epochs"], log["epochs"]);
}

#[test]
fn a_run_that_stopped_early_stays_stopped_until_patience_grows() {
    let shop = Shop::new();
    // A learning rate too small to change any order: the first validation is never beaten.
    let still = ["--epochs=12", "--validate-every=2", "--learning-rate=1e-12"];
    let train = |options: &[&str]| shop.train("model", &[&still, options].concat());

    let output = train(&["--patience=2"]);
    assert!(text(&output.stderr).contains("stopped early"), "{}", text(&output.stderr));
    assert_eq!(shop.num_epochs("model"), 6);
    assert_eq!(shop.log("model")["best"]["epoch"], 2);
    let weights = shop.weights("model");
    for (patience, epochs) in [("--patience=2", 6), ("--patience=3", 8), ("--patience=0", 12)] {
        train(&[patience, "--resume", "--threads=1"]);
        assert_eq!(shop.num_epochs("model"), epochs, "{patience}");
    }
    assert!(shop.weights("model") == weights, "the first of equals is not kept");
}

#[test]
fn without_anyone_to_ask_the_latest_model_is_kept() {
    let shop = Shop::with_histories(&walks(2));
    let output = shop.train("short", &["--epochs=3"]);
    assert!(text(&output.stdout).contains("the last epoch's model"));
    shop.recommender("short");
    assert_eq!(shop.log("short")["best"], Value::Null);

    shop.write_histories(&walks(6));
    let options = ["--epochs=3", "--validate-every=1", "--validation-users=0"];
    shop.train("unasked", &options);
    let kept = Params::load(&shop.path("unasked")).unwrap();
    let data = VecDataset::next_token(&[[1, 2]; 2 * NUM_ITEMS]);
    let last = Trainer::resume(&shop.path("unasked/checkpoint"), data).unwrap();
    assert!(kept.values() == last.params().values(), "not the last epoch's model");
    shop.train("unasked", &[&options[..], &["--resume"]].concat());
}

#[test]
fn what_is_not_held_out_is_trained_on_and_not_asked_for() {
    let shop = Shop::new();
    shop.train("both", &["--epochs=2"]);
    shop.train("test", &["--epochs=2", "--hold-out=test"]);
    shop.train("nothing", &["--epochs=2", "--hold-out=nothing"]);
    let items = |out: &str| shop.log(out)["training_items"].as_u64().unwrap();
    let histories = shop.log("both")["training_histories"].as_u64().unwrap();
    assert_eq!(items("test"), items("both") + histories);
    assert_eq!(items("nothing"), items("both") + 2 * histories);
    assert!(!shop.log("both")["best"].is_null());
    for out in ["test", "nothing"] {
        assert_eq!(shop.log(out)["best"], Value::Null);
        shop.recommender(out);
    }
}

#[test]
fn what_out_holds_is_not_replaced_unasked() {
    let shop = Shop::new();
    shop.train("model", &["--epochs=2"]);
    let ways = ["model already holds a training run", "--resume", "--overwrite"];
    shop.check_refused("model", &[], 1, &ways);
    std::fs::remove_dir_all(shop.path("model/checkpoint")).unwrap();
    shop.check_refused("model", &[], 1, &["model already holds a model", "--overwrite"]);
    shop.check_refused("model", &["--resume"], 1, &["model holds no checkpoint to go on from"]);
    shop.check_refused("model", &["--resume", "--overwrite"], 2, &["cannot be used with"]);

    // Another shape, so that old and new files do not go together.
    shop.train("model", &["--epochs=3", "--overwrite", "--hidden=24"]);
    assert_eq!(shop.recommender("model").engine().config().hidden_size, 24);
    assert_eq!(shop.num_epochs("model"), 3);
}

#[test]
fn a_replaced_run_is_not_gone_on_with() {
    let shop = Shop::new();
    shop.train("model", &["--epochs=2"]);
    let before = shop.weights("model");
    // The first validation comes long after the kill.
    let options = ["--epochs=5000", "--validate-every=5000", "--overwrite", "--json"];
    let mut process = shop.command("model", &options).stdout(Stdio::null()).spawn().unwrap();
    wait_until(|| !shop.path("model/checkpoint").exists());
    process.kill().unwrap();
    process.wait().unwrap();
    shop.recommender("model");
    assert!(shop.weights("model") == before, "the old model goes only when a new one comes");
    shop.check_refused("model", &["--epochs=2", "--resume"], 1, &["holds no checkpoint"]);
}

#[test]
fn a_run_is_resumed_only_as_it_was() {
    let shop = Shop::new();
    shop.train("model", &["--epochs=2"]);
    let check = |changed: &[&str], part: &str| {
        shop.check_refused("model", &[&["--resume"], changed].concat(), 1, &[part]);
    };
    check(
        &["--epochs=3"],
        "begun with --epochs 2 and is resumed with --epochs 3; resume it with --epochs 2, or",
    );
    check(
        &["--epochs=2", "--dropout=0.3"],
        "begun with --dropout 0.2 and is resumed with --dropout 0.3",
    );
    check(&["--epochs=2", "--hidden=24"], "`hidden_size` = 16, but this run has 24");
    check(
        &["--epochs=2", "--hold-out=test"],
        "begun with --hold-out both and is resumed with --hold-out test",
    );
    check(&["--epochs=2", "--crop=0.5"], "begun with --crop 0.3 and is resumed with --crop 0.5");
    check(
        &["--epochs=2", "--dtype=bf16"],
        "begun with --dtype f32 and is resumed with --dtype bf16",
    );
    check(
        &["--epochs=2", "--validate-every=1"],
        "begun with --validate-every 5 and is resumed with --validate-every 1",
    );
    shop.write_histories(&walks(8));
    check(&["--epochs=2"], "histories.json or shop.palm have changed since the run began");
}

#[test]
fn unusable_options_are_named() {
    let shop = Shop::new();
    let check = |option: &str, part: &str| shop.check_refused("model", &[option], 1, &[part]);
    check("--learning-rate=nan", "`learning_rate` is NaN");
    check("--dropout=1.0", "`dropout` is 1; it must be at least 0 and below 1");
    check("--epochs=0", "`duration` is 0");
    check("--batch-size=0", "`batch_size` is 0");
    check("--shards=0", "`shards` is 0");
    check("--crop=nan", "--crop is NaN");
    check("--drop-items=1", "--drop-items is 1");
    check("--max-history=0", "--max-history is 0");
    check("--validate-every=0", "--validate-every is 0");
    check("--validation-beam-width=0", "--validation-beam-width is 0");
    check("--kv-heads=3", "configuration is unusable");
    check("--catalog=none.palm", "none.palm: No such file");
    check("--histories=none.json", "none.json: cannot be read");
    shop.check_refused("model", &["--threads=0"], 2, &["--threads"]);
    shop.check_refused("model", &["--epochs=few"], 2, &["--epochs"]);
    shop.check_refused("shop.palm/model", &[], 1, &["shop.palm/model: cannot be made"]);
    assert!(!shop.path("model").exists(), "a refused run leaves something behind");
}

#[test]
fn unusable_data_is_named() {
    let shop = Shop::with_histories(&json!({ "ann": ["item-3", "item-99"] }));
    shop.check_refused("model", &[], 1, &["histories.json", "\"ann\"", "\"item-99\""]);
    for empty in [json!({}), json!({ "ann": [] })] {
        shop.write_histories(&empty);
        shop.check_refused("model", &[], 1, &["histories.json: no history to train on"]);
    }
    assert!(!shop.path("model").exists(), "a refused run leaves something behind");
}

/// Without unknown items the run is that of histories that never had them; columns have other names
/// in other files.
#[test]
fn unknown_items_are_left_out_where_it_is_asked_for() {
    let clean = walks(5);
    let shop = Shop::with_histories(&clean);
    let short = ["--epochs=2", "--validate-every=1"];
    shop.train("clean", &short);
    let mut with_unknown = clean.clone();
    for (user, items) in with_unknown.as_object_mut().unwrap() {
        items.as_array_mut().unwrap().insert(1, format!("gone-{user}").into());
    }
    shop.write_histories(&with_unknown);
    shop.check_refused("model", &short, 1, &["gone-user-0", "--unknown skip"]);
    let output = shop.train("skipped", &[&short[..], &["--unknown=skip"]].concat());
    let said = text(&output.stderr);
    assert!(said.contains("40 items of 40 histories are not in the catalog"), "{said}");
    assert_eq!(shop.weights("skipped"), shop.weights("clean"));
    shop.check_refused("model", &["--unknown=maybe"], 2, &["neither error nor skip"]);

    let mut csv = "who,what,rating\n".to_owned();
    for (user, items) in clean.as_object().unwrap() {
        let rows = items.as_array().unwrap().iter();
        rows.for_each(|item| csv += &format!("{user},{},5\n", item.as_str().unwrap()));
    }
    std::fs::write(shop.path("events.csv"), csv).unwrap();
    let columns = ["--histories=events.csv", "--user-column=who", "--item-column=what"];
    let output = shop.train("columns", &[&short[..], &columns].concat());
    let said = text(&output.stderr);
    assert!(said.contains("not read: rating"), "{said}");
    assert_eq!(shop.weights("columns"), shop.weights("clean"));
}

/// Items of the training part of a history, where the last two are held out.
fn trained(history: &Value) -> &[Value] {
    let items = history.as_array().unwrap();
    &items[..items.len() - 2]
}

#[test]
fn a_cold_start_is_training_without_the_histories_that_have_its_items() {
    let histories = walks(5);
    let shop = Shop::with_histories(&histories);
    let options = ["--epochs=2", "--validation-users=0"];
    shop.train("cold", &[&options[..], &["--cold-start=0.1"]].concat());

    let mut by_appearance: Vec<&Value> = Vec::new();
    let users = histories.as_object().unwrap();
    for item in users.values().flat_map(|history| history.as_array().unwrap()) {
        if !by_appearance.contains(&item) {
            by_appearance.push(item);
        }
    }
    assert_eq!(by_appearance.len(), NUM_ITEMS);
    let cold = &by_appearance[NUM_ITEMS - 2..];
    let has_cold = |history: &Value| trained(history).iter().any(|item| cold.contains(&item));
    let without: Map<String, Value> = users
        .iter()
        .filter(|(_, history)| !has_cold(history))
        .map(|(user, history)| (user.clone(), history.clone()))
        .collect();
    let (log, left) = (shop.log("cold"), without.len());
    assert!(0 < left && left < users.len());
    assert_eq!((&log["cold_items"], &log["training_histories"]), (&json!(2), &json!(left)));

    shop.write_histories(&without.into());
    shop.train("without", &options);
    assert_eq!(shop.weights("cold"), shop.weights("without"));
}

#[test]
fn nobody_is_asked_about_items_of_a_cold_start_at_validation() {
    let histories = walks(5);
    let shop = Shop::with_histories(&histories);
    shop.train("cold", &["--epochs=1", "--cold-start=0.1"]);
    let users = histories.as_object().unwrap();
    let mut seen: Vec<&Value> = Vec::new();
    users.values().flat_map(|h| h.as_array().unwrap()).for_each(|item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
    });
    let cold = &seen[NUM_ITEMS - 2..];
    let is_asked = |history: &&Value| {
        let items = history.as_array().unwrap();
        !items[..items.len() - 1].iter().any(|item| cold.contains(&item))
    };
    let asked = users.values().filter(is_asked).count();
    assert!(0 < asked && asked < users.len());
    assert_eq!(shop.log("cold")["best"]["users"], json!(asked));
}

#[test]
fn cold_starts_that_cannot_be_are_refused() {
    let shop = Shop::new();
    for share in ["0", "1", "-0.5", "NaN"] {
        let option = format!("--cold-start={share}");
        shop.check_refused("out", &[&option], 1, &["--cold-start", share, "between 0 and 1"]);
    }
    let parts = ["histories.json", "that is 0 of the 20 items"];
    shop.check_refused("out", &["--cold-start=0.001"], 1, &parts);
    assert!(!shop.path("out").exists(), "nothing was begun");

    shop.train("out", &["--epochs=1", "--cold-start=0.1"]);
    // As many items, so that nothing else differs.
    let parts = ["begun with --cold-start 0.1 and is resumed with --cold-start 0.11"];
    shop.check_refused("out", &["--epochs=1", "--cold-start=0.11", "--resume"], 1, &parts);
    let parts = [
        "begun with --cold-start 0.1 and is resumed without --cold-start",
        "resume it with --cold-start 0.1, or start a new run with --overwrite or another --out",
    ];
    shop.check_refused("out", &["--epochs=1", "--resume"], 1, &parts);
}
