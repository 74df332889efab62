//! Refusals of texts, each by its member.

use axum::body::Body;
use axum::http::Method;
use serde_json::{Value, json};

use crate::text::writing;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_answered_is_refused_by_its_member() {
    let writing = writing();
    let deep = "[".repeat(5000);
    let mut wrong = Vec::new();
    for (members, param, words) in [
        (json!({"max_token": 5}), "max_token", "did you mean \"max_tokens\""),
        (json!({"best_of": 3}), "best_of", "only 1"),
        (json!({"n": 0}), "n", "at least 1"),
        (json!({"n": 1_000_000}), "n", "64 answers in all"),
        (json!({"temperature": -1}), "temperature", "at least 0"),
        (json!({"top_p": 0}), "top_p", "above 0"),
        (json!({"max_tokens": 0}), "max_tokens", "at least 1"),
        (json!({"min_tokens": 200}), "min_tokens", "more than"),
        (
            json!({"guided_regex": "[ab]{1,3}", "min_tokens": 4, "max_tokens": 9}),
            "min_tokens",
            "lower min_tokens to 3",
        ),
        (json!({"stop": [""]}), "stop[0]", "empty"),
        (json!({"stop": vec!["x"; 17]}), "stop", "16"),
        (json!({"logit_bias": {"x": 1}}), "logit_bias", "ids of tokens"),
        (json!({"logit_bias": {"70000": 1}}), "logit_bias", "vocabulary"),
        (json!({"stop_token_ids": [70000]}), "stop_token_ids", "vocabulary"),
        (json!({"top_logprobs": 2}), "top_logprobs", "logprobs"),
        (json!({"logprobs": true, "top_logprobs": 50}), "top_logprobs", "20"),
        (json!({"messages": []}), "messages", "no messages"),
        (json!({"messages": [{"role": "robot", "content": ""}]}), "messages", "no robots"),
        (json!({"tool_choice": "required"}), "tool_choice", "no tools"),
        (json!({"deadline_ms": 0}), "deadline_ms", "takes 1 to"),
        (json!({"response_format": {"type": "xml"}}), "response_format.type", "json_schema"),
        (json!({"guided_json": {"type": "thing"}}), "guided_json", "the types are"),
        (json!({"guided_regex": "("}), "guided_regex", ""),
        (json!({"guided_grammar": "start: missing"}), "guided_grammar", "missing"),
        (json!({"guided_json": deep}), "guided_json", ""),
        (json!({"structured_outputs": {"regex": "(?=a)b"}}), "structured_outputs.regex", "no text"),
        (json!({"guided_regex": "a\\bb"}), "guided_regex", "no text"),
        (json!({"guided_grammar": "start: x\nx: x"}), "guided_grammar", "no text"),
        (json!({"guided_grammar": "root ::= root \"a\""}), "guided_grammar", "no text"),
        (json!({"guided_json": false}), "guided_json", ""),
        (
            json!({"messages": [{"role": "clown", "content": "x"}]}),
            "messages[0].role",
            "is no role",
        ),
        (
            json!({"messages": [{"role": "user", "content": "x", "name": "Ann"}]}),
            "messages[0].name",
            "does not read",
        ),
        (json!({"reasoning_effort": "much"}), "reasoning_effort", "there are none, minimal"),
        (json!({"json_form": {"order": "none"}}), "json_form.order", "one of schema, any"),
        (
            json!({"structured_outputs": {"regex": "a", "whitespace_pattern": " *"}}),
            "structured_outputs.whitespace_pattern",
            "json_form",
        ),
        (json!({"guided_json": {}, "guided_regex": "a"}), "guided_regex", "one grammar"),
    ] {
        let shown = members.to_string().chars().take(80).collect::<String>();
        let (message, at) = writing.chat(members).await.error(400, "invalid");
        if at != param || !message.contains(words) {
            wrong.push(format!("{shown}: {at}: {message}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for prompt in [json!([]), json!(""), json!([[]]), json!([70000])] {
        writing.complete(json!({"prompt": prompt})).await.error(400, "invalid");
    }
    let (message, at) = writing.chat(json!({"model": "other"})).await.error(404, "model_not_found");
    assert!(message.contains("tiny") && at == "model", "{message}");
    let path = "/v1/chat/completions";
    writing.send(Method::POST, path, "{").await.error(400, "not-json");
    writing.send(Method::POST, path, "[]").await.error(400, "invalid");
    writing.send(Method::GET, path, Body::empty()).await.error(405, "method-not-allowed");
    let large = format!("{{\"messages\": \"{}\"}}", "x".repeat(17 << 20));
    writing.send(Method::POST, path, large).await.error(413, "too-large");
    let (message, _) = writing
        .chat(json!({"deadline_ms": 1, "max_tokens": 500, "ignore_eos": true}))
        .await
        .error(504, "deadline-missed");
    assert!(message.contains("deadline_ms"), "{message}");
}

/// Clients cut conversations by this code.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_the_context_has_a_code() {
    let writing = writing();
    let long = json!([{"role": "user", "content": "x".repeat(700)}]);
    for members in
        [json!({"messages": long}), json!({"max_tokens": 5000}), json!({"max_tokens": 590})]
    {
        let (message, _) = writing.chat(members).await.error(400, "context_length_exceeded");
        assert!(message.contains("shorten") || message.contains("ask for"), "{message}");
    }
    writing
        .complete(json!({"prompt": "x".repeat(700)}))
        .await
        .error(400, "context_length_exceeded");
}

/// Each call has an id of its own and one result at most, in the words of every interface.
#[tokio::test(flavor = "multi_thread")]
async fn results_are_of_calls_that_were_made() {
    let writing = writing();
    let user = || json!({"role": "user", "content": "a"});
    let calls = |ids: &[&str]| {
        let one = |id: &&str| {
            let function = json!({"name": "f", "arguments": "{}"});
            json!({"id": id, "type": "function", "function": function})
        };
        json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(one).collect::<Vec<_>>()})
    };
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "7"});
    let asked = json!({"messages": [user(), calls(&["a", "b"]), result("a"), result("b"), user()], "max_tokens": 2});
    assert_eq!(writing.chat(asked).await.ok()["object"], "chat.completion");
    // The assistant's message with the call is cut off from the front.
    for (messages, param, words) in [
        (json!([result("a"), user()]), "messages[0].tool_call_id", "cut this result off with them"),
        (
            json!([user(), calls(&["a"]), result("b")]),
            "messages[2].tool_call_id",
            "no call before it has the id \"b\"",
        ),
        (
            json!([user(), calls(&["a"]), result("a"), result("a")]),
            "messages[3].tool_call_id",
            "has a result already",
        ),
        (
            json!([user(), calls(&["a", "a"])]),
            "messages[1].tool_calls[1].id",
            "two calls have the id \"a\"",
        ),
    ] {
        let (message, at) = writing.chat(json!({"messages": messages})).await.error(400, "invalid");
        assert!(at == param && message.contains(words), "{at}: {message}");
        let prompt = writing.post("/tokenize", &json!({"messages": messages})).await;
        assert_eq!(prompt.error(400, "invalid").1, param);
    }
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "7"});
    let ask = async |input: Value| {
        writing.post("/v1/responses", &json!({"model": "tiny", "input": input})).await
    };
    for (input, param, words) in [
        (json!([output("a")]), "input[0].call_id", "cut this result off with them"),
        (json!([call("a"), call("a")]), "input[1].call_id", "two calls have the id"),
        (json!([call("a"), output("a"), output("a")]), "input[2].call_id", "has a result already"),
    ] {
        let (message, at) = ask(input).await.error(400, "invalid");
        assert!(at == param && message.contains(words), "{at}: {message}");
    }
}

