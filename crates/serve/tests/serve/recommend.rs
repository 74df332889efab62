//! `/v1/recommend`: its answers are the recommender's, whatever the route there.

use axum::http::Method;
use palmette_catalog::Filter;
use palmette_decode::run_on;
use palmette_recommend::{Candidates, History, Request, Worker};
use serde_json::{Value, json};

use crate::shop::{Shopping, config, shopping};

/// A 32-bit number as JSON has it: fewer digits than the same number as 64 bits.
fn shortest(score: f32) -> Value {
    serde_json::from_str(&score.to_string()).unwrap()
}

/// The recommender's own answer as the server writes items.
fn expected(shop: &Shopping, history: &[&str], k: usize, filter: Option<&str>) -> Vec<Value> {
    let filter = filter.map(|text| Filter::parse(text).unwrap());
    let recommender = shop.demo.recommender();
    let request = Request {
        items: filter.as_ref().map_or(Candidates::All, Candidates::Filter),
        ..Request::new(History::Ids(history), k)
    };
    let answer = Worker::new(recommender.clone(), 1).recommend(&request, &mut run_on).unwrap();
    let view = answer.view.view();
    let item = |item: &palmette_recommend::Recommended| json!({"id": view.id(item.number), "score": shortest(item.score), "codes": view.codes(item.number)});
    answer.items.iter().map(item).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_recommender() {
    let shop = shopping(config());
    let cheap = r#"{"must": {"range": {"price": {"lt": 20}}}}"#;
    for target in ["shop", "still", "m:frozen"] {
        for (history, k, filter) in
            [(&["P0001", "P0060"][..], 10, None), (&[], 3, None), (&["P0300"], 25, Some(cheap))]
        {
            let mut body = json!({"target": target, "history": history, "k": k});
            if let Some(filter) = filter {
                body["filter"] = serde_json::from_str(filter).unwrap();
            }
            for cached in [false, true] {
                let answer = shop.post("/v1/recommend", &body).await.ok();
                assert_eq!(answer["items"], json!(expected(&shop, history, k, filter)), "{body}");
                // The pair by its parts is the pair of the alias, and so are its answers.
                assert_eq!(answer["cached"], cached || target == "m:frozen", "{body}");
                assert_eq!(answer["shortfall"], Value::Null);
                let generation = if target == "shop" { json!(0) } else { Value::Null };
                assert_eq!(answer["generation"], generation, "{target}");
            }
        }
    }
}

/// A kept answer says it too; one is kept where it does not depend on the time there was.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_whether_it_is_proven() {
    let shop = shopping(config());
    let ask = async |k: usize, width: usize, mode: &str| {
        let body = json!({"target": "still", "history": ["P0500"], "k": k, "beam_width": width, "mode": mode});
        shop.post("/v1/recommend", &body).await.ok()
    };
    let wide = ask(3, 4096, "beam").await;
    assert_eq!((&wide["proven"], &wide["missed_at_most"]), (&json!(true), &Value::Null));
    for cached in [false, true] {
        let narrow = ask(3, 1, "beam").await;
        assert_eq!((&narrow["proven"], &narrow["cached"]), (&json!(false), &json!(cached)));
        let bound = narrow["missed_at_most"].as_f64().unwrap();
        let is_missed = |item: &&Value| !narrow["items"].as_array().unwrap().contains(item);
        for item in wide["items"].as_array().unwrap().iter().filter(is_missed) {
            assert!(item["score"].as_f64().unwrap() <= bound, "{item} {bound}");
        }
    }
    for cached in [false, true] {
        let proven = ask(3, 1, "proven").await;
        assert_eq!((&proven["proven"], &proven["mode"]), (&json!(true), &json!("proven")));
        assert_eq!((&proven["items"], &proven["cached"]), (&wide["items"], &json!(cached)));
    }
    let body = json!({"target": "still", "beam_width": 8, "mode": "proven", "prove_width": 8});
    let (detail, pointer) = shop.post("/v1/recommend", &body).await.problem(422);
    assert_eq!(pointer, "/prove_width");
    assert!(detail.contains("no wider than the beam of 8"), "{detail}");
}

