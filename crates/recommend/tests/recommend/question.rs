//! Questions: faults all at once, and keys that nothing can be left out of.

use std::collections::HashSet;
use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_document::member_names;
use palmette_recommend::{
    CheckedQuestion, HistoryItem, Moment, NamedItem, PromptFields, QuestionLimits, RecommendBody,
    RecommendQuestion, Recommender, Request, Rules, RulesError, Worker,
};
use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::shop::{format, model, named};

/// Items with a brand and a price.
fn shop() -> Arc<Recommender> {
    let item = |id: u32| {
        let codes = vec![id % 4, id % 6 * 5, id % 3];
        let attributes = [("brand", json!(format!("b{}", id % 5))), ("price", json!(id))];
        let attributes: Map<String, Value> =
            attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Item { id: format!("i{id}"), codes, attributes }
    };
    let items: Vec<Item> = (0..40).map(item).collect();
    let catalog = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
    Arc::new(Recommender::new(model(), Arc::new(catalog), format()).unwrap())
}

fn check(
    recommender: &Recommender,
    document: &Value,
) -> Result<CheckedQuestion, Vec<(String, String)>> {
    let question = RecommendQuestion::from_json(&document.to_string())
        .map_err(|error| vec![("document".to_owned(), error.to_string())])?;
    let view = recommender.view().unwrap();
    let now = Some(Moment::Seconds(1.0));
    let checked = question.check(recommender, &view, &QuestionLimits::default(), now);
    checked.map_err(|faults| faults.into_iter().map(|of| (of.pointer, of.detail)).collect())
}

#[test]
fn all_faults_come_at_once_with_their_places() {
    let recommender = shop();
    let document = json!({
        "history": ["i1", "nobody"], "unknown_items": "error", "k": 0, "widths": [3, 0], "min_beam_width": 2, "verify": "keys",
        "filter": {"match": {"brend": "b1"}}, "rules": {"at_most": [{"attribute": "brend", "items": 1}]}, "fields": ["price", "prise"],
        "query": "boots", "think_seed": 1, "explain_items": {"items": 1, "max_tokens": 0},
    });
    let faults = check(&recommender, &document).unwrap_err();
    let places: Vec<&str> = faults.iter().map(|(pointer, _)| pointer.as_str()).collect();
    let expected = [
        "/k",
        "/widths/1",
        "/explain_items/max_tokens",
        "/min_beam_width",
        "/widths",
        "/history/1",
        "/fields/1",
        "/filter",
        "/rules",
        "/verify",
        "/query",
        "/think_seed",
        "/explain_items",
    ];
    assert_eq!(places, expected, "{faults:#?}");
    assert!(faults.iter().all(|(_, detail)| detail.len() > 10));
    for (document, pointer) in [
        (json!({"mode": "beam", "probe_width": 20}), "/probe_width"),
        (json!({"mode": "probed", "probe_width": 0}), "/probe_width"),
        (json!({"mode": "proven", "probe_width": 20}), "/probe_width"),
        (json!({"mode": "proven", "prove_width": 128}), "/prove_width"),
        (json!({"mode": "proven", "prove_width": 0}), "/prove_width"),
        (json!({"prove_width": 1000}), "/prove_width"),
        (json!({"beam_width": 8, "min_beam_width": 9}), "/min_beam_width"),
    ] {
        let faults = check(&recommender, &document).unwrap_err();
        assert!(faults.len() == 1 && faults[0].0 == pointer, "{document}: {faults:?}");
    }
    let refused = check(&recommender, &json!({"kk": 1})).unwrap_err();
    assert!(refused[0].1.contains("did you mean \"k\"?"), "{refused:?}");
}