/// An error names members as who asks has spelled them.
#[tokio::test(flavor = "multi_thread")]
async fn members_have_the_names_of_their_interface() {
    let writing = writing();
    let (message, at) = writing
        .chat(json!({"max_tokens": null, "max_completion_tokens": 0}))
        .await
        .error(400, "invalid");
    assert_eq!(
        (&*message, &*at),
        ("max_completion_tokens is 0; it must be at least 1", "max_completion_tokens")
    );
    for (members, wanted, param) in [
        (
            json!({"max_output_tokens": 0}),
            "max_output_tokens is 0; it must be at least 1",
            "max_output_tokens",
        ),
        (
            json!({"max_output_tokens": 3, "min_tokens": 9}),
            "min_tokens is 9, more than the 3 of max_output_tokens",
            "min_tokens",
        ),
        (
            json!({"text": {"verbosity": "x"}}),
            "text.verbosity is \"x\"; there are low, medium, high",
            "text.verbosity",
        ),
        (
            json!({"reasoning": {"effort": "x"}}),
            "reasoning.effort is \"x\"; there are none",
            "reasoning.effort",
        ),
    ] {
        let mut body = json!({"model": "tiny", "input": "Hello"});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let (message, at) = writing.post("/v1/responses", &body).await.error(400, "invalid");
        assert!(message.starts_with(wanted) && at == param, "{at}: {message}");
    }
    let beyond =
        r#"{"model": "tiny", "messages": [], "use_beam_search": true, "length_penalty": -1e308}"#;
    let beyond = writing.send(Method::POST, "/v1/chat/completions", beyond).await;
    let (message, at) = beyond.error(400, "invalid");
    let wanted = "length_penalty is -1e308; it must be a number from -3.4e38 to 3.4e38";
    assert_eq!((&*message, &*at), (wanted, "length_penalty"));
    let (message, _) = writing
        .chat(json!({"use_beam_search": true, "length_penalty": 11}))
        .await
        .error(400, "invalid");
    assert_eq!(message, "length_penalty is 11; it must be from -10 to 10");
}

/// A key that stands twice in a tool is told with its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_stands_twice_in_a_tool_is_refused_with_its_place() {
    let body = r#"{"model": "tiny", "messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": "f",
        "parameters": {"properties": {"city": {"type": "string", "type": "integer"}}}}}]}"#;
    let (message, at) =
        writing().send(Method::POST, "/v1/chat/completions", body).await.error(400, "invalid");
    let wanted =
        "tools[0] has the key \"type\" twice, in function.parameters.properties.city; give it once";
    assert_eq!((&*message, &*at), (wanted, "tools[0]"));
}
