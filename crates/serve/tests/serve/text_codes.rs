//! Texts with items as semantic IDs, in the tokens of a model that is read from a folder.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use palmette_bindings::Bindings;
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_live::{LiveCatalog, LiveOptions, Update};
use palmette_grammar::GrammarSource;
use palmette_recommend::code_tokens;
use palmette_serve::{Server, TextOptions};
use palmette_text::{ItemSearch, Member, TextModel, TextModelOptions, TextRequest, generate};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shop::config;
use crate::text::{Writing, named_events, writing};

/// A server with the text model `tiny` of a folder and the live catalog `shop`.
struct Selling {
    writing: Writing,
    model: TempDir,
    shop: Arc<LiveCatalog>,
    _dir: TempDir,
}

const TEMPLATE: &str = "{% for m in messages %}{{ m.content }} {% endfor %}";

/// The weights of a test of `palmette-model`, and a vocabulary of the characters of ASCII.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures/tied_f32");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(root.join(file), dir.path().join(file)).unwrap();
    }
    let characters = (' '..='~').map(String::from);
    let pieces: Vec<String> = characters.chain(["<|x|>", "</s>"].map(String::from)).collect();
    fs::write(dir.path().join("tokenizer.json"), json!(pieces).to_string()).unwrap();
    let config = json!({"eos_token": "</s>", "chat_template": TEMPLATE});
    fs::write(dir.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    dir
}

/// Says that codes are letters: `A` to `D`, then `a` to `j`.
fn spell(model: &Path) {
    let levels = json!([
        {"prefix": "a", "first_token": 33, "num_codes": 4},
        {"prefix": "b", "first_token": 65, "num_codes": 10},
    ]);
    let format = json!({"levels": levels, "max_history_items": 4});
    fs::write(model.join("semantic_ids.json"), format.to_string()).unwrap();
}

fn item(n: u32) -> Item {
    let attributes = json!({"stock": n % 2}).as_object().unwrap().clone();
    Item { id: format!("P{n}"), codes: vec![n % 4, n / 4], attributes }
}

fn selling_by(spell: impl FnOnce(&Path)) -> Selling {
    let (model, dir) = (folder(), tempfile::tempdir().unwrap());
    spell(model.path());
    let server = Server::new(config()).unwrap();
    server.load_text("tiny", model.path(), &TextOptions::default()).unwrap();
    let items: Vec<Item> = (0..36).map(item).collect();
    let codes_per_level = Some(vec![4, 12]);
    let options = BuildOptions { codes_per_level, ..BuildOptions::default() };
    let items = Catalog::build(items.into(), &options).unwrap();
    let live = LiveCatalog::create_with(dir.path(), Some(items), None, LiveOptions::default());
    let shop = Arc::new(live.unwrap());
    server.add_catalog("shop", Arc::clone(&shop), Some(dir.path())).unwrap();
    let writing = Writing { router: server.router(), server };
    Selling { writing, model, shop, _dir: dir }
}

fn selling() -> Selling {
    selling_by(spell)
}

const GRAMMAR: &str = "root ::= \"x\" <catalog:shop.codes> [0-9]{2} <catalog:shop.codes>";
const IN_STOCK: &str = r#"{"match": {"stock": 1}}"#;
const SEARCH: ItemSearch = ItemSearch { beam_width: 50, alternatives: 3 };

