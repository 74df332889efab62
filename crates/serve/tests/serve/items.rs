//! Items over HTTP against the definition: a list, and a catalog built of it.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_live::{LiveCatalog, LiveOptions, LiveReader, ReaderOptions};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::shop::{Answered, Shopping, config, shopping};

const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

/// Meaning of a batch's line.
#[derive(Clone, Debug)]
enum Change {
    Upsert { id: u8, codes: [u32; 4], price: Option<u8> },
    Patch { id: u8, price: Option<u8> },
    Delete { id: u8 },
}

#[derive(Clone, Debug)]
enum Operation {
    Batch(Vec<Change>),
    One(Change),
    Keep,
    Rollback(usize),
    Forget(usize),
}

fn changes() -> impl Strategy<Value = Change> {
    let id = 0_u8..8;
    let price = || proptest::option::of(0_u8..10);
    prop_oneof![
        // Few codes, so that many items share them.
        4 => (id.clone(), proptest::array::uniform4(0_u32..2), price())
            .prop_map(|(id, codes, price)| Change::Upsert { id, codes, price }),
        2 => (id.clone(), price()).prop_map(|(id, price)| Change::Patch { id, price }),
        2 => id.prop_map(|id| Change::Delete { id }),
    ]
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        5 => proptest::collection::vec(changes(), 1..6).prop_map(Operation::Batch),
        3 => changes().prop_map(Operation::One),
        2 => Just(Operation::Keep),
        1 => (0_usize..3).prop_map(Operation::Rollback),
        1 => (0_usize..3).prop_map(Operation::Forget),
    ];
    proptest::collection::vec(operation, 1..10)
}

fn name(id: u8) -> String {
    format!("item {id}/ä")
}

/// The path of an item: ids may hold anything.
fn path(id: u8) -> String {
    format!("/v1/catalogs/t/items/item%20{id}%2F%C3%A4")
}

impl Change {
    fn line(&self) -> Value {
        match self {
            Self::Upsert { id, codes, price: Some(price) } => {
                json!({"item_id": name(*id), "codes": codes, "price": price})
            }
            Self::Upsert { id, codes, price: None } => {
                json!({"item_id": name(*id), "codes": codes})
            }
            Self::Patch { id, price } => json!({"item_id": name(*id), "price": price}),
            Self::Delete { id } => json!({"delete": name(*id)}),
        }
    }
}

/// Items, and what a batch did; `None` where a patch has no item.
fn applied(items: &[Item], changes: &[Change]) -> Option<(Vec<Item>, BTreeMap<&'static str, u64>)> {
    let mut items = items.to_vec();
    let mut counts = BTreeMap::from(
        ["upserted", "patched", "unchanged", "deleted", "unknown_deletes"].map(|name| (name, 0)),
    );
    let mut count = |name| *counts.get_mut(name).unwrap() += 1;
    for change in changes {
        let (Change::Upsert { id, .. } | Change::Patch { id, .. } | Change::Delete { id }) = change;
        let place = items.iter().position(|item| item.id == name(*id));
        let old = place.map(|place| items.remove(place));
        match (change, old) {
            (Change::Upsert { codes, price, .. }, _) => {
                let attributes = price.map(|price| ("price".to_owned(), json!(price)));
                let attributes = attributes.into_iter().collect();
                items.push(Item { id: name(*id), codes: codes.to_vec(), attributes });
                count("upserted");
            }
            (Change::Patch { price, .. }, Some(old)) => {
                let mut new = old.clone();
                new.attributes.remove("price");
                new.attributes.extend(price.map(|price| ("price".to_owned(), json!(price))));
                match new == old {
                    true => {
                        items.insert(place.unwrap(), old);
                        count("unchanged");
                    }
                    false => {
                        // It keeps its place among those of its codes.
                        items.insert(place.unwrap(), new);
                        count("patched");
                    }
                }
            }
            (Change::Patch { .. }, None) => return None,
            (Change::Delete { .. }, Some(_)) => count("deleted"),
            (Change::Delete { .. }, None) => count("unknown_deletes"),
        }
    }
    Some((items, counts))
}

