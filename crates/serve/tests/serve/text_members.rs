//! Members of requests for text: each is computed, refused by its name, or said to have no effect.

use palmette_text::engine::EngineOptions;
use serde_json::{Value, json};

use crate::shop::config;
use crate::text::{Writing, named_events, schema, writing, writing_by};

/// A template that begins the reasoning, and reads what it is told of it.
const REASONING: &str = "{% for m in messages %}{{ m.content }}\n{% endfor %}{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}\
    {{ verbosity }}{% if add_generation_prompt %}{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}{% endif %}";

fn reasoning() -> Writing {
    writing_by(config(), EngineOptions::default(), REASONING, "hermes")
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": schema()}})
}

#[tokio::test(flavor = "multi_thread")]
async fn what_asks_for_nothing_is_taken() {
    let writing = writing();
    let plain = writing.chat(json!({"max_tokens": 3})).await.ok();
    for members in [
        json!({"prediction": {"type": "content", "content": "x"}}),
        json!({"function_call": "none", "functions": []}),
        json!({"include_reasoning": true, "verbosity": "medium", "reasoning_effort": "medium"}),
        json!({"max_completion_tokens": 3}),
        json!({"service_tier": "flex", "store": true, "metadata": {"a": "b"}, "user": "u", "modalities": ["text"]}),
        json!({"stream_options": {"include_usage": true}, "parallel_tool_calls": true, "tool_choice": "auto"}),
    ] {
        let mut all = json!({"max_tokens": 3});
        all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let answer = writing.chat(all).await.ok();
        assert_eq!(answer["choices"], plain["choices"], "{members}");
        assert!(answer.get("warnings").is_none(), "{members}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_be_lost_is_refused_by_its_member() {
    let writing = writing();
    let unfit =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "scheme": {}}});
    for (members, param, words) in [
        (json!({"max_tokens": 5, "max_completion_tokens": 6}), "max_tokens", "leave one out"),
        (
            json!({"max_tokens": null, "max_completion_tokens": 5000}),
            "max_completion_tokens",
            "at most",
        ),
        (json!({"functions": [{"name": "f"}]}), "functions", "use tools"),
        (json!({"function_call": "auto"}), "function_call", "use tool_choice"),
        (json!({"verbosity": "loud"}), "verbosity", "there are low, medium, high"),
        (json!({"thinking": {"type": "adaptive"}}), "thinking.type", "enabled, disabled"),
        (
            json!({"thinking": {"type": "enabled", "budget_tokens": 5}}),
            "thinking.budget_tokens",
            "",
        ),
        (json!({"response_format": unfit}), "response_format.json_schema.scheme", "no member"),
        (json!({"web_search_options": {}}), "web_search_options", "no member"),
        (
            json!({"structured_outputs": {"regex": "a", "resources": {"urn:a": {}}}}),
            "structured_outputs.resources",
            "no json",
        ),
        (json!({"guided_json": {"$ref": "urn:a"}}), "guided_json", "resources"),
    ] {
        let (message, at) = writing
            .chat(members.clone())
            .await
            .error(400, if words == "at most" { "context_length_exceeded" } else { "invalid" });
        assert_eq!(at, param, "{members}: {message}");
        assert!(message.contains(words), "{members}: {message}");
    }
    let (message, at) = writing.complete(json!({"logprobs": 21})).await.error(400, "invalid");
    assert_eq!(at, "logprobs", "{message}");
    // Of two members of one name one would be lost.
    for (body, param) in [
        (
            r#"{"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "max_tokens": 3}"#,
            None,
        ),
        (r#"{"messages": [{"role": "user", "content": "x", "content": "y"}]}"#, Some("messages")),
        (
            r#"{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "text", "type": "json_object"}}"#,
            Some("response_format"),
        ),
        (
            r#"{"messages": [{"role": "user", "content": "x"}], "guided_json": {"type": "object", "type": "null"}}"#,
            Some("guided_json"),
        ),
    ] {
        let sent = writing.send(axum::http::Method::POST, "/v1/chat/completions", body).await;
        let (message, at) = sent.error(400, "invalid");
        assert!(message.contains("twice"), "{body}: {message}");
        assert!(param.is_none_or(|param| at.starts_with(param)), "{body}: {at}");
    }
}

