//! Places in texts that people write: what may follow, of which items, and why something may not.

use serde_json::{Value, json};

use crate::shop::{Shopping, config, shopping};

const FERNHOLLOW: &str = r#"{"match": {"brand": "Fernhollow"}}"#;

/// A question about a text whose SKUs are of one brand.
fn question(text: &str) -> Value {
    let schema = json!({"type": "object", "required": ["sku"], "additionalProperties": false,
        "properties": {"sku": {"type": "string", "x-catalog": "shop.id"}}});
    let filter: Value = serde_json::from_str(FERNHOLLOW).unwrap();
    json!({"text": text, "show": 200, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        "catalogs": {"shop": {"catalog": "items", "filter": filter}}})
}

async fn place(shop: &Shopping, text: &str) -> Value {
    shop.post("/v1/places", &question(text)).await.ok()
}

fn values(set: &Value) -> Vec<&str> {
    let members = set["members"].as_array().unwrap().iter();
    members.map(|member| member["value"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn items_that_may_be_written_are_listed_without_a_text_model() {
    let shop = shopping(config());
    let begin = place(&shop, "").await;
    assert_eq!((&begin["read"], &begin["may_end"]), (&json!(0), &json!(false)), "{begin}");
    assert_eq!(begin["catalogs"]["shop"], json!({"generation": 0, "eligible": 122}));
    assert!(begin["within"].as_array().unwrap().is_empty(), "{begin}");

    let within = place(&shop, r#"{"sku": "P01"#).await;
    let set = &within["within"][0];
    assert_eq!(
        (&set["set"], &set["field"], &set["span"]),
        (&json!("shop"), &json!("id"), &json!([9, 12]))
    );
    let brand: Value = serde_json::from_str(FERNHOLLOW).unwrap();
    let query = json!({"filter": brand, "limit": 100});
    let found = shop.post("/v1/catalogs/items/items/query", &query).await.ok();
    let ids = found["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap());
    let mut wanted: Vec<&str> = ids.filter(|id| id.starts_with("P01")).collect();
    wanted.sort_unstable();
    assert!(!wanted.is_empty());
    assert_eq!(values(set), wanted);
    assert_eq!(set["more"], false);
    for member in set["members"].as_array().unwrap() {
        let (value, rest) = (member["value"].as_str().unwrap(), member["rest"].as_str().unwrap());
        assert_eq!(format!("P01{rest}"), format!("{value}\""), "{member}");
        assert_eq!(member["id"], member["value"]);
    }
    let shown = shop
        .post(
            "/v1/places",
            &json!({"show": 1, "text": r#"{"sku": ""#, "catalogs": {"shop": {"catalog": "items"}},
            "response_format": question("")["response_format"]}),
        )
        .await
        .ok();
    assert_eq!((values(&shown["within"][0]).len(), &shown["within"][0]["more"]), (1, &json!(true)));

    // The characters are those with which they go on.
    let mut next: Vec<char> = wanted.iter().map(|id| id.chars().nth(3).unwrap()).collect();
    next.dedup();
    let range =
        |range: &Value| [&range["from"], &range["to"]].map(|of| of.as_str().unwrap().to_owned());
    let ranges = within["next"].as_array().unwrap().iter().map(range);
    let in_ranges: Vec<char> = ranges
        .flat_map(|[from, to]| from.chars().next().unwrap()..=to.chars().next().unwrap())
        .collect();
    assert_eq!(in_ranges, next);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_the_end_are_told() {
    let shop = shopping(config());
    let text = r#"{"sku": "P0095"}"#;
    let whole = place(&shop, text).await;
    assert_eq!((&whole["read"], &whole["may_end"]), (&json!(text.len()), &json!(true)), "{whole}");
    assert_eq!(whole["members"][0]["id"], "P0095");
    assert_eq!(whole["members"][0]["span"], json!([9, 14]));
    assert_eq!(whole.get("refused"), None);
    let just_ended = place(&shop, r#"{"sku": "P0095""#).await;
    assert_eq!(just_ended["members"], whole["members"]);
    assert_eq!(just_ended["within"], json!([]));
    let forced = place(&shop, r#"{"sk"#).await;
    assert_eq!(forced["forced"], r#"u""#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_character_is_explained() {
    let shop = shopping(config());
    let wrong = place(&shop, r#"{"sku": "P9999"}"#).await;
    assert_eq!(wrong["read"], 10, "{wrong}");
    let detail = wrong["refused"]["detail"].as_str().unwrap();
    assert!(detail.starts_with(r#""P9999" is none of the values of shop.id that may be written here; the nearest are "P0"#), "{detail}");
    let elsewhere = place(&shop, r#"{"sku": 5é"#).await;
    assert_eq!(elsewhere["refused"]["character"], "5", "{elsewhere}");
    assert_eq!(elsewhere["refused"]["detail"], "'5' cannot follow here");
    let beyond = place(&shop, "é").await;
    assert_eq!(
        (&beyond["refused"]["at"], &beyond["refused"]["character"]),
        (&json!(0), &json!("é"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_that_changes_changes_the_next_place() {
    let shop = shopping(config());
    let asked = json!({"text": r#"{"sku": "P0095"#, "response_format": question("")["response_format"],
        "catalogs": {"shop": {"catalog": "items", "filter": {"range": {"stock": {"gt": 0}}}}}});
    let set = |stock: u32| json!({"item_id": "P0095", "stock": stock}).to_string() + "\n";
    for (generation, stock) in (1..).zip([5, 0, 7]) {
        let line = [("content-type", "application/x-ndjson")];
        let applied =
            shop.send_with(axum::http::Method::POST, "/v1/catalogs/items/items", &line, set(stock));
        assert_eq!(applied.await.ok()["generation"], generation);
        let place = shop.post("/v1/places", &asked).await.ok();
        assert_eq!(place["catalogs"]["shop"]["generation"], generation);
        assert_eq!(place.get("refused").is_some(), stock == 0, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_named() {
    let shop = shopping(config());
    let refused = async |change: Value| {
        let mut asked = question("");
        asked.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = shop.post("/v1/places", &asked).await;
        (
            answer.status.as_u16(),
            answer.body["error"]["param"].clone(),
            answer.body["error"]["message"].to_string(),
        )
    };
    let (status, at, message) = refused(json!({"catalogs": {"shop": {"catalog": "itms"}}})).await;
    assert_eq!((status, &at), (400, &json!("catalogs.shop.catalog")), "{message}");
    assert!(message.contains("items"), "{message}");
    let (status, at, message) = refused(json!({"show": 5000})).await;
    assert_eq!((status, &at), (400, &json!("show")), "{message}");
    let (status, at, _) = refused(json!({"text": "x".repeat(70_000)})).await;
    assert_eq!((status, &at), (400, &json!("text")));
    let nothing = json!({"shop": {"catalog": "items", "filter": {"match": {"brand": "Nobody"}}}});
    let (status, _, message) = refused(json!({"catalogs": nothing})).await;
    assert_eq!(status, 422, "{message}");
    let free = shop.post("/v1/places", &json!({"text": "a"})).await;
    assert_eq!(free.status.as_u16(), 400);
}
