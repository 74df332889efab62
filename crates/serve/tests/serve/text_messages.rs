//! Texts over Anthropic's interface: the same answers as over OpenAI's, whole and in parts.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use palmette_serve::{NewKey, Scope};
use palmette_text::engine::EngineOptions;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::shop::config;
use crate::text::{
    Answered, Writing, check_lamp, format, schema, writing, writing_by, writing_with,
};

fn message(members: Value) -> Value {
    let mut body = json!({
        "model": "tiny", "messages": [{"role": "user", "content": "Hello"}], "seed": 1, "max_tokens": 100});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

async fn ask(writing: &Writing, members: Value) -> Answered {
    writing.post("/v1/messages", &message(members)).await
}

/// The error's kind, message and member.
#[track_caller]
fn error(answered: &Answered, status: u16) -> (String, String, String) {
    assert_eq!(answered.status.as_u16(), status, "{}", answered.text);
    let body: Value = serde_json::from_str(&answered.text).expect("JSON");
    assert_eq!(body["type"], "error", "{body}");
    assert_eq!(body["request_id"], answered.headers["x-request-id"].to_str().unwrap());
    let member = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    (member("type"), member("message"), member("param"))
}

/// Puts the message together from its events, as Anthropic's clients do.
#[track_caller]
fn put_together(answered: &Answered) -> Value {
    assert_eq!(answered.status, StatusCode::OK, "{}", answered.text);
    let mut message = Value::Null;
    let (mut open, mut json_text) = (None, String::new());
    let mut is_stopped = false;
    for event in answered.text.split_terminator("\n\n") {
        let (name, data) = event.split_once('\n').expect("two lines");
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).expect("JSON");
        assert_eq!(name.strip_prefix("event: "), data["type"].as_str(), "{event}");
        assert!(!is_stopped, "{event}");
        match data["type"].as_str().unwrap() {
            "message_start" => message = data["message"].clone(),
            "content_block_start" => {
                let content = message["content"].as_array_mut().unwrap();
                assert_eq!((open, &data["index"]), (None, &json!(content.len())));
                open = Some(content.len());
                content.push(data["content_block"].clone());
                json_text.clear();
            }
            "content_block_delta" => {
                assert_eq!(data["index"].as_u64(), open.map(|open| open as u64));
                let block = &mut message["content"][open.unwrap()];
                let delta = &data["delta"];
                let add = |block: &mut Value, name: &str| {
                    let text = block[name].as_str().unwrap().to_owned();
                    block[name] = json!(text + delta[name].as_str().unwrap());
                };
                match delta["type"].as_str().unwrap() {
                    "text_delta" => add(block, "text"),
                    "thinking_delta" => add(block, "thinking"),
                    "input_json_delta" => {
                        json_text += delta["partial_json"].as_str().unwrap();
                        match serde_json::from_str(&json_text) {
                            Ok(input) => block["input"] = input,
                            Err(_) => block["input"] = json!({}),
                        }
                    }
                    other => panic!("{other}"),
                }
            }
            "content_block_stop" => {
                assert_eq!(data["index"].as_u64(), open.take().map(|open: usize| open as u64));
            }
            "message_delta" => {
                for (name, value) in data["delta"].as_object().unwrap() {
                    message[name] = value.clone();
                }
                message["usage"] = data["usage"].clone();
                if let Some(finish) = data.get("finish") {
                    message["finish"] = finish.clone();
                }
            }
            "message_stop" => is_stopped = true,
            other => panic!("{other}"),
        }
    }
    assert!(is_stopped && open.is_none(), "{}", answered.text);
    message["id"] = Value::Null;
    for block in message["content"].as_array_mut().unwrap() {
        block.as_object_mut().unwrap().remove("id");
    }
    message
}