/// Items in the order of a catalog built of the list, as the server writes them.
fn in_order(items: &[Item], is_wanted: impl Fn(&Item) -> bool) -> Vec<Value> {
    let catalog = Catalog::build(items.to_vec().into(), &BuildOptions::default()).unwrap();
    let ids = (0..catalog.num_items()).map(|rank| catalog.id(rank).to_owned());
    let item = |id: String| items.iter().find(|item| item.id == id).unwrap();
    let wanted = ids.map(item).filter(|item| is_wanted(item));
    wanted
        .map(|item| json!({"id": item.id, "codes": item.codes, "attributes": item.attributes}))
        .collect()
}

impl Shopping {
    async fn batch(&self, path: &str, lines: &str) -> Answered {
        self.send_with(Method::POST, path, &[NDJSON], lines.to_owned()).await
    }

    /// All pages of a listing.
    async fn list(&self, path: &str, mut asked: Value) -> Vec<Value> {
        let mut found = Vec::new();
        asked["count"] = json!(true);
        loop {
            let page = self.post(path, &asked).await.ok();
            let items = page["items"].as_array().unwrap();
            assert!(items.len() as u64 <= asked["limit"].as_u64().unwrap());
            found.extend(items.iter().cloned());
            if page["cursor"].is_null() {
                assert_eq!(page["count"], found.len());
                return found;
            }
            asked["cursor"] = page["cursor"].clone();
            asked.as_object_mut().unwrap().remove("generation");
        }
    }
}

/// A generation that is kept: its items, and what was recommended from it.
struct Kept {
    generation: u64,
    items: Vec<Item>,
    recommended: Value,
}

async fn recommended(shop: &Shopping, generation: u64) -> Value {
    let asked = json!({"target": "t", "history": [{"codes": [0, 1, 0, 1]}], "k": 5, "beam_width": 16, "generation": generation});
    let answer = shop.post("/v1/recommend", &asked).await.ok();
    assert_eq!(answer["generation"], generation);
    answer["items"].clone()
}