/// Resources of a schema, and a schema beside `json_object`.
#[tokio::test(flavor = "multi_thread")]
async fn schemas_may_refer_to_others_that_come_with_them() {
    let writing = writing();
    let refers = json!({"$ref": "https://example.com/on"});
    let resources = json!({"https://example.com/on": {"enum": ["on"]}});
    let definition = json!({"name": "x", "schema": refers, "resources": resources});
    for members in [
        json!({"response_format": {"type": "json_schema", "json_schema": definition}}),
        json!({"structured_outputs": {"json": refers, "resources": resources}}),
        json!({"response_format": {"type": "json_object", "schema": {"const": "on"}}}),
    ] {
        let answer = writing.chat(members.clone()).await.ok();
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert_eq!(text.trim(), "\"on\"", "{members}");
    }
    let format =
        json!({"type": "json_schema", "name": "x", "schema": refers, "resources": resources});
    let body = json!({"model": "tiny", "input": "x", "text": {"format": format}});
    let answer = writing.post("/v1/responses", &body).await.ok();
    let text = answer["output"][0]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.trim(), "\"on\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_effect_is_said() {
    let writing = writing();
    let hosted = json!({"tools": [tool("switch"), {"type": "web_search"}], "tool_choice": "required", "parallel_tool_calls": false});
    let check = |warnings: &Value, words: &[&str]| {
        let warnings = warnings.as_array().unwrap_or_else(|| panic!("{warnings}, not {words:?}"));
        assert_eq!(warnings.len(), words.len(), "{warnings:?}");
        for (warning, words) in warnings.iter().zip(words) {
            assert!(warning.as_str().unwrap().contains(words), "{warning}");
        }
    };
    let left_out = ["\"web_search\" is run by its provider"];
    let whole = writing.chat(hosted.clone()).await.ok();
    check(&whole["warnings"], &left_out);
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    let mut streamed = hosted.clone();
    streamed["stream"] = json!(true);
    let events = writing.chat(streamed).await.events();
    check(&events[0]["warnings"], &left_out);
    assert!(events[1..].iter().all(|event| event.get("warnings").is_none()));
    let body = json!({"model": "tiny", "input": "x", "tools": [{"type": "web_search"}], "max_output_tokens": 3});
    check(&writing.post("/v1/responses", &body).await.ok()["warnings"], &left_out);
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let events = named_events(&writing.post("/v1/responses", &streamed).await);
    check(&events.last().unwrap()["response"]["warnings"], &left_out);
    let answer = writing.post("/v1/masks", &hosted).await.ok();
    check(&answer["warnings"], &left_out);

    let unread = json!({"reasoning_effort": "low", "verbosity": "high", "thinking": {"type": "disabled"},
        "chat_template_kwargs": {"enable_thinkng": false}, "max_tokens": 2});
    let words = [
        "kwargs.enable_thinkng is false",
        "reasoning_effort is low",
        "verbosity is high",
        "thinking.type is",
    ];
    check(&writing.chat(unread).await.ok()["warnings"], &words);
    let of_grammar = json!({"guided_json": {"const": 1, "constt": 2}});
    check(&writing.complete(of_grammar).await.ok()["warnings"], &["constt"]);
    // A template that reads them is told.
    let reasoning = reasoning();
    let read = json!({"verbosity": "high", "thinking": {"type": "disabled"}, "max_tokens": 2});
    let answer = reasoning.chat(read).await.ok();
    assert!(answer.get("warnings").is_none(), "{answer}");
    assert_eq!(answer["usage"]["prompt_tokens"], "Hello\nhigh".len());
    let body = json!({"model": "tiny", "input": "Hello", "text": {"verbosity": "low"}, "reasoning": {"effort": "none"},
        "metadata": {"a": "b"}, "max_output_tokens": 2});
    let answer = reasoning.post("/v1/responses", &body).await.ok();
    assert_eq!(
        (&answer["metadata"]["a"], &answer["text"]["verbosity"]),
        (&json!("b"), &json!("low"))
    );
    assert_eq!(answer["usage"]["input_tokens"], "Hello\nlow".len());
}

