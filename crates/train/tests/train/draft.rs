//! `palmette-train draft` as people run it: a trained model in, the same with a draft head out.
//!
//! The data is a circle of 20 items that every user walks along, so the right next item is known.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_model::draft::DraftHead;
use palmette_recommend::{History, Mode, PromptFormat, Recommender, Request, Verification, Worker};
use serde_json::{Map, Value, json};

const NUM_ITEMS: usize = 20;

/// A folder with a catalog, histories, and a model that was trained on them.
struct Shop {
    dir: tempfile::TempDir,
}

impl Shop {
    fn new() -> Self {
        let item = |i: usize| Item {
            id: format!("item-{i}"),
            codes: vec![i as u32 / 5, i as u32 % 5],
            attributes: Map::new(),
        };
        let items: Vec<Item> = (0..NUM_ITEMS).map(item).collect();
        let catalog = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
        let shop = Self { dir: tempfile::tempdir().unwrap() };
        catalog.save(shop.path("shop.palm")).unwrap();
        let item = |user: usize, at: usize| json!(format!("item-{}", (user + at) % NUM_ITEMS));
        let walk = |user| (0..9).map(|at| item(user, at)).collect::<Vec<_>>();
        let users = (0..2 * NUM_ITEMS).map(|user| (format!("user-{user}"), json!(walk(user))));
        let histories = Value::Object(users.collect());
        std::fs::write(shop.path("histories.json"), histories.to_string()).unwrap();
        let shape = ["--layers=1", "--hidden=32", "--intermediate=32", "--heads=2", "--kv-heads=1"];
        let how = ["--head-dim=8", "--max-history=10", "--learning-rate=0.01", "--epochs=30"];
        let calm = ["--warmup-steps=10", "--batch-size=8", "--dropout=0", "--drop-items=0"];
        let arguments = [&["train", "--out=model"], &shape[..], &how, &calm].concat();
        shop.run(&arguments);
        shop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let data = ["--catalog=shop.palm", "--histories=histories.json", "--threads=2"];
        let is_unsaid = |usual: &&&str| {
            let name = |option: &str| option.split('=').next().unwrap().to_owned();
            arguments.iter().all(|argument| name(argument) != name(usual))
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette-train"));
        command.current_dir(self.dir.path()).args(arguments);
        command.args(data.iter().filter(is_unsaid));
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.output(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    }

    #[track_caller]
    fn draft(&self, out: &str, options: &[&str]) -> Output {
        self.run(&drafting(&format!("--out={out}"), options))
    }

    #[track_caller]
    fn check_refused(&self, arguments: &[&str], parts: &[&str]) {
        let output = self.output(arguments);
        let message = text(&output.stderr);
        assert!(!output.status.success(), "it went through");
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
    }

    /// Starts a run and kills it as soon as it has written a checkpoint.
    #[track_caller]
    fn draft_and_kill(&self, out: &str, options: &[&str]) {
        let argument = format!("--out={out}");
        let mut command = self.command(&drafting(&argument, options));
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while !self.path(out).join("checkpoint").exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "waited a minute");
            std::thread::sleep(Duration::from_millis(1));
        }
        process.kill().unwrap();
        let status = process.wait().unwrap();
        assert!(!status.success(), "the run was over before it could be killed");
    }

    /// `draft.json` without the time, which differs from run to run.
    fn log(&self, out: &str) -> Value {
        let mut log: Value = serde_json::from_slice(&self.read(out, "draft.json")).unwrap();
        assert!(log.as_object_mut().unwrap().remove("seconds").unwrap().as_f64() > Some(0.0));
        log
    }

    fn read(&self, out: &str, name: &str) -> Vec<u8> {
        std::fs::read(self.path(out).join(name)).unwrap()
    }

    /// The share of walks whose next item is the first that is drafted.
    fn hits(&self, out: &str, verification: Verification) -> f64 {
        let catalog = Arc::new(Catalog::open(self.path("shop.palm")).unwrap());
        let recommender = load(&self.path(out), Arc::clone(&catalog));
        let rank = |item: usize| catalog.rank_of(&format!("item-{}", item % NUM_ITEMS)).unwrap();
        let mut worker = Worker::new(Arc::new(recommender), 1);
        let mut is_hit = |first: usize| {
            let history: Vec<u64> = (first..first + 4).map(rank).collect();
            let request = Request {
                beam_width: 4,
                mode: Mode::Draft(verification),
                ..Request::new(History::Numbers(&history), 1)
            };
            let answer = worker.recommend(&request, &mut run_on).unwrap();
            answer.items.first().is_some_and(|item| item.number == rank(first + 4))
        };
        (0..NUM_ITEMS).filter(|&first| is_hit(first)).count() as f64 / NUM_ITEMS as f64
    }
}

