//! Masks of a form at a place, over HTTP.

use serde_json::{Value, json};

use crate::text::writing;

#[tokio::test(flavor = "multi_thread")]
async fn masks_are_those_of_the_form_at_the_place() {
    let writing = writing();
    let mask = async |body: Value| writing.post("/v1/masks", &body).await;
    let texts = |answer: &Value| -> Vec<String> {
        let tokens = answer["tokens"].as_array().unwrap().iter();
        tokens.map(|token| token["text"].as_str().unwrap().to_owned()).collect()
    };
    // Each token of the model is tried: a text of four digits is whole, and one of fewer goes on
    // with a digit.
    let digits: Vec<String> = (0..10).map(|digit: u8| digit.to_string()).collect();
    for (text, wanted, may_end) in
        [("", &digits[..], false), ("19", &digits, false), ("1984", &["</s>".to_owned()], true)]
    {
        let answer = mask(json!({"guided_regex": "[0-9]{4}", "text": text})).await.ok();
        assert_eq!(
            (texts(&answer), &answer["may_end"]),
            (wanted.to_vec(), &json!(may_end)),
            "{text:?}"
        );
        assert_eq!(answer["allowed"], wanted.len(), "{text:?}");
    }
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false});
    let form = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let answer = mask(json!({"response_format": form, "text": "{\"na", "show": 3})).await.ok();
    assert!(answer["forced"].as_str().unwrap().starts_with("me\""), "{answer}");
    assert_eq!((texts(&answer), &answer["allowed"]), (vec!["m".to_owned()], &json!(1)));
    let tools = json!([{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}}]);
    let answer = mask(json!({"tools": tools, "tool_choice": "required"})).await.ok();
    assert!(!answer["forced"].as_str().unwrap().is_empty(), "{answer}");
    for (body, param, word) in [
        (json!({"text": "x"}), "", "no member names a form"),
        (json!({"guided_regex": "[0-9]{4}", "text": "12a"}), "text", ""),
        (json!({"guided_regex": "("}), "guided_regex", ""),
        (json!({"guided_regex": "a", "show": 2000}), "show", "1000"),
        (json!({"guided_regex": "a", "text": "x".repeat(70_000)}), "text", "65536"),
        (json!({"guided_regex": "a", "txt": "x"}), "txt", "no member"),
    ] {
        let (message, at) = mask(body.clone()).await.error(400, "invalid");
        assert_eq!(at, param, "{message}");
        assert!(message.contains(word), "{message}");
    }
}
