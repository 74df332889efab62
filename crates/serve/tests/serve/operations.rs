//! Catalogs made by operations that go on after the answer.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use palmette_demo::Shop;
use palmette_serve::{NewKey, Scope, ServeConfig};
use serde_json::{Value, json};

use crate::catalogs::{PALM, names, with_data};
use crate::shop::{Answered, Shopping, config, shopping};

const NDJSON: &str = "application/x-ndjson";

async fn begin(shop: &Shopping, path: &str, media_type: &str, body: Vec<u8>) -> Answered {
    let headers = [("content-type", media_type), ("prefer", "respond-async")];
    shop.send_with(Method::PUT, path, &headers, body).await
}

/// Path of an operation that was begun.
#[track_caller]
fn path_of(begun: &Answered) -> String {
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.body);
    assert_eq!(begun.headers["preference-applied"], "respond-async");
    let path = begun.headers["location"].to_str().unwrap().to_owned();
    assert_eq!(path, begun.body["operation"].as_str().unwrap());
    path
}

/// The operation when it has ended.
async fn ended(shop: &Shopping, path: &str) -> Value {
    let end = async {
        loop {
            let shown = shop.get(path).await.ok();
            if shown["state"] != "running" {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), end).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_makes_the_catalog_that_waiting_would() {
    let (shop, data) = with_data();
    let whole = Shop::demo().catalog().to_bytes();
    let begun = begin(&shop, "/v1/catalogs/later?model=m", PALM, whole.clone()).await;
    let path = path_of(&begun);
    assert_eq!(
        (&begun.body["catalog"], &begun.body["state"]),
        (&json!("later"), &json!("running"))
    );
    let shown = ended(&shop, &path).await;
    assert_eq!(
        (&shown["state"], &shown["problem"]),
        (&json!("succeeded"), &Value::Null),
        "{shown}"
    );
    assert_eq!(shown["progress"]["of_bytes"], whole.len());
    assert_eq!(shown["result"], shop.get("/v1/catalogs/later").await.ok());
    let headers = [("content-type", PALM)];
    let waited = shop.send_with(Method::PUT, "/v1/catalogs/now?model=m", &headers, whole).await;
    assert_eq!(waited.status, StatusCode::CREATED, "{}", waited.body);
    let same = |entry: &Value| {
        let mut entry = entry.clone();
        entry.as_object_mut().unwrap().remove("name");
        entry
    };
    assert_eq!(same(&shown["result"]), same(&waited.body));

    // Lines are counted; what is wrong with one is told as the answer would have.
    let lines = "{\"item_id\": \"a\", \"codes\": [1]}\n{\"item_id\": \"b\", \"codes\": [2]}\n";
    let good =
        ended(&shop, &path_of(&begin(&shop, "/v1/catalogs/good", NDJSON, lines.into()).await))
            .await;
    let progress = json!({"items": 2, "bytes": lines.len(), "of_bytes": lines.len()});
    assert_eq!((&good["state"], &good["progress"]), (&json!("succeeded"), &progress), "{good}");
    let twice = format!("{lines}{lines}");
    let bad = path_of(&begin(&shop, "/v1/catalogs/bad", NDJSON, twice.clone().into()).await);
    let shown = ended(&shop, &bad).await;
    assert_eq!((&shown["state"], &shown["result"]), (&json!("failed"), &Value::Null), "{shown}");
    let headers = [("content-type", NDJSON)];
    let answer = shop.send_with(Method::PUT, "/v1/catalogs/bad", &headers, twice).await;
    let problem = |of: &Value| (of["status"].clone(), of["detail"].clone(), of["errors"].clone());
    assert_eq!(problem(&shown["problem"]), problem(&answer.body));
    answer.problem(422);
    assert_eq!(names(&data), ["good", "later", "now"]);

    // The latest first; one that has ended is forgotten.
    let all = shop.get("/v1/operations").await.ok();
    let catalogs: Vec<&Value> =
        all["operations"].as_array().unwrap().iter().map(|of| &of["catalog"]).collect();
    assert_eq!(catalogs, ["bad", "good", "later"]);
    let gone = shop.send(Method::DELETE, &bad, "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
    let (detail, _) = shop.get(&bad).await.problem(404);
    assert!(detail.contains("no operation"), "{detail}");
    shop.send(Method::DELETE, &bad, "").await.problem(404);
    // What is refused at once is no operation.
    begin(&shop, "/v1/catalogs/good", NDJSON, lines.into()).await.problem(409);
    begin(&shop, "/v1/catalogs/x", "text/plain", lines.into()).await.problem(415);
    assert_eq!(shop.get("/v1/operations").await.ok()["operations"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_operation_leaves_nothing_and_its_name_is_free() {
    let (shop, data) = with_data();
    // Some moments of work.
    let lines: String = (0..100_000)
        .map(|n| format!("{{\"item_id\": \"i{n}\", \"codes\": [{}]}}\n", n % 9))
        .collect();
    let path = path_of(&begin(&shop, "/v1/catalogs/x", NDJSON, lines.into()).await);
    let (detail, _) = begin(&shop, "/v1/catalogs/x", NDJSON, Vec::new()).await.problem(409);
    assert!(detail.contains("being made"), "{detail}");
    let told = shop.send(Method::DELETE, &path, "").await;
    assert_eq!(told.status, StatusCode::NO_CONTENT, "{}", told.body);
    let shown = ended(&shop, &path).await;
    match shown["state"].as_str() {
        Some("cancelled") => {
            shop.get("/v1/catalogs/x").await.problem(404);
            assert_eq!((&shown["result"], &shown["problem"]), (&Value::Null, &Value::Null));
        }
        // It was about to end.
        Some("succeeded") => {
            let gone = shop.send(Method::DELETE, "/v1/catalogs/x", "").await;
            assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.body);
        }
        _ => panic!("{shown}"),
    }
    assert_eq!(names(&data), Vec::<String>::new());
    let item = r#"{"item_id": "a", "codes": [1]}"#;
    let again = path_of(&begin(&shop, "/v1/catalogs/x", NDJSON, item.into()).await);
    assert_eq!(ended(&shop, &again).await["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_are_shown_to_keys_of_their_catalog() {
    let data = tempfile::tempdir().unwrap();
    let made =
        |name, catalog: &str| NewKey::make(name, &[Scope::Admin], &[catalog.to_owned()]).unwrap();
    let (mine, other) = (made("mine", "x"), made("other", "y"));
    let keys = data.path().join("keys");
    std::fs::write(&keys, format!("{}\n{}\n", mine.line, other.line)).unwrap();
    let (data_dir, keys) = (Some(data.path().to_owned()), Some(keys));
    let shop = shopping(ServeConfig { data_dir, keys, ..config() });
    let send = |method: Method, path: String, key: &NewKey| {
        let (shop, bearer) = (&shop, format!("Bearer {}", key.key));
        async move {
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", NDJSON),
                ("prefer", "respond-async"),
            ];
            let body = r#"{"item_id": "a", "codes": [1]}"#;
            shop.send_with(method, &path, &headers, body).await
        }
    };
    let path = path_of(&send(Method::PUT, "/v1/catalogs/x".to_owned(), &mine).await);
    for (key, wanted) in [(&mine, 1), (&other, 0)] {
        let list = send(Method::GET, "/v1/operations".to_owned(), key).await.ok();
        assert_eq!(list["operations"].as_array().unwrap().len(), wanted);
    }
    send(Method::GET, path.clone(), &other).await.problem(404);
    send(Method::DELETE, path.clone(), &other).await.problem(404);
    let end = async {
        while send(Method::GET, path.clone(), &mine).await.ok()["state"] == "running" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), end).await.expect("it ends");
    assert_eq!(send(Method::GET, path.clone(), &mine).await.ok()["state"], "succeeded");
    assert_eq!(send(Method::DELETE, path, &mine).await.status, StatusCode::NO_CONTENT);
}