/// Asks for a message whole and in parts, which must be equal.
async fn both(writing: &Writing, members: Value) -> Value {
    let whole = ask(writing, members.clone()).await.ok();
    let mut streamed = members;
    streamed["stream"] = json!(true);
    let mut parts = put_together(&ask(writing, streamed).await);
    let mut same = whole.clone();
    for document in [&mut same, &mut parts] {
        document["id"] = Value::Null;
        for block in document["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("id");
            block.as_object_mut().unwrap().remove("partial_json");
        }
    }
    assert_eq!(same, parts);
    whole
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_chats_in_other_words() {
    let writing = writing();
    let form = json!({"format": {"type": "json_schema", "schema": schema()}});
    let whole = both(&writing, json!({"output_config": form})).await;
    assert_eq!((&whole["type"], &whole["role"]), (&json!("message"), &json!("assistant")));
    assert_eq!(
        (&whole["stop_reason"], &whole["stop_sequence"]),
        (&json!("end_turn"), &Value::Null)
    );
    assert_eq!(whole["content"].as_array().map(Vec::len), Some(1));
    let text = whole["content"][0]["text"].as_str().unwrap();
    check_lamp(text);
    let chat = writing.chat(json!({"response_format": format()})).await.ok();
    assert_eq!(chat["choices"][0]["message"]["content"], text);
    let usage = &whole["usage"];
    assert_eq!(usage["input_tokens"], "[user] Hello\n[assistant] ".len());
    assert_eq!(usage["output_tokens"], chat["usage"]["completion_tokens"]);
    let counted = writing.post("/v1/messages/count_tokens", &message(json!({}))).await.ok();
    assert_eq!(counted, json!({"input_tokens": usage["input_tokens"]}));
    let more = message(json!({"system": [{"type": "text", "text": "Be short."}]}));
    let counted = writing.post("/v1/messages/count_tokens", &more).await.ok();
    let system = "[system] Be short.\n".len() as u64;
    assert_eq!(counted["input_tokens"], usage["input_tokens"].as_u64().unwrap() + system);

    // Words of the assistant at the end are gone on with.
    let begun = json!([
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "text", "text": "So"}]},
    ]);
    let on = both(&writing, json!({"messages": begun, "max_tokens": 5, "ignore_eos": true})).await;
    let same = json!({"messages": begun, "max_tokens": 5, "ignore_eos": true, "continue_final_message": true});
    let chat = writing.chat(same).await.ok();
    assert_eq!(on["content"][0]["text"], chat["choices"][0]["message"]["content"]);
    assert_eq!(on["usage"]["input_tokens"], "[user] Hello\n[assistant] So".len());

    // Why a message ended.
    let cut = both(&writing, json!({"max_tokens": 3, "ignore_eos": true})).await;
    assert_eq!(
        (&cut["stop_reason"], &cut["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(3))
    );
    let until = json!({"structured_outputs": {"regex": "ab(cd)+"}, "stop_sequences": ["cd"]});
    let stopped = both(&writing, until).await;
    assert_eq!(
        (&stopped["stop_reason"], &stopped["stop_sequence"]),
        (&json!("stop_sequence"), &json!("cd"))
    );
    assert_eq!(stopped["content"], json!([{"type": "text", "text": "ab"}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_called_and_what_they_gave_is_read() {
    let writing = writing();
    let tool =
        json!({"name": "switch", "input_schema": schema(), "cache_control": {"type": "ephemeral"}});
    for choice in [json!({"type": "any"}), json!({"type": "tool", "name": "switch"})] {
        let mut choice = choice;
        choice["disable_parallel_tool_use"] = json!(true);
        let called = both(&writing, json!({"tools": [tool], "tool_choice": choice})).await;
        assert_eq!(called["stop_reason"], "tool_use");
        let call = &called["content"][0];
        assert_eq!((&call["type"], &call["name"]), (&json!("tool_use"), &json!("switch")));
        check_lamp(&call["input"].to_string());
        let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "done"});
        let answer = ask(
            &writing,
            json!({
                "messages": [
                    {"role": "user", "content": "Hello"},
                    {"role": "assistant", "content": called["content"]},
                    {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
                ],
                "tools": [tool], "tool_choice": {"type": "none"}, "max_tokens": 3, "ignore_eos": true,
            }),
        );
        assert_eq!(answer.await.ok()["stop_reason"], "max_tokens");
    }
    // A call that the limit cuts off says how far it came.
    let cut =
        json!({"tools": [tool], "tool_choice": {"type": "any"}, "max_tokens": 40, "finish": "cut"});
    let cut = both(&writing, cut).await;
    assert_eq!(
        (&cut["stop_reason"], &cut["content"][0]["input"]),
        (&json!("max_tokens"), &json!({}))
    );
    assert!(cut["content"][0]["partial_json"].is_string(), "{cut}");
    let stopped = json!({"tools": [tool], "tool_choice": {"type": "any"}, "max_tokens": 200, "stop_sequences": ["colour"]});
    let stopped = both(&writing, stopped).await;
    assert_eq!(
        (&stopped["stop_reason"], &stopped["stop_sequence"]),
        (&json!("stop_sequence"), &json!("colour"))
    );
    // Tools that a provider runs are left out, which is said.
    let hosted = json!({"type": "web_search_20250305", "name": "web_search"});
    let left_out = both(&writing, json!({"tools": [hosted, tool], "tool_choice": {"type": "any"}, "thinking": {"type": "adaptive"}})).await;
    assert_eq!(left_out["content"][0]["name"], "switch");
    assert!(left_out["warnings"][0].as_str().unwrap().contains("web_search"), "{left_out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_is_a_block_of_its_own() {
    let template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% for t in tools or [] %}{{ t.function.name }}\n{% endfor %}\
        {% if add_generation_prompt %}[assistant] <think>{% endif %}";
    let reasoning = writing_by(config(), EngineOptions::default(), template, "hermes");
    let tool = json!({"name": "f", "input_schema": {"type": "object", "properties": {}, "additionalProperties": false}});
    let both = both(
        &reasoning,
        json!({"tools": [tool], "tool_choice": {"type": "any"}, "max_tokens": 200}),
    )
    .await;
    let kinds: Vec<&str> = both["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.first(), Some(&"thinking"), "{both}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_anthropics_form() {
    let writing = writing();
    for (members, param) in [
        (json!({"messages": 3}), "messages"),
        (json!({"messages": [{"role": "robot", "content": "a"}]}), "messages[0]"),
        (
            json!({"system": "s", "messages": [{"role": "user", "content": [{"type": "image"}]}]}),
            "messages[0].content[0].type",
        ),
        (json!({"output_config": {"format": {"type": "xml"}}}), "output_config.format"),
        (json!({"tools": [{"name": "f", "input_schema": {"type": "nothing"}}]}), "tools"),
        (json!({"container": "c"}), "container"),
        (
            json!({"output_config": {"format": {}}, "response_format": {"type": "text"}}),
            "response_format",
        ),
        (json!({"max_token": 3}), "max_token"),
        (json!({"max_tokens": null}), "max_tokens"),
        (json!({"temperature": -1}), "temperature"),
        (json!({"output_config": {"effort": "x"}}), "output_config.effort"),
    ] {
        let answered = ask(&writing, members.clone()).await;
        let (kind, message, at) = error(&answered, 400);
        assert_eq!(kind, "invalid_request_error");
        assert!(at.starts_with(param) && !message.is_empty(), "{members}: {at}: {message}");
        assert!(!message.contains("function/parameters"), "{message}");
        // Lines and columns would be those of a text that nobody wrote.
        assert!(!message.starts_with(|c: char| c.is_ascii_digit()), "{message}");
        let mut streamed = members;
        streamed["stream"] = json!(true);
        assert_eq!(error(&ask(&writing, streamed).await, 400).1, message);
    }
    let (_, message, _) = error(&ask(&writing, json!({"max_tokens": null})).await, 400);
    assert!(message.contains("max_tokens is missing") && message.contains("give it"), "{message}");
    // The tokens of a prompt are counted without it.
    let counted = self::message(json!({"max_tokens": null}));
    assert!(
        writing.post("/v1/messages/count_tokens", &counted).await.ok()["input_tokens"].is_u64()
    );
    let (kind, message, _) = error(&ask(&writing, json!({"model": "other"})).await, 404);
    assert!(kind == "not_found_error" && message.contains("tiny"), "{message}");
    let nowhere = Request::post("/v1/messages/batches").header("host", "localhost");
    let Ok(answer) = writing.router.clone().oneshot(nowhere.body(Body::empty()).unwrap()).await;
    let (parts, body) = answer.into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let answered = Answered { status: parts.status, headers: parts.headers, text };
    assert_eq!(error(&answered, 404).0, "not_found_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_taken_from_the_header_of_anthropics_clients() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let made = NewKey::make("a", &[Scope::Text], &["tiny".to_owned()]).unwrap();
    std::fs::write(file.path(), &made.line).unwrap();
    let mut config = config();
    config.keys = Some(file.path().to_owned());
    let writing = writing_with(config, EngineOptions::default());
    let status = async |header: &str, key: &str| {
        let request = Request::post("/v1/messages").header("host", "localhost").header(header, key);
        let body = message(json!({"max_tokens": 2})).to_string();
        let Ok(response) =
            writing.router.clone().oneshot(request.body(Body::from(body)).unwrap()).await;
        response.status().as_u16()
    };
    assert_eq!(status("x-api-key", &made.key).await, 200);
    assert_eq!(status("authorization", &format!("Bearer {}", made.key)).await, 200);
    assert_eq!(status("x-api-key", &format!("{}x", made.key)).await, 401);
    assert_eq!(status("x-other", &made.key).await, 401);
}