async fn run(shop: &Shopping, operations: &[Operation]) {
    let (catalog, items_path) = ("/v1/catalogs/t", "/v1/catalogs/t/items");
    let first = r#"{"item_id": "first", "codes": [1, 0, 1, 0], "price": 3}"#;
    let made =
        shop.send_with(Method::PUT, "/v1/catalogs/t?model=m", &[NDJSON], first.to_owned()).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let pair = json!({"model": "m", "catalog": "t"}).to_string();
    shop.send(Method::PUT, "/v1/targets/t", pair).await.ok();
    let mut items = vec![Item {
        id: "first".into(),
        codes: vec![1, 0, 1, 0],
        attributes: [("price".to_owned(), json!(3))].into_iter().collect(),
    }];
    let mut generation = 0;
    let mut kept: Vec<Kept> = Vec::new();
    for operation in operations {
        match operation {
            Operation::Batch(changes) => {
                let lines: Vec<String> =
                    changes.iter().map(|change| change.line().to_string()).collect();
                let answer = shop.batch(items_path, &lines.join("\n\n")).await;
                match applied(&items, changes) {
                    None => {
                        let (detail, pointer) = answer.problem(422);
                        assert!(detail.contains("nothing of the batch"), "{detail}");
                        // Blank lines are counted.
                        let line: usize = pointer[1..].parse().unwrap();
                        assert!(matches!(changes[line / 2], Change::Patch { .. }), "{pointer}");
                    }
                    Some((after, counts)) => {
                        generation += 1;
                        assert_eq!(answer.headers["palmette-generation"], generation.to_string());
                        assert_eq!(answer.headers["etag"], format!("\"{generation}\""));
                        let mut wanted = json!(counts);
                        wanted["generation"] = json!(generation);
                        assert_eq!(answer.ok(), wanted);
                        items = after;
                    }
                }
            }
            Operation::One(change) => {
                let mut body = change.line();
                body.as_object_mut().unwrap().remove("item_id");
                let (method, id) = match change {
                    Change::Upsert { id, .. } => (Method::PUT, *id),
                    Change::Patch { id, .. } => (Method::PATCH, *id),
                    Change::Delete { id } => (Method::DELETE, *id),
                };
                let is_there = items.iter().any(|item| item.id == name(id));
                let needs_it = method != Method::PUT;
                let answer = shop.send(method, &path(id), body.to_string()).await;
                if !is_there && needs_it {
                    answer.problem(404);
                    continue;
                }
                generation += 1;
                assert_eq!(answer.ok()["generation"], generation);
                items = applied(&items, std::slice::from_ref(change)).expect("it is there").0;
                match items.iter().find(|item| item.id == name(id)) {
                    None => drop(shop.get(&path(id)).await.problem(404)),
                    Some(item) => {
                        let wanted = json!({"id": item.id, "codes": item.codes, "attributes": item.attributes});
                        assert_eq!(shop.get(&path(id)).await.ok(), wanted);
                    }
                }
            }
            Operation::Keep => {
                let body = json!({"name": format!("g{generation}")});
                let answer = shop.post("/v1/catalogs/t/generations", &body).await;
                assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
                assert_eq!(answer.body["generation"], generation);
                assert_eq!(answer.body["num_items"], items.len());
                kept.retain(|kept| kept.generation != generation);
                let recommended = recommended(shop, generation).await;
                kept.push(Kept { generation, items: items.clone(), recommended });
            }
            Operation::Rollback(at) => {
                let Some(to) = kept.get(*at) else { continue };
                let name = format!("g{}", to.generation);
                let answer = shop.post("/v1/catalogs/t/rollback", &json!({"to": name})).await.ok();
                generation += 1;
                assert_eq!(answer, json!({"generation": generation, "restored": to.generation}));
                items = to.items.clone();
            }
            Operation::Forget(at) => {
                if *at >= kept.len() {
                    continue;
                }
                let gone = kept.remove(*at).generation;
                let path = format!("/v1/catalogs/t/generations/{gone}");
                let answer = shop.send(Method::DELETE, &path, "").await;
                assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.body);
                shop.send(Method::DELETE, &path, "").await.problem(404);
            }
        }
        let query = "/v1/catalogs/t/items/query";
        assert_eq!(shop.list(query, json!({"limit": 3})).await, in_order(&items, |_| true));
        let cheap = json!({"must": [{"range": {"price": {"lt": 5}}}]});
        let is_cheap = |item: &Item| {
            item.attributes.get("price").is_some_and(|price| price.as_f64().unwrap() < 5.0)
        };
        let found = shop.list(query, json!({"limit": 2, "filter": cheap})).await;
        assert_eq!(found, in_order(&items, is_cheap));
        for kept in &kept {
            let asked = json!({"limit": 4, "generation": kept.generation});
            assert_eq!(shop.list(query, asked).await, in_order(&kept.items, |_| true));
            assert_eq!(recommended(shop, kept.generation).await, kept.recommended);
        }
        let state = shop.get(catalog).await.ok();
        assert_eq!(
            (&state["generation"], &state["num_items"]),
            (&json!(generation), &json!(items.len()))
        );
        let found: Vec<&Value> = state["live"]["kept"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kept| &kept["generation"])
            .collect();
        assert_eq!(found, kept.iter().map(|kept| &kept.generation).collect::<Vec<_>>());
    }
    shop.send(Method::DELETE, catalog, "").await.problem(409);
    let gone = json!({"actions": [{"delete": {"alias": "t"}}]});
    shop.post("/v1/targets", &gone).await.ok();
    let answer = shop.send(Method::DELETE, catalog, "").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.body);
    shop.get(catalog).await.problem(404);
}