/// Format of an answer to a prompt that has begun the reasoning: reasoning until its end, and calls
/// after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_may_begin_the_reasoning() {
    let writing = reasoning();
    let asked = |more: Value| {
        let mut members = json!({"tools": [tool("switch")], "tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 400});
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        members
    };
    // "<" alone leads on, so that the reasoning ends at once.
    let less: u8 = b'<' - b' ';
    let bias = json!({(less.to_string()): 100});
    let answer = writing.chat(asked(json!({"logit_bias": bias, "temperature": 0}))).await.ok();
    let choice = &answer["choices"][0];
    let free = writing.chat(asked(json!({"max_tokens": 20, "finish": "cut"}))).await.ok();
    let message = &free["choices"][0]["message"];
    assert!(!message["reasoning_content"].as_str().unwrap().is_empty(), "{message}");
    assert_eq!(
        (&message["content"], &free["choices"][0]["finish_reason"]),
        (&json!(""), &json!("length"))
    );
    let text = choice["message"]["reasoning_content"].as_str().unwrap_or_default();
    assert!(text.chars().all(|c| c == '<'), "{choice}");
    // Without it the call may come first, by its third letter, and nothing is reasoning.
    let bias = json!({(u8::to_string(&(b'o' - b' '))): 100});
    let off = asked(json!({"reasoning_effort": "none", "logit_bias": bias}));
    let choice = &writing.chat(off).await.ok()["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
}

/// Items of a response that was cut say so, whole and in parts.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_cut_is_incomplete() {
    let flat = json!({"type": "function", "name": "switch", "parameters": schema()});
    let writing = writing();
    let calls = json!({"model": "tiny", "input": "x", "tools": [flat], "tool_choice": "required", "max_output_tokens": 40,
        "parallel_tool_calls": false, "seed": 1, "finish": "cut"});
    let thinks = json!({"model": "tiny", "input": "x", "tools": [flat], "max_output_tokens": 9, "seed": 1, "finish": "cut"});
    for (writing, body, kind, tokens) in
        [(&writing, calls, "function_call", 0), (&reasoning(), thinks, "reasoning", 9)]
    {
        let whole = writing.post("/v1/responses", &body).await.ok();
        let output = whole["output"].as_array().unwrap();
        assert_eq!((output.len(), &whole["status"]), (1, &json!("incomplete")), "{whole}");
        assert_eq!(
            (&output[0]["type"], &output[0]["status"]),
            (&json!(kind), &json!("incomplete"))
        );
        assert_eq!(whole["usage"]["output_tokens_details"]["reasoning_tokens"], tokens);
        let mut streamed = body.clone();
        streamed["stream"] = json!(true);
        let events = named_events(&writing.post("/v1/responses", &streamed).await);
        let last = &events.last().unwrap()["response"];
        assert_eq!(last["output"][0]["status"], "incomplete", "{last}");
        assert_eq!(
            (&last["usage"], last["output"].as_array().unwrap().len()),
            (&whole["usage"], 1)
        );
        assert_eq!((whole.get("finish"), last.get("finish")), (None, None));
    }
}

/// The way in which an answer came to its end in time is told, whole and in parts.
#[tokio::test(flavor = "multi_thread")]
async fn a_gentle_end_is_told() {
    let flat = json!({"type": "function", "name": "switch", "parameters": schema()});
    let writing = writing();
    let mut calls = json!({"model": "tiny", "input": "x", "tools": [flat], "tool_choice": "required", "max_output_tokens": 120,
        "parallel_tool_calls": false, "seed": 1, "finish": "gentle"});
    let whole = writing.post("/v1/responses", &calls).await.ok();
    assert_eq!(whole["status"], "completed", "{whole}");
    let finish = whole["finish"].as_object().unwrap();
    assert_eq!((&finish["rule"], finish.len()), (&json!("gentle"), 3), "{whole}");
    assert!(finish["steered"].is_u64() && finish["leaning"].is_u64(), "{whole}");
    calls["stream"] = json!(true);
    let events = named_events(&writing.post("/v1/responses", &calls).await);
    assert_eq!(events.last().unwrap()["response"]["finish"], whole["finish"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_of_tokens_alone_get_none_before_them() {
    let writing = writing();
    for add in [true, false] {
        let answer =
            writing.complete(json!({"add_special_tokens": add, "max_tokens": 1})).await.ok();
        // The tiny vocabulary has no token that begins a text.
        assert_eq!(answer["usage"]["prompt_tokens"], 4);
    }
}
