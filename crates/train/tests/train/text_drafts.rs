//! Draft heads of models of text: trained after a template's prompts with queries, and asked after
//! them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item, LevelSpelling};
use palmette_catalog_live::CatalogView;
use palmette_decode::run_on;
use palmette_model::Model;
use palmette_model::draft::DraftHead;
use palmette_recommend::{
    History, Mode, PromptFields, Prompts, Recommender, Request, Verification, Worker,
};
use serde_json::{Map, Value, json};

use crate::from_checkpoint::checkpoint_of;

const NUM_ITEMS: usize = 12;

/// A word for each item, by which it is asked for.
const WORDS: [&str; NUM_ITEMS] =
    ["tent", "stove", "rope", "lamp", "boots", "map", "cup", "axe", "mat", "bag", "knife", "socks"];

/// A folder with a catalog and histories.
struct Shop {
    dir: tempfile::TempDir,
    catalog: Arc<Catalog>,
}

impl Shop {
    fn new() -> Self {
        // Eleven codes at a level: by their names the tokens are in another order than the codes.
        let item = |i: usize| Item {
            id: format!("item-{i}"),
            codes: vec![i as u32 % 2, i as u32 % 11],
            attributes: Map::new(),
        };
        let items: Vec<Item> = (0..NUM_ITEMS).map(item).collect();
        let catalog = Arc::new(Catalog::build(items.into(), &BuildOptions::default()).unwrap());
        let shop = Self { dir: tempfile::tempdir().unwrap(), catalog };
        shop.catalog.save(shop.path("shop.palm")).unwrap();
        shop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Rows that say what a user asked for, after what, and got.
    fn write_questions(&self) {
        let row = |n: usize| {
            // After each item four others are asked for.
            let (asked, after) = (n % NUM_ITEMS, (n * 7 + n / NUM_ITEMS) % NUM_ITEMS);
            let row = json!({
                "user_id": format!("u{n}"), "user": {"age": 20 + n}, "query": WORDS[asked],
                "items": [format!("item-{after}")], "target": format!("item-{asked}"),
            });
            row.to_string() + "\n"
        };
        let rows: String = (0..4 * NUM_ITEMS).map(row).collect();
        std::fs::write(self.path("questions.jsonl"), rows).unwrap();
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette-train"));
        command.current_dir(self.dir.path()).args(arguments);
        command.args(["--catalog=shop.palm", "--threads=2"]).output().unwrap()
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    #[track_caller]
    fn check_refused(&self, arguments: &[&str], parts: &[&str]) {
        let output = self.output(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "it went through");
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in: {said}");
        }
    }

    /// The model of a directory, with the head that lies there.
    fn recommender(&self, name: &str) -> Arc<Recommender> {
        let (dir, catalog) = (self.path(name), Arc::clone(&self.catalog));
        let prompts = Prompts::read(&dir, Some(&CatalogView::from(Arc::clone(&catalog)))).unwrap();
        let model = Model::load(&dir).unwrap();
        let shape = prompts.format().draft_shape().unwrap();
        let head = DraftHead::load(&dir, &model, shape).unwrap();
        let recommender = Recommender::new(model, catalog, prompts).unwrap();
        Arc::new(recommender.with_draft_head(head).unwrap())
    }
}

/// Names of the files of a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    let mut names: Vec<String> =
        files.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn template() -> Value {
    json!({"prompt": "{{ query }}{% if user.age > 90 %}!{% endif %} after {{ history | join(', ') }}: ", "end": "{{ eos_token }}"})
}

const CALM: [&str; 5] = [
    "--learning-rate=0.01",
    "--warmup-steps=5",
    "--dropout=0",
    "--batch-size=8",
    "--hold-out=nothing",
];

/// As one trains a model of Llama's form on searches, then its head, and asks the head.
#[test]
fn a_head_finds_what_a_query_asks_for() {
    let shop = Shop::new();
    shop.write_questions();
    checkpoint_of("llama", &shop.path("base"), &template());
    std::fs::write(shop.path("base/LICENSE"), "free").unwrap();
    std::fs::write(shop.path("base/generation_config.json"), "{\"eos_token_id\": 302}").unwrap();
    let data = "--histories=questions.jsonl";
    let from = ["train", "--out=model", "--from=base", "--epochs=100", data];
    let said = shop.run(&[&from[..], &CALM].concat());
    assert!(said.contains("13 tokens added"), "{said}");
    let draft = ["draft", "--model=model", "--out=drafting", "--epochs=60", data];
    shop.run(&[&draft[..], &CALM].concat());

    // OUT is the model, with a head.
    let (model, out) = (shop.path("model"), shop.path("drafting"));
    let mut expected = names(&model);
    expected.retain(|name| name != "training.json");
    expected.extend(["draft.json".to_owned(), DraftHead::FILE_NAME.to_owned()]);
    expected.sort();
    assert_eq!(names(&out), expected);
    assert!(expected.iter().any(|name| name == "prompt_template.json"), "{expected:?}");
    for name in ["prompt_template.json", "tokenizer.json", "LICENSE", "generation_config.json"] {
        let read = |dir: &Path| std::fs::read(dir.join(name)).unwrap();
        assert_eq!(read(&out), read(&model), "{name}");
    }
    let config: Value =
        serde_json::from_slice(&std::fs::read(out.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["model_type"], "llama");

    let recommender = shop.recommender("drafting");
    let levels = &recommender.format().levels;
    assert!(matches!(levels[1].tokens, LevelSpelling::Table(_)), "sorted by name");
    assert_eq!(recommender.format().end_tokens.len(), 1);
    let mut worker = Worker::new(Arc::clone(&recommender), 1);
    let mut hits = |verification| {
        let mut is_hit = |asked: usize| {
            let fields = PromptFields {
                query: Some(WORDS[asked].to_owned()),
                user: [("age".to_owned(), 31.into())].into_iter().collect(),
            };
            let after = format!("item-{}", asked * 7 % NUM_ITEMS);
            let history = [after.as_str()];
            let request = Request {
                mode: Mode::Draft(verification),
                fields: Some(&fields),
                include_seen: true,
                beam_width: 4,
                ..Request::new(History::Ids(&history), 1)
            };
            let answer = worker.recommend(&request, &mut run_on).unwrap();
            answer.items.first().is_some_and(|item| answer.id(item) == format!("item-{asked}"))
        };
        (0..NUM_ITEMS).filter(|&asked| is_hit(asked)).count()
    };
    assert!(hits(Verification::Masks) >= 9, "{said}");
    assert!(hits(Verification::Keys) >= 9, "{said}");
}

#[test]
fn a_template_makes_another_head() {
    let shop = Shop::new();
    let walk = |user: usize| -> Vec<String> {
        (0..5).map(|at| format!("item-{}", (user + at) % NUM_ITEMS)).collect()
    };
    let users: Map<String, Value> =
        (0..NUM_ITEMS).map(|user| (format!("user-{user}"), json!(walk(user)))).collect();
    std::fs::write(shop.path("histories.json"), Value::Object(users).to_string()).unwrap();
    let data = "--histories=histories.json";
    let plain = json!({"prompt": "{{ history | join(', ') }} and then: ", "max_history_items": 3});
    checkpoint_of("qwen2", &shop.path("base"), &plain);
    shop.run(&["train", "--out=with", "--from=base", "--epochs=1", data]);
    // The same weights and codes, and prompts of codes alone.
    let without = shop.path("without");
    std::fs::create_dir(&without).unwrap();
    for name in ["config.json", "model.safetensors", "semantic_ids.json"] {
        std::fs::copy(shop.path("with").join(name), without.join(name)).unwrap();
    }
    let head = |model: &str, out: &str| {
        let (model, to) = (format!("--model={model}"), format!("--out={out}"));
        shop.run(&["draft", &model, &to, "--head-only", "--epochs=1", data]);
        std::fs::read(shop.path(out).join(DraftHead::FILE_NAME)).unwrap()
    };
    let of_text = head("with", "of-text");
    assert_eq!(of_text, head("with", "again"));
    assert_ne!(of_text, head("without", "of-codes"));
    // Validation asked by the template's prompts.
    let log = std::fs::read(shop.path("of-text/draft.json")).unwrap();
    let log: Value = serde_json::from_slice(&log).unwrap();
    assert_eq!(log["best"]["users"], NUM_ITEMS);
    // A head of codes in the place of one of text takes the template away.
    let codes = ["draft", "--model=without", "--out=of-text", "--overwrite", "--head-only"];
    shop.run(&[&codes[..], &["--epochs=1", data]].concat());
    assert!(!shop.path("of-text/prompt_template.json").exists());
    assert!(!shop.path("of-text/tokenizer.json").exists());
    // A run goes on with the template that it began with.
    let path = shop.path("with/prompt_template.json");
    std::fs::write(path, json!({"prompt": "{{ history | join('') }}"}).to_string()).unwrap();
    let resumed = ["draft", "--model=with", "--out=again", "--head-only", "--epochs=1", "--resume"];
    let part = "files beside the weights of --model have changed since the run began";
    shop.check_refused(&[&resumed[..], &[data]].concat(), &[part]);
}

#[test]
fn what_cannot_be_trained_is_refused_by_name() {
    let shop = Shop::new();
    shop.write_questions();
    checkpoint_of("qwen3", &shop.path("base"), &template());
    let data = "--histories=questions.jsonl";
    let from = ["train", "--out=model", "--from=base", "--epochs=1", data];
    let whole = "which none is held out; give the rows that are trained on, and --hold-out nothing";
    shop.check_refused(&from, &[whole]);
    assert!(!shop.path("model").exists());
    shop.run(&[&from[..], &["--hold-out=nothing"]].concat());
    let draft = ["draft", "--model=model", "--out=new", "--hold-out=nothing", "--epochs=1"];
    let refused = |parts: &[&str]| shop.check_refused(&[&draft[..], &[data]].concat(), parts);

    // A history without the query that the template prints.
    let history = json!({"user": "u", "items": ["item-1", "item-2", "item-3"]});
    std::fs::write(shop.path("plain.jsonl"), history.to_string()).unwrap();
    let plain = [&draft[..], &["--histories=plain.jsonl"]].concat();
    shop.check_refused(&plain, &["the prompt of a history of 1 items before \"item-2\"", "query"]);

    // Tokens with most of the others between them.
    let path = shop.path("model/semantic_ids.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let mut ids: Value = serde_json::from_str(&good).unwrap();
    let (first, other) = (ids["levels"][0]["first_token"].as_u64().unwrap(), 3);
    ids["levels"][0] = json!({"prefix": ids["levels"][0]["prefix"], "tokens": [first, other]});
    std::fs::write(&path, ids.to_string()).unwrap();
    refused(&["the 2 codes of level 0 have tokens among 303", "--mode beam"]);
    std::fs::write(&path, good).unwrap();

    // An architecture that is not trained, and one that has no head.
    let path = shop.path("model/config.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let mut config: Value = serde_json::from_str(&good).unwrap();
    config["attention_bias"] = true.into();
    std::fs::write(&path, config.to_string()).unwrap();
    refused(&["`model_type` is qwen3 with a bias of what attention gives (`attention_bias`)"]);
    let t5 = json!({
        "model_type": "t5", "vocab_size": 400, "d_model": 32, "d_ff": 64, "d_kv": 16, "num_heads": 2, "num_layers": 1,
        "num_decoder_layers": 1, "relative_attention_num_buckets": 32, "layer_norm_epsilon": 1e-6, "decoder_start_token_id": 0,
        "feed_forward_proj": "relu", "tie_word_embeddings": true,
    });
    std::fs::write(&path, t5.to_string()).unwrap();
    refused(&["`model_type` is t5, an encoder–decoder", "or begin with a plain qwen3"]);
    std::fs::write(&path, good).unwrap();
    assert!(!shop.path("new").exists());
}
