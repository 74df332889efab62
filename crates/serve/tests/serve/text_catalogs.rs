//! Texts whose grammars name catalogs: the sets of a body, of the server, and what does not fit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::{Method, Request};
use http_body_util::BodyExt;
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_live::{LiveCatalog, LiveOptions, Update};
use palmette_serve::{NewKey, Scope, ServeConfig};
use palmette_text::engine::EngineOptions;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use crate::shop::config;
use crate::text::{Writing, writing_with};

/// A server with a text model, the live catalog `shop` and the frozen one `other`.
struct Selling {
    writing: Writing,
    shop: Arc<LiveCatalog>,
    _dir: TempDir,
}

fn item(id: &str, brand: &str, stock: u32) -> Item {
    let attributes = json!({"brand": brand, "stock": stock}).as_object().unwrap().clone();
    Item { id: id.into(), codes: vec![0, stock], attributes }
}

fn catalog(ids: &[&str]) -> Catalog {
    let items: Vec<Item> = (0..)
        .zip(ids)
        .map(|(at, id)| item(id, if at % 2 == 0 { "Acme" } else { "Zeta" }, at))
        .collect();
    Catalog::build(items.into(), &BuildOptions::default()).unwrap()
}

fn selling_with(config: ServeConfig) -> Selling {
    let engine = EngineOptions { max_texts: 4, max_tokens: 2400, ..EngineOptions::default() };
    let writing = writing_with(config, engine);
    let dir = tempfile::tempdir().unwrap();
    let items = catalog(&["P1", "P12", "Q3", "Q45"]);
    let live = LiveCatalog::create_with(dir.path(), Some(items), None, LiveOptions::default());
    let shop = Arc::new(live.unwrap());
    writing.server.add_catalog("shop", Arc::clone(&shop), Some(dir.path())).unwrap();
    let lexicon = dir.path().join("icd.palm");
    let icd = palmette_lexicon::Lexicon::from_texts(["A00", "A01.0"]).unwrap();
    std::fs::write(&lexicon, icd.to_bytes()).unwrap();
    writing.server.open_lexicon("icd-10", &lexicon).unwrap();
    writing.server.add_catalog("other", catalog(&["X1", "X2"]), None).unwrap();
    Selling { writing, shop, _dir: dir }
}

fn selling() -> Selling {
    selling_with(config())
}

/// A schema of one member.
fn format(member: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"sku": member}, "required": ["sku"], "additionalProperties": false});
    json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
}

fn named(name: &str) -> Value {
    format(&json!({"type": "string", "x-catalog": name}))
}

fn asked(format: &Value, catalogs: &Value) -> Value {
    json!({"response_format": format, "catalogs": catalogs, "temperature": 1.0, "n": 3})
}