fn drafting<'a>(out: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let usual = ["draft", "--model=model", out, "--learning-rate=0.01", "--warmup-steps=10"];
    let calm = ["--batch-size=8", "--dropout=0", "--drop-items=0", "--json"];
    [&usual[..], &calm, options].concat()
}

fn load(dir: &Path, catalog: Arc<Catalog>) -> Recommender {
    let (model, format) = (Model::load(dir).unwrap(), PromptFormat::read(dir).unwrap());
    let head = DraftHead::load(dir, &model, format.draft_shape().unwrap()).unwrap();
    Recommender::new(model, catalog, format).unwrap().with_draft_head(head).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_head_trained_with_its_decoder_drafts_the_obvious_item() {
    let shop = Shop::new();
    let output = shop.draft("joint", &["--epochs=25"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["epochs"].as_array().unwrap().len(), 25);
    assert!(report["best"]["hit_rate_at_10"].as_f64() > Some(0.9), "{report}");
    assert!(shop.hits("joint", Verification::Masks) > 0.9);
    assert!(shop.hits("joint", Verification::Keys) > 0.9);
    assert_ne!(shop.read("joint", "model.safetensors"), shop.read("model", "model.safetensors"));
}

#[test]
fn threads_change_no_bit_and_seeds_do() {
    let shop = Shop::new();
    for how in ["--head-only", "--shards=3"] {
        let run = |out: &str, more: &[&str]| {
            shop.draft(out, &[&["--epochs=2", "--overwrite", how], more].concat());
            (shop.read(out, "model.safetensors"), shop.read(out, DraftHead::FILE_NAME))
        };
        let two = run("two", &[]);
        assert_eq!(two, run("one", &["--threads=1"]), "{how}");
        assert_ne!(two.1, run("other", &["--seed=1"]).1, "{how}");
    }
}

#[test]
fn a_head_alone_leaves_the_decoder_and_learns() {
    let shop = Shop::new();
    let output = shop.draft("head", &["--head-only", "--epochs=20"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let loss = |epoch: usize| report["epochs"][epoch]["draft_loss"].as_f64().unwrap();
    assert!(loss(19) < 0.8 * loss(0), "{report}");
    assert_eq!(shop.read("head", "model.safetensors"), shop.read("model", "model.safetensors"));
    let log = text(&shop.read("head", "draft.json"));
    assert!(log.contains("\"head_only\": true"), "{log}");
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let shop = Shop::new();
    let refused = |arguments: &[&str], part: &str| {
        shop.check_refused(&[&["draft", "--model=model"], arguments].concat(), &[part]);
    };
    refused(&["--out=model"], "already holds a training run");
    refused(&["--out=new", "--crop=1"], "--crop is 1");
    refused(&["--out=new", "--validate-every=0"], "--validate-every is 0");
    refused(&["--out=new", "--next-token-weight=-1"], "next_token_weight");
    refused(&["--out=new", "--cold-start=1"], "between 0 and 1");
    refused(&["--out=new", "--resume"], "new holds no checkpoint to go on from");
    // The same semantic IDs, of things that the model has never heard of.
    let item = |i: usize| Item {
        id: format!("other-{i}"),
        codes: vec![i as u32 / 5, i as u32 % 5],
        attributes: Map::new(),
    };
    let items: Vec<Item> = (0..NUM_ITEMS).map(item).collect();
    let other = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
    other.save(shop.path("other.palm")).unwrap();
    let histories = json!({"ann": ["other-1", "other-2", "other-3"]});
    std::fs::write(shop.path("other.json"), histories.to_string()).unwrap();
    let data = ["--out=new", "--catalog=other.palm", "--histories=other.json"];
    refused(&data, "the model was trained on another shop");
    // A model that reads text is not trained as one that reads codes.
    let template = shop.path("model").join("prompt_template.json");
    std::fs::write(template, "{\"prompt\": \"{{ history }}\"}").unwrap();
    refused(&["--out=new"], "model/prompt_template.json: ");
    let output = shop.output(&["draft", "--model=none", "--out=new"]);
    assert!(text(&output.stderr).contains("semantic_ids.json"), "{}", text(&output.stderr));
    assert!(!shop.path("new").exists());
}

#[test]
fn killed_and_resumed_is_as_straight_through() {
    let shop = Shop::new();
    for (how, straight, broken) in
        [("--head-only", "straight", "broken"), ("--shards=3", "straight-2", "broken-2")]
    {
        let long = ["--epochs=40", "--validate-every=2", how];
        shop.draft(straight, &long);
        shop.draft_and_kill(broken, &long);

        // As if killed between the log and its checkpoint, and in the middle of writing files.
        std::fs::copy(shop.path(straight).join("draft.json"), shop.path(broken).join("draft.json"))
            .unwrap();
        std::fs::create_dir_all(shop.path(broken).join("candidate")).unwrap();
        std::fs::write(shop.path(broken).join("candidate/model.safetensors"), "half").unwrap();
        shop.draft(broken, &[&long[..], &["--resume"]].concat());

        for name in ["model.safetensors", DraftHead::FILE_NAME] {
            assert!(shop.read(broken, name) == shop.read(straight, name), "{how}: other {name}");
        }
        assert_eq!(shop.log(broken), shop.log(straight), "{how}");
        for name in ["weights", "adam_first", "adam_second"] {
            let last = |out| shop.read(out, &format!("checkpoint/{name}.safetensors"));
            assert!(last(broken) == last(straight), "{how}: other {name} in the checkpoint");
        }
        assert!(!shop.path(broken).join("candidate").exists());
    }
}

#[test]
fn a_run_is_resumed_only_as_it_was() {
    let shop = Shop::new();
    shop.draft("head", &["--epochs=2", "--head-only"]);
    shop.draft("joint", &["--epochs=2"]);
    let refused = |out: &str, changed: &[&str], part: &str| {
        let out = format!("--out={out}");
        shop.check_refused(&drafting(&out, &[&["--resume"], changed].concat()), &[part]);
    };
    let part = "begun with --head-only and is resumed without --head-only";
    refused("head", &["--epochs=2"], part);
    let part = "begun without --head-only and is resumed with --head-only";
    refused("joint", &["--epochs=2", "--head-only"], part);
    let part = "begun with --epochs 2 and is resumed with --epochs 3; resume it with --epochs 2";
    refused("joint", &["--epochs=3"], part);
    let part = "begun with --input both and is resumed with --input state";
    refused("joint", &["--epochs=2", "--input=state"], part);
    let part = "begun without --cold-start and is resumed with --cold-start 0.1";
    refused("joint", &["--epochs=2", "--cold-start=0.1"], part);

    // A run of another command, which has no such log.
    refused("model", &["--epochs=2"], "draft.json: a run cannot go on without its log");
    let train = ["train", "--out=joint", "--epochs=2", "--resume"];
    shop.check_refused(&train, &["training.json: a run cannot go on without its log"]);

    // Another model of the same shape.
    let weights = shop.path("model/model.safetensors");
    std::fs::copy(shop.path("joint/model.safetensors"), weights).unwrap();
    refused("joint", &["--epochs=2"], "--model has changed since the run began");
}

#[test]
fn a_finished_run_is_resumed_to_nothing_new() {
    let shop = Shop::new();
    for how in ["--head-only", "--shards=3"] {
        shop.draft("out", &["--epochs=3", how, "--overwrite"]);
        let before = (shop.read("out", DraftHead::FILE_NAME), shop.log("out"));
        shop.draft("out", &["--epochs=3", how, "--resume"]);
        assert!(before == (shop.read("out", DraftHead::FILE_NAME), shop.log("out")), "{how}");
    }
}

#[test]
fn items_of_a_cold_start_are_kept_from_a_head() {
    let shop = Shop::new();
    shop.draft("cold", &["--epochs=1", "--cold-start=0.1"]);
    shop.draft("all", &["--epochs=1"]);
    assert_eq!(
        (&shop.log("cold")["cold_items"], &shop.log("all")["cold_items"]),
        (&json!(2), &json!(0))
    );
    let asked = |out: &str| shop.log(out)["best"]["users"].as_u64().unwrap();
    assert!(asked("cold") < asked("all"));
}
