//! Catalogs over HTTP: made of uploads, exported, deleted, and there again after a restart.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use palmette_catalog::Catalog;
use palmette_catalog_live::{LiveCatalog, LiveOptions, Update};
use palmette_demo::Shop;
use palmette_serve::{ServeConfig, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shop::{Answered, Routed, Shopping, config, shopping};

const NDJSON: &str = "application/x-ndjson";
pub(crate) const PALM: &str = "application/octet-stream";

pub(crate) fn with_data() -> (Shopping, TempDir) {
    let data = tempfile::tempdir().unwrap();
    let config = ServeConfig { data_dir: Some(data.path().to_owned()), ..config() };
    (shopping(config), data)
}

async fn put(shop: &Shopping, path: &str, media_type: &str, body: impl Into<Body>) -> Answered {
    shop.send_with(Method::PUT, path, &[("content-type", media_type)], body).await
}

/// Names in the directory of catalogs.
pub(crate) fn names(data: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(data.path().join("catalogs")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

/// An answer of bytes.
async fn bytes(shop: &Shopping, path: &str, headers: &[(&str, &str)]) -> (Answered, Vec<u8>) {
    use axum::http::Request;
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let mut request = Request::builder().uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let Ok(response) = shop.router.clone().oneshot(request.body(Body::empty()).unwrap()).await;
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes().to_vec();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    (Answered { status: parts.status, headers: parts.headers, body }, bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogs_are_listed_with_their_state() {
    let shop = shopping(config());
    let list = shop.get("/v1/catalogs").await.ok();
    let entries = list["catalogs"].as_array().unwrap();
    let shown: Vec<(&str, &str)> = entries
        .iter()
        .map(|entry| (entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, [("frozen", "frozen"), ("items", "live")]);
    let live = shop.get("/v1/catalogs/items").await;
    assert_eq!(live.headers["palmette-generation"], "0");
    let live = live.ok();
    assert_eq!(live, entries[1]);
    let num_items = Shop::demo().catalog().num_items();
    assert_eq!((&live["num_items"], &live["targets"]), (&json!(num_items), &json!(["shop"])));
    assert_eq!(live["codes_per_level"], entries[0]["codes_per_level"]);
    assert_eq!(live["attributes"], entries[0]["attributes"]);
    assert!(
        live["attributes"]
            .as_array()
            .unwrap()
            .contains(&json!({"name": "price", "kind": "number"}))
    );
    assert_eq!(live["live"]["segments"][0]["num_live"], num_items);
    assert_eq!((&entries[0]["live"], &entries[0]["generation"]), (&Value::Null, &Value::Null));
    let (detail, _) = shop.get("/v1/catalogs/none").await.problem(404);
    assert!(detail.contains("frozen, items"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_is_a_catalog_that_is_served_and_outlives_the_process() {
    let (shop, data) = with_data();
    let table = "item_id,code_0,code_1,title\nb,1,0,Tent\na,0,1,\"Lamp, red\"\n";
    let lines = "{\"item_id\": \"b\", \"codes\": [1, 0], \"title\": \"Tent\"}\n{\"item_id\": \"a\", \"codes\": [0, 1], \"title\": \"Lamp, red\"}";
    for (name, media_type, body) in
        [("table", "text/csv; charset=utf-8", table), ("lines", NDJSON, lines)]
    {
        let answer = put(&shop, &format!("/v1/catalogs/{name}"), media_type, body.to_owned()).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        assert_eq!(answer.headers["location"], format!("/v1/catalogs/{name}"));
        assert_eq!((&answer.body["num_items"], &answer.body["generation"]), (&json!(2), &json!(0)));
        let page = shop.post(&format!("/v1/catalogs/{name}/items/query"), &json!({})).await.ok();
        let items = json!([
            {"id": "a", "codes": [0, 1], "attributes": {"title": "Lamp, red"}},
            {"id": "b", "codes": [1, 0], "attributes": {"title": "Tent"}},
        ]);
        assert_eq!(page["items"], items, "{name}");
    }
    // A file, with the codes of a model: a target may be pointed at it.
    let whole = Shop::demo().catalog().to_bytes();
    let answer = put(&shop, "/v1/catalogs/file?model=m", PALM, whole).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    shop.send(Method::PUT, "/v1/targets/new", json!({"model": "m", "catalog": "file"}).to_string())
        .await
        .ok();
    let ask = |target: &str| json!({"target": target, "history": ["P0001"], "k": 5});
    let found = shop.post("/v1/recommend", &ask("new")).await.ok();
    assert_eq!(found["items"], shop.post("/v1/recommend", &ask("shop")).await.ok()["items"]);
    shop.send(Method::DELETE, "/v1/catalogs/lines/items/a", "").await.ok();
    assert_eq!(names(&data), ["file", "lines", "table"], "nothing else is left");

    // Another process, after this one ended in the middle of something.
    for hidden in [".new-x", ".deleted-x"] {
        std::fs::create_dir(data.path().join("catalogs").join(hidden)).unwrap();
    }
    std::fs::write(data.path().join("catalogs/.upload-x"), "x").unwrap();
    let shop = restarted(shop, &data).await;
    assert_eq!(names(&data), ["file", "lines", "table"]);
    assert_eq!(shop.get("/v1/catalogs/lines").await.ok()["generation"], 1);
    shop.get("/v1/catalogs/lines/items/a").await.problem(404);
    assert_eq!(shop.post("/v1/recommend", &ask("new")).await.ok()["items"], found["items"]);
}

/// Another server over the same data directory, after the first has gone.
async fn restarted(shop: Shopping, data: &TempDir) -> Shopping {
    let Shopping { routed: Routed { server, router }, demo, .. } = shop;
    drop((server, router));
    let again =
        Server::new(ServeConfig { data_dir: Some(data.path().to_owned()), ..config() }).unwrap();
    let recommender = demo.recommender();
    again.add_model("m", recommender.engine().clone(), recommender.format().clone()).unwrap();
    again.add_catalog("items", Shop::demo().catalog(), None).unwrap();
    again.add_catalog("frozen", Shop::demo().catalog(), None).unwrap();
    // The lock of a catalog is free once the requests of the process before have ended.
    let opened = async {
        while let Err(error) = again.load_data_dir(false) {
            assert!(error.to_string().contains("another process"), "{error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), opened).await.unwrap();
    again.restore_targets().unwrap();
    Shopping { routed: Routed::new(again), demo, dir: tempfile::tempdir().unwrap() }
}

/// A live catalog of one item as `held`; a target need not point at it.
fn held(shop: &Shopping) -> (Arc<LiveCatalog>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let live = LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default()).unwrap();
    let line = r#"{"item_id": "a", "codes": [1, 2, 3, 4]}"#;
    live.apply(&[Update::from_json_line(line).unwrap()]).unwrap();
    let live = Arc::new(live);
    shop.server.add_catalog("held", Arc::clone(&live), Some(dir.path())).unwrap();
    (live, dir)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn state_is_told_while_a_batch_is_being_applied() {
    let shop = Arc::new(shopping(config()));
    let (live, _dir) = held(&shop);
    let (begun, begins) = std::sync::mpsc::channel();
    let (end, ends) = std::sync::mpsc::channel::<()>();
    let applying = std::thread::spawn(move || {
        live.while_held(|| {
            begun.send(()).unwrap();
            _ = ends.recv();
        });
    });
    begins.recv().unwrap();
    let mut answers = Vec::new();
    for path in [
        "/metrics",
        "/v1/catalogs",
        "/v1/catalogs/held",
        "/v1/catalogs/held/generations",
        "/v1/catalogs/held/items/a?generation=1",
    ] {
        let shop = Arc::clone(&shop);
        // On a thread of its own: one that waits for the batch blocks it.
        let asked = tokio::spawn(async move { shop.get(path).await });
        let answer = tokio::time::timeout(Duration::from_secs(20), asked).await;
        answers.push((path, answer));
    }
    let batch = {
        let shop = Arc::clone(&shop);
        tokio::spawn(async move {
            shop.send(Method::DELETE, "/v1/catalogs/held/items/a", Body::empty()).await
        })
    };
    drop(end);
    applying.join().unwrap();
    for (path, answer) in answers {
        let answer = answer.unwrap_or_else(|_| panic!("{path} waits for the batch"));
        let body = answer.unwrap().ok();
        match path {
            "/metrics" => {
                let line = "palmette_catalog_generation{catalog=\"held\"} 1\n";
                assert!(body.as_str().unwrap().contains(line), "{body}");
            }
            "/v1/catalogs" => assert_eq!(body["catalogs"][1]["generation"], 1, "{body}"),
            "/v1/catalogs/held" => {
                assert_eq!((&body["generation"], &body["num_items"]), (&json!(1), &json!(1)));
            }
            _ => {}
        }
    }
    assert_eq!(batch.await.unwrap().ok()["generation"], 2);
    assert_eq!(shop.get("/v1/catalogs/held").await.ok()["generation"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_a_deleted_catalog_is_given_back_by_idle_streams() {
    let shop = shopping(config());
    let (live, dir) = held(&shop);
    let snapshot = Arc::downgrade(&live.snapshot());
    drop(live);
    // More at once than there are streams, so that each has a worker; of several shapes, so that it
    // has several.
    let asked = (1..=8).map(|k| {
        let asked = json!({"target": "m:held", "k": k % 2 + 1, "beam_width": 8 << (k % 3), "history": ["a"], "exclude_seen": false});
        let shop = &shop;
        async move { shop.post("/v1/recommend", &asked).await.ok()["items"][0]["id"].clone() }
    });
    let found = futures_util::future::join_all(asked).await;
    assert!(found.iter().all(|id| id == "a"), "{found:?}");
    assert!(snapshot.upgrade().is_some(), "it is served");
    let gone = shop.send(Method::DELETE, "/v1/catalogs/held", Body::empty()).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
    let given_back = async {
        while snapshot.upgrade().is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // Nothing else is asked meanwhile: the streams are idle.
    tokio::time::timeout(Duration::from_secs(20), given_back).await.expect("it is given back");
    // Nobody writes there any more, so that another process may.
    let opened = async {
        loop {
            match LiveCatalog::open_with(dir.path(), LiveOptions::default()) {
                Ok(again) => break again,
                Err(error) => assert!(error.is_locked(), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let again = tokio::time::timeout(Duration::from_secs(20), opened).await.unwrap();
    assert_eq!(again.snapshot().num_items(), 1);
    // The streams go on.
    let still = json!({"target": "still", "k": 1});
    assert_eq!(shop.post("/v1/recommend", &still).await.ok()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_repeated_after_a_restart_gets_the_first_answer() {
    let (shop, data) = with_data();
    let item = r#"{"item_id": "a", "codes": [1, 2, 3, 4]}"#;
    put(&shop, "/v1/catalogs/x", NDJSON, item).await;
    let path = "/v1/catalogs/x/items";
    let headers = [("content-type", NDJSON), ("idempotency-key", "import 7")];
    let body = r#"{"item_id": "b", "codes": [1, 2, 3, 4], "price": 3}"#;
    let first = shop.send_with(Method::POST, path, &headers, body).await.ok();
    shop.send(Method::DELETE, "/v1/catalogs/x/items/b", "").await.ok();
    let mut shop = shop;
    for is_checkpointed in [false, true] {
        shop = restarted(shop, &data).await;
        let again = shop.send_with(Method::POST, path, &headers, body).await;
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_eq!(again.ok(), first);
        shop.get("/v1/catalogs/x/items/b").await.problem(404);
        let (detail, _) = shop.send_with(Method::POST, path, &headers, item).await.problem(422);
        assert!(detail.contains("Idempotency-Key") && detail.contains("generation 1"), "{detail}");
        if !is_checkpointed {
            // The log begins anew with the generation that is kept.
            shop.post("/v1/catalogs/x/generations", &json!({})).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_catalog_is_refused_and_leaves_nothing() {
    let (shop, data) = with_data();
    let item = r#"{"item_id": "a", "codes": [1, 2]}"#;
    let twice = format!("{item}\n\n{item}\n");
    let damaged = {
        let mut bytes = Shop::demo().catalog().to_bytes();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes
    };
    let palm = Shop::demo().catalog().to_bytes();
    for (path, media_type, body, status, pointer, word) in [
        ("x", "text/plain", item.as_bytes(), 415, "", "text/csv"),
        ("x", "", item.as_bytes(), 415, "", "text/csv"),
        (".x", NDJSON, item.as_bytes(), 422, "", "no name"),
        ("a%2Fb", NDJSON, item.as_bytes(), 422, "", "no name"),
        ("%FF", NDJSON, item.as_bytes(), 422, "", "path"),
        ("items", NDJSON, item.as_bytes(), 409, "", "already"),
        ("x?models=m", NDJSON, item.as_bytes(), 422, "", "models"),
        ("x?model=n", NDJSON, item.as_bytes(), 422, "", "there are m"),
        ("x?model=m&codes_per_level=3", NDJSON, item.as_bytes(), 422, "", "exclude"),
        ("x?codes_per_level=3,x", NDJSON, item.as_bytes(), 422, "", "3,x"),
        ("x?codes_per_level=0", NDJSON, item.as_bytes(), 422, "", "0"),
        ("x?codes_per_level=3,2", NDJSON, item.as_bytes(), 422, "/1", "code 2"),
        ("x?codes_per_level=3,2", PALM, &palm, 422, "", "codebook"),
        ("x?model=m", NDJSON, item.as_bytes(), 422, "/1", "2 codes"),
        ("x", NDJSON, twice.as_bytes(), 422, "/3", "\"a\""),
        ("x", NDJSON, b"{\"item_id\": \"a\"}", 422, "/1", "line 1"),
        ("x", NDJSON, b"\xff\xfe", 422, "", "the body"),
        ("x", "text/csv", b"item_id,code_0\na,1,2\n", 422, "/2", "cells"),
        ("x", PALM, item.as_bytes(), 422, "", "the body"),
        ("x", PALM, b"", 422, "", "the body"),
        ("x", PALM, &damaged, 422, "", "the body"),
    ] {
        let shown =
            format!("{path} {media_type} {}", String::from_utf8_lossy(&body[..body.len().min(60)]));
        let answer = put(&shop, &format!("/v1/catalogs/{path}"), media_type, body.to_vec()).await;
        let (detail, at) = answer.problem(status);
        assert!(detail.contains(word), "{shown}: {detail}");
        assert!(!detail.contains(".upload"), "{shown}: no path of the server: {detail}");
        if word != "the body" {
            assert_eq!(at, pointer, "{shown}: {detail}");
        }
        assert_eq!(names(&data), Vec::<String>::new(), "{shown}");
    }
    // A name whose upload failed is free.
    assert_eq!(put(&shop, "/v1/catalogs/x", NDJSON, item).await.status, StatusCode::CREATED);
    put(&shop, "/v1/catalogs/x", NDJSON, item).await.problem(409);
    let shop = shopping(config());
    let (detail, _) = put(&shop, "/v1/catalogs/x", NDJSON, item).await.problem(409);
    assert!(detail.contains("--data-dir"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_are_bounded_in_length_and_time() {
    let data = tempfile::tempdir().unwrap();
    let config = ServeConfig {
        data_dir: Some(data.path().to_owned()),
        max_upload: 10_000,
        read_timeout: Duration::from_millis(100),
        ..config()
    };
    let shop = shopping(config);
    let long = "x".repeat(10_001);
    put(&shop, "/v1/catalogs/x", NDJSON, long.clone()).await.problem(413);
    let length = [("content-type", NDJSON), ("content-length", "10001")];
    shop.send_with(Method::POST, "/v1/catalogs/items/items", &length, "").await.problem(413);
    let pieces = |pieces: Vec<String>| {
        let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
        Body::from_stream(futures_util::stream::iter(pieces))
    };
    let answer = put(&shop, "/v1/catalogs/x", NDJSON, pieces(vec!["x".repeat(6000); 2])).await;
    answer.problem(413);
    let never =
        || Body::from_stream(futures_util::stream::pending::<Result<String, std::io::Error>>());
    put(&shop, "/v1/catalogs/x", NDJSON, never()).await.problem(408);
    put(&shop, "/v1/catalogs/items/items", NDJSON, never()).await.problem(405);
    let of_lines = [("content-type", NDJSON)];
    shop.send_with(Method::POST, "/v1/catalogs/items/items", &of_lines, never()).await.problem(408);
    let broken = futures_util::stream::iter([Ok("{"), Err(std::io::Error::other("gone"))]);
    let answer = put(&shop, "/v1/catalogs/x", NDJSON, Body::from_stream(broken)).await;
    answer.problem(400);
    // While one is on its way, its name is taken.
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let slow = futures_util::stream::once(async {
        receiver.await.unwrap();
        Ok::<_, std::io::Error>(r#"{"item_id": "a", "codes": [1]}"#)
    });
    let (first, ()) =
        tokio::join!(put(&shop, "/v1/catalogs/x", NDJSON, Body::from_stream(slow)), async {
            let (detail, _) = put(&shop, "/v1/catalogs/x", NDJSON, "").await.problem(409);
            assert!(detail.contains("being made"), "{detail}");
            sender.send(()).unwrap();
        });
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.body);
    assert_eq!(names(&data), ["x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_the_catalog_of_the_items_whatever_the_segments() {
    let (shop, _data) = with_data();
    let path = "/v1/catalogs/items/export";
    let (answer, whole) = bytes(&shop, path, &[]).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(whole, Shop::demo().catalog().to_bytes(), "nothing has changed");
    assert_eq!(answer.headers["content-length"], whole.len().to_string());
    assert_eq!(answer.headers["palmette-generation"], "0");
    let tag = answer.headers["etag"].to_str().unwrap().to_owned();
    let (frozen, same) = bytes(&shop, "/v1/catalogs/frozen/export", &[]).await;
    assert_eq!((same, frozen.headers["etag"].to_str().unwrap()), (whole.clone(), tag.as_str()));

    // In parts, as a download that goes on.
    let third = whole.len() / 3;
    let ranges = [
        format!("bytes=0-{}", third - 1),
        format!("bytes={third}-{third}"),
        format!("bytes={}-", third + 1),
    ];
    let mut parts = Vec::new();
    for range in &ranges {
        let headers = [("range", range.as_str()), ("if-range", tag.as_str())];
        let (answer, part) = bytes(&shop, path, &headers).await;
        assert_eq!(answer.status, StatusCode::PARTIAL_CONTENT);
        let shown =
            format!("bytes {}-{}/{}", parts.len(), parts.len() + part.len() - 1, whole.len());
        assert_eq!(answer.headers["content-range"], shown);
        parts.extend(part);
    }
    assert_eq!(parts, whole);
    let (answer, _) = bytes(&shop, path, &[("range", "bytes=99999999-")]).await;
    assert_eq!(answer.headers["content-range"], format!("bytes */{}", whole.len()));
    answer.problem(416);
    let (answer, other) =
        bytes(&shop, path, &[("range", "bytes=0-3"), ("if-range", "\"other\"")]).await;
    assert_eq!((answer.status, other.len()), (StatusCode::OK, whole.len()));
    let (answer, none) = bytes(&shop, path, &[("if-none-match", tag.as_str())]).await;
    assert_eq!((answer.status, none.len()), (StatusCode::NOT_MODIFIED, 0));

    // After changes it is another, and that of a kept generation is the first again.
    shop.post("/v1/catalogs/items/generations", &json!({"name": "opening"})).await;
    shop.send(Method::DELETE, "/v1/catalogs/items/items/P0001", "").await.ok();
    let (answer, smaller) = bytes(&shop, path, &[("if-none-match", tag.as_str())]).await;
    assert_eq!(answer.status, StatusCode::OK);
    let catalog = Catalog::from_bytes("smaller", smaller.clone(), Default::default()).unwrap();
    assert_eq!(catalog.rank_of("P0001"), None);
    let (_, opening) = bytes(&shop, "/v1/catalogs/items/export?generation=opening", &[]).await;
    assert_eq!(opening, whole);
    let (answer, _) = bytes(&shop, "/v1/catalogs/items/export?generation=7", &[]).await;
    answer.problem(410);
    // There and back.
    let answer = put(&shop, "/v1/catalogs/copy", PALM, smaller.clone()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    assert_eq!(bytes(&shop, "/v1/catalogs/copy/export", &[]).await.1, smaller);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_catalog_is_gone_and_its_name_is_free() {
    let (shop, data) = with_data();
    let item = r#"{"item_id": "a", "codes": [1, 2, 3, 4]}"#;
    for round in 0..3 {
        let answer = put(&shop, "/v1/catalogs/x", NDJSON, item).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{round}: {}", answer.body);
        // A pair without an alias is let go of.
        let asked = json!({"target": "m:x", "k": 1});
        assert_eq!(shop.post("/v1/recommend", &asked).await.ok()["items"][0]["id"], "a");
        let changed = shop.send(Method::PATCH, "/v1/catalogs/x/items/a", r#"{"price": 1}"#).await;
        assert_eq!(changed.ok()["generation"], 1, "{round}: it is a new catalog");
        let gone = shop.send(Method::DELETE, "/v1/catalogs/x", "").await;
        assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
        assert_eq!(names(&data), Vec::<String>::new());
        shop.post("/v1/recommend", &asked).await.problem(404);
        shop.send(Method::DELETE, "/v1/catalogs/x", "").await.problem(404);
    }
    // Files elsewhere stay.
    let (detail, _) = shop.send(Method::DELETE, "/v1/catalogs/items", "").await.problem(409);
    assert!(detail.contains("targets shop"), "{detail}");
    shop.post("/v1/targets", &json!({"actions": [{"delete": {"alias": "shop"}}]})).await.ok();
    let gone = shop.send(Method::DELETE, "/v1/catalogs/items", "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
    assert!(std::fs::read_dir(shop.dir.path()).unwrap().count() > 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletes_and_batches_side_by_side_end() {
    let (shop, data) = with_data();
    let item = r#"{"item_id": "a", "codes": [1, 2, 3, 4]}"#;
    put(&shop, "/v1/catalogs/x", NDJSON, item).await;
    let batches = (0..16).map(|n| {
        let body = format!(r#"{{"item_id": "b{n}", "codes": [1, 2, 3, 4]}}"#);
        let shop = &shop;
        async move {
            let headers = [("content-type", NDJSON)];
            shop.send_with(Method::POST, "/v1/catalogs/x/items", &headers, body)
                .await
                .status
                .as_u16()
        }
    });
    let (statuses, gone) = tokio::join!(
        futures_util::future::join_all(batches),
        shop.send(Method::DELETE, "/v1/catalogs/x", "")
    );
    assert!(statuses.iter().all(|status| matches!(status, 200 | 404)), "{statuses:?}");
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
    assert_eq!(names(&data), Vec::<String>::new());
}

/// Kinds that are declared hold from the first item on, and in a catalog without any.
#[tokio::test(flavor = "multi_thread")]
async fn kinds_of_attributes_are_declared() {
    let (shop, _data) = with_data();
    let asks = "columns=published=timestamp,price%3Dnumber,%20tags%20=%20keywords";
    let line = r#"{"item_id": "a", "codes": [0, 1], "published": "2026-11-27", "price": 3}"#;
    for (name, body) in [("none", ""), ("one", line)] {
        let path = format!("/v1/catalogs/{name}?codes_per_level=4,4&{asks}");
        let made = put(&shop, &path, NDJSON, body.to_owned()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let kinds = json!([
            {"name": "published", "kind": "timestamp"}, {"name": "price", "kind": "number"}, {"name": "tags", "kind": "keywords"},
        ]);
        assert_eq!(made.body["attributes"], kinds, "{name}");
        let items = format!("/v1/catalogs/{name}/items");
        shop.send(Method::POST, &items, line).await.ok();
        // A filter may ask at once, and another kind is refused.
        let asked = json!({"filter": {"key": "published", "range": {"gte": "2026-11-26"}}});
        let page = shop.post(&format!("{items}/query"), &asked).await.ok();
        assert_eq!(page["items"].as_array().unwrap().len(), 1, "{name}");
        let wrong = r#"{"item_id": "b", "codes": [0, 2], "price": "dear"}"#;
        let (detail, _) = shop.send(Method::POST, &items, wrong).await.problem(422);
        assert!(detail.contains("price"), "{detail}");
    }
    let palm = Shop::demo().catalog().to_bytes();
    for (asks, media_type, body, words) in [
        ("columns=price", NDJSON, Vec::new(), "NAME=KIND"),
        ("columns==number", NDJSON, Vec::new(), "NAME=KIND"),
        ("columns=price=money", NDJSON, Vec::new(), "money"),
        ("columns=price=number,price=json", NDJSON, Vec::new(), "declare it once"),
        ("columns=price=json", PALM, palm.clone(), "price"),
    ] {
        let path = format!("/v1/catalogs/wrong?{asks}");
        let (detail, _) = put(&shop, &path, media_type, body).await.problem(422);
        assert!(detail.contains(words), "{asks}: {detail}");
    }
}

/// Gauges of what is gone are not shown as they were: an alert on them would never end.
#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_that_is_gone_has_no_gauges() {
    let (shop, _data) = with_data();
    let line = r#"{"item_id": "a", "codes": [0, 1]}"#;
    put(&shop, "/v1/catalogs/brief", NDJSON, line.to_owned()).await;
    let gauges = async || -> Vec<String> {
        let metrics = shop.get("/metrics").await.body.as_str().unwrap().to_owned();
        let of = |line: &&str| {
            line.starts_with("palmette_catalog_items{")
                || line.starts_with("palmette_build_info")
                || line.starts_with("palmette_streams")
                || line.starts_with("palmette_memory_bytes")
        };
        metrics.lines().filter(of).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let before = gauges().await;
    assert!(before.contains(&"palmette_catalog_items{catalog=\"brief\"}".to_owned()), "{before:?}");
    shop.send(Method::DELETE, "/v1/catalogs/brief", "").await;
    tokio::time::sleep(Duration::from_millis(2200)).await;
    let after = gauges().await;
    assert!(!after.iter().any(|line| line.contains("brief")), "{after:?}");
    for kept in [
        "build_info",
        "streams{state=\"idle\"}",
        "memory_bytes{kind=\"answers\"}",
        "memory_bytes{kind=\"filters\"}",
        "items{catalog=\"items\"}",
    ] {
        assert!(after.iter().any(|line| line.contains(kept)), "{kept}: {after:?}");
    }
}
