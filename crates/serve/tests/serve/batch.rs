//! Batches and streams: each answer is the one that the question has alone.

use axum::http::Method;
use serde_json::{Value, json};

use crate::shop::{config, shopping};

fn questions() -> Vec<Value> {
    let cheap = json!({"must": {"range": {"price": {"lt": 30}}}});
    (1..40_u32)
        .map(|n| {
            let mut question = json!({"history": [format!("P{:04}", n * 17)], "k": 1 + n % 7});
            match n % 4 {
                0 => question["filter"] = cheap.clone(),
                1 => question["k"] = json!(0),
                2 => question["target"] = json!("still"),
                _ => question["history"] = json!([format!("P{n:04}"), {"codes": [0, 2, 4, 0]}]),
            }
            question
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_and_a_stream_answer_as_single_requests_do() {
    let mut config = config();
    config.answer_cache = 0;
    let shop = shopping(config);
    let defaults = json!({"target": "shop", "beam_width": 16});
    let mut alone = Vec::new();
    let mut lines = String::new();
    for question in questions() {
        let mut whole = question.clone();
        for (name, value) in defaults.as_object().unwrap() {
            if whole.get(name).is_none() {
                whole[name] = value.clone();
            }
        }
        lines += &format!("{whole}\n\n");
        alone.push(shop.post("/v1/recommend", &whole).await);
    }
    let body = json!({"defaults": defaults, "requests": questions()});
    let batch = shop.post("/v1/recommend/batch", &body).await.ok();
    let batch: Vec<Value> = batch["results"].as_array().unwrap().clone();
    let stream = shop.send(Method::POST, "/v1/recommend/stream", lines).await;
    assert_eq!(stream.headers["content-type"], "application/x-ndjson");
    let stream: Vec<Value> = stream
        .body
        .as_str()
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((batch.len(), stream.len()), (alone.len(), alone.len()));
    for (place, alone) in alone.iter().enumerate() {
        for together in [&batch[place], &stream[place]] {
            assert_eq!(together["status"], alone.status.as_u16(), "{together}");
            for part in ["items", "generation", "shortfall", "target"] {
                assert_eq!(together[part], alone.body[part], "{place}");
            }
            if !alone.status.is_success() {
                assert_eq!(together["problem"]["errors"], alone.body["errors"]);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_batch_is_refused() {
    let shop = shopping(config());
    for (body, status, pointer) in [
        (json!({"requests": vec![json!({}); 1025]}), 422, "/requests"),
        (json!({"requests": 1}), 422, "/requests"),
        (json!({"requests": [], "default": {}}), 422, "/default"),
        (json!({"requests": [], "defaults": [1]}), 422, "/defaults"),
    ] {
        let (_, at) = shop.post("/v1/recommend/batch", &body).await.problem(status);
        assert_eq!(at, pointer);
    }
    // What is null is not given, so that a default stands in its place.
    let body = json!({"defaults": {"target": "shop", "k": 2, "mode": null}, "requests": [{"k": null}, {"k": 1.0}]});
    let answer = shop.post("/v1/recommend/batch", &body).await.ok();
    let items = |place: usize| answer["results"][place]["items"].as_array().map(Vec::len);
    assert_eq!((items(0), items(1)), (Some(2), Some(1)), "{answer}");
    shop.post("/v1/recommend/batch", &json!({"requests": [], "defaults": null})).await.ok();
    let answer = shop
        .post("/v1/recommend/batch", &json!({"requests": [1, {"k": 1, "target": "shop"}]}))
        .await
        .ok();
    let status = |place: usize| answer["results"][place]["status"].as_u64().unwrap();
    assert_eq!((status(0), status(1)), (422, 200));

    // Each request would have them: gigabytes out of one.
    let ids = vec!["x".repeat(100); 9_000];
    let body = json!({"defaults": {"exclude": ids}, "requests": vec![json!({}); 1000]});
    shop.post("/v1/recommend/batch", &body).await.problem(413);
    let ids = [&ids[..], &ids[..]].concat();
    let body = json!({"requests": [{"exclude": ids}]});
    let answer = shop.post("/v1/recommend/batch", &body).await.ok();
    assert_eq!(answer["results"][0]["status"], 413);

    let long =
        format!("{{\"target\": \"shop\"}}\n{}\n{{\"target\": \"shop\"}}\n", "x".repeat(2 << 20));
    let stream = shop.send(Method::POST, "/v1/recommend/stream", long).await;
    let lines: Vec<Value> = stream
        .body
        .as_str()
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines.iter().map(|line| line["status"].as_u64().unwrap()).collect::<Vec<_>>(),
        [200, 413]
    );
}