#[test]
fn a_catalog_is_its_list_whatever_happens() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let data = tempfile::tempdir().unwrap();
    let shop = {
        let _in = runtime.enter();
        let mut config = config();
        config.data_dir = Some(data.path().to_owned());
        shopping(config)
    };
    let config =
        Config { cases: 12, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let ran = TestRunner::new(config).run(&operations(), |operations| {
        let ran = std::panic::AssertUnwindSafe(|| runtime.block_on(run(&shop, &operations)));
        let ran = std::panic::catch_unwind(ran);
        if ran.is_err() {
            // The next case begins anew, whatever this one left.
            runtime.block_on(async {
                let gone = json!({"actions": [{"delete": {"alias": "t"}}]});
                shop.post("/v1/targets", &gone).await;
                shop.send(Method::DELETE, "/v1/catalogs/t", "").await;
            });
        }
        ran.map_err(|_| TestCaseError::fail("see the panic above"))
    });
    ran.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_batch_gets_the_first_answer() {
    let shop = shopping(config());
    let path = "/v1/catalogs/items/items";
    let first = r#"{"delete": "P0001"}"#;
    let keyed = |key: &'static str, body: &'static str| {
        let headers = [NDJSON, ("idempotency-key", key)];
        let shop = &shop;
        async move { shop.send_with(Method::POST, path, &headers, body).await }
    };
    let answer = keyed("a", first).await.ok();
    assert_eq!((&answer["generation"], &answer["deleted"]), (&json!(1), &json!(1)));
    let again = keyed("a", first).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.headers["palmette-generation"], "1");
    assert_eq!(again.ok(), answer, "nothing was applied twice");
    let (detail, _) = keyed("a", r#"{"delete": "P0002"}"#).await.problem(422);
    assert!(detail.contains("generation 1"), "{detail}");
    assert_eq!(keyed("b", first).await.ok()["unknown_deletes"], 1);
    // With the condition of its first attempt a repetition is still one.
    let headers = [NDJSON, ("idempotency-key", "c"), ("if-match", "\"2\"")];
    for is_again in [false, true] {
        let answer = shop.send_with(Method::POST, path, &headers, r#"{"delete": "P0003"}"#).await;
        assert_eq!(answer.headers.contains_key("idempotency-replayed"), is_again);
        assert_eq!(answer.ok()["generation"], 3);
    }
    // What was refused leaves no trace.
    keyed("d", r#"{"item_id": "none", "price": 1}"#).await.problem(422);
    keyed("d", r#"{"delete": "P0004"}"#).await.ok();
    for key in ["", "ä", &"x".repeat(129)] {
        let headers = [NDJSON, ("idempotency-key", key)];
        shop.send_with(Method::POST, path, &headers, first).await.problem(422);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_holds_until_the_write() {
    let shop = shopping(config());
    let path = "/v1/catalogs/items/items";
    // Many of the same condition: one is applied.
    let attempts = (0..8).map(|n| {
        let headers = [NDJSON, ("if-match", "\"0\"")];
        let body = format!(r#"{{"delete": "P00{n}1"}}"#);
        let shop = &shop;
        async move { shop.send_with(Method::POST, path, &headers, body).await.status.as_u16() }
    });
    let mut statuses = futures_util::future::join_all(attempts).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
    for (method, path, body) in [
        (Method::PUT, "/v1/catalogs/items/items/x", r#"{"codes": [0, 0, 0, 0]}"#),
        (Method::PATCH, "/v1/catalogs/items/items/P0100", r#"{"price": 1}"#),
        (Method::DELETE, "/v1/catalogs/items/items/P0100", ""),
        (Method::POST, "/v1/catalogs/items/generations", "{}"),
        (Method::POST, "/v1/catalogs/items/rollback", r#"{"to": 0}"#),
        (Method::DELETE, "/v1/catalogs/items/generations/0", ""),
    ] {
        let old = [("if-match", "\"0\"")];
        let (detail, _) = shop.send_with(method, path, &old, body).await.problem(412);
        assert!(detail.contains("generation 1"), "{detail}");
    }
    let headers = [("if-match", "\"7\", \"1\"")];
    let one = "/v1/catalogs/items/items/P0100";
    shop.send_with(Method::PATCH, one, &headers, r#"{"price": 1}"#).await.ok();
    let (detail, _) =
        shop.send_with(Method::DELETE, one, &[("if-match", "2")], "").await.problem(422);
    // A condition that is not kept would be taken for one that held.
    for other in ["if-none-match", "if-unmodified-since"] {
        let refused = shop.send_with(Method::DELETE, one, &[(other, "*")], "").await;
        let (detail, _) = refused.problem(412);
        assert!(detail.contains("If-Match"), "{detail}");
    }
    assert!(detail.contains("in quotes"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_side_by_side_are_all_applied() {
    let shop = shopping(config());
    let batches =
        (0..24).map(|n| {
            let body = format!(r#"{{"item_id": "new{n}", "codes": [0, 0, 0, 0], "price": {n}}}"#);
            let shop = &shop;
            async move {
                shop.batch("/v1/catalogs/items/items", &body).await.ok()["generation"].as_u64()
            }
        });
    let mut generations = futures_util::future::join_all(batches).await;
    generations.sort_unstable();
    assert_eq!(generations, (1..=24).map(Some).collect::<Vec<_>>());
    let query = json!({"filter": {"must": {"match": {"price": 7}}}, "limit": 1000, "fields": []});
    let found = shop.post("/v1/catalogs/items/items/query", &query).await.ok();
    let is_new = |item: &&Value| item["id"] == "new7";
    let item = found["items"].as_array().unwrap().iter().find(is_new).unwrap();
    assert_eq!(item["attributes"], json!({}));
    let metrics = shop.get("/metrics").await.ok();
    let name = "palmette_catalog_apply_seconds_count{catalog=\"items\"}";
    assert!(metrics.as_str().unwrap().contains(name), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_find_items_by_id_and_title() {
    let shop = shopping(config());
    for catalog in ["items", "frozen"] {
        let query = format!("/v1/catalogs/{catalog}/items/query");
        let all = shop.list(&query, json!({"limit": 1000})).await;
        let cheap = json!({"must": {"range": {"price": {"lt": 1000}}}});
        for words in ["tent", "FERNHOLLOW tent", "p0001", "person 1", "no such words"] {
            // The definition, over a list of all.
            let has = |item: &&Value| {
                let title = item["attributes"]["title"].as_str().unwrap();
                let text = format!("{}\n{title}", item["id"].as_str().unwrap()).to_lowercase();
                words.to_lowercase().split(' ').all(|word| text.contains(word))
            };
            let is_cheap = |item: &&Value| item["attributes"]["price"].as_f64().unwrap() < 1000.0;
            let wanted: Vec<&Value> = all.iter().filter(has).filter(is_cheap).collect();
            let (mut found, mut asked) =
                (Vec::new(), json!({"words": words, "filter": cheap, "limit": 7}));
            loop {
                let page = shop.post(&query, &asked).await.ok();
                found.extend(page["items"].as_array().unwrap().clone());
                if page["cursor"].is_null() {
                    break;
                }
                asked["cursor"] = page["cursor"].clone();
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{words}");
            assert_eq!(found.is_empty(), words == "no such words", "{words}");
        }
    }
    let counted = json!({"words": "tent", "count": true});
    let answer = shop.post("/v1/catalogs/items/items/query", &counted).await;
    assert_eq!(answer.problem(422).1, "/count");
    let metrics = shop.get("/metrics").await.ok();
    for result in ["hit", "miss"] {
        let name = format!("palmette_filter_cache_total{{result=\"{result}\"}}");
        assert!(metrics.as_str().unwrap().contains(&name), "{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_batches_name_the_line_and_the_rule() {
    let shop = shopping(config());
    for (body, pointer, word) in [
        ("", "", "no line"),
        ("\n \n", "", "no line"),
        ("1", "/1", "JSON object"),
        ("{\"delete\": \"a\"}\n\n{\"delete\": 1.5}", "/3", "no id"),
        ("{\"delete\": \"a\", \"b\": 1}", "/1", "nothing else"),
        (r#"{"item_id": "a", "codes": [1, 2]}"#, "/1", "2 codes"),
        (r#"{"item_id": "a", "codes": [0, 0, 0, 100000]}"#, "/1", "100000"),
        (r#"{"item_id": "a", "codes": []}"#, "/1", "at least one"),
        (r#"{"item_id": "", "codes": [0, 0, 0, 0]}"#, "/1", "empty"),
        (r#"{"item_id": "a", "price": 1}"#, "/1", "not in the catalog"),
        (r#"{"item_id": "P0001", "price": "dear"}"#, "/1", "price"),
    ] {
        let (detail, at) = shop.batch("/v1/catalogs/items/items", body).await.problem(422);
        assert!(detail.contains(word), "{body}: {detail}");
        assert_eq!(at, pointer, "{body}: {detail}");
    }
    // All that is wrong at once, but not without end.
    let answer = shop.batch("/v1/catalogs/items/items", &"x\n".repeat(1000)).await;
    assert_eq!(answer.body["errors"].as_array().unwrap().len(), 16);
    let answer = shop
        .batch(
            "/v1/catalogs/items/items",
            "{\"item_id\": \"a\", \"x\": 1}\n{\"delete\": \"b\"}\n{\"item_id\": \"b\", \"x\": 1}",
        )
        .await;
    let at: Vec<&Value> =
        answer.body["errors"].as_array().unwrap().iter().map(|fault| &fault["pointer"]).collect();
    assert_eq!(at, ["/1", "/3"]);
    let many = "{\"delete\":\"a\"}\n".repeat(250_001);
    let (detail, _) = shop.batch("/v1/catalogs/items/items", &many).await.problem(413);
    assert!(detail.contains("250000"), "{detail}");
    let of_text = [("content-type", "text/plain")];
    shop.send_with(Method::POST, "/v1/catalogs/items/items", &of_text, "{}").await.problem(415);
    assert_eq!(shop.get("/v1/catalogs/items").await.ok()["generation"], 0, "nothing was applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_about_items_name_the_value() {
    let shop = shopping(config());
    let (item, query) = ("/v1/catalogs/items/items/P0001", "/v1/catalogs/items/items/query");
    for (method, path, body, status, pointer, word) in [
        (Method::PUT, item, "{", 400, "", "EOF"),
        (Method::PUT, item, "[]", 422, "", "object"),
        (Method::PUT, item, "{}", 422, "/codes", "no codes"),
        (Method::PUT, item, r#"{"item_id": "P2", "codes": [0]}"#, 422, "/item_id", "P0001"),
        (Method::PUT, item, r#"{"codes": "x"}"#, 422, "", "x"),
        (Method::PUT, item, r#"{"codes": [0]}"#, 422, "", "1 codes"),
        (
            Method::PUT,
            item,
            r#"{"codes": [0, 0, 0, 0], "price": 1, "attributes": {"price": 2}}"#,
            422,
            "/attributes/price",
            "once",
        ),
        (Method::PATCH, item, r#"{"codes": [0, 0, 0, 0]}"#, 422, "/codes", "PUT"),
        (Method::PATCH, item, r#"{"price": "dear"}"#, 422, "", "price"),
        (Method::PATCH, "/v1/catalogs/items/items/x", r#"{"price": 1}"#, 404, "", "\"x\""),
        (Method::GET, "/v1/catalogs/items/items/x", "", 404, "", "generation 0"),
        (Method::GET, "/v1/catalogs/items/items/%FF", "", 422, "", "path"),
        (Method::GET, "/v1/catalogs/items/items/P0001?generation=3", "", 410, "", "not kept"),
        (Method::GET, "/v1/catalogs/items/items/P0001?at=3", "", 422, "", "at"),
        (
            Method::GET,
            "/v1/catalogs/frozen/items/P0001?generation=3",
            "",
            422,
            "/generation",
            "frozen",
        ),
        (Method::GET, "/v1/catalogs/none/items/P0001", "", 404, "", "frozen, items"),
        (Method::DELETE, "/v1/catalogs/frozen/items/P0001", "", 409, "", "frozen"),
        (Method::POST, query, r#"{"limit": 0}"#, 422, "/limit", "1 to 1000"),
        (Method::POST, query, r#"{"limit": 1001}"#, 422, "/limit", "1001"),
        (Method::POST, query, r#"{"filter": {"must": 1}}"#, 422, "/filter", "must"),
        (
            Method::POST,
            query,
            r#"{"filter": {"must": {"match": {"prise": 1}}}}"#,
            422,
            "/filter",
            "price",
        ),
        (Method::POST, query, r#"{"fields": ["price", "prise"]}"#, 422, "/fields/1", "price"),
        (Method::POST, query, r#"{"cursor": "?"}"#, 422, "/cursor", "no cursor"),
        (Method::POST, query, r#"{"cursor": "AAAA"}"#, 422, "/cursor", "no cursor"),
        (Method::POST, query, r#"{"cursor": "AAAAAAAAAAAAAAAAAAAAAA"}"#, 410, "", "replaced"),
        (
            Method::POST,
            query,
            r#"{"cursor": "AAAA", "generation": 0}"#,
            422,
            "/generation",
            "one of them",
        ),
        (Method::POST, query, r#"{"page": 1}"#, 422, "/page", "there is no member"),
        (Method::POST, "/v1/catalogs/items/rollback", r#"{"to": 7}"#, 410, "", "7"),
        (Method::POST, "/v1/catalogs/items/rollback", r#"{}"#, 422, "", "to"),
        (
            Method::POST,
            "/v1/catalogs/items/generations",
            r#"{"name": "1"}"#,
            422,
            "/name",
            "number",
        ),
        (Method::POST, "/v1/catalogs/items/generations", r#"{"name": "a b"}"#, 422, "/name", "a b"),
        (Method::POST, "/v1/catalogs/frozen/generations", r#"{}"#, 409, "", "frozen"),
        (Method::DELETE, "/v1/catalogs/items/generations/opening", "", 404, "", "opening"),
        (Method::POST, "/v1/catalogs/items", "", 405, "", "POST"),
    ] {
        let shown = format!("{method} {path} {body}");
        let (detail, at) = shop.send(method, path, body).await.problem(status);
        assert!(detail.contains(word), "{shown}: {detail}");
        assert_eq!(at, pointer, "{shown}: {detail}");
    }
    // Items as they are read can be written, and change nothing.
    let got = shop.get(item).await.ok();
    shop.send(Method::PUT, item, got.to_string()).await.ok();
    assert_eq!(shop.get(item).await.ok(), got);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_of_its_generation() {
    let shop = shopping(config());
    let query = "/v1/catalogs/items/items/query";
    let page = |asked: Value| {
        let shop = &shop;
        async move { shop.post(query, &asked).await }
    };
    let first = page(json!({"limit": 2})).await.ok();
    let second = page(json!({"limit": 2, "cursor": first["cursor"]})).await.ok();
    shop.batch("/v1/catalogs/items/items", r#"{"delete": "P0001"}"#).await.ok();
    let (detail, _) = page(json!({"cursor": first["cursor"]})).await.problem(410);
    assert!(detail.contains("keep a generation"), "{detail}");
    // One that is kept goes on, whatever comes after it.
    shop.post("/v1/catalogs/items/generations", &json!({"name": "long"})).await;
    let before = page(json!({"limit": 3})).await.ok();
    shop.batch("/v1/catalogs/items/items", r#"{"delete": "P0002"}"#).await.ok();
    let named = page(json!({"limit": 3, "generation": "long"})).await.ok();
    assert_eq!(named, before);
    assert_eq!(page(json!({"cursor": before["cursor"]})).await.ok()["generation"], 1);
    // A frozen catalog's cursors do not end.
    let frozen = "/v1/catalogs/frozen/items/query";
    let page = shop.post(frozen, &json!({"limit": 2})).await.ok();
    assert_eq!(page["items"], first["items"]);
    let next = shop.post(frozen, &json!({"limit": 2, "cursor": page["cursor"]})).await.ok();
    assert_eq!(next["items"], second["items"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_another_process_writes_is_read_alone() {
    let shop = shopping(config());
    let dir = tempfile::tempdir().unwrap();
    let live = LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default()).unwrap();
    let reader = LiveReader::open_with(dir.path(), ReaderOptions::default()).unwrap();
    shop.server.add_catalog("followed", reader, Some(dir.path())).unwrap();
    let state = shop.get("/v1/catalogs/followed").await.ok();
    assert_eq!(state["kind"], "reader");
    let (detail, _) =
        shop.batch("/v1/catalogs/followed/items", r#"{"delete": "a"}"#).await.problem(409);
    assert!(detail.contains("another process"), "{detail}");
    live.keep(Some("empty")).unwrap();
    let wait = async {
        while shop.get("/v1/catalogs/followed/generations").await.ok()["kept"] == json!([]) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), wait).await.unwrap();
}
