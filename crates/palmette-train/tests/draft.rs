//! `palmette-train draft` as people run it: a trained model in, the same with a draft head out.
//!
//! The data is a circle of 20 items that every user walks along, so the right next item is known.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_model::Model;
use palmette_model::draft::DraftHead;
use palmette_recommend::{Mode, PromptFormat, Recommender, Request, Verification, WorkerOptions};
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
        catalog.write(&shop.path("shop.palm")).unwrap();
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
        let data = ["--catalog=shop.palm", "--histories=histories.json", "--threads=2"];
        let is_unsaid = |usual: &&&str| {
            let name = |option: &str| option.split('=').next().unwrap().to_owned();
            arguments.iter().all(|argument| name(argument) != name(usual))
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette-train"));
        command.current_dir(self.dir.path()).args(arguments);
        command.args(data.iter().filter(is_unsaid)).output().unwrap()
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.output(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    }

    #[track_caller]
    fn draft(&self, out: &str, options: &[&str]) -> Output {
        let out = format!("--out={out}");
        let usual = ["draft", "--model=model", &out, "--learning-rate=0.01", "--warmup-steps=10"];
        let calm = ["--batch-size=8", "--dropout=0", "--drop-items=0", "--json"];
        self.run(&[&usual[..], &calm, options].concat())
    }

    fn read(&self, out: &str, name: &str) -> Vec<u8> {
        std::fs::read(self.path(out).join(name)).unwrap()
    }

    /// The share of walks whose next item is the first that is drafted.
    fn hits(&self, out: &str, verification: Verification) -> f64 {
        let catalog = Arc::new(Catalog::open(&self.path("shop.palm")).unwrap());
        let recommender = load(&self.path(out), catalog);
        let catalog = recommender.catalog();
        let rank = |item: usize| catalog.rank_of(&format!("item-{}", item % NUM_ITEMS)).unwrap();
        let options = WorkerOptions { beam_width: 4, threads: 1 };
        let mut worker = recommender.worker_in(Mode::Draft(verification), options).unwrap();
        let mut is_hit = |first: usize| {
            let history: Vec<u64> = (first..first + 4).map(rank).collect();
            let request = Request { history: &history, k: 1, include_seen: false, items: None };
            let answer = worker.recommend(&request, |_| {}).unwrap();
            answer.items.first().is_some_and(|item| item.rank == rank(first + 4))
        };
        (0..NUM_ITEMS).filter(|&first| is_hit(first)).count() as f64 / NUM_ITEMS as f64
    }
}

fn load(dir: &Path, catalog: Arc<Catalog>) -> Recommender {
    let (model, format) = (Model::load(dir).unwrap(), PromptFormat::read(dir).unwrap());
    let head = DraftHead::load(dir, &model, format.draft_shape()).unwrap();
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
        let output = shop.output(&[&["draft", "--model=model"], arguments].concat());
        let message = text(&output.stderr);
        assert!(!output.status.success() && message.contains(part), "{message}");
    };
    refused(&["--out=model"], "already holds a model");
    refused(&["--out=new", "--crop=1"], "--crop is 1");
    refused(&["--out=new", "--validate-every=0"], "--validate-every is 0");
    refused(&["--out=new", "--next-token-weight=-1"], "next_token_weight");
    let output = shop.output(&["draft", "--model=none", "--out=new"]);
    assert!(text(&output.stderr).contains("semantic_ids.json"), "{}", text(&output.stderr));
    assert!(!shop.path("new").exists());
}