/// The written skus of an answer, whose members are checked against its texts.
#[track_caller]
fn skus(answer: &Value) -> Vec<String> {
    let sku = |choice: &Value| {
        let text = choice["message"]["content"].as_str().expect("words");
        let written: Value = serde_json::from_str(text).expect("JSON");
        let sku = written["sku"].as_str().expect("a text").to_owned();
        let members = choice["members"].as_array().expect("members");
        assert_eq!(members.len(), 1, "{answer}");
        assert_eq!(members[0]["value"], sku, "{answer}");
        let [begin, end] = [0, 1].map(|at| members[0]["span"][at].as_u64().unwrap() as usize);
        assert_eq!(&text[begin..end], sku, "{answer}");
        sku
    };
    answer["choices"].as_array().expect("choices").iter().map(sku).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_have_members_of_what_is_bound() {
    let selling = selling();
    let chat = async |format: &Value, catalogs: Value| {
        selling.writing.chat(asked(format, &catalogs)).await.ok()
    };
    // A catalog that the server has under the name needs no entry.
    let answer = selling.writing.chat(json!({"response_format": named("shop"), "n": 3})).await.ok();
    assert!(
        skus(&answer).iter().all(|sku| ["P1", "P12", "Q3", "Q45"].contains(&&**sku)),
        "{answer}"
    );
    assert_eq!(answer["catalogs"], json!({"shop": {"generation": 0, "eligible": 4}}));
    assert_eq!(answer["choices"][0]["members"][0]["id"], skus(&answer)[0]);
    let filter = json!({"match": {"brand": "Zeta"}});
    let answer =
        chat(&named("shop"), json!({"shop": {"filter": filter, "exclude": ["Q45"]}})).await;
    assert_eq!(skus(&answer), ["P12"; 3]);
    assert_eq!(answer["catalogs"]["shop"]["eligible"], 1);
    // The name of the grammar is not that of the catalog.
    let answer = chat(&named("mine"), json!({"mine": {"catalog": "other"}})).await;
    assert!(skus(&answer).iter().all(|sku| sku.starts_with('X')), "{answer}");
    assert_eq!(answer["catalogs"], json!({"mine": {"eligible": 2}}));
    let answer = chat(&named("icd"), json!({"icd": {"catalog": "icd-10"}})).await;
    assert!(skus(&answer).iter().all(|sku| sku.starts_with('A')), "{answer}");
    let answer = chat(&named("shop.brand"), json!({"shop": {"filter": filter}})).await;
    assert_eq!(skus(&answer), ["Zeta"; 3]);
    assert!(answer["choices"][0]["members"][0].get("id").is_none(), "{answer}");
    let answer = chat(&named("list"), json!({"list": {"values": ["a \"b\"", "a \"b\""]}})).await;
    let content = &answer["choices"][0]["message"]["content"];
    assert_eq!(answer["choices"][0]["members"][0]["value"], "a \"b\"", "{content}");
    let quoted = format(&json!({"type": "string", "x-substring": {"of": "doc", "unit": "words"}}));
    let answer = chat(&quoted, json!({"doc": {"documents": ["no", "yes"]}})).await;
    for choice in answer["choices"].as_array().unwrap() {
        let member = &choice["members"][0];
        let wanted = if member["value"] == "yes" { json!([1, [0, 3]]) } else { json!([0, [0, 2]]) };
        assert_eq!(json!([member["document"], member["place"]]), wanted, "{answer}");
    }
}

/// Oracle: the same search under an enumeration of what the filter keeps.
#[tokio::test(flavor = "multi_thread")]
async fn best_texts_name_what_the_filter_keeps() {
    let selling = selling();
    let search = async |format: Value, catalogs: Option<Value>| {
        let mut body = json!({
            "response_format": format, "use_beam_search": true, "temperature": 0, "n": 3, "best_of": 4, "max_tokens": 40,
            "json_form": {"whitespace": "compact"},
        });
        body.as_object_mut().unwrap().extend(catalogs.map(|of| ("catalogs".to_owned(), of)));
        selling.writing.chat(body).await.ok()
    };
    for (filter, kept) in [
        (json!({"match": {"brand": "Zeta"}}), &["P12", "Q45"][..]),
        (json!({"match": {"brand": "Acme"}}), &["P1", "Q3"]),
        (json!(null), &["P1", "P12", "Q3", "Q45"]),
    ] {
        let answer = search(named("shop"), Some(json!({"shop": {"filter": filter}}))).await;
        let listed = search(format(&json!({"enum": kept})), None).await;
        let found = skus(&answer);
        assert_eq!(found.len(), kept.len().min(3), "{answer}");
        let [bound, listed] = [&answer, &listed].map(|answer| {
            let choices = answer["choices"].as_array().unwrap();
            let told =
                |choice: &Value| (choice["message"]["content"].clone(), choice["score"].clone());
            choices.iter().map(told).collect::<Vec<_>>()
        });
        assert_eq!(bound, listed);
        for choice in answer["choices"].as_array().unwrap() {
            assert_eq!(choice["members"][0]["id"], choice["members"][0]["value"], "{choice}");
        }
    }
}

/// The same text in parts, whose last part has what the whole answer has.
#[tokio::test(flavor = "multi_thread")]
async fn streams_tell_members_in_the_last_part() {
    let selling = selling();
    let mut body = asked(&named("shop"), &json!({"shop": {}}));
    body["n"] = json!(1);
    let whole = selling.writing.chat(body.clone()).await.ok();
    body["stream"] = json!(true);
    let events = selling.writing.chat(body).await.events();
    let (last, parts) = events.split_last().unwrap();
    assert_eq!(last["choices"][0]["members"], whole["choices"][0]["members"]);
    assert_eq!(last["catalogs"], whole["catalogs"]);
    for part in parts {
        assert!(part.get("catalogs").is_none() && part["choices"][0].get("members").is_none());
    }
    // An echo moves the places of members.
    let body = json!({
        "guided_grammar": "root ::= <catalog:shop> \";\"", "echo": true, "prompt": "Buy", "catalogs": {"shop": {"exclude": ["Q3"]}}});
    let answer = selling.writing.complete(body.clone()).await.ok();
    let choice = &answer["choices"][0];
    let end = choice["members"][0]["value"].as_str().unwrap().len() + 3;
    assert_eq!(choice["members"][0]["span"], json!([3, end]), "{answer}");
    let mut streamed = body;
    streamed["stream"] = json!(true);
    let events = selling.writing.complete(streamed).await.events();
    assert_eq!(events.last().unwrap()["choices"][0]["members"], choice["members"]);
    let body = json!({
        "model": "tiny", "input": "x", "seed": 1, "catalogs": {"shop": {}},
        "text": {"format": {"type": "json_schema", "name": "x", "schema": named("shop")["json_schema"]["schema"]}}});
    let answer = selling.writing.post("/v1/responses", &body).await.ok();
    assert_eq!(answer["catalogs"]["shop"]["eligible"], 4, "{answer}");
    let text = answer["output"][0]["content"][0]["text"].as_str().unwrap();
    let written: Value = serde_json::from_str(text).unwrap();
    assert_eq!(answer["members"][0]["value"], written["sku"], "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn masks_are_those_of_the_bound_sets() {
    let selling = selling();
    let filter = json!({"match": {"brand": "Acme"}});
    let mut body = asked(&named("shop"), &json!({"shop": {"filter": filter}}));
    body.as_object_mut().unwrap().retain(|name, _| name != "n" && name != "temperature");
    body["text"] = json!("{\"sku\":\"");
    let answer = selling.writing.post("/v1/masks", &body).await.ok();
    let tokens: Vec<&str> = answer["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| token["text"].as_str().unwrap())
        .collect();
    assert_eq!(tokens, ["P", "Q"], "{answer}");
    assert_eq!(
        (&answer["catalogs"]["shop"]["eligible"], &answer["members"]),
        (&json!(2), &json!([]))
    );
    body["text"] = json!("{\"sku\":\"P1\" ");
    let answer = selling.writing.post("/v1/masks", &body).await.ok();
    assert_eq!(answer["members"][0]["id"], "P1", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused_with_its_place() {
    let selling = selling();
    let own = |name: &str| {
        format(
            &json!({"type": "string", "x-catalog": {"name": name, "filter": {"match": {"brnd": "x"}}}}),
        )
    };
    let many: Vec<String> = (0..100_001).map(|at| at.to_string()).collect();
    let none = json!({"match": {"brand": "Nobody"}});
    for (format, catalogs, status, at, words) in [
        (named("shpo"), json!({}), 400, "catalogs.shpo", "this server has icd-10, other, shop"),
        (
            named("shop"),
            json!({"shpo": {"catalog": "shop"}}),
            400,
            "catalogs.shpo",
            "the nearest that it names is shop",
        ),
        (
            named("mine"),
            json!({"mien": {"catalog": "shop"}}),
            400,
            "catalogs.mine",
            "nearest that is bound is mien",
        ),
        (
            named("shop"),
            json!({"shop": {"catalog": "shpo"}}),
            400,
            "catalogs.shop.catalog",
            "the nearest is \"shop\"",
        ),
        (
            named("shop"),
            json!({"shop": {"filter": {"match": {"brnd": "x"}}}}),
            400,
            "catalogs.shop.filter",
            "did you mean \"brand\"",
        ),
        (
            named("shop"),
            json!({"shop": {"filter": {"mst": []}}}),
            400,
            "catalogs.shop.filter",
            "mst",
        ),
        (
            named("shop"),
            json!({"shop": {"exclude": [["P1"]]}}),
            400,
            "catalogs.shop.exclude[0]",
            "no id",
        ),
        (named("shop"), json!({"shop": {"exclud": []}}), 400, "catalogs.shop.exclud", "exclude"),
        (
            named("shop"),
            json!({"shop": {"values": ["x"], "generation": 1}}),
            400,
            "catalogs.shop.generation",
            "have no generation",
        ),
        (
            named("shop"),
            json!({"shop": {"documents": ["x"], "filter": {}}}),
            400,
            "catalogs.shop.filter",
            "have no filter",
        ),
        (named("shop"), json!({"shop": {"documents": ["x"]}}), 400, "catalogs.shop", "a catalog"),
        (
            named("shop"),
            json!({"shop": {"generation": 3.5}}),
            400,
            "catalogs.shop.generation",
            "a number, or a name",
        ),
        (
            named("shop"),
            json!({"shop": {"generation": 77}}),
            410,
            "catalogs.shop.generation",
            "not kept",
        ),
        (
            named("other"),
            json!({"other": {"generation": 1}}),
            400,
            "catalogs.other.generation",
            "frozen",
        ),
        (named("shop.colour"), json!({}), 400, "response_format", "field \"colour\" is not there"),
        (own("shop"), json!({"shop": {"filter": none}}), 400, "response_format", "brnd"),
        (
            named("list"),
            json!({"list": {"values": many}}),
            413,
            "catalogs.list.values",
            "100001 values",
        ),
        (
            named("list"),
            json!({"list": {"values": ["x".repeat(9 << 20)]}}),
            413,
            "catalogs.list.values",
            "8388608 bytes",
        ),
        (
            format(&json!({"type": "string", "x-substring": {"of": "doc"}})),
            json!({"doc": {"documents": ["x".repeat(5 << 20)]}}),
            413,
            "catalogs.doc.documents",
            "4194304",
        ),
        (
            named("shop"),
            json!({"shop": {"filter": none}}),
            422,
            "response_format",
            "shop: 0 of 4 match",
        ),
        (
            format(&json!({"enum": ["a"]})),
            json!({"shop": {}}),
            400,
            "catalogs.shop",
            "it names none",
        ),
    ] {
        let sent = selling.writing.chat(asked(&format, &catalogs)).await;
        let body: Value = serde_json::from_str(&sent.text).unwrap();
        let code = match status {
            400 => "invalid",
            410 => "gone",
            413 => "too-large",
            _ => "no-text",
        };
        let (message, param) = sent.error(status, code);
        let shown: String = message.chars().take(300).collect();
        assert_eq!(param, at, "{shown}");
        assert!(message.contains(words), "{at}: {shown}");
        let is_short = (body["error"]["eligible"] == 0, body["error"]["needed"] == 1);
        assert_eq!(is_short, (status == 422, status == 422), "{body}");
    }
    let (message, param) =
        selling.writing.chat(json!({"catalogs": {"shop": {}}})).await.error(400, "invalid");
    assert_eq!(param, "catalogs", "{message}");
    // Of two entries of one name one would be lost.
    let body = r#"{"messages": [{"role": "user", "content": "x"}], "catalogs": {"shop": {}, "shop": {"catalog": "other"}}}"#;
    let sent = selling.writing.send(Method::POST, "/v1/chat/completions", body).await;
    let (message, _) = sent.error(400, "invalid");
    assert!(message.contains("twice"), "{message}");
}

/// A key that may not use a catalog has none of that name, and is not told of it.
#[tokio::test(flavor = "multi_thread")]
async fn keys_permit_catalogs() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let permitted = ["tiny".to_owned(), "other".to_owned()];
    let made = NewKey::make("a", &[Scope::Text], &permitted).unwrap();
    std::fs::write(&file, &made.line).unwrap();
    let selling = selling_with(ServeConfig { keys: Some(file.path().to_owned()), ..config() });
    let send = async |format: &Value, catalogs: Value| {
        let mut body = asked(format, &catalogs);
        body["messages"] = json!([{"role": "user", "content": "x"}]);
        let request = Request::post("/v1/chat/completions").header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {}", made.key));
        let request = request.body(Body::from(body.to_string())).unwrap();
        let Ok(response) = selling.writing.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    assert_eq!(send(&named("other"), json!({})).await.0, 200);
    for catalogs in [json!({}), json!({"shop": {}}), json!({"shop": {"catalog": "shop"}})] {
        let (status, body) = send(&named("shop"), catalogs).await;
        assert_eq!((status, &body["error"]["type"]), (403, &json!("permission_error")), "{body}");
    }
    let (status, body) = send(&named("shpo"), json!({})).await;
    let message = body["error"]["message"].as_str().unwrap();
    assert!(
        status == 400 && message.contains("this server has other") && !message.contains("shop"),
        "{message}"
    );
}

/// While the catalog changes, each text has items of the generation that its answer names, and of
/// no other; a generation that is kept can be asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_of_one_generation() {
    let selling = selling();
    let shop = Arc::clone(&selling.shop);
    shop.keep(Some("first")).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&is_over);
    let updates = std::thread::spawn(move || {
        let mut generations =
            BTreeMap::from([(0, vec!["P1".to_owned(), "P12".into(), "Q3".into(), "Q45".into()])]);
        let mut there = generations[&0].clone();
        for round in 0.. {
            if until.load(Ordering::Relaxed) {
                break;
            }
            let new: Vec<String> = (0..3).map(|at| format!("R{round}x{at}")).collect();
            let gone = there.drain(..).map(Update::Delete);
            let came = new.iter().map(|id| Update::Upsert(item(id, "Acme", 1)));
            let applied = shop.apply(&gone.chain(came).collect::<Vec<_>>()).unwrap();
            generations.insert(applied.generation, new.clone());
            there = new;
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        generations
    });
    let mut answers = Vec::new();
    for seed in 0..20 {
        let mut body = asked(&named("shop"), &json!({}));
        body["seed"] = json!(seed);
        answers.push(selling.writing.chat(body).await.ok());
    }
    is_over.store(true, Ordering::Relaxed);
    let generations = updates.join().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for answer in &answers {
        let generation = answer["catalogs"]["shop"]["generation"].as_u64().unwrap();
        seen.insert(generation);
        let there = &generations[&generation];
        assert!(skus(answer).iter().all(|sku| there.contains(sku)), "{generation}: {answer}");
    }
    assert!(seen.len() > 1, "nothing changed meanwhile: {seen:?}");
    for generation in [json!(0), json!("first")] {
        let answer = selling
            .writing
            .chat(asked(&named("shop"), &json!({"shop": {"generation": generation}})));
        let answer = answer.await.ok();
        assert_eq!(answer["catalogs"]["shop"]["generation"], 0);
        assert!(skus(&answer).iter().all(|sku| generations[&0].contains(sku)), "{answer}");
    }
    let metrics = selling.writing.send(Method::GET, "/metrics", "").await.text;
    for name in ["palmette_text_bind_seconds", "palmette_text_members_total"] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
}
