//! Rules of a request, by methods and as a document.

use palmette::{Recommender, Rules};
use palmette_demo::Demo;

fn shop() -> (Recommender, tempfile::TempDir) {
    let demo = Demo::load().expect("the demo is built in");
    let dir = tempfile::tempdir().expect("a folder");
    for (name, bytes) in Demo::model_files() {
        std::fs::write(dir.path().join(name), bytes).expect("a file");
    }
    let model = Recommender::open(dir.path(), demo.shop().catalog()).expect("they fit");
    (model, dir)
}

#[test]
fn methods_equal_a_document() {
    let (model, _dir) = shop();
    let asked = || model.recommend(["P0001", "P0060"]).k(8);
    let by_methods = asked()
        .at_most(2, "brand")
        .at_most_per_semantic_id(1)
        .boost(r#"{"must": {"match": {"brand": "Tarnbeck"}}}"#, 1.0)
        .expect("a filter")
        .boost_by("price", -0.01)
        .tie_break("price", true)
        .must_include(["P0025"])
        .must_exclude(["P0074"])
        .diversity(0.5, 20)
        .run()
        .expect("sound rules");
    let document = r#"{
        "at_most": [{"attribute": "brand", "items": 2}],
        "at_most_per_semantic_id": 1,
        "boosts": [
            {"filter": {"must": {"match": {"brand": "Tarnbeck"}}}, "add": 1.0},
            {"attribute": "price", "weight": -0.01}
        ],
        "tie_break": {"attribute": "price", "order": "descending"},
        "must_include": ["P0025"],
        "must_exclude": ["P0074"],
        "diversity": {"lambda": 0.5, "pool": 20}
    }"#;
    let by_document = asked().rules(document).expect("rules").run().expect("sound rules");
    assert_eq!(by_methods, by_document);
    assert_eq!((by_methods.items.len(), by_methods.reranked), (8, Some(20)));
    assert!(by_methods.items.iter().any(|item| item.pinned && item.id == "P0025"));
    assert_ne!(by_methods.items, asked().run().expect("no rules").items);
    assert!(!Rules::parse(document).expect("rules").is_empty());
}

#[test]
fn validity_needs_timestamps_and_a_moment() {
    let (model, _dir) = shop();
    let asked = || model.recommend(["P0001"]);
    let error = asked().valid_at(0.0, "price", "price").run().unwrap_err().to_string();
    assert!(error.contains("\"price\", which is number") && error.contains("timestamp"), "{error}");
    let valid = r#"{"valid": {"to": "price"}}"#;
    let error = asked().rules(valid).expect("rules").run().unwrap_err().to_string();
    assert!(error.contains("give it as \"now\""), "{error}");
    let error = asked().rules(valid).expect("rules").now(1.0).run().unwrap_err().to_string();
    assert!(error.contains("which is number"), "{error}");
}