fn asked() -> Value {
    json!({
        "guided_grammar": GRAMMAR, "max_tokens": 20, "seed": 1,
        "item_search": {"beam_width": SEARCH.beam_width, "alternatives": SEARCH.alternatives},
        "catalogs": {"shop": {"filter": serde_json::from_str::<Value>(IN_STOCK).unwrap()}},
    })
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Members with scores as numbers of their width, however many digits JSON has of them.
fn members(answer: &Value) -> Value {
    let mut members = answer["members"].clone();
    for member in members.as_array_mut().unwrap() {
        let narrow = |score: &mut Value| *score = json!(score.as_f64().unwrap() as f32);
        narrow(&mut member["score"]);
        let others = member["alternatives"].as_array_mut().unwrap();
        others.iter_mut().for_each(|other| narrow(&mut other["score"]));
    }
    members
}

/// The members of the text that the library writes, as answers have them.
fn members_by_library(selling: &Selling, prompt: &str) -> Value {
    let model = TextModel::open(selling.model.path(), &TextModelOptions::default()).unwrap();
    let source = GrammarSource::Gbnf { text: GRAMMAR.to_owned(), options: Default::default() };
    let grammar = model.compile_open(&source, &Default::default()).unwrap();
    let view = selling.shop.view();
    let num_tokens = model.vocabulary().vocabulary().num_tokens();
    let tokens = code_tokens(selling.model.path(), &view, num_tokens).unwrap();
    let bindings = Bindings::new().catalog("shop", view).code_tokens("shop", tokens);
    let bound = bindings.filter("shop", IN_STOCK).unwrap().bind(&grammar.constraint).unwrap();
    let mut request = TextRequest::new(model.encode_text(prompt).unwrap(), 20).search_items(SEARCH);
    request.sampler.temperature = 1.0;
    request.sampler.seed = 1;
    request.constraint = bound.into();
    let ended = generate(&model, &request, &mut |_| ControlFlow::Continue(())).unwrap();
    let told = |member: &Member| {
        let others = member.ranked.iter().skip(1);
        let others: Vec<Value> =
            others.map(|other| json!({"id": other.id, "score": other.score})).collect();
        json!({
            "set": "shop", "field": "codes", "id": member.id, "value": member.value,
            "span": [member.span.start, member.span.end], "score": member.ranked[0].score, "alternatives": others,
        })
    };
    json!(ended.members.iter().map(told).collect::<Vec<_>>())
}

/// Chats, completions and responses, whole and in parts, have the members that the library finds.
#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_items_that_a_search_finds() {
    let selling = selling();
    let expected = members_by_library(&selling, "ab ");
    assert_eq!(expected.as_array().unwrap().len(), 2, "{expected}");
    let stock = |id: &Value| id.as_str().unwrap()[1..].parse::<u32>().unwrap() % 2;
    for member in expected.as_array().unwrap() {
        let alternatives = member["alternatives"].as_array().unwrap();
        assert_eq!(alternatives.len(), 3, "{expected}");
        assert!(alternatives.iter().chain([member]).all(|item| stock(&item["id"]) == 1));
    }
    let bound = json!({"shop": {"generation": 0, "eligible": 18}});
    let chat = json!({"model": "tiny", "messages": [{"role": "user", "content": "ab"}]});
    let complete = json!({"model": "tiny", "prompt": "ab "});
    for (path, own) in [("/v1/chat/completions", chat), ("/v1/completions", complete)] {
        let body = with(asked(), own);
        let whole = selling.writing.post(path, &body).await.ok();
        assert_eq!(members(&whole["choices"][0]), expected, "{path}");
        assert_eq!(whole["catalogs"], bound);
        let parts = selling.writing.post(path, &with(body, json!({"stream": true}))).await.events();
        assert_eq!(members(&parts.last().unwrap()["choices"][0]), expected, "{path}");
    }
    let mut body = with(asked(), json!({"model": "tiny", "input": "ab"}));
    body.as_object_mut()
        .unwrap()
        .retain(|name, _| !["guided_grammar", "max_tokens"].contains(&&**name));
    let body =
        with(body, json!({"max_output_tokens": 20, "structured_outputs": {"grammar": GRAMMAR}}));
    let whole = selling.writing.post("/v1/responses", &body).await.ok();
    assert_eq!(members(&whole), expected);
    let parts = selling.writing.post("/v1/responses", &with(body, json!({"stream": true}))).await;
    assert_eq!(members(&named_events(&parts).last().unwrap()["response"]), expected);
    // Without a search items are drawn token by token, and have no scores.
    let drawn = with(asked(), json!({"model": "tiny", "prompt": "ab ", "item_search": null}));
    let drawn = selling.writing.post("/v1/completions", &drawn).await.ok();
    for member in drawn["choices"][0]["members"].as_array().unwrap() {
        assert!(stock(&member["id"]) == 1 && member.get("score").is_none(), "{drawn}");
    }
}

