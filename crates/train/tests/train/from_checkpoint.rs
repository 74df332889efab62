//! `palmette-train train --from`: a checkpoint of text, to which the codes of a catalog are added.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_live::CatalogView;
use palmette_decode::run_on;
use palmette_model::{Model, ModelConfig};
use palmette_recommend::{History, Prompts, Recommender, Request, Worker};
use palmette_train::{ExportDtype, Params, export};
use serde_json::{Map, Value, json};

const NUM_ITEMS: usize = 12;
/// Tokens of the tokenizer before the codes are added.
const OLD_TOKENS: usize = 305;

/// A random model of the vocabulary of a small tokenizer, from which the names of codes are taken
/// out.
pub(crate) fn checkpoint(dir: &Path) {
    let template = json!({"prompt": "{{ history | join(', ') }} and then: ", "end": "{{ eos_token }}", "max_history_items": 3});
    checkpoint_of("qwen3", dir, &template);
}

/// Such a model of another `model_type`, with this template.
pub(crate) fn checkpoint_of(model_type: &str, dir: &Path, template: &Value) {
    std::fs::create_dir(dir).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../recommend/tests/recommend/fixtures/prompts/plain");
    for name in ["tokenizer_config.json", "tokenizer.json"] {
        std::fs::copy(fixtures.join(name), dir.join(name)).unwrap();
    }
    let path = dir.join("tokenizer.json");
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let added = file["added_tokens"].as_array_mut().unwrap();
    let is_code = |name: &str| ["<a_", "<b_", "<c_", "<|sid"].iter().any(|of| name.starts_with(of));
    added.retain(|token| !is_code(token["content"].as_str().unwrap()));
    std::fs::write(&path, file.to_string()).unwrap();
    let config = json!({
        "model_type": model_type, "vocab_size": OLD_TOKENS, "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true,
        "hidden_act": "silu",
    });
    let config = ModelConfig::from_bytes(config.to_string().as_bytes()).unwrap();
    export(dir, &Params::init(&config, 1), ExportDtype::Float32).unwrap();
    std::fs::write(dir.join("prompt_template.json"), template.to_string()).unwrap();
}

fn train(dir: &Path, options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_palmette-train"));
    command.current_dir(dir).args(["train", "--catalog=shop.palm", "--histories=histories.json"]);
    let output = command.args(options).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn a_checkpoint_learns_new_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let item = |i: usize| Item {
        id: format!("item-{i}"),
        codes: vec![i as u32 / 4, i as u32 % 4],
        attributes: Map::new(),
    };
    let items: Vec<Item> = (0..NUM_ITEMS).map(item).collect();
    let catalog = Arc::new(Catalog::build(items.into(), &BuildOptions::default()).unwrap());
    catalog.save(dir.join("shop.palm")).unwrap();
    let walk = |user: usize| -> Vec<String> {
        (0..6).map(|at| format!("item-{}", (user + at) % NUM_ITEMS)).collect()
    };
    let users: Map<String, Value> =
        (0..NUM_ITEMS).map(|user| (format!("user-{user}"), json!(walk(user)))).collect();
    std::fs::write(dir.join("histories.json"), Value::Object(users).to_string()).unwrap();
    checkpoint(&dir.join("base"));

    // Rows that begin alike have to come apart first.
    let sure = [
        "--out=model",
        "--from=base",
        "--epochs=80",
        "--batch-size=8",
        "--learning-rate=0.01",
        "--warmup-steps=5",
        "--dropout=0",
        "--threads=2",
        "--hold-out=nothing",
    ];
    let said = train(dir, &sure);
    assert!(said.contains("7 tokens added"), "{said}");
    let out = dir.join("model");
    let view = CatalogView::from(Arc::clone(&catalog));
    let prompts = Prompts::read(&out, Some(&view)).unwrap();
    let tokenizer = prompts.template().unwrap().tokenizer();
    assert_eq!(tokenizer.num_tokens(), OLD_TOKENS + 7);
    assert_eq!(tokenizer.token("<b_3>").unwrap().index(), OLD_TOKENS + 6);
    assert_eq!(prompts.format().end_tokens.len(), 1);
    assert!(!out.join("start").exists());

    let model = Model::load(&out).unwrap();
    assert_eq!(model.config().vocab_size, OLD_TOKENS + 7);
    let recommender = Recommender::new(model, catalog, prompts).unwrap();
    let mut worker = Worker::new(Arc::new(recommender), 1);
    let mut right = 0;
    for first in 0..NUM_ITEMS {
        let id = |at| format!("item-{}", (first + at) % NUM_ITEMS);
        let ids = [id(0), id(1), id(2)];
        let history: Vec<&str> = ids.iter().map(String::as_str).collect();
        let answer =
            worker.recommend(&Request::new(History::Ids(&history), 1), &mut run_on).unwrap();
        right += usize::from(answer.id(&answer.items[0]) == id(3));
    }
    // One in nine would be by chance: the items of the history are not recommended again.
    assert!(right >= NUM_ITEMS / 2, "{right} of {NUM_ITEMS}: {said}");
    std::fs::remove_file(dir.join("base/prompt_template.json")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_palmette-train"));
    command.current_dir(dir).args(["train", "--catalog=shop.palm", "--histories=histories.json"]);
    let output = command.args(["--out=other", "--from=base"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--template"), "{said}");
}

#[test]
fn rows_of_new_tokens_are_about_the_mean_of_the_others() {
    const NEW: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    checkpoint(&folder.path().join("base"));
    let old = Params::load(&folder.path().join("base")).unwrap();
    let tokens: Vec<u32> = (OLD_TOKENS..OLD_TOKENS + NEW).map(|token| token as u32).collect();
    let new = old.with_vocabulary(OLD_TOKENS + NEW, &tokens, 5);
    let again = old.with_vocabulary(OLD_TOKENS + NEW, &tokens, 5);
    assert_eq!(new.values(), again.values(), "the same seed");
    assert_ne!(new.values(), old.with_vocabulary(OLD_TOKENS + NEW, &tokens, 6).values());
    let name = "model.embed_tokens.weight";
    let ((_, before), (shape, after)) = (old.tensor(name).unwrap(), new.tensor(name).unwrap());
    assert_eq!(shape, [OLD_TOKENS + NEW, 32]);
    assert_eq!(after[..before.len()], *before);
    let moments = |rows: &[f32], column: usize| {
        let column: Vec<f64> = rows.iter().skip(column).step_by(32).map(|&x| x.into()).collect();
        let mean = column.iter().sum::<f64>() / column.len() as f64;
        let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / column.len() as f64;
        (mean, variance.sqrt())
    };
    let added = &after[before.len()..];
    for column in 0..32 {
        let ((mean, deviation), (of_new, noise)) =
            (moments(before, column), moments(added, column));
        // A tenth of the column's own, by a hundred draws and more.
        assert!((0.07..0.13).contains(&(noise / deviation)), "{noise} of {deviation}");
        assert!((of_new - mean).abs() < 0.03 * deviation, "{of_new} is not about {mean}");
    }
    let rows: std::collections::BTreeSet<Vec<u32>> =
        added.chunks(32).map(|row| row.iter().map(|value| value.to_bits()).collect()).collect();
    assert_eq!(rows.len(), NEW, "no two rows are equal");
    let norm = "model.norm.weight";
    assert_eq!(new.tensor(norm), old.tensor(norm));
}
