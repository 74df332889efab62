//! Forms of values in bodies: null, whole numbers, ids, and names that are also those of routes.

use axum::http::Method;
use serde_json::{Value, json};

use crate::shop::{config, shopping};

#[tokio::test(flavor = "multi_thread")]
async fn null_is_not_given_and_whole_numbers_are_whole_numbers() {
    let mut config = config();
    config.answer_cache = 0;
    let shop = shopping(config);
    let plain = json!({"target": "still", "history": ["P0001", {"codes": [0, 2, 4, 0]}], "k": 3});
    let wanted = shop.post("/v1/recommend", &plain).await.ok()["items"].clone();
    for more in [
        json!({"mode": null, "exclude": null, "fields": null, "exclude_seen": null, "trace": null, "filter": null, "rules": null}),
        json!({"beam_width": null, "widths": null, "generation": null, "min_generation": null, "unknown_items": null,
            "deadline_ms": null, "min_beam_width": null, "priority": null, "query": null, "user": null, "think_tokens": null,
            "explain_items": null}),
        json!({"k": 3.0, "deadline_ms": 2e4, "filter": {"must": null, "exclude": null}, "rules": {"at_most": null}}),
        json!({"history": ["P0001", [0.0, 2, 4, 0]], "widths": null, "beam_width": 128.0}),
    ] {
        let mut body = plain.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(shop.post("/v1/recommend", &body).await.ok()["items"], wanted, "{body}");
    }
    for (null, member) in [("k", 10), ("history", 10)] {
        let body = json!({"target": "still", null: null});
        let items = shop.post("/v1/recommend", &body).await.ok()["items"].as_array().unwrap().len();
        assert_eq!(items, member);
    }
    let body = json!({"limit": null, "filter": null, "words": null, "cursor": null, "fields": null, "count": null, "generation": null});
    let page = shop.post("/v1/catalogs/items/items/query", &body).await.ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 100);
    let page = shop
        .post("/v1/catalogs/items/items/query", &json!({"limit": 2.0, "generation": 0.0}))
        .await
        .ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let (_, at) =
        shop.post("/v1/recommend", &json!({"target": "still", "k": 2.5})).await.problem(422);
    assert_eq!(at, "/k");
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_may_be_whole_numbers_wherever_they_stand() {
    let shop = shopping(config());
    let lines: String = (1..=3)
        .map(|n| format!("{{\"item_id\": {n}, \"codes\": [0, 0, 0, {n}], \"price\": 1}}\n"))
        .collect();
    shop.send(Method::POST, "/v1/catalogs/items/items", lines).await.ok();
    let only = json!({"ids": [1, 2.0, "3"]});
    let ids = |answer: Value| -> Vec<String> {
        let items = answer["items"].as_array().unwrap().clone();
        let mut ids: Vec<_> =
            items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
        ids.sort_unstable();
        ids
    };
    for (more, wanted) in [
        (json!({}), vec!["1", "2", "3"]),
        (json!({"exclude": [1]}), vec!["2", "3"]),
        (json!({"exclude": [1.0, "2"]}), vec!["3"]),
        (json!({"history": [1, 3.0]}), vec!["2"]),
        (json!({"rules": {"must_exclude": [3.0]}}), vec!["1", "2"]),
        (json!({"filter": {"must": [only.clone()], "exclude": [2]}}), vec!["1", "3"]),
    ] {
        let mut body = json!({"target": "shop", "filter": only});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(ids(shop.post("/v1/recommend", &body).await.ok()), wanted, "{body}");
    }
    for (wrong, place) in
        [(json!([1.5]), "/exclude/0"), (json!(["a", [1]]), "/exclude/1"), (json!("a"), "/exclude")]
    {
        let (detail, at) = shop
            .post("/v1/recommend", &json!({"target": "shop", "exclude": wrong}))
            .await
            .problem(422);
        assert_eq!(at, place, "{detail}");
    }
    let item = "/v1/catalogs/items/items/7";
    for id in [json!(7), json!(7.0), json!("7"), json!(null)] {
        let body = json!({"item_id": id, "codes": [0, 0, 0, 9]});
        shop.send(Method::PUT, item, body.to_string()).await.ok();
    }
    let (detail, at) =
        shop.send(Method::PUT, item, r#"{"item_id": 8, "codes": [0, 0, 0, 9]}"#).await.problem(422);
    assert_eq!(at, "/item_id", "{detail}");
    shop.send(Method::PATCH, item, r#"{"codes": null, "price": 4}"#).await.ok();
    shop.send(Method::POST, "/v1/catalogs/items/items", r#"{"delete": 7.0}"#).await.ok();
    shop.get(item).await.problem(404);
}

/// Of two members of one name one would be lost, however deep they stand.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_stands_once() {
    let shop = shopping(config());
    for (method, path, body) in [
        (Method::POST, "/v1/recommend", r#"{"target": "still", "k": 1, "k": 2}"#),
        (
            Method::POST,
            "/v1/recommend",
            r#"{"target": "still", "user": {"a": [{"b": 1, "b": 2}]}}"#,
        ),
        (Method::POST, "/v1/catalogs/items/items", r#"{"item_id": "a", "price": 1, "price": 2}"#),
        (
            Method::POST,
            "/v1/catalogs/items/items",
            r#"{"item_id": "P0001", "x": [{"y": 1, "y": 2}]}"#,
        ),
        (Method::PATCH, "/v1/catalogs/items/items/P0001", r#"{"x": {"y": 1, "y": 2}}"#),
        (Method::PUT, "/v1/targets/next", r#"{"model": "m", "model": "m", "catalog": "items"}"#),
    ] {
        let (detail, _) = shop.send(method, path, body).await.problem(422);
        assert!(detail.contains("twice"), "{body}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_may_have_the_name_of_the_listing() {
    let shop = shopping(config());
    let item = "/v1/catalogs/items/items/query";
    shop.get(item).await.problem(404);
    shop.send(Method::PUT, item, r#"{"codes": [0, 0, 0, 1], "price": 3}"#).await.ok();
    shop.send(Method::PATCH, item, r#"{"price": 5}"#).await.ok();
    let found = shop.get(item).await.ok();
    assert_eq!((&found["id"], &found["attributes"]["price"]), (&json!("query"), &json!(5)));
    let page = shop.post(item, &json!({"filter": {"ids": ["query"]}})).await.ok();
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    shop.send(Method::DELETE, item, "").await.ok();
    shop.get(item).await.problem(404);
    let (detail, _) =
        shop.send(Method::POST, "/v1/catalogs/items/items/other", "{}").await.problem(405);
    assert!(detail.contains("POST"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_that_are_not_known_are_named() {
    let shop = shopping(config());
    let (detail, _) = shop.get("/v1/catalogs/items/items/P0001?gen=1").await.problem(422);
    assert_eq!(detail, "the query: there is no member \"gen\" here; there are generation");
}