#[test]
fn every_member_is_in_the_key() {
    let recommender = shop();
    let base = json!({"history": ["i1"], "k": 3});
    let key = |document: &Value| check(&recommender, document).unwrap().key();
    let others = json!({
        "history": ["i2"], "k": 4, "beam_width": 64, "widths": [9, 9, 9], "mode": "beam", "probe_width": 20,
        "filter": {"match": {"brand": "b1"}}, "rules": {"must_exclude": ["i3"]}, "exclude": ["i4"], "exclude_seen": false,
        "unknown_items": "error", "fields": ["price"], "min_beam_width": 8,
        "paged": true,
    });
    // Those that this model refuses, that go with a mode, or whose answers are not kept.
    let without = [
        "prove_width",
        "verify",
        "trace",
        "query",
        "user",
        "think_tokens",
        "think_temperature",
        "think_top_p",
        "think_seed",
        "explain_items",
        "cursor",
        "remember",
    ];
    let (mut keys, mut members) = (HashSet::from([key(&base)]), 0);
    for name in member_names::<RecommendQuestion>() {
        if without.contains(name) {
            assert!(others.get(name).is_none(), "{name}");
            continue;
        }
        let mut document = base.clone();
        document[*name] = others[*name].clone();
        assert!(document[*name] != Value::Null, "{name} has no other value here");
        assert!(keys.insert(key(&document)), "{name} is not in the key");
        members += 1;
    }
    assert_eq!(members + without.len(), member_names::<RecommendQuestion>().len());
    // What is spelled otherwise, or as the default is, has the same key.
    for same in [
        json!({"history": ["i1"], "k": 3.0, "beam_width": Request::DEFAULT_BEAM_WIDTH, "mode": "auto"}),
        json!({"history": ["i1"], "k": 3, "exclude_seen": true, "filter": null, "exclude": []}),
    ] {
        assert_eq!(key(&same), key(&base), "{same}");
    }
    let proven = |width| key(&json!({"history": ["i1"], "mode": "proven", "prove_width": width}));
    assert_ne!(proven(200), proven(300));
    let cursor = first_cursor(&recommender, json!({"history": ["i1"]}));
    let paged = |document: Value| key(&document);
    assert_ne!(
        paged(json!({"history": ["i1"], "paged": true, "cursor": cursor})),
        paged(json!({"history": ["i1"], "paged": true}))
    );
    let filter = |text: &str| {
        key(&json!({"history": ["i1"], "filter": serde_json::from_str::<Value>(text).unwrap()}))
    };
    assert_eq!(
        filter(r#"{"must": [{"match": {"brand": "b1"}}]}"#),
        filter(r#"{"must": {"match": {"brand": "b1"}}, "should": null}"#)
    );
    // Answers that depend on the moment, or have all beams, are not kept.
    assert_eq!(key(&json!({"trace": true})), None);
}

/// Cursor after the first page of a question.
fn first_cursor(recommender: &Arc<Recommender>, mut document: Value) -> String {
    document["paged"] = true.into();
    let checked = check(recommender, &document).unwrap();
    let mut worker = Worker::new(Arc::clone(recommender), 1);
    let answer = worker.answer(&checked, false, &mut palmette_decode::run_on).unwrap();
    checked.cursor_after(&answer).expect("there are more")
}

#[test]
fn a_cursor_is_of_its_question() {
    let recommender = shop();
    let base = json!({"history": ["i1"], "k": 3, "exclude": ["i2"], "rules": {"at_most_per_semantic_id": 1}});
    let cursor = first_cursor(&recommender, base.clone());
    let with = |name: &str, value: Value| {
        let mut document = base.clone();
        document["cursor"] = cursor.clone().into();
        document[name] = value;
        check(&recommender, &document)
    };
    let same = [
        ("k", json!(5)),
        ("fields", json!(["price"])),
        ("trace", json!(true)),
        ("paged", json!(true)),
        ("min_beam_width", json!(8)),
        ("remember", json!(false)),
    ];
    for (name, value) in same {
        let checked = with(name, value).unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
        assert!(checked.is_paged() && checked.given().len() == 3);
    }
    let others = [
        ("history", json!(["i3"]), "another question"),
        ("exclude", json!([]), "another question"),
        ("beam_width", json!(64), "another question"),
        ("rules", json!({"at_most_per_semantic_id": 2}), "another question"),
        ("cursor", json!("nonsense"), "is no cursor"),
        ("cursor", json!(""), "is no cursor"),
        ("cursor", json!("é".repeat(1000)), "is no cursor"),
        ("cursor", json!("eyJxIjoiIiwiZ2l2ZW4iOltdLCJ3aWRlIjo5OTk5OTk5fQ"), "9999999 items"),
    ];
    for (name, value, said) in others {
        let faults = with(name, value).unwrap_err();
        assert!(faults.len() == 1 && faults[0].0 == "/cursor", "{name}: {faults:?}");
        assert!(faults[0].1.contains(said) && faults[0].1.len() < 300, "{name}: {faults:?}");
    }
    // Without pages there is no cursor.
    let checked = check(&recommender, &base).unwrap();
    let answer = Worker::new(Arc::clone(&recommender), 1)
        .answer(&checked, false, &mut palmette_decode::run_on)
        .unwrap();
    assert!(checked.cursor_after(&answer).is_none() && answer.ahead.is_empty());
}

#[test]
fn answers_are_those_of_the_request_they_lend() {
    let recommender = shop();
    let mut worker = Worker::new(recommender.clone(), 1);
    let document = json!({"history": ["i1", [1, 5, 1], "nobody"], "k": 5, "filter": {"range": {"price": {"lt": 30}}}, "exclude": ["i7", 8]});
    let checked = check(&recommender, &document).unwrap();
    assert_eq!(checked.unknown().collect::<Vec<_>>(), [&NamedItem::from("nobody")]);
    let history = [
        HistoryItem::Number(recommender.view().unwrap().view().find("i1").unwrap()),
        HistoryItem::Codes(vec![1, 5, 1]),
    ];
    assert_eq!(checked.history(), history);
    let answer = worker.answer(&checked, false, &mut palmette_decode::run_on).unwrap();
    assert_eq!((answer.items.len(), answer.history_used, answer.eligible), (5, 2, 26));
    // The same about another history is the question with it.
    let about = checked.about(vec!["i9".into()], PromptFields::default()).unwrap();
    let whole = check(
        &recommender,
        &json!({"history": ["i9"], "k": 5, "filter": {"range": {"price": {"lt": 30}}}, "exclude": ["i7", 8]}),
    );
    let whole = whole.unwrap();
    assert_eq!(about.key(), whole.key());
    let answers =
        [&about, &whole].map(|of| worker.answer(of, false, &mut palmette_decode::run_on).unwrap());
    assert_eq!(named(&answers[0]), named(&answers[1]));
    // Rules that contradict the items that are left are told by the search, as the question's.
    let pinned = check(
        &recommender,
        &json!({"rules": {"must_include": ["i35"]}, "filter": {"range": {"price": {"lt": 30}}}}),
    )
    .unwrap();
    let error = worker.answer(&pinned, false, &mut palmette_decode::run_on).unwrap_err();
    assert_eq!(error.cause(), palmette_recommend::Cause::Question("/rules".into()), "{error}");
}

#[test]
fn a_body_is_a_question_in_its_envelope() {
    let body = br#"{"k": 3, "target": "shop", "generation": "spring", "history": [7, {"codes": [1]}], "deadline_ms": null}"#;
    let body = RecommendBody::from_json(body).unwrap();
    assert_eq!(body.envelope.target.as_deref(), Some("shop"));
    assert_eq!(body.question.history, [NamedItem::Id("7".into()), NamedItem::Codes(vec![1])]);
    // Written and read again it is itself.
    let text = serde_json::to_string(&body.question).unwrap();
    assert_eq!(RecommendQuestion::from_json(&text).unwrap(), body.question);
    let twice = RecommendBody::from_json(br#"{"k": 3, "k": 4}"#).unwrap_err();
    assert!(twice.to_string().contains("stands twice"), "{twice}");
}

#[test]
fn rules_are_written_as_they_are_read() {
    let mut random = Random(7);
    for _ in 0..200 {
        let brand = json!({"match": {"brand": format!("b{}", random.below(4))}});
        let document = json!({
            "at_most": random.some(2, |random| json!([{"attribute": "brand", "items": 1 + random.below(3)}])),
            "at_most_per_semantic_id": random.some(3, |random| json!(1 + random.below(2))),
            "boosts": random.some(2, |random| json!([
                {"filter": brand, "add": random.below(9) as f64 / 4.0 - 1.0},
                {"attribute": "price", "weight": 0.25, "offset": random.below(3)},
            ])),
            "tie_break": random.some(3, |random| json!({"attribute": "price", "order": if random.is(2) { "descending" } else { "ascending" }})),
            "must_include": random.some(3, |random| json!([format!("i{}", random.below(40))])),
            "must_exclude": random.some(3, |random| json!([random.below(40)])),
            "valid": random.some(3, |random| json!({"from": "f", "to": random.some(2, |_| json!("t")), "now": random.some(2, |random| json!(random.below(9)))})),
            "diversity": random.some(3, |random| json!({"lambda": 0.5, "pool": random.some(2, |random| json!(20 + random.below(9)))})),
        });
        let rules = Rules::from_value(&document).unwrap();
        assert_eq!(
            Rules::from_value(&serde_json::to_value(&rules).unwrap()),
            Ok(rules),
            "{document}"
        );
    }
    assert!(matches!(Rules::parse("[]"), Err(RulesError::Unexpected { .. })));
}
