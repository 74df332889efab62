//! Targets: pairs of model and catalog, switched together.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Method;
use palmette_demo::Shop;
use serde_json::json;

use crate::shop::{config, shopping};

#[tokio::test(flavor = "multi_thread")]
async fn targets_are_switched_together_or_not_at_all() {
    let shop = shopping(config());
    let listed = json!({"targets": [
        {"alias": "shop", "model": "m", "catalog": "items"},
        {"alias": "still", "model": "m", "catalog": "frozen"},
    ]});
    assert_eq!(shop.get("/v1/targets").await.ok(), listed);
    for (actions, pointer) in [
        (json!([{"delete": {"alias": "shop"}}, {"delete": {"alias": "none"}}]), "/actions/1"),
        (
            json!([{"delete": {"alias": "shop"}}, {"set": {"alias": "x", "model": "m", "catalog": "no"}}]),
            "/actions/1",
        ),
        (json!([{"set": {"alias": "a b", "model": "m", "catalog": "items"}}]), "/actions/0"),
        (json!([{"set": {"alias": "x", "model": "m"}}]), "/actions/0/set"),
        (json!([{"forget": {"alias": "x"}}]), "/actions/0"),
    ] {
        let answer = shop.post("/v1/targets", &json!({"actions": actions})).await;
        let (_, at) = answer.problem(422);
        assert_eq!(at, pointer);
        assert_eq!(shop.get("/v1/targets").await.ok(), listed);
    }
    let actions = json!([
        {"set": {"alias": "shop", "model": "m", "catalog": "frozen"}},
        {"set": {"alias": "new", "model": "m", "catalog": "items"}},
        {"delete": {"alias": "still"}},
    ]);
    shop.post("/v1/targets", &json!({"actions": actions})).await.ok();
    let answer = shop.post("/v1/recommend", &json!({"target": "shop"})).await.ok();
    assert_eq!(answer["target"], json!({"model": "m", "catalog": "frozen"}));
    shop.post("/v1/recommend", &json!({"target": "still"})).await.problem(404);
    let put = json!({"model": "m", "catalog": "items"}).to_string();
    shop.send(Method::PUT, "/v1/targets/shop", put).await.ok();
    let answer = shop.post("/v1/recommend", &json!({"target": "shop"})).await.ok();
    assert_eq!(answer["target"]["catalog"], "items");
}

/// Requests that go on while a target is switched back and forth are answered by one pair each.
#[tokio::test(flavor = "multi_thread")]
async fn requests_see_one_pair_while_targets_are_switched() {
    let shop = Arc::new(shopping(config()));
    let switching = Arc::clone(&shop);
    let switched = tokio::spawn(async move {
        for round in 0..40 {
            let catalog = if round % 2 == 0 { "frozen" } else { "items" };
            let pair = json!({"model": "m", "catalog": catalog}).to_string();
            switching.send(Method::PUT, "/v1/targets/shop", pair).await.ok();
        }
    });
    let mut seen = [0, 0];
    while !switched.is_finished() || seen.contains(&0) {
        let answer = shop.post("/v1/recommend", &json!({"target": "shop", "k": 1})).await.ok();
        let is_live = answer["target"]["catalog"] == "items";
        assert_eq!(answer["generation"].is_null(), !is_live, "{answer}");
        seen[usize::from(is_live)] += 1;
        if switched.is_finished() && seen.contains(&0) {
            break;
        }
    }
    switched.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_loaded_from_the_data_directory_alone() {
    let shop = shopping(config());
    let load = json!({"name": "n", "path": "n"});
    let (detail, _) = shop.post("/v1/models", &load).await.problem(409);
    assert!(detail.contains("--data-dir"), "{detail}");

    let data = tempfile::tempdir().unwrap();
    let model = data.path().join("models/n");
    std::fs::create_dir_all(&model).unwrap();
    for (name, bytes) in palmette_demo::Demo::model_files() {
        std::fs::write(model.join(name), bytes).unwrap();
    }
    std::os::unix::fs::symlink("/", data.path().join("models/root")).unwrap();
    let mut config = config();
    config.data_dir = Some(data.path().to_owned());
    let shop = shopping(config.clone());
    for path in ["", "../n", "/etc", "root/etc", "none"] {
        let (_, at) =
            shop.post("/v1/models", &json!({"name": "x", "path": path})).await.problem(422);
        assert_eq!(at, "/path", "{path}");
    }
    let answer = shop.post("/v1/models", &load).await;
    assert_eq!((answer.status.as_u16(), &answer.body["name"]), (201, &json!("n")));
    let models = shop.get("/v1/models").await.ok();
    assert_eq!(models["models"].as_array().unwrap().len(), 2);
    let pair = json!({"model": "n", "catalog": "frozen"}).to_string();
    shop.send(Method::PUT, "/v1/targets/new", Body::from(pair)).await.ok();
    let asked = |target: &str| json!({"target": target, "history": ["P0001"]});
    let by_new = shop.post("/v1/recommend", &asked("new")).await.ok();
    let by_old = shop.post("/v1/recommend", &asked("still")).await.ok();
    assert_eq!(by_new["items"], by_old["items"]);

    std::fs::remove_file(data.path().join("models/root")).unwrap();
    // The next process finds model and target; the catalog it is given.
    let next = palmette_serve::Server::new(config).unwrap();
    let recommender = shop.demo.recommender();
    next.add_model("m", Arc::clone(recommender.model()), recommender.format().clone()).unwrap();
    next.add_catalog("frozen", Shop::demo().catalog(), None).unwrap();
    next.add_catalog("items", Shop::demo().catalog(), None).unwrap();
    next.load_data_dir(palmette_model::WeightFormat::F32, false).unwrap();
    let next = crate::shop::Shopping {
        router: next.router(),
        server: next,
        ..shopping(crate::shop::config())
    };
    let targets = next.get("/v1/targets").await.ok();
    assert_eq!(targets["targets"].as_array().unwrap().len(), 3, "{targets}");
}
