//! Prompts kept between requests: the same answers as without, what metrics say, and who is not
//! remembered.

use palmette_model::Model;
use serde_json::{Value, json};

use crate::shop::{Shopping, config, shopping};

const MEMORY: usize = 64 << 20;

/// The shop, and beside its model the same one as `keeping`, which keeps prompts.
fn shop() -> Shopping {
    let shop = shopping(config());
    let recommender = shop.demo.recommender();
    let model = recommender.engine().model().expect("a model of this processor");
    let model = Model::clone(&model).with_prompt_memory(MEMORY).unwrap();
    shop.server.add_model("keeping", model, recommender.format().clone()).unwrap();
    shop.server.set_target("kept", "keeping", "items").unwrap();
    shop
}

async fn metric(shop: &Shopping, line: &str) -> f64 {
    let metrics = shop.get("/metrics").await;
    let text = metrics.body.as_str().unwrap();
    let found = text.lines().find_map(|of| of.strip_prefix(line));
    let value = found.unwrap_or_else(|| panic!("no {line} in {text}"));
    value.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_without_and_metrics_say_what_was_found() {
    let shop = shop();
    let prefix = |kind: &str| format!("palmette_prefix_{kind}");
    let tokens = |hit: &str| prefix(&format!("tokens_total{{model=\"keeping\",hit=\"{hit}\"}}"));
    // What calibration computed, and none of it kept.
    let before = metric(&shop, &tokens("false")).await;
    assert_eq!(metric(&shop, &tokens("true")).await, 0.0);
    assert_eq!(metric(&shop, &prefix("pages{model=\"keeping\",state=\"kept\"}")).await, 0.0);
    let history: Vec<String> = (1..=30).map(|item| format!("P{item:04}")).collect();
    let ask = async |target: &str, events: usize, remember: Option<bool>| {
        let mut body = json!({"target": target, "history": history[..events], "k": 5});
        if let Some(remember) = remember {
            body["remember"] = json!(remember);
        }
        shop.post("/v1/recommend", &body).await.ok()["items"].clone()
    };
    for events in 20..=27 {
        let items = ask("kept", events, None).await;
        assert_eq!(items, ask("shop", events, None).await, "{events} events");
    }
    let (found, computed) =
        (metric(&shop, &tokens("true")).await, metric(&shop, &tokens("false")).await - before);
    // Eight prompts of 81 to 109 tokens: the first is computed, then 4 tokens and a page's rest.
    assert_eq!(found + computed, (20..=27).map(|events| 1 + 4 * events).sum::<usize>() as f64);
    assert!(computed < 81.0 + 7.0 * 20.0, "{computed}");
    let bytes = metric(&shop, "palmette_memory_bytes{kind=\"prompts\"}").await;
    assert!(bytes > 0.0 && bytes <= MEMORY as f64, "{bytes}");
    assert_eq!(metric(&shop, "palmette_prefix_evicted_pages_total{model=\"keeping\"}").await, 0.0);

    // Who is not remembered is computed whole, each time, and leaves nothing.
    let kept = prefix("pages{model=\"keeping\",state=\"kept\"}");
    let pages = metric(&shop, &kept).await;
    let want = ask("shop", 29, None).await;
    for _ in 0..2 {
        assert_eq!(ask("kept", 29, Some(false)).await, want);
    }
    assert_eq!(metric(&shop, &tokens("true")).await, found);
    assert_eq!(metric(&shop, &tokens("false")).await - before - computed, 2.0 * 117.0);
    assert_eq!(metric(&shop, &kept).await, pages);
    assert_eq!(ask("kept", 29, Some(true)).await, want);
    assert!(metric(&shop, &tokens("true")).await > found);
}

#[tokio::test(flavor = "multi_thread")]
async fn whether_to_remember_is_yes_or_no() {
    let shop = shop();
    let body = json!({"target": "kept", "history": ["P0001"], "remember": "yes"});
    let answer = shop.post("/v1/recommend", &body).await;
    assert_eq!(answer.status, 422);
    assert_eq!(answer.body["errors"][0]["pointer"], Value::from("/remember"), "{}", answer.body);
}