/// What is written is of the newest generation, and the codes of items that came are spelled.
#[tokio::test(flavor = "multi_thread")]
async fn generations_bring_their_codes() {
    let selling = selling();
    let only = |id: &str| json!({"shop": {"filter": {"ids": [id]}}});
    let body =
        |id: &str| with(asked(), json!({"model": "tiny", "prompt": "a", "catalogs": only(id)}));
    let ids = |answer: &Value| -> Vec<String> {
        let members = answer["choices"][0]["members"].as_array().unwrap();
        members.iter().map(|member| member["id"].as_str().unwrap().to_owned()).collect()
    };
    let sent = selling.writing.post("/v1/completions", &body("P38")).await;
    sent.error(422, "no-text");
    selling.shop.apply(&[Update::Upsert(item(38))]).unwrap();
    let answer = selling.writing.post("/v1/completions", &body("P38")).await.ok();
    assert_eq!(
        (ids(&answer), &answer["catalogs"]["shop"]["generation"]),
        (vec!["P38".to_owned(); 2], &json!(1))
    );
    // One that the model cannot spell: the item, the level and the code are said.
    let far = Item { codes: vec![0, 10], ..item(39) };
    selling.shop.apply(&[Update::Upsert(far)]).unwrap();
    let sent = selling.writing.post("/v1/completions", &body("P38")).await;
    let (message, param) = sent.error(400, "invalid");
    assert!(message.contains("code 10 at level 1 (item \"P39\")"), "{message}");
    assert_eq!(param, "guided_grammar");
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_show_the_tokens_of_codes() {
    let selling = selling();
    let mut body = with(asked(), json!({"model": "tiny", "text": "x", "show": 1000}));
    body.as_object_mut().unwrap().retain(|name, _| name != "max_tokens" && name != "seed");
    let answer = selling.writing.post("/v1/masks", &body).await.ok();
    let texts = |answer: &Value| -> Vec<String> {
        let tokens = answer["tokens"].as_array().unwrap();
        tokens.iter().map(|token| token["text"].as_str().unwrap().to_owned()).collect()
    };
    // Items in stock have an odd number, and so an odd first code.
    assert_eq!(texts(&answer), ["B", "D"], "{answer}");
    assert_eq!((&answer["may_end"], &answer["members"]), (&json!(false), &json!([])));
    // After codes, which are tokens and no text: `x`, `B` and `a` spell P1.
    let after = async |tokens: &[u8]| {
        let tokens: Vec<u8> = tokens.iter().map(|byte| byte - b' ').collect();
        let body = with(body.clone(), json!({"text": null, "tokens": tokens}));
        selling.writing.post("/v1/masks", &body).await
    };
    assert_eq!(texts(&after(b"x").await.ok()), ["B", "D"]);
    assert_eq!(texts(&after(b"xB").await.ok()), ["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
    assert_eq!(texts(&after(b"xBa").await.ok()).concat(), "0123456789");
    let answer = after(b"xBa0").await.ok();
    let member =
        json!({"set": "shop", "field": "codes", "id": "P1", "value": "P1", "span": [1, 3]});
    assert_eq!(answer["members"], json!([member]));
    let answer = after(b"xBa07Dc").await.ok();
    assert_eq!((&answer["may_end"], &answer["members"][1]["id"]), (&json!(true), &json!("P11")));
    let (message, param) = after(b"xA").await.error(400, "invalid");
    assert_eq!(param, "tokens[1]", "{message}");
    for (members, at, words) in [
        (json!({"tokens": [3]}), "tokens", "text and tokens"),
        (json!({"text": null, "tokens": [97]}), "tokens[0]", "no token 97"),
    ] {
        let sent = selling.writing.post("/v1/masks", &with(body.clone(), members)).await;
        let (message, param) = sent.error(400, "invalid");
        assert_eq!(param, at, "{message}");
        assert!(message.contains(words), "{message}");
    }
}

/// Models whose folders do not say how codes are spelled, or that have none, and questions that no
/// model is asked.
#[tokio::test(flavor = "multi_thread")]
async fn models_without_tokens_for_codes_are_named() {
    let silent = selling_by(|_| {});
    let own = json!({"model": "tiny", "prompt": "a"});
    let sent = silent.writing.post("/v1/completions", &with(asked(), own.clone())).await;
    let (message, param) = sent.error(400, "invalid");
    assert!(message.contains("no tokens spell the codes of shop: tiny"), "{message}");
    assert!(!message.contains(&*silent.model.path().to_string_lossy()), "{message}");
    assert_eq!(param, "guided_grammar");
    let damaged = selling_by(|dir| fs::write(dir.join("semantic_ids.json"), "{").unwrap());
    let sent = damaged.writing.post("/v1/completions", &with(asked(), own.clone())).await;
    let (message, _) = sent.error(400, "invalid");
    assert!(message.contains("semantic_ids.json"), "{message}");
    let in_memory = writing();
    in_memory.server.add_catalog("shop", Arc::clone(&silent.shop), None).unwrap();
    let sent = in_memory.post("/v1/completions", &with(asked(), own)).await;
    let (message, _) = sent.error(400, "invalid");
    assert!(message.contains("in memory alone"), "{message}");
    let body = json!({"guided_grammar": GRAMMAR, "text": "x"});
    let sent = silent.writing.post("/v1/places", &body).await;
    let (message, _) = sent.error(400, "invalid");
    assert!(message.contains("no model is given that has tokens for them"), "{message}");
}
