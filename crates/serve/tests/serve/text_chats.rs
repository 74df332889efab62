//! Chats over OpenAI's interface, whole and in parts.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::text::{check_lamp, format, schema, writing};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_fits_its_schema_whole_and_in_parts() {
    let writing = writing();
    let asked = json!({"response_format": format(), "temperature": 1.0, "n": 2, "user": "me", "store": false});
    let whole = writing.chat(asked.clone()).await.ok();
    assert_eq!((&whole["object"], &whole["model"]), (&json!("chat.completion"), &json!("tiny")));
    let choices = whole["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 2);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(choice["index"], index);
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["role"]),
            (&json!("stop"), &json!("assistant"))
        );
        check_lamp(choice["message"]["content"].as_str().unwrap());
        assert_eq!(choice["finish"], json!({"rule": "promised", "steered": 0}), "{choice}");
    }
    let usage = &whole["usage"];
    let prompt = "[user] Hello\n[assistant] ".len();
    assert_eq!(usage["prompt_tokens"], prompt);
    let completion = usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], prompt as u64 + completion);

    // The same in parts, by the same seed.
    let mut streamed = asked;
    streamed["stream"] = json!(true);
    streamed["stream_options"] = json!({"include_usage": true});
    let events = writing.chat(streamed).await.events();
    let (last, parts) = events.split_last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), usage));
    let mut texts = [String::new(), String::new()];
    let mut ends = [0, 0];
    for (place, part) in parts.iter().enumerate() {
        assert_eq!((&part["object"], &part["id"]), (&json!("chat.completion.chunk"), &last["id"]));
        let choice = &part["choices"][0];
        let index = choice["index"].as_u64().unwrap() as usize;
        assert_eq!(choice["delta"]["role"].is_string(), place < 2, "{part}");
        texts[index] += choice["delta"]["content"].as_str().unwrap_or_default();
        ends[index] += usize::from(choice["finish_reason"] == "stop");
        assert_eq!(choice["finish"].is_object(), choice["finish_reason"].is_string(), "{part}");
    }
    assert_eq!(ends, [1, 1]);
    for (text, choice) in texts.iter().zip(choices) {
        assert_eq!(*text, choice["message"]["content"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_whole_and_in_parts() {
    let writing = writing();
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": schema()}});
    let asked = json!({"tools": [tool("switch"), tool("look")], "tool_choice": "required", "parallel_tool_calls": false});
    let whole = writing.chat(asked.clone()).await.ok();
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    assert_eq!(choice["message"]["content"], Value::Null);
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["type"]), (1, &json!("function")));
    assert!(["switch", "look"].contains(&calls[0]["function"]["name"].as_str().unwrap()));
    check_lamp(calls[0]["function"]["arguments"].as_str().unwrap());

    let mut streamed = asked.clone();
    streamed["stream"] = json!(true);
    let (mut name, mut arguments, mut ends) = (String::new(), String::new(), Vec::new());
    for event in writing.chat(streamed).await.events() {
        let choice = &event["choices"][0];
        ends.extend(choice["finish_reason"].as_str().map(str::to_owned));
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            assert_eq!(call["index"], 0);
            assert_eq!(call["id"].is_string(), call["function"]["name"].is_string());
            name += call["function"]["name"].as_str().unwrap_or_default();
            arguments += call["function"]["arguments"].as_str().unwrap();
        }
    }
    assert_eq!(ends, ["tool_calls"]);
    assert_eq!(
        (&json!(name), &json!(arguments)),
        (&calls[0]["function"]["name"], &calls[0]["function"]["arguments"])
    );

    let mut named = asked.clone();
    named["tool_choice"] = json!({"type": "function", "function": {"name": "look"}});
    let answer = writing.chat(named).await.ok();
    assert_eq!(answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "look");
    // Calls that are whole within the tokens are calls, though more of them might have followed.
    let mut several = asked.clone();
    several["parallel_tool_calls"] = json!(true);
    let mut first = None;
    for tokens in 1..200 {
        several["max_tokens"] = json!(tokens);
        let answer = writing.chat(several.clone()).await;
        if answer.status == StatusCode::OK {
            first = Some(answer.ok());
            break;
        }
    }
    let choice = &first.expect("a call within 200 tokens")["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
    check_lamp(choice["message"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap());
    // A call that a text of the request's breaks off is none to be made.
    let mut stopped = asked.clone();
    stopped["stop"] = json!(["colour"]);
    let answer = writing.chat(stopped.clone()).await.ok();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{answer}");
    stopped["stream"] = json!(true);
    let events = writing.chat(stopped).await.events();
    let ends = events.iter().filter_map(|event| event["choices"][0]["finish_reason"].as_str());
    assert_eq!(ends.collect::<Vec<_>>(), ["stop"]);
    // Words beside calls are whole wherever they are cut off.
    let mut words = asked.clone();
    words.as_object_mut().unwrap().extend(
        [("tool_choice", json!("auto")), ("max_tokens", json!(5)), ("ignore_eos", json!(true))]
            .map(|(name, value)| (name.to_owned(), value)),
    );
    let answer = writing.chat(words).await.ok();
    assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
    assert_eq!(answer["choices"][0]["finish"]["rule"], "promised", "{answer}");
    let mut none = asked;
    none["tool_choice"] = json!("none");
    none["max_tokens"] = json!(5);
    let answer = writing.chat(none).await.ok();
    assert_eq!(
        answer["usage"]["prompt_tokens"],
        "[user] Hello\n[assistant] ".len(),
        "no tools are shown"
    );
    assert!(answer["choices"][0]["message"].get("tool_calls").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn constraints_have_every_spelling() {
    let writing = writing();
    let text = |answer: Value| answer["choices"][0]["text"].as_str().unwrap().to_owned();
    for (members, allowed) in [
        (json!({"guided_choice": ["yes", "no"]}), vec!["yes", "no"]),
        (json!({"structured_outputs": {"choice": ["a.b", "(c)"]}}), vec!["a.b", "(c)"]),
        (json!({"guided_regex": "x{3}"}), vec!["xxx"]),
        (json!({"structured_outputs": {"regex": "[ab]"}}), vec!["a", "b"]),
        (json!({"guided_grammar": "start: \"p\" | \"q\""}), vec!["p", "q"]),
        (json!({"structured_outputs": {"grammar": "root ::= \"u\" | \"v\""}}), vec!["u", "v"]),
        (json!({"guided_json": {"enum": [true]}}), vec!["true"]),
        (json!({"guided_json": "{\"const\": null}"}), vec!["null"]),
    ] {
        let answer = text(writing.complete(members.clone()).await.ok());
        assert!(allowed.contains(&answer.as_str()), "{members}: {answer}");
    }
    let lamp = json!({"guided_json": schema(), "max_tokens": 90});
    check_lamp(&text(writing.complete(lamp).await.ok()));
    let object =
        json!({"response_format": {"type": "json_object"}, "max_tokens": 400, "temperature": 0.3});
    let answer = writing.complete(object).await.ok();
    if answer["choices"][0]["finish_reason"] == "stop" {
        let object: Value = serde_json::from_str(&text(answer)).unwrap();
        assert!(object.is_object());
    }
}

/// A schema as pydantic writes it: no members but those it declares, in its order, unless somebody
/// wants it otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn schemas_mean_what_people_mean() {
    let writing = writing();
    let plain = json!({"type": "object", "properties": {"z": {"type": "boolean"}, "a": {"enum": [1, 2]}}, "required": ["z", "a"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": plain}});
    for seed in 0..8 {
        for members in [
            json!({"guided_json": plain, "seed": seed}),
            json!({"response_format": format, "seed": seed}),
            json!({"structured_outputs": {"json": plain}, "seed": seed}),
        ] {
            let answer = writing.chat(members.clone()).await.ok();
            let text = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
            let value: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(
                value.as_object().unwrap().keys().collect::<Vec<_>>(),
                ["z", "a"],
                "{members}"
            );
            assert!(!text.contains("  ") || text.contains('\n'), "{text:?}");
        }
        let tool = json!({"type": "function", "function": {"name": "f", "parameters": plain}});
        let members = json!({"tools": [tool], "tool_choice": "required", "parallel_tool_calls": false, "seed": seed});
        let answer = writing.chat(members).await.ok();
        let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
        let value: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).expect("JSON");
        assert_eq!(value.as_object().unwrap().len(), 2, "{call}");
    }
    // The standard's reading is had: among some answers one begins with another member, or has
    // more.
    let mut others = 0;
    for seed in 0..12 {
        let form = json!({"closed_objects": false, "order": "any"});
        let members =
            json!({"guided_json": plain, "seed": seed, "json_form": form, "max_tokens": 60});
        let answer = writing.chat(members).await.ok();
        others += usize::from(
            !answer["choices"][0]["message"]["content"]
                .as_str()
                .unwrap()
                .trim_start_matches(['{', ' ', '\n'])
                .starts_with("\"z\""),
        );
    }
    assert!(others > 0, "no member came first but the schema's first");
}