/// Pages over HTTP are the parts of a larger answer; those after the first are there already.
#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_where_the_answer_before_ended() {
    let shop = shopping(config());
    let base =
        json!({"target": "shop", "history": ["P0001", "P0060"], "mode": "beam", "beam_width": 512});
    let ask = async |k: usize, cursor: Option<&Value>| {
        let mut body = base.clone();
        body["k"] = k.into();
        match cursor {
            None => body["paged"] = true.into(),
            Some(cursor) => body["cursor"] = cursor.clone(),
        }
        shop.post("/v1/recommend", &body).await.ok()
    };
    let mut whole = base.clone();
    whole["k"] = 35.into();
    let whole = shop.post("/v1/recommend", &whole).await.ok();
    assert!(whole.get("cursor").is_none(), "{whole}");
    let first = ask(10, None).await;
    let mut items = first["items"].as_array().unwrap().clone();
    let mut cursor = first["cursor"].clone();
    for k in [10, 5, 10] {
        let page = ask(k, Some(&cursor)).await;
        assert_eq!((&page["cached"], &page["proven"]), (&json!(true), &json!(true)));
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        // Asked again, it is the same.
        assert_eq!(ask(k, Some(&cursor)).await["items"], page["items"]);
        cursor = page["cursor"].clone();
    }
    assert_eq!(json!(items), whole["items"]);
    // After a change the page is searched for, in the catalog as it is now.
    let gone = ask(1, Some(&cursor)).await["items"][0]["id"].clone();
    let path = format!("/v1/catalogs/items/items/{}", gone.as_str().unwrap());
    shop.send(Method::DELETE, &path, "").await.ok();
    let page = ask(10, Some(&cursor)).await;
    assert_eq!((&page["cached"], &page["generation"]), (&json!(false), &json!(1)));
    let is_new = |item: &Value| item["id"] != gone && items.iter().all(|of| of["id"] != item["id"]);
    assert!(page["items"].as_array().unwrap().iter().all(is_new), "{page}");
    let (detail, pointer) = shop
        .post("/v1/recommend", &json!({"target": "shop", "history": ["P0001"], "cursor": cursor}))
        .await
        .problem(422);
    assert!(pointer == "/cursor" && detail.contains("another question"), "{detail}");
    let metrics = shop.get("/metrics").await.body.as_str().unwrap().to_owned();
    assert!(metrics.contains("palmette_recommend_pages_total{result=\"hit\"}"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_why_it_is_short_and_shows_the_beam() {
    let shop = shopping(config());
    let few = json!({"must": {"match": {"id": "P0001"}}});
    let (detail, pointer) =
        shop.post("/v1/recommend", &json!({"target": "shop", "filter": few})).await.problem(422);
    assert_eq!(pointer, "/filter");
    assert!(detail.contains("price"), "it names the attributes there are: {detail}");

    let few = json!({"must": {"range": {"price": {"lt": 4}}}});
    let asked =
        json!({"target": "shop", "filter": few, "k": 1000, "fields": ["price"], "trace": true});
    let answer = shop.post("/v1/recommend", &asked).await.ok();
    let items = answer["items"].as_array().unwrap();
    assert!(!items.is_empty() && items.len() < 1000);
    assert_eq!(answer["shortfall"], json!({"reason": "filter", "eligible": items.len()}));
    assert!(items.iter().all(|item| item["fields"]["price"].as_f64().unwrap() < 4.0));
    let levels = answer["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 3);
    for item in items {
        let prefix = &item["codes"].as_array().unwrap()[..3];
        let is_kept = |beam: &Value| beam["codes"] == json!(prefix);
        assert!(levels[2].as_array().unwrap().iter().any(is_kept), "{item}");
    }

    let asked = json!({"target": "shop", "history": ["P0001", "nobody", {"codes": [0, 2, 4, 0]}]});
    let answer = shop.post("/v1/recommend", &asked).await.ok();
    assert_eq!(answer["history"], json!({"given": 3, "used": 2, "unknown": ["nobody"]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_a_problem_that_names_it() {
    let shop = shopping(config());
    for (body, status, pointer, word) in [
        ("{", 400, "", "EOF"),
        ("[1]", 422, "", "must be an object"),
        ("1", 422, "", "the body is 1; it must be an object"),
        (r#"{"target": "shop", "kk": 1}"#, 422, "/kk", "there is no member \"kk\""),
        (r#"{"target": "shop", "k": 0}"#, 422, "/k", "1 to 1000"),
        (r#"{"target": "shop", "k": 9223372036854775808}"#, 422, "/k", "1 to 1000"),
        (r#"{"target": "shop", "k": -1}"#, 422, "/k", "-1"),
        (r#"{"target": "shop", "k": 1.5}"#, 422, "/k", "1.5"),
        (r#"{"target": "shop", "widths": [0]}"#, 422, "/widths/0", "1 to 4096"),
        (r#"{"target": "shop", "widths": [1, 1]}"#, 422, "/widths", "4"),
        (r#"{"target": "shop", "widths": []}"#, 422, "/widths", "4"),
        (r#"{"target": "shop", "widths": [1, 1, 1, 1, 1]}"#, 422, "/widths", "4"),
        (r#"{"target": "shop", "beam_width": 100000}"#, 422, "/beam_width", "4096"),
        (r#"{"target": "shop", "filter": {"must": 1}}"#, 422, "/filter", "must"),
        (r#"{"target": "shop", "filter": {"must": [], "must": []}}"#, 422, "/filter", "twice"),
        (r#"{"target": "shop", "rules": {"at_mos": 1}}"#, 422, "/rules", "at_mos"),
        (r#"{"target": "shop", "mode": "draft"}"#, 422, "/mode", "draft"),
        (r#"{"target": "shop", "mode": "wide"}"#, 422, "/mode", "probed"),
        (r#"{"target": "shop", "history": [1.5]}"#, 422, "/history/0", "an item"),
        (
            r#"{"target": "shop", "history": ["x"], "unknown_items": "error"}"#,
            422,
            "/history/0",
            "P0001",
        ),
        (r#"{"target": "shop", "fields": ["prise"]}"#, 422, "/fields/0", "price"),
        (r#"{"target": "shop", "deadline_ms": 0}"#, 422, "/deadline_ms", "0"),
        (r#"{"target": "shop", "deadline_ms": 99999999}"#, 422, "/deadline_ms", "30000"),
        (r#"{"target": "shop", "generation": 99}"#, 410, "", "newest"),
        (r#"{"target": "still", "generation": 1}"#, 422, "/generation", "frozen"),
        (r#"{"target": "shop", "min_generation": 9, "deadline_ms": 30}"#, 504, "", "generation 0"),
        (r#"{"target": "nobody"}"#, 404, "", "shop, still"),
    ] {
        let answer = shop.send(Method::POST, "/v1/recommend", body).await;
        let (detail, at) = answer.problem(status);
        assert!(detail.contains(word), "{body}: {detail}");
        assert_eq!(at, pointer, "{body}: {detail}");
    }
    let (detail, _) = shop.get("/v1/recommend").await.problem(405);
    assert!(detail.contains("GET"), "{detail}");
    let (detail, _) = shop.get("/v1/nothing").await.problem(404);
    assert!(detail.contains("/v1/nothing"), "{detail}");
    let of_text = [("content-type", "text/plain")];
    shop.send_with(Method::POST, "/v1/recommend", &of_text, "{}").await.problem(415);
    let long = format!(r#"{{"target": "{}"}}"#, "x".repeat(1 << 20));
    shop.send(Method::POST, "/v1/recommend", long).await.problem(413);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_in_time_is_refused_at_once() {
    let shop = shopping(config());
    // One millisecond is not enough for a beam of 4,096 on any machine; a beam of one may be.
    let wide = json!({"target": "shop", "beam_width": 4096, "k": 1, "deadline_ms": 1});
    let answer = shop.post("/v1/recommend", &wide).await;
    assert!(answer.headers.contains_key("retry-after"));
    assert!(answer.body["retry_after_ms"].as_u64().unwrap() >= 1);
    let (detail, _) = answer.problem(429);
    assert!(detail.contains("deadline"), "{detail}");
    let metrics = shop.get("/metrics").await.ok();
    let metrics = metrics.as_str().unwrap();
    let names = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE palmette_"));
    let names: Vec<&str> = names.filter_map(|rest| rest.split(' ').next()).collect();
    assert!(names.len() > 10, "{metrics}");
    for name in names {
        assert!(
            metrics.contains(&format!("# HELP palmette_{name} ")),
            "{name} says nothing of itself"
        );
    }
    assert!(metrics.contains("palmette_recommend_shed_total{reason=\"late\"}"), "{metrics}");
    for name in ["palmette_batch_requests", "palmette_batch_tokens"] {
        assert!(metrics.contains(&format!("{name}_bucket{{le=\"16\"}}")), "{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_models_prompts_have_no_place_for_is_refused() {
    let shop = shopping(config());
    for (more, at, word) in [
        (json!({"query": "a light tent"}), "/query", "no place for"),
        (json!({"user": {"age": 31}}), "/user/age", "they take no fields"),
        (json!({"think_tokens": 5}), "/think_tokens", "has no `think`"),
        (json!({"think_tokens": 0}), "/think_tokens", "1 to 4096"),
        (
            json!({"explain_items": {"items": 2, "max_tokens": 9}}),
            "/explain_items",
            "has no `explain`",
        ),
        (
            json!({"explain_items": {"items": 99, "max_tokens": 9}}),
            "/explain_items/items",
            "1 to 16",
        ),
    ] {
        let mut body = json!({"target": "shop", "history": ["P0001"], "k": 1});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (detail, pointer) = shop.post("/v1/recommend", &body).await.problem(422);
        assert_eq!(pointer, at, "{detail}");
        assert!(detail.contains(word), "{word}: {detail}");
    }
}
