//! Targets: pairs of model and catalog, switched together.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Method;
use palmette_demo::Shop;
use serde_json::json;

use crate::shop::{Routed, config, shopping};

#[tokio::test(flavor = "multi_thread")]
async fn targets_are_switched_together_or_not_at_all() {
    let shop = shopping(config());
    let listed = json!({"default": "shop", "targets": [
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
    next.add_model("m", recommender.engine().clone(), recommender.format().clone()).unwrap();
    next.add_catalog("frozen", Shop::demo().catalog(), None).unwrap();
    next.add_catalog("items", Shop::demo().catalog(), None).unwrap();
    next.load_data_dir(false).unwrap();
    next.restore_targets().unwrap();
    let next =
        crate::shop::Shopping { routed: Routed::new(next), ..shopping(crate::shop::config()) };
    let targets = next.get("/v1/targets").await.ok();
    assert_eq!(targets["targets"].as_array().unwrap().len(), 3, "{targets}");
}

/// The documented upgrade: a second target beside the first, then the switch. Whoever names no
/// target sees the switch alone.
#[tokio::test(flavor = "multi_thread")]
async fn one_target_stays_the_default() {
    let shop = shopping(config());
    let default = || async {
        let targets = shop.get("/v1/targets").await.ok();
        let answer = shop.post("/v1/recommend", &json!({"k": 1})).await.ok();
        (
            targets["default"].as_str().unwrap().to_owned(),
            answer["target"]["catalog"].as_str().unwrap().to_owned(),
        )
    };
    let now = |alias: &str, catalog: &str| (alias.to_owned(), catalog.to_owned());
    let act = |actions: serde_json::Value| {
        let shop = &shop;
        async move { shop.post("/v1/targets", &json!({"actions": actions})).await }
    };
    let set = |alias: &str| json!({"set": {"alias": alias, "model": "m", "catalog": "frozen"}});
    let one = |action: &str, alias: &str| json!({action: {"alias": alias}});
    assert_eq!(default().await, now("shop", "items"));
    let pair = json!({"model": "m", "catalog": "frozen"}).to_string();
    // One that sorts before it, too.
    for alias in ["next", "a"] {
        shop.send(Method::PUT, &format!("/v1/targets/{alias}"), pair.clone()).await.ok();
        assert_eq!(default().await, now("shop", "items"));
    }
    // The default goes only where it is moved.
    let (detail, at) = act(json!([one("delete", "a"), one("delete", "shop")])).await.problem(422);
    assert!(detail.contains("\"shop\"") && detail.contains("next, still"), "{detail}");
    assert_eq!(at, "/actions/1");
    act(json!([one("default", "none")])).await.problem(422);
    assert_eq!(default().await, now("shop", "items"));
    act(json!([one("default", "next"), one("delete", "shop")])).await.ok();
    assert_eq!(default().await, now("next", "frozen"));
    // Deleted and set in one step it is the same alias.
    act(json!([one("delete", "next"), set("next")])).await.ok();
    assert_eq!(default().await, now("next", "frozen"));
    // The last one is the default.
    act(json!([one("delete", "next"), one("delete", "a")])).await.ok();
    assert_eq!(default().await, now("still", "frozen"));
    let answer = act(json!([one("delete", "still")])).await.ok();
    assert!(answer["default"].is_null());
    shop.post("/v1/recommend", &json!({"k": 1})).await.problem(503);
    act(json!([set("b"), set("a")])).await.ok();
    assert_eq!(default().await, now("b", "frozen"));
}

/// The default is found again at the next start, whatever the order of the aliases.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_target_is_kept() {
    let data = tempfile::tempdir().unwrap();
    let with_data = || {
        let mut config = config();
        config.data_dir = Some(data.path().to_owned());
        let shop = shopping(config);
        shop.server.load_data_dir(false).unwrap();
        shop.server.restore_targets().unwrap();
        shop
    };
    let default =
        async |shop: &crate::shop::Shopping| shop.get("/v1/targets").await.ok()["default"].clone();
    // A file of an older version, or one that was made by hand.
    let file = data.path().join("targets.json");
    std::fs::write(&file, r#"{"a": ["m", "frozen"], "z": ["m", "items"]}"#).unwrap();
    let shop = with_data();
    assert_eq!(default(&shop).await, "shop", "the first of the command line");
    let pair = json!({"model": "m", "catalog": "frozen"}).to_string();
    shop.send(Method::PUT, "/v1/targets/next", pair).await.ok();
    drop(shop);
    let shop = with_data();
    assert_eq!(default(&shop).await, "shop");
    let moved = json!({"actions": [{"default": {"alias": "z"}}]});
    shop.post("/v1/targets", &moved).await.ok();
    drop(shop);
    assert_eq!(default(&with_data()).await, "z");
    // Its temporary file is gone.
    let files = std::fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(files, ["catalogs", "lock", "models", "targets.json"]);
}

/// A target that is given may name what the data directory has, and goes before the saved one of
/// its alias.
#[tokio::test(flavor = "multi_thread")]
async fn a_given_target_may_name_a_model_of_the_data_directory() {
    let data = tempfile::tempdir().unwrap();
    for name in ["n", "m"] {
        let model = data.path().join("models").join(name);
        std::fs::create_dir_all(&model).unwrap();
        for (name, bytes) in palmette_demo::Demo::model_files() {
            std::fs::write(model.join(name), bytes).unwrap();
        }
    }
    let saved = r#"{"given": ["gone", "frozen"], "saved": ["n", "frozen"]}"#;
    std::fs::write(data.path().join("targets.json"), saved).unwrap();
    let mut config = config();
    config.data_dir = Some(data.path().to_owned());
    let shop = shopping(config);
    shop.server.load_data_dir(false).unwrap();
    shop.server.set_target("given", "n", "frozen").unwrap();
    shop.server.restore_targets().unwrap();
    let targets = shop.get("/v1/targets").await.ok()["targets"].clone();
    let pair = |alias: &str, model: &str, catalog: &str| json!({"alias": alias, "model": model, "catalog": catalog});
    let wanted = json!([
        pair("given", "n", "frozen"),
        pair("saved", "n", "frozen"),
        pair("shop", "m", "items"),
        pair("still", "m", "frozen"),
    ]);
    assert_eq!(targets, wanted);
    // The model that was given by its name stays: it is in memory, where one of the directory has a
    // path.
    shop.post("/v1/recommend", &json!({"target": "shop", "k": 1})).await.ok();
}

/// Models are in memory while a target or a pair needs them, and can be taken away.
#[tokio::test(flavor = "multi_thread")]
async fn models_come_into_memory_when_they_are_needed() {
    let data = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let model = data.path().join("models").join(name);
        std::fs::create_dir_all(&model).unwrap();
        for (name, bytes) in palmette_demo::Demo::model_files() {
            std::fs::write(model.join(name), bytes).unwrap();
        }
    }
    let mut config = config();
    config.data_dir = Some(data.path().to_owned());
    let shop = shopping(config);
    shop.server.load_data_dir(false).unwrap();
    shop.server.restore_targets().unwrap();
    let in_memory = || async {
        let models = shop.get("/v1/models").await.ok();
        let models = models["models"].as_array().unwrap().iter();
        let models = models.filter(|model| model["in_memory"] == true);
        models.map(|model| model["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(in_memory().await, ["m"]);
    let load = |name: String| {
        let shop = &shop;
        async move { shop.post("/v1/models", &json!({"name": name, "path": "a"})).await }
    };
    for n in 0..20 {
        assert_eq!(load(format!("a-{n}")).await.status, 201);
    }
    assert!(in_memory().await.len() <= 2, "the last one waits for its target");
    let put = async |alias: &str, model: &str| {
        let pair = json!({"model": model, "catalog": "frozen"}).to_string();
        shop.send(Method::PUT, &format!("/v1/targets/{alias}"), pair).await
    };
    put("next", "b").await.ok();
    assert_eq!(in_memory().await, ["b", "m"]);
    let ask = |target: &str| {
        let body = json!({"target": target, "history": ["P0001"], "k": 3});
        let shop = &shop;
        async move { shop.post("/v1/recommend", &body).await }
    };
    let by_m = ask("m:frozen").await.ok()["items"].clone();
    // A pair is made when it is asked for; few are held.
    for n in 0..20 {
        assert_eq!(ask(&format!("a-{n}:frozen")).await.ok()["items"], by_m);
    }
    assert!(in_memory().await.len() <= 6, "{:?}", in_memory().await);
    assert_eq!(ask("next").await.ok()["items"], by_m);

    let delete = async |name: &str| {
        shop.send(Method::DELETE, &format!("/v1/models/{name}"), Body::empty()).await
    };
    let (detail, _) = delete("b").await.problem(409);
    assert!(detail.contains("\"b\"") && detail.contains("next"), "{detail}");
    delete("none").await.problem(404);
    let gone = json!({"actions": [{"delete": {"alias": "next"}}]});
    shop.post("/v1/targets", &gone).await.ok();
    assert_eq!(in_memory().await, ["m"]);
    for name in (0..20).map(|n| format!("a-{n}")).chain(["b".to_owned()]) {
        assert_eq!(delete(&name).await.status, 204);
    }
    ask("b:frozen").await.problem(404);
    assert!(data.path().join("models/b/config.json").exists(), "its files stay");
    // What was replaced under its name is another model.
    std::fs::write(data.path().join("models/a/config.json"), b"{}").unwrap();
    let (detail, _) = ask("a:frozen").await.problem(422);
    assert!(detail.contains("replaced"), "{detail}");
}

/// A data directory has one server that writes it; those that follow leave it as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_has_one_server() {
    let data = tempfile::tempdir().unwrap();
    let with_data = || {
        let mut config = config();
        config.data_dir = Some(data.path().to_owned());
        palmette_serve::Server::new(config).unwrap()
    };
    let load = |server: &palmette_serve::Server, reads_only: bool| server.load_data_dir(reads_only);
    let first = with_data();
    load(&first, false).unwrap();
    let left = [data.path().join(".tmpAbCdEf"), data.path().join("catalogs/.upload-x")];
    for path in &left {
        std::fs::write(path, "half").unwrap();
    }
    let error = load(&with_data(), false).unwrap_err().to_string();
    assert!(error.contains("another server") && error.contains("--read-only"), "{error}");
    load(&with_data(), true).unwrap();
    assert!(left.iter().all(|path| path.exists()), "the first may be writing them");
    drop(first);
    load(&with_data(), false).unwrap();
    assert!(!left.iter().any(|path| path.exists()));
}
